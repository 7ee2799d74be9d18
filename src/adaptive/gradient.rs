//! The gradient: the limit goes by the ratio of the latency without a queue to the latency now.
//!
//! ```text
//! latency <= baseline × tolerance    limit × (1 + (tolerance - 1) / 4), at first × (1 + (tolerance - 1) × 2)
//! latency >  baseline × tolerance    halfway to limit × baseline / latency, or to limit / 2 if that is more
//! ```
//!
//! Beyond the knee of the target, with `n` calls that it can work on at once, the latency of `limit` calls is `baseline × limit / n`
//! (Little's law), so `limit × baseline / latency` is `n` wherever the limit is: no threshold in calls or milliseconds is needed, and the limit
//! goes up and down a little below `n × tolerance`. Below the knee nothing queues, and the limit grows by a part of the tolerance,
//! however near the latency is to what is tolerated: a baseline that was measured too low by a few per cent then slows it down and doesn't stop it.
//!
//! Sources: the gradient, its cut at one half and the smoothing are those of `Gradient2Limit` in Netflix' concurrency-limits. That one takes a
//! long-term average for the baseline and adds a queue of a few calls at each step; under a load that stays above the capacity the average
//! catches up with the queue, and the limit drifts away. Here the baseline is measured (`control`) and the tolerance is the only growth, as
//! the buffer of Envoy's gradient controller. To grow faster until the first sign of a queue is TCP's slow start (Jacobson, 1988).

/// The least that a step goes halfway to: one part in so many of the limit.
const LEAST_PART: u128 = 2;

/// The limit after a step, in thousandths of a call as before it; `baseline` and `latency` in one unit of any kind. `is_first` until a
/// step has led down.
#[must_use]
pub(crate) fn step(limit: u64, tolerance_milli: u32, baseline: u64, latency: u64, is_first: bool) -> u64 {
    let (before, base, latency) = (u128::from(limit), u128::from(baseline), u128::from(latency));
    let tolerance = u128::from(tolerance_milli);
    let spare = tolerance.saturating_sub(1_000);
    let after = if latency * 1_000 <= base * tolerance {
        before + before * if is_first { spare * 2 } else { spare / 4 } / 1_000
    } else {
        let asked = before * base / latency;
        before.midpoint(asked.max(before / LEAST_PART))
    };
    u64::try_from(after).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_knee_it_goes_halfway_to_it_from_anywhere() {
        // A target that works on 100 calls at once: so many in it take `limit / 100` times the baseline.
        let at = |limit: u64| step(limit, 1_200, 5_000, 5_000 * limit / 100_000, false);
        assert_eq!((at(150_000), at(200_000)), (125_000, 150_000));
        // To no less than a half.
        assert_eq!(at(400_000), 300_000);
        assert_eq!((at(125_000), at(120_000)), (112_500, 126_000));
    }

    #[test]
    fn below_it_the_limit_grows_by_a_part_of_what_is_tolerated() {
        assert_eq!((step(100_000, 1_100, 10, 11, false), step(100_000, 1_100, 10, 1, false)), (102_500, 102_500));
        assert_eq!((step(100_000, 1_100, 10, 11, true), step(100_000, 4_000, 1, 1, true)), (120_000, 700_000));
        assert_eq!(step(100_000, 1_100, 10, 12, true), 91_666);
    }

    #[test]
    fn no_latency_and_no_baseline_are_no_division_by_zero_and_nothing_overflows() {
        assert_eq!((step(1_000, 1_500, 0, 5, false), step(1_000, 1_500, 5, 0, false)), (750, 1_125));
        assert_eq!(step(1_000, 1_500, 0, 0, false), 1_125);
        assert_eq!(step(u64::MAX, 4_000, u64::MAX, 1, true), u64::MAX);
        assert_eq!(step(u64::MAX, 4_000, 1, u64::MAX, true), u64::MAX / 4 * 3 + 2);
        assert_eq!(step(u64::MAX, 4_000, u64::MAX / 8, u64::MAX, true), u64::MAX / 4 * 3 + 2);
    }
}
