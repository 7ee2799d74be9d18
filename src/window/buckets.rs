//! The buckets that a window of time is cut into, each word `generation | start | count`.
//!
//! ```text
//!  63       60 59           24 23       0
//! +-----------+---------------+----------+
//! | generation|     start     |  count   |
//! |     4     |   36, in ms   |    24    |
//! +-----------+---------------+----------+
//! ```
//!
//! A bucket is reset and counted by the same CAS: an outcome that finds an older start writes its own start and 1.
//!
//! Starts are absolute (`closed_at` + k × width), so a bucket is valid by its own tag however long nobody came by. They last
//! 2.18 years from the engine's start and then stand still. Four bits of generation tell the windows of one target
//! apart, and a window begins after every start that is there, so the same four bits never bring a bucket back; an outcome
//! stalled over exactly 16 transitions counts once in a foreign window. A count of 16,777,215 stands still, and so do the
//! bucket's failures then: neither outweighs the other.

use super::{Recorded, is_current};
use crate::bits::Field;
use crate::gate;
use crate::sync::{AtomicU64, Ordering, Role, role};
use crate::time::Now;

const COUNT: Field = Field::lowest(24);
const START: Field = COUNT.above(gate::TICK_BITS);
const GENERATION: Field = START.above(4);
const _: () = assert!(GENERATION.end() == 64);

pub(super) const MOST_COUNTED: u32 = COUNT.max() as u32;
pub(super) const MOST_BUCKETS: u32 = if cfg!(portcullis_loom) { 2 } else { 64 };

/// Acquire: pairs with `WRITE` and `COUNT_ONE`, so that the gate read next is no older than the one whose generation the word carries,
/// and a failure that is seen has its call seen too.
const READ: Role = role("bucket.read", Ordering::Acquire);
/// Release: pairs with `READ`; the writer read the gate before, and counted the call before its failure.
const WRITE: Role = role("bucket.write", Ordering::AcqRel);
/// As `WRITE`. Sequentially consistent: a call that misses a failure's sign afterwards isn't missed by that failure.
const COUNT_ONE: Role = role("bucket.count", Ordering::SeqCst);
/// As `READ`. Sequentially consistent: the other half of `COUNT_ONE`.
const READ_SIGN: Role = role("bucket.sign", Ordering::SeqCst);

/// A copy of one bucket's word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn new(generation: u32, start: u64, count: u64) -> Self {
        let generation = generation as u64 & GENERATION.max();
        Self(GENERATION.set(START.set(COUNT.set(0, count), start), generation))
    }

    #[must_use]
    #[inline]
    pub const fn is_of(self, generation: u32) -> bool {
        GENERATION.get(self.0) == generation as u64 & GENERATION.max()
    }

    #[must_use]
    #[inline]
    pub const fn start(self) -> u64 {
        START.get(self.0)
    }

    #[must_use]
    #[inline]
    pub const fn count(self) -> u64 {
        COUNT.get(self.0)
    }

    /// Whether the count stands still.
    #[must_use]
    #[inline]
    pub const fn is_full(self) -> bool {
        self.count() == COUNT.max()
    }

    /// The word with one outcome of `start` more, within the same generation.
    ///
    /// A start older than the word's is counted in the word's: its thread's clock reading lags, and the event isn't lost.
    #[must_use]
    pub const fn recorded(self, generation: u32, start: u64) -> Self {
        let start = Self::new(generation, start, 1);
        if self.start() < start.start() { start } else { Self(COUNT.set(self.0, self.count() + 1)) }
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let generation = GENERATION.get(self.0);
        let mut fields = f.debug_struct("Bucket");
        fields.field("generation", &generation).field("start", &self.start()).field("count", &self.count()).finish()
    }
}

/// One bucket's word as threads share it.
#[derive(Debug)]
pub struct Cell(AtomicU64);

impl Default for Cell {
    fn default() -> Self {
        Self::from_bits(0)
    }
}

impl Cell {
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(AtomicU64::new(bits))
    }

    /// Counts an outcome of the bucket that begins at `start`.
    pub fn record(&self, generation: u32, start: u64, gate: &gate::Cell) -> Recorded<Word> {
        self.update(gate, generation, Word::new(generation, start, 1), |word| word.recorded(generation, start))
    }

    /// Marks a call that was counted under `start`. If the bucket has rolled on since, the call left with it, and so does its mark.
    pub(super) fn mark(&self, generation: u32, start: u64, gate: &gate::Cell) -> Recorded<Word> {
        let marked = |word: Word| if word.start() > start { word } else { word.recorded(generation, start) };
        self.update(gate, generation, Word::new(generation, start, 1), marked)
    }

    /// Moves the word on; one of another generation becomes `fresh`, if `generation` is the gate's.
    pub(super) fn update(
        &self,
        gate: &gate::Cell,
        generation: u32,
        fresh: Word,
        next: impl Fn(Word) -> Word,
    ) -> Recorded<Word> {
        let mut word = self.load();
        loop {
            let next = if word.is_of(generation) {
                next(word)
            } else if is_current(gate, generation) {
                fresh
            } else {
                return Recorded::Stale;
            };
            if next == word {
                return Recorded::Counted(word);
            }
            match self.0.compare_exchange_weak(word.0, next.0, WRITE, READ) {
                Ok(_) => return Recorded::Counted(next),
                Err(bits) => word = Word(bits),
            }
        }
    }

    /// Counts one call more in a bucket that isn't full; false if it has changed since it was `seen`.
    #[inline]
    pub(super) fn count_one(&self, seen: Word) -> bool {
        self.0.compare_exchange(seen.0, seen.0 + COUNT.one(), COUNT_ONE, READ).is_ok()
    }

    #[must_use]
    #[inline]
    pub fn load(&self) -> Word {
        Word(self.0.load(READ))
    }

    /// As [`Self::load`], and not before a call that this thread counted is seen by whoever looks for calls.
    #[inline]
    pub(super) fn load_sign(&self) -> Word {
        Word(self.0.load(READ_SIGN))
    }
}

/// The window that an outcome or a reader looks at: its generation's buckets, cut at a moment.
#[derive(Clone, Copy, Debug)]
pub struct View {
    generation: u32,
    buckets: u64,
    width_ms: u64,
    /// Number of the newest bucket, counted from the window's beginning.
    newest: u64,
    begun: u64,
}

impl View {
    /// The view from `now` of the window that began at the tick `begun`; one place decides what bucket a moment is in.
    #[must_use]
    pub const fn new(generation: u32, begun: u64, width_ms: u64, buckets: u32, now: Now) -> Self {
        let newest = now.tick().saturating_sub(begun) / width_ms;
        Self { generation, buckets: buckets as u64, width_ms, newest, begun }
    }

    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    #[must_use]
    pub const fn buckets(&self) -> u64 {
        self.buckets
    }

    #[must_use]
    pub const fn width_ms(&self) -> u64 {
        self.width_ms
    }

    /// The place of the newest bucket.
    #[must_use]
    pub const fn index(&self) -> u64 {
        self.newest % self.buckets
    }

    /// The start of the newest bucket.
    #[must_use]
    pub const fn start(&self) -> u64 {
        let start = self.begun.saturating_add(self.newest.saturating_mul(self.width_ms));
        if start > START.max() { START.max() } else { start }
    }

    /// When a bucket has left the window.
    #[must_use]
    pub const fn until(&self, start: u64) -> u64 {
        start.saturating_add(self.buckets.saturating_mul(self.width_ms))
    }

    #[must_use]
    pub const fn covers(&self, word: Word) -> bool {
        // The start as well: four bits of generation come round, the beginning of a window doesn't.
        word.is_of(self.generation)
            && word.count() > 0
            && word.start() >= self.begun
            && self.until(word.start()) > self.start()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_ticks_stands_still() {
        let view = View::new(1, START.max(), 1, 64, Now::from_nanos(u64::MAX));
        assert_eq!(view.start(), START.max());
        assert!(view.covers(Word::new(1, u64::MAX, 1)));
    }

    #[test]
    fn an_older_start_counts_in_the_newer_bucket_and_a_newer_one_empties_it() {
        let word = Word::new(3, 1_000, 4);
        assert_eq!(word.recorded(3, 999), Word::new(3, 1_000, 5));
        assert_eq!(word.recorded(3, 1_001), Word::new(3, 1_001, 1));
        let full = Word::new(3, 1_000, u64::MAX);
        assert!(full.is_full() && full.recorded(3, 1_000) == full);
    }

    #[test]
    fn a_mark_goes_with_its_call() {
        let (cell, gate) = (Cell::default(), gate::Cell::from_bits(gate::Word::closed(1, 0).bits()));
        for start in [1_000, 2_000, 1_000, 2_000] {
            let _ = cell.mark(1, start, &gate);
        }
        assert_eq!(cell.load(), Word::new(1, 2_000, 2));
    }
}
