//! The calls of a target that are still running, by when they began: what a stall is judged on.
//!
//! Other rules learn that a call was slow when it ends. A hung target ends none, and gives no sign until its callers' timeout. So
//! running calls are counted by the tick in which they began, an eighth of `stall_after` wide. A call counts as stalled once its whole
//! tick is `stall_after` ago: never early, and at most one tick late.
//!
//! Each stripe has a [`lane`]: a ring of [`bucket`]s, one per tick that isn't that long ago, and one count of the [`older`] ones. A call adds 1
//! to its tick's bucket in the stripe of its caller when it begins, and takes 1 away in the stripe of whoever ends it. So one stripe's
//! counts may be negative, and only the sum of all of them means something.
//!
//! A bucket that is needed for another tick is older than `stall_after` by then: what is left in it moves to the older ones. It
//! leaves the bucket first and is added after, and a reader looks at the older ones first: so a call may be missed while it
//! moves, and is never counted twice. Each call that a reader counts was running, and stalled, when it began to look.
//!
//! The words are of one generation, and empty for the next. A call that hangs since an earlier one said what it had to say when that
//! ended.

pub mod bucket;
pub mod lane;
pub mod older;

use crate::gate;
use crate::time::{NANOS_PER_TICK, Now};

/// Ticks in `stall_after`.
pub(crate) const TICKS: u64 = if cfg!(portcullis_loom) { 1 } else { 8 };
/// Those, and the present one.
pub(crate) const BUCKETS: usize = TICKS as usize + 1;

/// How wide a tick is, in nanoseconds: rounded up, so that no call counts as stalled before its time.
pub(crate) const fn width(stall_after_nanos: u64) -> u64 {
    stall_after_nanos.div_ceil(TICKS)
}

/// The ticks of one generation.
#[derive(Clone, Copy, Debug)]
pub struct Ticks {
    generation: u32,
    width: u64,
    /// The tick in which the generation began: no bucket of it is older.
    begun: u64,
}

impl Ticks {
    /// Those of the gate's generation, each so many nanoseconds wide; more than 2^22 of them.
    #[must_use]
    pub const fn new(gate: gate::Word, width: u64) -> Self {
        let begun = gate.tick().saturating_mul(NANOS_PER_TICK) / width;
        Self { generation: gate.generation(), width, begun }
    }

    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// The largest power of two that isn't wider than a tick.
    const fn magnitude(&self) -> u32 {
        self.width.ilog2()
    }

    /// The tick of a moment. A generation may begin a little later than now: what comes before counts as then.
    #[must_use]
    pub const fn at(&self, at: Now) -> u64 {
        let (tick, last) = (at.nanos() / self.width, bucket::LAST_NANO / self.width);
        let tick = if tick < self.begun { self.begun } else { tick };
        if tick > last { last } else { tick }
    }

    /// By the tick `now`, what began before this tick has stalled.
    const fn stalled_before(now: u64) -> u64 {
        now.saturating_sub(TICKS)
    }

    /// Where a tick's bucket is.
    const fn index(tick: u64) -> usize {
        (tick % BUCKETS as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_stalled_once_its_whole_tick_is_stall_after_ago() {
        let ticks = Ticks::new(gate::Word::closed(1, 0), width(80_000_000));
        let tick = |millis| ticks.at(Now::from_millis(millis));
        let has_stalled = |begun, now| tick(begun) < Ticks::stalled_before(tick(now));
        // Begun with its tick, it is noticed a tick late; begun with the last nanosecond of it, at once.
        assert_eq!([80, 89, 90].map(|now| has_stalled(0, now)), [false, false, true]);
        assert_eq!([89, 90].map(|now| has_stalled(9, now)), [false, true]);
        assert_eq!([90, 99, 100].map(|now| has_stalled(10, now)), [false, false, true]);
    }

    #[test]
    fn a_tick_is_rounded_up() {
        assert_eq!([width(80), width(81)], [10, 11]);
    }

    #[test]
    fn nothing_begins_before_its_generation_and_time_stands_still_at_its_end() {
        let ticks = Ticks::new(gate::Word::closed(1, 100), width(80_000_000));
        assert_eq!([0, 99, 100, 110].map(|millis| ticks.at(Now::from_millis(millis))), [10, 10, 10, 11]);
        let last = ticks.at(Now::from_nanos(u64::MAX));
        assert!(last == ticks.at(Now::from_nanos(bucket::LAST_NANO)) && last >= Ticks::stalled_before(last));
    }
}
