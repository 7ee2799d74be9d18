//! The last N calls, exactly: `spare | generation | sentinel and one bit per call`.
//!
//! ```text
//!  127   121 120      101 100                                0
//! +---------+------------+-----------------------------------+
//! |  spare  | generation | 0 … 0 1 c c c … c                 |
//! |    7    |     20     |       ^ sentinel, then one bit    |
//! |         |            |         per call, newest last     |
//! +---------+------------+-----------------------------------+
//! ```
//!
//! A bit is 1 for a call that failed (in the slow word: that was slow). The sentinel is the highest bit set, so its place is
//! the number of calls; a word without one is empty. A full window without failures doesn't change under a success, so a
//! healthy target only reads. Nothing here counts up but the generation, which wraps after 1,048,576 transitions: an
//! outcome stalled over exactly that many is counted once in a foreign window.

use super::{Recorded, is_current};
use crate::gate;
use crate::sync::{AtomicU128, Ordering, Role, role};

const CALL_BITS: u32 = super::MOST_CALLS + 1;
const CALLS: u128 = (1 << CALL_BITS) - 1;
const GENERATION: u128 = (1 << gate::GENERATION_BITS) - 1;
const _: () = assert!(CALL_BITS + gate::GENERATION_BITS <= 128);

/// Acquire: pairs with `WRITE`, so that the gate read next is no older than the one whose generation the word carries.
const READ: Role = role("calls.read", Ordering::Acquire);
/// Release: pairs with `READ`; the writer read the gate before.
const WRITE: Role = role("calls.write", Ordering::AcqRel);

/// A copy of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(u128);

impl Word {
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// The empty window of `generation`.
    #[must_use]
    pub const fn empty(generation: u32) -> Self {
        Self::clean(generation, 0)
    }

    /// The full window of `generation` without a mark.
    #[must_use]
    pub const fn clean(generation: u32, size: u32) -> Self {
        Self(((generation as u128 & GENERATION) << CALL_BITS) | 1 << size)
    }

    #[must_use]
    pub const fn generation(self) -> u32 {
        ((self.0 >> CALL_BITS) & GENERATION) as u32
    }

    /// Sentinel and calls; a word that was never written has none, and is empty.
    const fn calls(self) -> u128 {
        let calls = self.0 & CALLS;
        if calls == 0 { 1 } else { calls }
    }

    /// How many calls the word holds, whatever the window's size.
    const fn held(self) -> u32 {
        self.calls().ilog2()
    }

    /// The word with one call more, and the oldest forgotten if the window of `size` was full.
    ///
    /// Total: a word that holds more than `size`, left by a larger geometry, keeps the newest.
    #[must_use]
    pub const fn recorded(self, marked: bool, size: u32) -> Self {
        let calls = (self.calls() << 1) | marked as u128;
        let sentinel = 1 << size;
        let calls = if self.held() >= size { (calls & (sentinel - 1)) | sentinel } else { calls };
        Self((self.0 & !CALLS) | calls)
    }

    /// The calls in a window of `size`, and how many of them are marked.
    #[must_use]
    pub const fn counts(self, size: u32) -> (u32, u32) {
        let held = if self.held() < size { self.held() } else { size };
        (held, (self.0 & ((1 << held) - 1)).count_ones())
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (calls, marked) = self.counts(super::MOST_CALLS);
        let mut fields = f.debug_struct("Calls");
        fields.field("generation", &self.generation()).field("calls", &calls).field("marked", &marked).finish()
    }
}

/// The word that threads share.
#[derive(Debug)]
pub struct Cell(AtomicU128);

impl Default for Cell {
    fn default() -> Self {
        Self(AtomicU128::new(0))
    }
}

impl Cell {
    #[must_use]
    pub fn from_bits(bits: u128) -> Self {
        Self(AtomicU128::new(bits))
    }

    /// Counts an outcome of `generation` and returns the window as it left it.
    #[inline]
    pub fn record(&self, marked: bool, generation: u32, size: u32, gate: &gate::Cell) -> Recorded<Word> {
        let mut word = Word(self.0.load(READ));
        loop {
            let base = if word.generation() == generation {
                word
            } else if is_current(gate, generation) {
                Word::empty(generation)
            } else {
                return Recorded::Stale;
            };
            let next = base.recorded(marked, size);
            if next == word {
                return Recorded::Counted(word);
            }
            match self.0.compare_exchange_weak(word.0, next.0, WRITE, READ) {
                Ok(_) => return Recorded::Counted(next),
                Err(bits) => word = Word(bits),
            }
        }
    }

    /// Empties the window of `generation`; a word of another is empty for it anyway.
    pub fn empty(&self, generation: u32) {
        let mut word = Word(self.0.load(READ));
        while word.generation() == generation && word != Word::empty(generation) {
            match self.0.compare_exchange_weak(word.0, Word::empty(generation).0, WRITE, READ) {
                Ok(_) => return,
                Err(bits) => word = Word(bits),
            }
        }
    }

    /// The calls and marks of the window of `generation`; none if the word is of another.
    #[must_use]
    pub fn counts(&self, generation: u32, size: u32) -> (u32, u32) {
        let word = Word(self.0.load(READ));
        if word.generation() == generation { word.counts(size) } else { (0, 0) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Every size against a queue, over a pattern without a short period.
    #[test]
    fn every_size_counts_like_a_queue() {
        for size in 1..=super::super::MOST_CALLS {
            let (mut word, mut queue) = (Word::empty(5), VecDeque::new());
            for step in 0_u32..350 {
                let failed = step.wrapping_mul(2_654_435_761) >> 29 < 3;
                word = word.recorded(failed, size);
                queue.push_back(failed);
                if queue.len() > size as usize {
                    queue.pop_front();
                }
                let failures = queue.iter().filter(|failed| **failed).count();
                assert_eq!(word.counts(size), (queue.len() as u32, failures as u32), "size {size}, step {step}");
                assert_eq!(word.generation(), 5);
            }
        }
    }

    #[test]
    fn a_full_window_without_failures_stays_as_it_is() {
        let full = (0..100).fold(Word::empty(1), |word, _| word.recorded(false, 100));
        assert_eq!(full.recorded(false, 100), full);
        assert_eq!(full, Word::clean(1, 100));
    }

    #[test]
    fn a_word_of_a_larger_window_keeps_its_newest_calls() {
        let large = (0..80).fold(Word::empty(1), |word, call| word.recorded(call >= 78, 100));
        assert_eq!(large.counts(10), (10, 2));
        assert_eq!(large.recorded(true, 10).counts(10), (10, 3));
    }

    #[test]
    fn any_bits_decode_and_step() {
        for bits in [0, u128::MAX, 1 << 127, 1 << 100, CALLS, !CALLS] {
            assert_eq!(Word::from_bits(bits).bits(), bits);
            for size in [1, 2, 99, 100] {
                let (calls, failures) = Word::from_bits(bits).recorded(true, size).counts(size);
                assert!(calls <= size && failures <= calls && failures > 0);
            }
        }
    }

    #[test]
    fn an_outcome_of_another_generation_resets_or_is_stale() {
        let gate = gate::Cell::from_bits(gate::Word::closed(2, 0).bits());
        let old = (0..4).fold(Word::empty(1), |word, _| word.recorded(true, 10));
        let calls = Cell::from_bits(old.bits());
        assert_eq!((calls.counts(1, 10), calls.counts(2, 10)), ((4, 4), (0, 0)));
        assert_eq!(calls.record(true, 2, 10, &gate), Recorded::Counted(Word::empty(2).recorded(true, 10)));
        assert_eq!(calls.record(true, 1, 10, &gate), Recorded::Stale);
        assert_eq!(calls.counts(2, 10), (1, 1));
    }

    #[test]
    fn only_the_window_of_the_generation_meant_is_emptied() {
        let calls = Cell::from_bits(Word::empty(2).recorded(true, 10).bits());
        calls.empty(1);
        assert_eq!(calls.counts(2, 10), (1, 1));
        calls.empty(2);
        assert_eq!(Word(calls.0.load(READ)), Word::empty(2));
    }
}
