//! The limit that comes back after an outage, with one step of closing or raising done wrong.

use loom::sync::Mutex;
use portcullis::internals::{Bulkhead, GateWord, Now, ProbeRules, Words};

/// What the probes' limit is in these twins.
const LOW: u32 = 1;

/// Closes first, and lowers the limit when everybody may see that.
pub fn close_then_lower(words: &Words, generation: u32, now: Now, rules: ProbeRules) {
    let _ = words.gate.apply(|word| word.probe_succeeded_to_ramp(generation, now, rules));
    words.bulkhead.set_limit(LOW);
    words.release();
}

/// Lowers the limit by a pool that forgets what lies in stashes, as if nobody had to be told: the magazines stay open.
pub fn lower_without_a_sweep(words: &Words, generation: u32, now: Now, rules: ProbeRules) {
    words.bulkhead.set_limit_unswept(LOW);
    let _ = words.gate.apply(|word| word.probe_succeeded_to_ramp(generation, now, rules));
    words.release();
}

/// Lowers the limit if the word that it sees first is the last but one success, and closes on whatever word it meets.
pub fn close_at_first_sight(words: &Words, generation: u32, now: Now, rules: ProbeRules) {
    let seen: GateWord = words.gate.load();
    if seen.successes() + 1 >= rules.successes_to_close {
        words.bulkhead.set_limit(LOW);
    }
    let _ = words.gate.apply(|word| word.probe_succeeded_to_ramp(generation, now, rules));
    words.release();
}

/// A limit that ramps to another, and whoever raises it goes by what it read before.
#[derive(Debug)]
pub struct Pace {
    pub bulkhead: Bulkhead,
    full: Mutex<u32>,
}

impl Pace {
    #[must_use]
    pub fn new(full: u32) -> Self {
        Self { bulkhead: Bulkhead::new(LOW), full: Mutex::new(full) }
    }

    fn full(&self) -> loom::sync::MutexGuard<'_, u32> {
        self.full.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Raises the limit to what is due of the full one, past the lock.
    pub fn raise(&self, due: u32) {
        let full = *self.full();
        self.bulkhead.set_limit(due.min(full));
    }

    pub fn set_by_hand(&self, limit: u32) {
        let mut full = self.full();
        *full = limit;
        self.bulkhead.set_limit(limit);
    }
}
