//! Failures in a row: `generation | count`.
//!
//! ```text
//!  63        44 43         0
//! +------------+------------+
//! | generation |   count    |
//! |     20     |     44     |
//! +------------+------------+
//! ```
//!
//! Written by every failure, and by the success that ends a streak; a success on an empty streak only reads. The count stands
//! still at the largest value, 550 years of failures at one per microsecond. The generation wraps after 1,048,576
//! transitions: a failure stalled over exactly that many counts once in a foreign streak.

use super::{Recorded, is_current};
use crate::bits::Field;
use crate::gate;
use crate::sync::{AtomicU64, Ordering, Role, role};

const COUNT: Field = Field::lowest(44);
const GENERATION: Field = COUNT.above(gate::GENERATION_BITS);
const _: () = assert!(GENERATION.end() == 64);

/// Acquire: pairs with `WRITE`, so that the gate read next is no older than the one whose generation the word carries.
const READ: Role = role("streak.read", Ordering::Acquire);
/// Release: pairs with `READ`; the writer read the gate before.
const WRITE: Role = role("streak.write", Ordering::AcqRel);

/// A copy of the word.
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
    pub const fn new(generation: u32, count: u64) -> Self {
        Self(GENERATION.set(COUNT.set(0, count), generation as u64))
    }

    #[must_use]
    pub const fn generation(self) -> u32 {
        GENERATION.get(self.0) as u32
    }

    #[must_use]
    pub const fn count(self) -> u64 {
        COUNT.get(self.0)
    }

    /// One failure more in the same generation.
    #[must_use]
    pub const fn raised(self) -> Self {
        Self(COUNT.set(self.0, self.count() + 1))
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streak").field("generation", &self.generation()).field("count", &self.count()).finish()
    }
}

/// The word that threads share.
#[derive(Debug)]
pub struct Cell(AtomicU64);

impl Default for Cell {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Cell {
    /// Counts a failure of `generation` and returns the length of the streak.
    pub fn failed(&self, generation: u32, gate: &gate::Cell) -> Recorded<u64> {
        let mut word = Word(self.0.load(READ));
        loop {
            let next = if word.generation() == generation {
                word.raised()
            } else if is_current(gate, generation) {
                Word::new(generation, 1)
            } else {
                return Recorded::Stale;
            };
            match self.0.compare_exchange_weak(word.0, next.0, WRITE, READ) {
                Ok(_) => return Recorded::Counted(next.count()),
                Err(bits) => word = Word(bits),
            }
        }
    }

    /// Ends the streak of `generation`; a word of another generation is none of its business.
    #[inline]
    pub fn succeeded(&self, generation: u32) {
        let mut word = Word(self.0.load(READ));
        while word.generation() == generation && word.count() > 0 {
            match self.0.compare_exchange_weak(word.0, Word::new(generation, 0).0, WRITE, READ) {
                Ok(_) => return,
                Err(bits) => word = Word(bits),
            }
        }
    }

    /// The length of the streak of `generation`.
    #[must_use]
    #[inline]
    pub fn count(&self, generation: u32) -> u64 {
        let word = Word(self.0.load(READ));
        if word.generation() == generation { word.count() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_survive_the_round_trip() {
        for (generation, count) in [(0, 0), (1, 1), ((1 << 20) - 1, (1 << 44) - 1), (7, 5_000)] {
            let word = Word::new(generation, count);
            assert_eq!((word.generation(), word.count()), (generation, count));
        }
    }

    #[test]
    fn the_longest_streak_stands_still() {
        let word = Word::new(3, (1 << 44) - 1);
        assert_eq!(word.raised(), word);
    }

    #[test]
    fn a_streak_of_an_earlier_generation_is_empty_and_is_replaced() {
        let gate = gate::Cell::from_bits(gate::Word::closed(2, 0).bits());
        let streak = Cell(AtomicU64::new(Word::new(1, 9).bits()));
        assert_eq!(streak.count(2), 0);
        assert_eq!(streak.failed(1, &gate), Recorded::Counted(10));
        assert_eq!(streak.failed(2, &gate), Recorded::Counted(1));
        assert_eq!(streak.failed(1, &gate), Recorded::Stale);
        streak.succeeded(1);
        assert_eq!(streak.count(2), 1);
        streak.succeeded(2);
        assert_eq!(streak.count(2), 0);
    }
}
