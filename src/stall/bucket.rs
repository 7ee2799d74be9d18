//! The running calls of one stripe that began in one tick: `generation | start | count`.
//!
//! ```text
//!  63        60 59                        0
//! +------------+--------------+------------+
//! | generation |    start     |    count   |
//! |      4     |    56 - m    |    4 + m   |
//! +------------+--------------+------------+
//! ```
//!
//! A tick is 2^m nanoseconds wide, or less than twice that. Its start is kept in units of 2^m, which tell ticks apart. So the two share 60 bits
//! whatever the width, and a start is where it is in time whatever the width: 56 bits of nanoseconds are 2.28 years from the engine's
//! start. Ticks stand still with the gate's, after 2.18 years, since a generation must be known by when it began; nothing stalls then.
//!
//! The count is signed, from -2^(3 + m) up. It can't pass its bounds: within the tick one word can't be written oftener than each 2 ns, which
//! makes 2^m in at most 2^(m + 1) ns, and what ends later was in flight, 2^24 calls at most; a tick is wider than 2^22 ns. A step
//! beyond all the same changes nothing but the count.
//!
//! Four bits of generation tell those apart that share a tick. Others have later ticks: a word from before the tick in which its generation
//! began is another's.

use super::Ticks;
use crate::bits::Field;
use crate::gate;
use crate::sync::{AtomicU64, Ordering, Role, role};
use crate::time::NANOS_PER_TICK;

/// What the tick and the count share.
const SHARED: Field = Field::lowest(60);
const GENERATION: Field = SHARED.above(4);
const _: () = assert!(GENERATION.end() == 64);
/// Bits of a count beyond the width's own.
const SPARE_BITS: u32 = 4;

/// Acquire: pairs with `WRITE`, so that the gate read next is no older than the one whose generation the word carries.
const READ: Role = role("stall.read", Ordering::Acquire);
/// Release: pairs with `READ`; the writer read the gate before.
const WRITE: Role = role("stall.write", Ordering::AcqRel);

/// A copy of one bucket's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u64);

/// What counting a call up or down makes of one copy of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// Put this word in place.
    Count(Word),
    /// Put this word in place; whoever does so owes the older ones what was `left`.
    Open { next: Word, left: i64 },
    /// The bucket is a later tick's: write nothing here.
    Passed,
    /// The bucket is of another generation: put this word in place if one's own is the gate's.
    Reset(Word),
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Counted {
    Here,
    /// Counted; the older ones are owed what was `left` of an earlier tick.
    Opened {
        left: i64,
    },
    /// Not counted: the bucket is a later tick's.
    Passed,
    /// Not counted: of an earlier generation than the gate's.
    Stale,
}

/// The last moment of any tick.
pub(super) const LAST_NANO: u64 = ((1 << gate::TICK_BITS) - 1) * NANOS_PER_TICK;
const _: () = assert!(LAST_NANO <= SHARED.max() >> SPARE_BITS);

const fn count_bits(ticks: &Ticks) -> u32 {
    ticks.magnitude() + SPARE_BITS
}

/// A tick's start in its units.
const fn start(ticks: &Ticks, tick: u64) -> u64 {
    tick.saturating_mul(ticks.width) >> ticks.magnitude()
}

impl Word {
    #[must_use]
    pub const fn new(ticks: &Ticks, tick: u64, count: i64) -> Self {
        Self::starting(ticks, start(ticks, tick), count)
    }

    const fn starting(ticks: &Ticks, start: u64, count: i64) -> Self {
        let bits = count_bits(ticks);
        let shared = (start << bits) | (count.cast_unsigned() & ((1 << bits) - 1));
        // Four bits of the generation; `set` would stop at the largest.
        Self(GENERATION.set(SHARED.set(0, shared), ticks.generation() as u64 & GENERATION.max()))
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    const fn start(self, ticks: &Ticks) -> u64 {
        SHARED.get(self.0) >> count_bits(ticks)
    }

    #[must_use]
    pub const fn count(self, ticks: &Ticks) -> i64 {
        let unused = 64 - count_bits(ticks);
        (self.0 << unused).cast_signed() >> unused
    }

    #[must_use]
    pub const fn is_of(self, ticks: &Ticks) -> bool {
        GENERATION.get(self.0) == ticks.generation as u64 & GENERATION.max()
            && self.start(ticks) >= start(ticks, ticks.begun)
    }

    /// Whether its calls have stalled by the tick `now`.
    #[must_use]
    pub const fn has_stalled(self, ticks: &Ticks, now: u64) -> bool {
        self.start(ticks) < start(ticks, Ticks::stalled_before(now))
    }

    /// Counts `by` calls that began in `tick`.
    #[inline]
    pub const fn counted(self, ticks: &Ticks, tick: u64, by: i64) -> Step {
        let fresh = Self::new(ticks, tick, by);
        if !self.is_of(ticks) {
            return Step::Reset(fresh);
        }
        let (own, start, count) = (self.start(ticks), start(ticks, tick), self.count(ticks));
        if own == start {
            Step::Count(Self::starting(ticks, start, count.wrapping_add(by)))
        } else if own < start {
            Step::Open { next: fresh, left: count }
        } else {
            Step::Passed
        }
    }
}

/// The word that the threads of a stripe share.
#[derive(Debug)]
pub struct Cell(AtomicU64);

impl Default for Cell {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Cell {
    #[must_use]
    pub fn load(&self) -> Word {
        Word(self.0.load(READ))
    }

    /// Counts `by` calls that began in `tick`, deciding anew on every word that it meets.
    #[inline]
    pub fn count(&self, ticks: &Ticks, tick: u64, by: i64, gate: &gate::Cell) -> Counted {
        let mut word = self.load();
        loop {
            let (next, counted) = match word.counted(ticks, tick, by) {
                Step::Count(next) => (next, Counted::Here),
                Step::Open { next, left } => (next, Counted::Opened { left }),
                Step::Passed => return Counted::Passed,
                Step::Reset(next) if crate::window::is_current(gate, ticks.generation()) => (next, Counted::Here),
                Step::Reset(_) => return Counted::Stale,
            };
            match self.0.compare_exchange_weak(word.0, next.0, WRITE, READ) {
                Ok(_) => return counted,
                Err(bits) => word = Word(bits),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stall::width;

    fn ticks(generation: u32, begun_ms: u64, stall_after_ms: u64) -> Ticks {
        Ticks::new(gate::Word::closed(generation, begun_ms), width(stall_after_ms * 1_000_000))
    }

    #[test]
    fn a_word_keeps_what_it_is_told_at_every_width() {
        for stall_after_ms in [50, 51, 67, 100, 1_000, 60_000, 24 * 3_600_000] {
            let ticks = ticks((1 << 20) - 1, 0, stall_after_ms);
            let last = LAST_NANO / ticks.width;
            for tick in [0, 1, 2, last - 1, last] {
                for count in [0, 1, -1, 1 << 24, -(1 << 24)] {
                    let word = Word::new(&ticks, tick, count);
                    assert_eq!(
                        (word.start(&ticks), word.count(&ticks)),
                        (start(&ticks, tick), count),
                        "{stall_after_ms}"
                    );
                    assert!(word.is_of(&ticks));
                }
                assert!(start(&ticks, tick) < start(&ticks, tick + 1), "{stall_after_ms} ms: each tick is another");
            }
        }
    }

    #[test]
    fn the_words_of_wider_or_narrower_ticks_are_no_younger_than_they_are() {
        let widths = [50, 67, 99, 101, 3_000, 60_000];
        for (old, new) in widths.into_iter().flat_map(|old| widths.map(|new| (old, new))) {
            let old = ticks(3, 0, old);
            let word = Word::new(&old, old.at(crate::time::Now::from_millis(900_000)), 77);
            // Sixteen generations later, a tick of either width after it began.
            assert!(!word.is_of(&ticks(19, 900_000 + 20_000, new)), "{old:?} {new}");
        }
    }

    #[test]
    fn a_call_is_counted_in_its_tick() {
        let ticks = ticks(3, 0, 100);
        let word = |tick, count| Word::new(&ticks, tick, count);
        assert_eq!(word(9, 4).counted(&ticks, 9, 1), Step::Count(word(9, 5)));
        assert_eq!(word(9, 0).counted(&ticks, 9, -1), Step::Count(word(9, -1)));
        assert_eq!(word(9, -2).counted(&ticks, 18, 1), Step::Open { next: word(18, 1), left: -2 });
        assert_eq!(word(9, 4).counted(&ticks, 0, -1), Step::Passed);
    }

    #[test]
    fn a_word_of_another_generation_is_reset() {
        let (old, new) = (ticks(3, 0, 100), ticks(4, 0, 100));
        assert_eq!(Word::new(&old, 9, 4).counted(&new, 9, 1), Step::Reset(Word::new(&new, 9, 1)));
        // Sixteen later: by its tick.
        let later = ticks(19, 10_000, 100);
        assert_eq!(Word::new(&old, 9, 4).counted(&later, 900, 1), Step::Reset(Word::new(&later, 900, 1)));
        // What nobody wrote is as empty as can be.
        assert_eq!(Word(0).counted(&ticks(0, 0, 100), 0, 1), Step::Count(Word::new(&ticks(0, 0, 100), 0, 1)));
    }
}
