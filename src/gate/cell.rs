//! The shared word and the one CAS loop that moves it.

use super::{Step, Word};
use crate::sync::{AtomicU64, Ordering, Role, role};

/// Acquire: pairs with `MOVE` and `PROBE`; a caller that meets a new generation also sees what its mover wrote before, the lowered
/// limit of a ramp or the fresh pool of a new tenant.
const READ: Role = role("gate.read", Ordering::Acquire);
/// Release: pairs with `READ`. Acquire as well: the mover judged the word that it replaces.
const MOVE: Role = role("gate.move", Ordering::AcqRel);
/// As `MOVE`, for the caller that takes a probe slot.
const PROBE: Role = role("gate.probe", Ordering::AcqRel);

/// The word that threads share.
#[derive(Debug)]
pub struct Cell(AtomicU64);

/// A transition that this thread made; it owes exactly one report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Moved {
    pub from: Word,
    pub to: Word,
}

/// What a permit's holder finds when it settles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Applied {
    /// Of another generation: nothing was written.
    Stale,
    /// Written, in the same generation.
    Stayed,
    /// Written, and a new generation begun.
    Moved(Moved),
}

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

    #[must_use]
    #[inline]
    pub fn load(&self) -> Word {
        Word::from_bits(self.0.load(READ))
    }

    /// Takes a probe slot on `word`, which answered [`Admission::Probe`] with `next`; the new word if it was lost.
    ///
    /// # Errors
    ///
    /// The word that stands there instead: decide again on it, never enter.
    pub fn take_probe(&self, word: Word, next: Word) -> Result<Option<Moved>, Word> {
        match self.0.compare_exchange(word.bits(), next.bits(), PROBE, READ) {
            Ok(_) if word.generation() == next.generation() => Ok(None),
            Ok(_) => Ok(Some(Moved { from: word, to: next })),
            Err(bits) => Err(Word::from_bits(bits)),
        }
    }

    /// Applies an event, deciding anew on every word that it meets. A lost race is a normal result (R6).
    pub fn apply(&self, event: impl Fn(Word) -> Step) -> Applied {
        let mut word = self.load();
        loop {
            let next = match event(word) {
                Step::Stale => return Applied::Stale,
                Step::Stay(next) | Step::Move(next) => next,
            };
            match self.0.compare_exchange_weak(word.bits(), next.bits(), MOVE, READ) {
                Ok(_) if next.generation() == word.generation() => return Applied::Stayed,
                Ok(_) => return Applied::Moved(Moved { from: word, to: next }),
                Err(bits) => word = Word::from_bits(bits),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{Admission, ProbeRules, Refusal};
    use crate::time::Now;

    const RULES: ProbeRules = ProbeRules { max_probes: 1, successes_to_close: 1, lease_s: 10 };

    #[test]
    fn the_loser_of_a_race_decides_again() {
        let cell = Cell::from_bits(Word::open(1, 0, 5).bits());
        let now = Now::from_millis(5);
        let seen = cell.load();
        let Admission::Probe(next) = seen.admit(now, RULES) else { panic!("the wait is over") };
        assert!(matches!(cell.take_probe(seen, next), Ok(Some(moved)) if moved.from == seen && moved.to == next));
        let lost = cell.take_probe(seen, next).unwrap_err();
        assert!(matches!(lost.admit(now, RULES), Admission::Refuse(Refusal::Probing { .. })));
    }

    #[test]
    fn an_event_moves_once() {
        let cell = Cell::default();
        assert!(matches!(cell.apply(|word| word.trip(0, 9)), Applied::Moved(_)));
        assert_eq!(cell.apply(|word| word.trip(0, 99)), Applied::Stale);
        assert_eq!(cell.load(), Word::open(1, 0, 9));
    }

    #[test]
    fn a_slot_given_back_is_no_transition() {
        let cell = Cell::from_bits(Word::half_open(3, 0, 1, 0, 9).bits());
        assert_eq!(cell.apply(|word| word.probe_returned(3)), Applied::Stayed);
        assert_eq!(cell.load().probes(), 0);
    }
}
