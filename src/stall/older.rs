//! The running calls of one stripe that began too long ago for a bucket: `generation 20 | count 44`.
//!
//! The count is signed: a call may end on another stripe than it began on, and then one has it too many for good and the other too few. So it
//! may wrap, and that is harmless: a sum over the stripes is taken modulo 2^44, and of what it counts there are fewer than 2^24.

use crate::bits::Field;
use crate::gate;
use crate::sync::{AtomicU64, Ordering, Role, role};
use crate::window::is_current;

const COUNT: Field = Field::lowest(44);
const GENERATION: Field = COUNT.above(gate::GENERATION_BITS);
const _: () = assert!(GENERATION.end() == 64);

/// Acquire: pairs with `WRITE`; whoever sees a count that moved here doesn't find it in its bucket any more.
const READ: Role = role("stall.older_read", Ordering::Acquire);
/// Release: pairs with `READ`; the bucket was emptied before.
const WRITE: Role = role("stall.older_write", Ordering::AcqRel);

/// A copy of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    #[must_use]
    pub const fn new(generation: u32, count: i64) -> Self {
        Self(GENERATION.set(count.cast_unsigned() & COUNT.max(), generation as u64))
    }

    #[must_use]
    pub const fn is_of(self, generation: u32) -> bool {
        GENERATION.get(self.0) == generation as u64
    }

    #[must_use]
    pub const fn count(self) -> i64 {
        modulo(COUNT.get(self.0).cast_signed())
    }
}

/// What a sum of counts that may have wrapped comes to.
pub(super) const fn modulo(sum: i64) -> i64 {
    let unused = 64 - COUNT.end();
    (sum << unused) >> unused
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
    /// What the word counts for `generation`.
    #[must_use]
    pub fn count(&self, generation: u32) -> i64 {
        let word = Word(self.0.load(READ));
        if word.is_of(generation) { word.count() } else { 0 }
    }

    /// Adds `by` calls of `generation`; nothing if that isn't the gate's any more.
    pub fn add(&self, generation: u32, by: i64, gate: &gate::Cell) {
        let mut word = Word(self.0.load(READ));
        loop {
            let before = if word.is_of(generation) {
                word.count()
            } else if is_current(gate, generation) {
                0
            } else {
                return;
            };
            let next = Word::new(generation, before.wrapping_add(by));
            match self.0.compare_exchange_weak(word.0, next.0, WRITE, READ) {
                Ok(_) => return,
                Err(bits) => word = Word(bits),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_keeps_what_it_is_told() {
        for generation in [0, 1, (1 << gate::GENERATION_BITS) - 1] {
            for count in [0, 1, -1, 1 << 40, -(1 << 40)] {
                let word = Word::new(generation, count);
                assert!(word.is_of(generation) && word.count() == count, "{count} in {generation}");
            }
        }
    }

    #[test]
    fn counts_that_wrapped_sum_up_all_the_same() {
        let (more, less) = (Word::new(1, (1 << 43) + 2), Word::new(1, -(1 << 43) + 1));
        assert!(more.count() < 0 && modulo(more.count() + less.count()) == 3);
    }

    #[test]
    fn a_generation_that_ended_adds_nothing_to_the_next() {
        let (cell, gate) = (Cell::default(), gate::Cell::from_bits(gate::Word::closed(1, 0).bits()));
        cell.add(1, 3, &gate);
        cell.add(0, 7, &gate);
        assert_eq!((cell.count(1), cell.count(0)), (3, 0));
        let next = gate::Cell::from_bits(gate::Word::closed(2, 0).bits());
        cell.add(2, -1, &next);
        cell.add(1, 1, &next);
        assert_eq!((cell.count(2), cell.count(1)), (-1, 0));
    }
}
