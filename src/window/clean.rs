//! A sign of what a success needn't do in a full window of calls: `begun | marking | generation | size | sign`.
//!
//! ```text
//!  63      45 44      29 28         9 8    2 1    0
//! +----------+----------+------------+------+------+
//! |  begun   | marking  | generation | size | sign |
//! |    19    |    16    |     20     |  7   |   2  |
//! +----------+----------+------------+------+------+
//! ```
//!
//! Clean: there is no failure in the window, and a success doesn't change it. So the sign is all that a healthy target's calls must read of
//! it: the window's own word has 128 bits, which takes several times as long to read, and a lock where the processor has none of that size.
//! Calm: there are failures, and no rule is met. A success is written, and needn't be judged: in a full window it only lowers the rate.
//!
//! A failure takes the sign away before it is written into the window, and counts as marking until it is; so does a new policy. A success
//! sets the sign by what it found in the window, if nobody was marking when it looked here before, and no failure has begun since. So
//! where the sign stands, no failure came that it doesn't speak of; one that is on its way comes after whoever saw the sign.
//!
//! `marking` can't carry: 65,536 threads would have to fail at once. `begun` wraps: a success stalled over exactly 524,288 failures
//! could set the sign once too often. A sign of another generation or size is none.

use crate::bits::Field;
use crate::gate;
use crate::sync::{AtomicU64, Ordering, Role, role};

const SIGN: Field = Field::lowest(2);
const SIZE: Field = SIGN.above(7);
const GENERATION: Field = SIZE.above(gate::GENERATION_BITS);
const MARKING: Field = GENERATION.above(16);
const BEGUN: Field = MARKING.above(19);
/// The lowest three, that a success compares.
const OF: Field = Field::lowest(GENERATION.end());
const _: () = assert!(BEGUN.end() == 64 && SIZE.max() >= super::MOST_CALLS as u64);

/// Acquire: pairs with `END`; whoever sees that nobody is marking finds the marks in the window.
const READ: Role = role("clean.read", Ordering::Acquire);
/// Release: pairs with `READ`, after the window was found clean. Acquire: comes after the failures that it counts.
const SET: Role = role("clean.set", Ordering::AcqRel);
/// Acquire and release: the mark in the window comes after it.
const BEGIN: Role = role("clean.begin", Ordering::AcqRel);
/// Release: pairs with `READ`; the mark is in the window.
const END: Role = role("clean.end", Ordering::AcqRel);

/// What a success needn't do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Be judged.
    Calm = 1,
    /// Be judged, nor written.
    Clean = 2,
}

/// A copy of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    /// What nobody has seen: no sign is set by it.
    pub const UNSEEN: Self = Self(MARKING.one());

    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether `sign` is set for the window of `generation`.
    #[must_use]
    #[inline]
    pub const fn is(self, sign: Sign, generation: u32, size: u32) -> bool {
        OF.get(self.0) == Self(0).set(sign, generation, size).0
    }

    const fn set(self, sign: Sign, generation: u32, size: u32) -> Self {
        Self(SIGN.set(SIZE.set(GENERATION.set(self.0, generation as u64), size as u64), sign as u64))
    }

    /// Without the sign, and with one more who is marking.
    #[must_use]
    pub const fn begun(self) -> Self {
        // The topmost field wraps off the word.
        Self(SIGN.set(self.0, 0).wrapping_add(MARKING.one()).wrapping_add(BEGUN.one()))
    }

    const fn begun_so_far(self) -> u64 {
        BEGUN.get(self.0)
    }

    const fn marking(self) -> u64 {
        MARKING.get(self.0)
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct("Clean");
        fields.field("begun", &self.begun_so_far()).field("marking", &self.marking());
        fields.field("generation", &GENERATION.get(self.0)).field("size", &SIZE.get(self.0));
        fields.field("sign", &SIGN.get(self.0)).finish()
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
    #[must_use]
    #[inline]
    pub fn load(&self) -> Word {
        Word(self.0.load(READ))
    }

    /// Sets the sign for whoever has seen `before`, and then the window to be so; not if a failure came between, or was about to.
    pub fn set(&self, before: Word, sign: Sign, generation: u32, size: u32) {
        if before.marking() == 0 && !before.is(sign, generation, size) {
            // Lost to another success or to a failure: the next success may try.
            let _ = self.0.compare_exchange(before.0, before.set(sign, generation, size).0, SET, READ);
        }
    }

    /// Takes the sign away while `mark` writes a failure into the window, or changes what a window is judged by.
    pub fn while_marking<R>(&self, mark: impl FnOnce() -> R) -> R {
        let mut word = self.load();
        while let Err(bits) = self.0.compare_exchange_weak(word.0, word.begun().0, BEGIN, READ) {
            word = Word(bits);
        }
        let marked = mark();
        self.0.fetch_sub(MARKING.one(), END);
        marked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_is_of_one_generation_and_size() {
        let cell = Cell::default();
        cell.set(cell.load(), Sign::Clean, 7, 100);
        let word = cell.load();
        assert!(word.is(Sign::Clean, 7, 100) && !word.is(Sign::Calm, 7, 100));
        assert!(!word.is(Sign::Clean, 8, 100) && !word.is(Sign::Clean, 7, 99) && !Word(0).is(Sign::Calm, 0, 0));
        cell.set(word, Sign::Calm, 8, 50);
        assert!(cell.load().is(Sign::Calm, 8, 50));
    }

    #[test]
    fn a_failure_takes_it_away_until_a_success_that_began_after_it() {
        for sign in [Sign::Calm, Sign::Clean] {
            let cell = Cell::default();
            cell.set(cell.load(), sign, 1, 10);
            let early = cell.load();
            cell.while_marking(|| {
                assert!(!cell.load().is(sign, 1, 10));
                // Found so before the mark was there.
                cell.set(cell.load(), sign, 1, 10);
                assert!(!cell.load().is(sign, 1, 10));
            });
            cell.set(early, sign, 1, 10);
            assert!(!cell.load().is(sign, 1, 10));
            cell.set(cell.load(), sign, 1, 10);
            assert!(cell.load().is(sign, 1, 10));
        }
    }

    #[test]
    fn failures_begun_wrap_off_the_top() {
        let mut word = Word(BEGUN.set(0, BEGUN.max()));
        word = word.begun();
        assert_eq!((word.begun_so_far(), word.marking()), (0, 1));
        word = Word::from_bits(word.begun().bits());
        assert_eq!((word.begun_so_far(), word.marking()), (1, 2));
    }
}
