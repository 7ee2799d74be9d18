//! How often a window's rules are met by chance.
//!
//! Overlapping windows are alike: each differs from the one before by a call or two, so their chances don't multiply and "the share of bad windows"
//! isn't the rate of trips. What is exact here and what a bound is said at each function, for independent calls.

use super::{binomial_at_least, binomial_pmf, is_amount, is_share, poisson_pmf};

/// The rules on a window's failures, as in an engine's policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// Calls that the window must hold for the rate to be judged.
    pub min_calls: u32,
    /// The share of failures that trips, above 0 to 1; judged in hundredths of a per cent, as the engine does.
    pub failure_rate: Option<f64>,
    /// The number of failures that trips, however few the calls.
    pub failures: Option<u32>,
}

impl Rules {
    /// Returns the fewest failures among so many calls that meet a rule, at least 1; none if no number does.
    #[must_use]
    pub fn fewest(&self, calls: u64) -> Option<u64> {
        let by_rate = self.failure_rate.filter(|_| calls >= u64::from(self.min_calls)).and_then(|rate| {
            let basis_points = (rate * 10_000.0).round();
            // More failures than calls there can't be, so a rate above 1 is never met.
            let is_share = (1.0..=10_000.0).contains(&basis_points);
            let fewest = (u128::from(calls) * basis_points as u128).div_ceil(10_000);
            u64::try_from(fewest).ok().filter(|_| is_share)
        });
        let by_number = self.failures.map(u64::from);
        by_rate.into_iter().chain(by_number).min().map(|fewest| fewest.max(1)).filter(|fewest| *fewest <= calls)
    }
}

/// A window of the last so many calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallsWindow {
    /// How many calls it holds: 1 to 100 in an engine.
    pub calls: u32,
    /// What is judged.
    pub rules: Rules,
}

impl CallsWindow {
    /// Returns the probability that a window that starts empty trips before it has slid by a call: within the first `calls`.
    ///
    /// Exact, by the chain of (calls, failures) with what tripped taken out. A circuit starts empty each time it closes, so this is also the
    /// chance that a recovery ends by noise. NaN unless `failure` is a probability and the window holds at most 10,000 calls, of which each takes
    /// as many steps.
    #[must_use]
    pub fn trips_while_filling(&self, failure: f64) -> f64 {
        if !is_share(failure) || self.calls > 10_000 {
            return f64::NAN;
        }
        // By failures so far, of those that didn't trip.
        let mut alive = vec![1.0];
        let mut tripped = 0.0;
        for calls in 1..=u64::from(self.calls) {
            alive.push(0.0);
            for failures in (0..alive.len()).rev() {
                let before = if failures == 0 { 0.0 } else { alive[failures - 1] };
                alive[failures] = alive[failures] * (1.0 - failure) + before * failure;
            }
            if let Some(fewest) = self.rules.fewest(calls) {
                // The smallest first, so that none is lost in the sum.
                tripped += alive.drain(fewest as usize..).rev().sum::<f64>();
                alive.resize(calls as usize + 1, 0.0);
            }
        }
        tripped
    }

    /// Returns an upper bound on the trips per call of a full window: the rate at which it would cross its threshold upwards if nothing stopped it.
    ///
    /// The crossing rate is exact: the newest call fails, the one that leaves the window had succeeded, and the others hold one failure less than
    /// the threshold: p (1 - p) b(k - 1; n - 1, p). Crossings come in clumps of which an engine sees the first, so its trips are fewer. Where they are
    /// rare they are at least 1 - n p / k of the bound, about the chance that a window which has come down from k doesn't reach it again (D. Aldous,
    /// "Probability Approximations via the Poisson Clumping Heuristic", 1989, chapter B). Of windows known not to have tripped for long, more may
    /// trip, by about a relative n times the bound: nothing where trips are rare. NaN unless `failure` is a probability.
    #[must_use]
    pub fn trips_per_call(&self, failure: f64) -> f64 {
        let Some(fewest) = self.rules.fewest(self.calls.into()) else {
            return if is_share(failure) { 0.0 } else { f64::NAN };
        };
        failure * (1.0 - failure) * binomial_pmf(fewest - 1, u64::from(self.calls) - 1, failure)
    }

    /// Returns the probability that a full window meets a rule at a given call: the binomial tail, exact.
    ///
    /// It isn't the rate of trips: the windows of the next calls are nearly the same one. NaN unless `failure` is a probability.
    #[must_use]
    pub fn is_met(&self, failure: f64) -> f64 {
        match self.rules.fewest(self.calls.into()) {
            Some(fewest) => binomial_at_least(fewest, self.calls.into(), failure),
            None if is_share(failure) => 0.0,
            None => f64::NAN,
        }
    }
}

/// A window of the last so many seconds, in buckets of which the oldest leaves as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeWindow {
    /// Its length in seconds, above 0.
    pub seconds: f64,
    /// In how many buckets: 1 to 64 in an engine.
    pub buckets: u32,
    /// What is judged.
    pub rules: Rules,
}

/// At how many places a range of time is sampled: the sums are means over it.
const PLACES: u32 = 16;
/// So many deviations around the mean number of calls hold all but 1e-22 of them.
const DEVIATIONS: f64 = 10.0;

impl TimeWindow {
    /// Returns an upper bound on the trips per second where calls come as a Poisson process and fail independently: the rate at which a rule gets
    /// met.
    ///
    /// A call that ends meets it, in a window that lasts from all buckets but one to all of them, evenly; or the oldest bucket takes successes
    /// away, for which the chance that all buckets but one meet it is taken. Crossings come in clumps, of which an engine sees the first. NaN outside
    /// of the domain, or above 100 million calls in the window.
    #[must_use]
    pub fn trips_per_second(&self, calls_per_second: f64, failure: f64) -> f64 {
        if !self.is_in_domain(calls_per_second, failure) {
            return f64::NAN;
        }
        let bucket = self.seconds / f64::from(self.buckets);
        let shortest = self.seconds - bucket;
        let by_calls = mean(|place| self.met_per_call((shortest + place * bucket) * calls_per_second, failure));
        // A number of failures can't be met by calls that leave.
        let by_leaving = Rules { failures: None, ..self.rules };
        let leaving = tail(by_leaving, shortest * calls_per_second, failure) / bucket;
        by_calls * calls_per_second + leaving
    }

    /// Returns an upper bound on the probability that a window that starts empty trips before it is full, as
    /// [`trips_per_second`](Self::trips_per_second).
    #[must_use]
    pub fn trips_while_filling(&self, calls_per_second: f64, failure: f64) -> f64 {
        if !self.is_in_domain(calls_per_second, failure) {
            return f64::NAN;
        }
        let calls = calls_per_second * self.seconds;
        // Small counts come first and fast: more places where time is short.
        let met = mean(|place| 2.0 * place * self.met_per_call(place * place * calls, failure));
        (met * calls).min(1.0)
    }

    fn is_in_domain(&self, calls_per_second: f64, failure: f64) -> bool {
        let calls = calls_per_second * self.seconds;
        is_share(failure) && is_amount(calls_per_second) && calls <= 1e8 && self.seconds > 0.0 && self.buckets > 0
    }

    /// The chance that a call meets a rule that the calls before it didn't meet, where so many are expected before it.
    fn met_per_call(&self, mean: f64, failure: f64) -> f64 {
        around(mean, |calls| {
            let Some(after) = self.rules.fewest(calls + 1) else { return 0.0 };
            let before = self.rules.fewest(calls).unwrap_or(calls + 1);
            let is_before_met = |failures: u64| failures >= before;
            // Either the call fails, with one failure less before it, or it makes the calls enough.
            let exactly =
                |failures: u64| if is_before_met(failures) { 0.0 } else { binomial_pmf(failures, calls, failure) };
            let completing = if before > after {
                binomial_at_least(after, calls, failure) - binomial_at_least(before, calls, failure)
            } else {
                0.0
            };
            failure * exactly(after - 1) + completing.max(0.0)
        })
    }
}

/// The chance that rules are met where calls are Poisson distributed.
fn tail(rules: Rules, mean: f64, failure: f64) -> f64 {
    around(mean, |calls| rules.fewest(calls).map_or(0.0, |fewest| binomial_at_least(fewest, calls, failure)))
}

/// The mean of what is true for so many calls, over a Poisson distribution.
fn around(mean: f64, chance: impl Fn(u64) -> f64) -> f64 {
    let spread = DEVIATIONS * mean.sqrt() + DEVIATIONS;
    let range = (mean - spread).max(0.0) as u64..=(mean + spread) as u64;
    range.map(|calls| poisson_pmf(calls, mean) * chance(calls)).sum()
}

/// The mean over places from 0 to 1.
fn mean(at: impl Fn(f64) -> f64) -> f64 {
    (0..PLACES).map(|place| at((f64::from(place) + 0.5) / f64::from(PLACES))).sum::<f64>() / f64::from(PLACES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(min_calls: u32, failure_rate: f64) -> Rules {
        Rules { min_calls, failure_rate: Some(failure_rate), failures: None }
    }

    /// All windows of up to so many calls as bits under a sentinel, the engine's own picture, with those that trip taken out: the chance to trip
    /// while filling, and the trips per call once the windows have slid for long.
    fn by_every_window(window: CallsWindow, failure: f64) -> (f64, f64) {
        let size = window.calls;
        let mut alive = vec![0.0; 2 << size];
        alive[1] = 1.0;
        let mut filling = 0.0;
        let mut hazard = 0.0;
        for call in 1..=20 * u64::from(size) {
            let mut next = vec![0.0; 2 << size];
            let mut tripped = 0.0;
            for (bits, weight) in alive.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
                for (failed, chance) in [(0, 1.0 - failure), (1, failure)] {
                    let mut after = (bits << 1) | failed;
                    if after >= 2 << size {
                        after = (after & ((1 << size) - 1)) | (1 << size);
                    }
                    let calls = u64::from(after.ilog2());
                    let failures = u64::from(after.count_ones() - 1);
                    let is_met = window.rules.fewest(calls).is_some_and(|fewest| failures >= fewest);
                    if is_met { tripped += weight * chance } else { next[after] += weight * chance }
                }
            }
            let left: f64 = next.iter().sum();
            hazard = tripped / (left + tripped);
            if call <= u64::from(size) {
                filling += tripped;
            } else {
                next.iter_mut().for_each(|weight| *weight /= left);
            }
            alive = next;
        }
        (filling, hazard)
    }

    #[test]
    fn filling_is_exact_and_sliding_is_bounded_from_both_sides() {
        for (calls, min_calls, rate, failure) in
            [(10, 5, 0.5, 0.05), (10, 10, 0.6, 0.1), (12, 4, 0.5, 0.02), (8, 1, 1.0, 0.3), (9, 3, 0.34, 0.01)]
        {
            let window = CallsWindow { calls, rules: rules(min_calls, rate) };
            let (filling, hazard) = by_every_window(window, failure);
            let of_filling = window.trips_while_filling(failure);
            assert!((of_filling - filling).abs() <= 1e-12 * filling, "{of_filling} for {filling}");
            let bound = window.trips_per_call(failure);
            let clumps = 1.0 - f64::from(calls) * failure / window.rules.fewest(calls.into()).unwrap() as f64;
            let most = bound * (1.0 + 2.0 * f64::from(calls) * bound);
            let is_within = (bound * clumps..=most).contains(&hazard);
            assert!(is_within, "{window:?}: {hazard} is {} of the bound", hazard / bound);
        }
    }

    #[test]
    fn thresholds_are_the_engines_whole_numbers() {
        let half = rules(10, 0.5);
        assert_eq!(
            (half.fewest(9), half.fewest(10), half.fewest(11), half.fewest(100)),
            (None, Some(5), Some(6), Some(50))
        );
        let both = Rules { failures: Some(20), ..half };
        assert_eq!(
            (both.fewest(19), both.fewest(20), both.fewest(100), both.fewest(9)),
            (Some(10), Some(10), Some(20), None)
        );
        assert_eq!(rules(1, 1.1).fewest(5), None);
        assert_eq!(rules(1, f64::NAN).fewest(5), None);
        assert_eq!(Rules { min_calls: 0, failure_rate: Some(0.5), failures: None }.fewest(0), None);
    }

    #[test]
    fn a_default_policys_window_hardly_ever_trips_on_one_failure_in_a_hundred_but_does_on_one_in_five() {
        let window = CallsWindow { calls: 100, rules: rules(10, 0.5) };
        // Ten calls of which five fail: 252 ways, each of 0.01^5, less those that would have tripped at no call before.
        assert!(window.trips_while_filling(0.01) < 3e-8 && window.trips_while_filling(0.01) > 2e-8);
        assert!(window.trips_per_call(0.01) < 1e-70);
        assert!(window.trips_while_filling(0.2) > 0.03);
    }

    #[test]
    fn a_number_of_failures_in_a_time_window_is_crossed_as_often_as_a_poisson_count() {
        let window = TimeWindow {
            seconds: 10.0,
            buckets: 1,
            rules: Rules { min_calls: 1, failure_rate: None, failures: Some(8) },
        };
        // One bucket: it lasts from nothing to 10 s, evenly.
        let expected =
            (0..1_000).map(|place| 0.2 * poisson_pmf(7, 0.2 * (f64::from(place) + 0.5) / 100.0)).sum::<f64>() / 1_000.0;
        let bound = window.trips_per_second(2.0, 0.1);
        assert!((bound / expected - 1.0).abs() < 0.01, "{bound} for {expected}");
    }

    #[test]
    fn outside_of_the_domain_there_is_no_number() {
        let calls = CallsWindow { calls: 10, rules: rules(5, 0.5) };
        let time = TimeWindow { seconds: 10.0, buckets: 10, rules: rules(5, 0.5) };
        for bad in [f64::NAN, -0.1, 1.1] {
            assert!(
                calls.trips_while_filling(bad).is_nan()
                    && calls.trips_per_call(bad).is_nan()
                    && calls.is_met(bad).is_nan()
            );
            assert!(time.trips_per_second(10.0, bad).is_nan() && time.trips_while_filling(10.0, bad).is_nan());
        }
        assert!(time.trips_per_second(-1.0, 0.1).is_nan() && time.trips_per_second(1e9, 0.1).is_nan());
        assert!(TimeWindow { buckets: 0, ..time }.trips_per_second(1.0, 0.1).is_nan());
        assert_eq!(time.trips_per_second(0.0, 0.1), 0.0);
        // Nothing that an engine would take, and yet no panic.
        let odd = Rules { min_calls: 0, failure_rate: Some(1.0), failures: Some(0) };
        assert_eq!((odd.fewest(0), odd.fewest(5), odd.fewest(u64::MAX)), (None, Some(1), Some(1)));
        assert_eq!(rules(0, 1.0).fewest(u64::MAX), Some(u64::MAX));
        assert_eq!(CallsWindow { calls: 0, rules: odd }.trips_per_call(0.5), 0.0);
        assert!(CallsWindow { calls: u32::MAX, rules: odd }.trips_while_filling(0.5).is_nan());
        let none = Rules { min_calls: 1, failure_rate: None, failures: None };
        assert_eq!(CallsWindow { calls: 10, rules: none }.trips_per_call(0.5), 0.0);
    }
}
