//! Callers of the real gate that do one step wrong.

use portcullis::internals::{Admission, Bulkhead, Gate, GateWord, Now, ProbeRules, Step};

/// Enters although its CAS was lost, on the answer that the old word gave.
pub fn ask_and_enter_anyway(gate: &Gate, now: Now, rules: ProbeRules) -> bool {
    let word = gate.load();
    match word.admit(now, rules) {
        Admission::Enter => true,
        Admission::Refuse(_) => false,
        Admission::Probe(next) => {
            let _ = gate.take_probe(word, next);
            true
        }
    }
}

/// Trips on whatever word it finds, as a plain store would: the generation of the window that it judged isn't looked at.
pub fn trip_blindly(gate: &Gate, reopen_at: u64) {
    let _ = gate.apply(|word| Step::Move(GateWord::open(word.generation() + 1, 0, reopen_at)));
}

/// Takes the probe slot before the permit, and gives the slot back if there is none.
pub fn ask_slot_first(gate: &Gate, bulkhead: &Bulkhead, now: Now, rules: ProbeRules) -> bool {
    let mut word = gate.load();
    while let Admission::Probe(next) = word.admit(now, rules) {
        match gate.take_probe(word, next) {
            Err(seen) => word = seen,
            Ok(_) if bulkhead.acquire(0).is_ok() => return true,
            Ok(_) => {
                let _ = gate.apply(|word| word.probe_returned(next.generation()));
                return false;
            }
        }
    }
    false
}
