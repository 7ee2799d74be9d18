//! How often failures in a row come by chance.

use super::is_share;

/// Returns the mean number of calls until `threshold` failures in a row, counting from the call after the last trip: (1 - p^k) / ((1 - p) p^k).
///
/// Exact for independent calls that fail with probability `failure`. W. Feller, "An Introduction to Probability Theory and Its Applications" I,
/// XIII.7, "success runs". Infinite if calls never fail; NaN if `failure` isn't a probability or `threshold` is 0.
#[must_use]
pub fn calls_between_streaks(failure: f64, threshold: u32) -> f64 {
    if !is_share(failure) || threshold == 0 {
        return f64::NAN;
    }
    if failure == 1.0 {
        return f64::from(threshold);
    }
    let exponent = f64::from(threshold) * libm::log(failure);
    // (1 - p^k) / p^k as e^-x - 1.
    libm::expm1(-exponent) / (1.0 - failure)
}

/// Returns the trips per call of a rule of `threshold` failures in a row, while the circuit is closed: 1 / [`calls_between_streaks`].
///
/// Times the calls per second it is trips per second. Runs of at least that length begin at (1 - p) p^k per call, which is the same but for the
/// calls that the run itself takes.
///
/// ```
/// // A threshold of 5 at 1,000 calls/s of which 10 % fail as they always do, and one of 10.
/// let an_hour = |threshold| 3_600.0 * 1_000.0 * portcullis_numbers::formulas::streak_trips_per_call(0.1, threshold);
/// assert!((an_hour(5) - 32.4).abs() < 0.001 && an_hour(10) < 0.001);
/// ```
#[must_use]
pub fn streak_trips_per_call(failure: f64, threshold: u32) -> f64 {
    1.0 / calls_between_streaks(failure, threshold)
}

/// Returns the usual approximation, p^k: each call ends a streak of failures with that probability.
///
/// It counts a run of k + 1 twice, so it is above the exact rate by about 1 / (1 - p): by a tenth for 10 % failures, by a half for 33 %.
/// Domain as [`streak_trips_per_call`].
#[must_use]
pub fn streak_trips_per_call_usual(failure: f64, threshold: u32) -> f64 {
    if !is_share(failure) || threshold == 0 { f64::NAN } else { libm::pow(failure, f64::from(threshold)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64, relative: f64) -> bool {
        (left - right).abs() <= relative * right.abs()
    }

    #[test]
    fn five_in_a_row_trip_36_times_an_hour_and_ten_practically_never() {
        let usual = |threshold| 1_000.0 * streak_trips_per_call_usual(0.1, threshold);
        assert!(close(usual(5), 0.01, 1e-12) && close(usual(5) * 3_600.0, 36.0, 1e-12));
        assert!(close(1_000.0 * streak_trips_per_call(0.1, 5) * 3_600.0, 32.4, 2e-5));
        assert!(close(usual(10), 1e-7, 1e-12));
    }

    /// The chain of streak lengths, solved backwards.
    fn by_recursion(failure: f64, threshold: u32) -> f64 {
        (0..threshold).fold(0.0, |mean, _| (mean + 1.0) / failure)
    }

    #[test]
    fn the_mean_is_that_of_the_chain_of_streaks() {
        for (failure, threshold) in [(0.1, 1), (0.1, 5), (0.5, 3), (0.9, 20), (1e-6, 4), (1.0, 7)] {
            assert!(close(calls_between_streaks(failure, threshold), by_recursion(failure, threshold), 1e-11));
        }
        assert_eq!(calls_between_streaks(0.0, 3), f64::INFINITY);
        assert_eq!(streak_trips_per_call(0.0, 3), 0.0);
    }

    #[test]
    fn outside_of_the_domain_there_is_no_number() {
        for (failure, threshold) in [(f64::NAN, 3), (-0.1, 3), (1.1, 3), (0.5, 0)] {
            assert!(streak_trips_per_call(failure, threshold).is_nan());
            assert!(streak_trips_per_call_usual(failure, threshold).is_nan());
        }
    }
}
