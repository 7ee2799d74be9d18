//! The calls of a stretch of time: a ring of buckets, each word `generation | start | count`.
//!
//! ```text
//!  63       60 59           24 23       0
//! +-----------+---------------+----------+
//! | generation|     start     |  count   |
//! |     4     |   36, in ms   |    24    |
//! +-----------+---------------+----------+
//! ```
//!
//! A bucket is reset and counted by the same CAS: an outcome that finds an older start writes its own start and 1. Calls,
//! failures and slow calls are a word each.
//!
//! Starts are absolute (`closed_at` + k × width), so a bucket is valid by its own tag however long nobody came by. They last
//! 2.18 years from the engine's start and then stand still. Four bits of generation tell the windows of one target
//! apart, and a window begins after every start that is there, so the same four bits never bring a bucket back; an outcome
//! stalled over exactly 16 transitions counts once in a foreign window. A count of 16,777,215 stands still, and so do the
//! bucket's failures then: neither outweighs the other.

use super::{Counts, Recorded, is_current};
use crate::bits::Field;
use crate::gate;
use crate::sync::{AtomicU64, Lazy, Ordering, Role, role};
use crate::time::Now;

const COUNT: Field = Field::lowest(24);
const START: Field = COUNT.above(gate::TICK_BITS);
const GENERATION: Field = START.above(4);
const _: () = assert!(GENERATION.end() == 64);

pub(super) const MOST_COUNTED: u32 = COUNT.max() as u32;

/// Buckets are made in chunks, so that a target pays for the buckets of its own policy and never has to move one.
const CHUNK: usize = if cfg!(portcullis_loom) { 1 } else { 8 };
const CHUNKS: usize = if cfg!(portcullis_loom) { 2 } else { 8 };
pub(super) const MOST_BUCKETS: u32 = (CHUNK * CHUNKS) as u32;

/// Acquire: pairs with `WRITE`, so that the gate read next is no older than the one whose generation the word carries, and
/// a failure that is seen has its call seen too.
const READ: Role = role("bucket.read", Ordering::Acquire);
/// Release: pairs with `READ`; the writer read the gate before, and counted the call before its failure.
const WRITE: Role = role("bucket.write", Ordering::AcqRel);

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
    pub const fn is_of(self, generation: u32) -> bool {
        GENERATION.get(self.0) == generation as u64 & GENERATION.max()
    }

    #[must_use]
    pub const fn start(self) -> u64 {
        START.get(self.0)
    }

    #[must_use]
    pub const fn count(self) -> u64 {
        COUNT.get(self.0)
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
        Self(AtomicU64::new(0))
    }
}

impl Cell {
    pub fn record(&self, generation: u32, start: u64, gate: &gate::Cell) -> Recorded<Word> {
        self.update(generation, start, gate, |word| word.recorded(generation, start))
    }

    /// Marks a call that was counted under `start`. If the bucket has rolled on since, the call left with it, and so does its mark.
    fn mark(&self, generation: u32, start: u64, gate: &gate::Cell) -> Recorded<Word> {
        let marked = |word: Word| if word.start() > start { word } else { word.recorded(generation, start) };
        self.update(generation, start, gate, marked)
    }

    fn update(&self, generation: u32, start: u64, gate: &gate::Cell, counted: impl Fn(Word) -> Word) -> Recorded<Word> {
        let mut word = Word(self.0.load(READ));
        loop {
            let next = if word.is_of(generation) {
                counted(word)
            } else if is_current(gate, generation) {
                Word::new(generation, start, 1)
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

    #[must_use]
    pub fn load(&self) -> Word {
        Word(self.0.load(READ))
    }
}

#[derive(Debug, Default)]
struct Bucket {
    calls: Cell,
    failures: Cell,
    slow: Cell,
}

#[derive(Debug, Default)]
struct Chunk([Bucket; CHUNK]);

/// What each chunk of buckets takes.
#[cfg(test)]
pub(crate) const CHUNK_BYTES: usize = size_of::<Chunk>();

/// The buckets of one target.
#[derive(Debug, Default)]
pub struct Ring([Lazy<Chunk>; CHUNKS]);

/// The window that an outcome or a reader looks at: its generation's ring, cut at a moment.
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

    const fn start(&self) -> u64 {
        let start = self.begun.saturating_add(self.newest.saturating_mul(self.width_ms));
        if start > START.max() { START.max() } else { start }
    }

    const fn covers(&self, word: Word) -> bool {
        // The start as well: four bits of generation come round, the beginning of a window doesn't.
        word.is_of(self.generation)
            && word.count() > 0
            && word.start() >= self.begun
            && word.start().saturating_add(self.buckets.saturating_mul(self.width_ms)) > self.start()
    }
}

impl Ring {
    /// Counts an outcome in its bucket and returns the window as it was then, within what others record meanwhile.
    pub fn record(&self, view: &View, failed: bool, slow: bool, gate: &gate::Cell) -> Recorded<Counts> {
        let Some(bucket) = self.bucket(view.newest % view.buckets, |chunk| Some(chunk.force())) else {
            return Recorded::Stale;
        };
        let (generation, start) = (view.generation, view.start());
        // The call first: whoever sees a failure sees its call. A bucket that stands still takes no failures either.
        let Recorded::Counted(call) = bucket.calls.record(generation, start, gate) else { return Recorded::Stale };
        if call.count() < COUNT.max() {
            for (marked, cell) in [(failed, &bucket.failures), (slow, &bucket.slow)] {
                // The start that its call was counted under, which is later if this clock reading lags.
                if marked {
                    // Stale here means that the window is past; the call was in it.
                    let _ = cell.mark(generation, call.start(), gate);
                }
            }
        }
        Recorded::Counted(self.counts(view))
    }

    /// The sums over the window, each bucket as it is met: outcomes recorded meanwhile may or may not be in them.
    #[must_use]
    pub fn counts(&self, view: &View) -> Counts {
        let mut sums = Counts::default();
        for index in 0..view.buckets {
            let Some(bucket) = self.bucket(index, Lazy::get) else { continue };
            // The parts before the whole, so that a part never exceeds it.
            let (failures, slow, calls) = (bucket.failures.load(), bucket.slow.load(), bucket.calls.load());
            if view.covers(calls) {
                // A part with another start belongs to the bucket that was here a lap ago.
                let part = |word: Word| {
                    if word.is_of(view.generation) && word.start() == calls.start() { word.count() } else { 0 }
                };
                sums.calls += calls.count();
                sums.failures += part(failures).min(calls.count());
                sums.slow += part(slow).min(calls.count());
            }
        }
        sums
    }

    /// The newest start of any bucket in use, of whatever generation; none if none is.
    #[must_use]
    pub fn newest_start(&self) -> Option<u64> {
        let buckets = self.0.iter().filter_map(Lazy::get).flat_map(|chunk| &chunk.0);
        // Failures and slow calls stand under the start of their call.
        buckets.map(|bucket| bucket.calls.load()).filter(|word| word.count() > 0).map(Word::start).max()
    }

    fn bucket<'a>(&'a self, index: u64, chunk: impl Fn(&'a Lazy<Chunk>) -> Option<&'a Chunk>) -> Option<&'a Bucket> {
        let index = usize::try_from(index).ok()?;
        chunk(self.0.get(index / CHUNK)?)?.0.get(index % CHUNK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(generation: u32) -> gate::Cell {
        gate::Cell::from_bits(gate::Word::closed(generation, 0).bits())
    }

    fn at(millis: u64) -> View {
        View::new(1, 0, 1_000, 10, Now::from_millis(millis))
    }

    fn sums(ring: &Ring, millis: u64) -> (u64, u64, u64) {
        let counts = ring.counts(&at(millis));
        (counts.calls, counts.failures, counts.slow)
    }

    #[test]
    fn an_outcome_is_seen_at_once_and_leaves_with_its_bucket() {
        let (ring, gate) = (Ring::default(), gate(1));
        assert!(matches!(
            ring.record(&at(0), true, false, &gate),
            Recorded::Counted(Counts { calls: 1, failures: 1, slow: 0 })
        ));
        assert_eq!(sums(&ring, 9_999), (1, 1, 0));
        assert_eq!(sums(&ring, 10_000), (0, 0, 0));
    }

    #[test]
    fn any_gap_empties_the_whole_window() {
        let (ring, gate) = (Ring::default(), gate(1));
        for millis in [0, 1_000, 2_000, 3_000, 13_500, 100_000, 1_000_000_000_000] {
            let _ = ring.record(&at(millis), true, true, &gate);
        }
        assert_eq!(sums(&ring, 1_000_000_000_000), (1, 1, 1));
    }

    #[test]
    fn a_reading_that_lags_counts_in_the_newer_bucket() {
        let (ring, gate) = (Ring::default(), gate(1));
        let one = |millis| View::new(1, 0, 1_000, 1, Now::from_millis(millis));
        let _ = ring.record(&one(1_001), false, false, &gate);
        let _ = ring.record(&one(999), true, false, &gate);
        assert_eq!(ring.counts(&one(1_001)), Counts { calls: 2, failures: 1, slow: 0 });
    }

    #[test]
    fn a_window_of_another_generation_is_empty_and_its_straggler_stale() {
        let (ring, gate) = (Ring::default(), gate(2));
        let _ = ring.record(&at(500), true, false, &self::gate(1));
        let new = View::new(2, 100, 1_000, 10, Now::from_millis(600));
        assert_eq!(ring.counts(&new), Counts::default());
        assert!(matches!(
            ring.record(&new, true, false, &gate),
            Recorded::Counted(Counts { calls: 1, failures: 1, .. })
        ));
        assert_eq!(ring.record(&at(600), true, false, &gate), Recorded::Stale);
        assert_eq!(ring.counts(&new).calls, 1);
    }

    #[test]
    fn a_window_sixteen_generations_later_is_empty() {
        let (ring, gate) = (Ring::default(), gate(17));
        let _ = ring.record(&at(500), true, true, &self::gate(1));
        let later = View::new(17, 900, 1_000, 10, Now::from_millis(950));
        assert_eq!(ring.counts(&later), Counts::default());
        assert!(matches!(
            ring.record(&later, true, false, &gate),
            Recorded::Counted(Counts { calls: 1, failures: 1, .. })
        ));
    }

    #[test]
    fn a_full_bucket_stands_still_with_its_failures() {
        let (ring, gate) = (Ring::default(), gate(1));
        let bucket = ring.bucket(0, |chunk| Some(chunk.force())).unwrap();
        bucket.calls.0.store(Word::new(1, 0, COUNT.max()).bits(), Ordering::Relaxed);
        let _ = ring.record(&at(0), true, true, &gate);
        assert_eq!(sums(&ring, 0), (COUNT.max(), 0, 0));
    }

    #[test]
    fn the_end_of_ticks_stands_still() {
        let view = View::new(1, START.max(), 1, 64, Now::from_nanos(u64::MAX));
        assert_eq!(view.start(), START.max());
        let (ring, gate) = (Ring::default(), gate(1));
        assert!(matches!(
            ring.record(&view, true, false, &gate),
            Recorded::Counted(Counts { calls: 1, failures: 1, .. })
        ));
    }
}
