//! One stripe's running calls, by the tick in which they began.

use super::bucket::{self, Counted};
use super::{BUCKETS, Ticks, older};
use crate::gate;
use crate::sync::{AtomicU64, Ordering, Role, role};

/// Relaxed: a note of the stripe to itself. Whoever misses it judges once more.
const JUDGED: Role = role("stall.judged", Ordering::Relaxed);

/// The calls of one stripe.
#[derive(Debug)]
pub struct Lane {
    /// The tick in which this stripe's callers last judged, as a bucket without calls.
    judged: AtomicU64,
    older: older::Cell,
    buckets: [bucket::Cell; BUCKETS],
}

/// What a stripe's running calls take.
#[cfg(test)]
pub(crate) const BYTES: usize = size_of::<crossbeam_utils::CachePadded<Lane>>();

impl Default for Lane {
    fn default() -> Self {
        Self { judged: AtomicU64::new(u64::MAX), older: older::Cell::default(), buckets: <_>::default() }
    }
}

impl Lane {
    /// Whether this stripe's callers have judged in `tick`.
    #[must_use]
    pub fn is_judged(&self, ticks: &Ticks, tick: u64) -> bool {
        self.judged.load(JUDGED) == bucket::Word::new(ticks, tick, 0).bits()
    }

    pub fn note_judged(&self, ticks: &Ticks, tick: u64) {
        self.judged.store(bucket::Word::new(ticks, tick, 0).bits(), JUDGED);
    }

    /// Counts a call that begins in `tick`; false if it can't be: its generation is over, or the clock stepped back by more than the ring
    /// holds.
    pub fn begin(&self, ticks: &Ticks, tick: u64, gate: &gate::Cell) -> bool {
        match self.count(ticks, tick, 1, gate) {
            Counted::Here | Counted::Opened { .. } => true,
            Counted::Passed | Counted::Stale => false,
        }
    }

    /// Counts out a call that began in `tick`, wherever it was counted.
    pub fn end(&self, ticks: &Ticks, tick: u64, gate: &gate::Cell) {
        if self.count(ticks, tick, -1, gate) == Counted::Passed {
            self.older.add(ticks.generation(), -1, gate);
        }
    }

    fn count(&self, ticks: &Ticks, tick: u64, by: i64, gate: &gate::Cell) -> Counted {
        let Some(bucket) = self.buckets.get(Ticks::index(tick)) else { return Counted::Stale };
        let counted = bucket.count(ticks, tick, by, gate);
        if let Counted::Opened { left } = counted
            && left != 0
        {
            self.older.add(ticks.generation(), left, gate);
        }
        counted
    }

    /// What this stripe has of the calls that have stalled by the tick `now`; negative if it ended more than it began.
    #[must_use]
    pub fn stalled(&self, ticks: &Ticks, now: u64) -> i64 {
        // The older ones first: what moves there meanwhile is missed, and never counted in both places.
        let older = self.older.count(ticks.generation());
        let words = self.buckets.iter().map(bucket::Cell::load).filter(|word| word.is_of(ticks));
        let stalled = words.filter(|word| word.has_stalled(ticks, now));
        stalled.fold(older, |sum, word| sum.wrapping_add(word.count(ticks)))
    }
}

/// The calls of all stripes that have stalled by the tick `now`.
#[must_use]
pub fn stalled<'a>(lanes: impl Iterator<Item = &'a Lane>, ticks: &Ticks, now: u64) -> u64 {
    let sum = lanes.fold(0, |sum: i64, lane| sum.wrapping_add(lane.stalled(ticks, now)));
    u64::try_from(older::modulo(sum)).unwrap_or(0)
}
