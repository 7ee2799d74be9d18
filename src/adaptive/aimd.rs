//! Additive increase, multiplicative decrease: one call more at each step that went well, a tenth less at one that didn't.
//!
//! Sources: Chiu and Jain, "Analysis of the increase and decrease algorithms for congestion avoidance in computer networks" (1989); the factor, and to
//! take a latency beyond a bound for a loss, as `AIMDLimit` in Netflix' concurrency-limits.

/// One call, in thousandths.
const CALL: u64 = 1_000;

/// The limit after a step, in thousandths of a call as before it.
#[must_use]
pub(crate) const fn step(limit: u64, went_well: bool, is_used: bool) -> u64 {
    if !went_well {
        backed_off(limit)
    } else if is_used {
        limit.saturating_add(CALL)
    } else {
        limit
    }
}

/// A tenth less.
#[must_use]
pub(crate) const fn backed_off(limit: u64) -> u64 {
    limit - limit / 10
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_by_one_call_while_used_and_falls_by_a_tenth_in_any_case() {
        assert_eq!((step(50_000, true, true), step(50_000, true, false)), (51_000, 50_000));
        assert_eq!((step(50_000, false, true), step(50_000, false, false)), (45_000, 45_000));
        assert_eq!((step(u64::MAX, true, true), step(0, false, true)), (u64::MAX, 0));
    }
}
