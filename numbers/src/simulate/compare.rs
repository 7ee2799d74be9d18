//! Variants side by side, each from the same seeds.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use super::model;
use super::record::{Run, Series, Totals};
use super::scenario::{Model, Variant};

/// What the variants came to.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    pub(super) seeds: Vec<u64>,
    /// In the order of the scenario.
    pub(super) variants: Vec<Compared>,
}

#[derive(Clone, Debug)]
pub(super) struct Compared {
    pub(super) name: String,
    /// One for each seed.
    pub(super) runs: Vec<Run>,
}

/// A value over all seeds: the middle one, the least and the most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// Runs all of them, on as many cores as there are; the result is the same on one. `progress` hears how many steps are done.
pub(super) fn compare(model: &Model, variants: &[Variant], seeds: u32, progress: impl Fn(u64) + Sync) -> Comparison {
    let seeds: Vec<u64> = (0..u64::from(seeds)).map(|further| model.seed + further).collect();
    let jobs: Vec<(&Variant, u64)> =
        variants.iter().flat_map(|variant| seeds.iter().map(move |seed| (variant, *seed))).collect();
    let done = AtomicU64::new(0);
    let tick = || progress(done.fetch_add(1, Ordering::Relaxed) + 1);
    let mut runs = jobs
        .into_par_iter()
        .map(|(variant, seed)| model::run(model, variant, seed, tick))
        .collect::<Vec<_>>()
        .into_iter();
    let compared = variants
        .iter()
        .map(|variant| Compared { name: variant.name.clone(), runs: runs.by_ref().take(seeds.len()).collect() })
        .collect();
    Comparison { seeds, variants: compared }
}

impl Spread {
    /// Of values of which none need be there; NaN if none is.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
        let last = values.len().saturating_sub(1);
        Self { median: f64::midpoint(at(last / 2), at(last.div_ceil(2))), low: at(0), high: at(last) }
    }
}

impl Compared {
    /// A figure of an upstream.
    pub(super) fn figure(&self, upstream: usize, figure: fn(&Totals) -> f64) -> Spread {
        Spread::of(self.runs.iter().map(|run| figure(&run.upstreams[upstream].totals)))
    }

    /// A figure over time.
    pub(super) fn series(&self, upstream: usize, of: fn(&Series) -> &Vec<f64>) -> Vec<Spread> {
        let all: Vec<&Vec<f64>> = self.runs.iter().map(|run| of(&run.upstreams[upstream].series)).collect();
        let steps = all.first().map_or(0, |first| first.len());
        (0..steps).map(|step| Spread::of(all.iter().map(|values| values[step]))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_middle_and_the_ends_of_what_is_there() {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0, f64::NAN, 2.0]), Spread { median: 2.0, low: 1.0, high: 3.0 });
        assert_eq!(of(&[4.0, 1.0]), Spread { median: 2.5, low: 1.0, high: 4.0 });
        assert!(of(&[]).median.is_nan());
    }
}
