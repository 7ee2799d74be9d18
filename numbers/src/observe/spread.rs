//! How values are spread: a histogram of 1 % precision, which costs next to nothing while there are few values.

use std::time::Duration;

use hdrhistogram::Histogram;

/// So many values are kept as they are.
const FEW: usize = 64;

/// Values of 0 to 2⁴⁰, each with a weight; those of 256 and more to 1 %.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    kept: Kept,
    largest: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Kept {
    Few(Vec<(u64, u64)>),
    Many(Box<Histogram<u64>>),
}

impl Default for Spread {
    fn default() -> Self {
        Self { kept: Kept::Few(Vec::new()), largest: 0 }
    }
}

impl Spread {
    /// What is beyond counts as this: 12 days in microseconds.
    const MOST: u64 = 1 << 40;

    /// Takes in `weight` times `value`.
    pub fn add(&mut self, value: u64, weight: u64) {
        let value = value.min(Self::MOST);
        if weight == 0 {
            return;
        }
        self.largest = self.largest.max(value);
        if let Kept::Few(values) = &mut self.kept {
            if let Some((_, held)) = values.iter_mut().find(|(held, _)| *held == value) {
                *held = held.saturating_add(weight);
                return;
            }
            if values.len() < FEW {
                return values.push((value, weight));
            }
            self.kept = Kept::Many(Box::new(self.histogram()));
        }
        if let Kept::Many(histogram) = &mut self.kept {
            record(histogram, value, weight);
        }
    }

    fn histogram(&self) -> Histogram<u64> {
        match &self.kept {
            Kept::Many(histogram) => Histogram::clone(histogram),
            Kept::Few(values) => {
                let mut histogram = empty();
                for (value, weight) in values {
                    record(&mut histogram, *value, *weight);
                }
                histogram
            }
        }
    }

    fn with<T>(&self, read: impl FnOnce(&Histogram<u64>) -> T) -> T {
        match &self.kept {
            Kept::Many(histogram) => read(histogram),
            Kept::Few(_) => read(&self.histogram()),
        }
    }

    /// All weights together.
    #[must_use]
    pub fn weight(&self) -> u64 {
        match &self.kept {
            Kept::Many(histogram) => histogram.len(),
            Kept::Few(values) => values.iter().fold(0, |sum, (_, weight)| sum.saturating_add(*weight)),
        }
    }

    /// The largest value; 0 if there is none.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// The value that the share `quantile` of the weight doesn't exceed; 0 if there is none.
    #[must_use]
    pub fn at(&self, quantile: f64) -> u64 {
        self.with(|histogram| histogram.value_at_quantile(quantile)).min(self.largest)
    }

    /// The share of the weight that is above `value`, or above one within 1 % of it; 0 if there is none.
    #[must_use]
    pub fn share_above(&self, value: u64) -> f64 {
        let whole = self.weight();
        if whole == 0 || value >= self.largest {
            return 0.0;
        }
        self.with(|histogram| histogram.count_between(value.saturating_add(1), Self::MOST)) as f64 / whole as f64
    }

    /// The mean; 0 if there is none.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.with(Histogram::mean)
    }
}

fn empty() -> Histogram<u64> {
    let mut histogram =
        Histogram::new_with_max(1 << 16, 2).unwrap_or_else(|error| unreachable!("a sound size: {error}"));
    histogram.auto(true);
    histogram
}

fn record(histogram: &mut Histogram<u64>, value: u64, weight: u64) {
    // It grows as far as it must, and values are bounded.
    let recorded = histogram.record_n(value, weight);
    debug_assert!(recorded.is_ok());
}

/// Whole microseconds, as latencies are kept.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_values_tell_the_same() {
        let (mut few, mut many) = (Spread::default(), Spread::default());
        for value in 0..60 {
            few.add(value, 1_000);
        }
        for n in 0..60_000 {
            many.add(n % 60 + (n / 59_999) * 10_000, 1);
        }
        assert!(matches!((&few.kept, &many.kept), (Kept::Few(_), Kept::Few(_))));
        for value in 100..200 {
            many.add(value, 1);
        }
        assert!(matches!(many.kept, Kept::Many(_)));
        assert_eq!((few.at(0.5), many.at(0.49)), (29, 29));
        assert_eq!(few.at(1.0), 59);
        assert!((few.share_above(44) - 0.25).abs() < 1e-9);
        assert!((few.mean() - 29.5).abs() < 1e-9);
        assert_eq!(few.share_above(59), 0.0);
    }

    #[test]
    fn values_are_kept_to_one_per_cent() {
        let mut spread = Spread::default();
        for n in 1..=100_000_u64 {
            spread.add(n * 1_000, 1);
        }
        for (quantile, right) in [(0.01, 1e6), (0.5, 5e7), (0.99, 9.9e7), (0.999, 9.99e7)] {
            let told = spread.at(quantile) as f64;
            assert!((told / right - 1.0).abs() < 0.01, "{quantile}: {told}");
        }
        // The share above a value within 1 % of the one asked for.
        let above = spread.share_above(90_000_000);
        assert!((0.09..0.11).contains(&above), "{above}");
    }

    #[test]
    fn nothing_and_far_too_much_are_no_special_cases() {
        let mut spread = Spread::default();
        assert_eq!((spread.at(0.99), spread.weight(), spread.share_above(0), spread.mean()), (0, 0, 0.0, 0.0));
        spread.add(u64::MAX, 1 << 60);
        spread.add(3, 1 << 60);
        assert_eq!((spread.largest(), spread.weight()), (Spread::MOST, 1 << 61));
        assert_eq!((spread.at(0.5), spread.at(1.0)), (3, Spread::MOST));
    }
}
