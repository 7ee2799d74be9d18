//! What retries add, and what a deadline must hold.

use std::time::Duration;

use super::{is_amount, is_share};

/// Returns the mean attempts per call where each fails with probability `failure` and at most `attempts` are made: (1 - p^a) / (1 - p).
///
/// The load on a target of which all calls fail is `attempts` times that without retries. NaN if `failure` isn't a probability.
///
/// ```
/// assert_eq!(portcullis_numbers::formulas::attempts_per_call(1.0, 3), 3.0);
/// ```
#[must_use]
pub fn attempts_per_call(failure: f64, attempts: u32) -> f64 {
    if !is_share(failure) {
        return f64::NAN;
    }
    let most = f64::from(attempts);
    if failure == 1.0 { most } else { -libm::expm1(most * libm::log(failure)) / (1.0 - failure) }
}

/// Returns the attempts that reach the last of `layers` where each of them makes up to `attempts`, and all fail: a^n.
///
/// B. Beyer and others (ed.), "Site Reliability Engineering" (2016), chapter 22: three layers of four attempts are 64.
#[must_use]
pub fn attempts_through_layers(attempts: u32, layers: u32) -> f64 {
    libm::pow(f64::from(attempts), f64::from(layers))
}

/// Returns [`attempts_per_call`] where a budget holds retries to `budget` per call: never above 1 + `budget`.
///
/// The engine's budget counts over its memory and has a floor of retries per second, which comes on top where calls are few. NaN if `failure`
/// isn't a probability or `budget` is negative.
#[must_use]
pub fn budgeted_attempts_per_call(failure: f64, attempts: u32, budget: f64) -> f64 {
    if is_amount(budget) { attempts_per_call(failure, attempts).min(1.0 + budget) } else { f64::NAN }
}

/// Returns the longest that a call can take: `attempts` × `timeout`, and before each retry the longest of a backoff that doubles up to
/// `backoff_max`. Saturates.
///
/// ```
/// use std::time::Duration;
/// let ms = Duration::from_millis;
/// assert_eq!(portcullis_numbers::formulas::worst_case(ms(160), 2, Duration::ZERO, Duration::ZERO), ms(320)); // within 333 ms
/// ```
#[must_use]
pub fn worst_case(timeout: Duration, attempts: u32, backoff: Duration, backoff_max: Duration) -> Duration {
    timeout.saturating_mul(attempts).saturating_add(backoffs(attempts, backoff, backoff_max))
}

/// Returns the most attempts whose worst case fits `deadline`, up to `most`; 0 if not even one does.
#[must_use]
pub fn attempts_within(
    deadline: Duration,
    timeout: Duration,
    backoff: Duration,
    backoff_max: Duration,
    most: u32,
) -> u32 {
    let fits = |attempts: &u32| worst_case(timeout, *attempts, backoff, backoff_max) <= deadline;
    (1..=most).take_while(fits).last().unwrap_or(0)
}

/// Returns the longest timeout with which `attempts` and their backoffs fit `deadline`; none if nothing is left for it.
#[must_use]
pub fn longest_timeout(
    deadline: Duration,
    attempts: u32,
    backoff: Duration,
    backoff_max: Duration,
) -> Option<Duration> {
    let left = deadline.checked_sub(backoffs(attempts, backoff, backoff_max))?;
    left.checked_div(attempts).filter(|timeout| !timeout.is_zero())
}

fn backoffs(attempts: u32, backoff: Duration, backoff_max: Duration) -> Duration {
    let mut total = Duration::ZERO;
    let mut next = backoff.min(backoff_max);
    let mut left = attempts.saturating_sub(1);
    // Once it is capped, the rest is a product.
    while left > 0 && next < backoff_max && !next.is_zero() {
        total = total.saturating_add(next);
        next = next.saturating_mul(2).min(backoff_max);
        left -= 1;
    }
    total.saturating_add(next.saturating_mul(left))
}

#[cfg(test)]
mod tests {
    use portcullis::call::CallPolicy;

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn one_retry_of_160_ms_fits_333_ms() {
        let sum = worst_case(ms(160), 2, Duration::ZERO, Duration::ZERO);
        assert_eq!(sum, ms(320));
        assert!(sum <= ms(333));
        assert_eq!(attempts_within(ms(333), ms(160), Duration::ZERO, Duration::ZERO, 10), 2);
        assert_eq!(attempts_within(ms(100), ms(160), Duration::ZERO, Duration::ZERO, 10), 0);
        assert_eq!(longest_timeout(ms(333), 2, ms(13), ms(13)), Some(ms(160)));
        assert_eq!(longest_timeout(ms(10), 2, ms(13), ms(13)), None);
        assert_eq!(longest_timeout(ms(10), 0, ms(13), ms(13)), None);
    }

    #[test]
    fn the_sum_is_the_one_that_a_call_policy_is_checked_by() {
        for (attempts, backoff, most) in
            [(1, 50, 1_000), (3, 100, 200), (10, 50, 1_000), (10, 0, 0), (6, 100, 500), (4, 7, 7)]
        {
            let policy =
                CallPolicy::builder().timeout(ms(300)).attempts(attempts).backoff(ms(backoff)).backoff_max(ms(most));
            assert_eq!(policy.build().unwrap().worst_case(), worst_case(ms(300), attempts, ms(backoff), ms(most)));
        }
        assert_eq!(worst_case(Duration::MAX, 3, Duration::MAX, Duration::MAX), Duration::MAX);
        assert_eq!(worst_case(ms(1), u32::MAX, ms(1), ms(1)), ms(u64::from(u32::MAX) * 2 - 1));
    }

    #[test]
    fn an_outage_multiplies_the_load_by_the_attempts() {
        assert_eq!((attempts_per_call(1.0, 3), attempts_per_call(0.0, 3)), (3.0, 1.0));
        assert!((attempts_per_call(0.5, 3) - 1.75).abs() < 1e-12);
        assert_eq!(attempts_through_layers(4, 3), 64.0);
        assert!((budgeted_attempts_per_call(1.0, 3, 0.1) - 1.1).abs() < 1e-12);
        assert!(attempts_per_call(1.5, 3).is_nan() && budgeted_attempts_per_call(0.5, 3, -1.0).is_nan());
    }
}
