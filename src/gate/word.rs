//! The gate's word and its transitions, without atomics.
//!
//! ```text
//!  63   61 60    56 55        36 35                              0
//! +-------+--------+------------+---------------------------------+
//! | state | reopens| generation |             payload             |
//! |   3   |   5    |     20     |               36                |
//! +-------+--------+------------+---------------------------------+
//!    CLOSED, FORCED_OPEN, DISABLED: since, 36 bits of ms
//!    OPEN:                          reopen_at, 36 bits of ms
//!    HALF_OPEN:                     probes 5 | successes 5 | lease_end 26 bits of s
//! ```
//!
//! - CLOSED has two codes: one lets calls pass at a glance, the other while the limit ramps. A ramping word keeps `reopens`, so that a
//!   relapse counts as one more; the plain one has none.
//! - Ticks count from the engine's start: 2.18 years of milliseconds, 2.13 years of seconds. Past that they stand still
//!   at the largest value, which every later reading has reached: waits and leases are over at once, nothing wedges.
//! - The generation wraps after 1,048,576 transitions, 58 minutes at the least wait of 10 ms that anyone should set. A permit
//!   held across exactly that many counts one outcome wrong, and by chance only: 1 in 1,048,576.
//! - `reopens` stands still at 31, where the wait has long reached its maximum.

use super::State;
use crate::bits::Field;
use crate::time::Now;

pub(crate) const TICK_BITS: u32 = 36;
pub(crate) const GENERATION_BITS: u32 = 20;

const TICK: Field = Field::lowest(TICK_BITS);
const LEASE_END: Field = Field::lowest(26);
const SUCCESSES: Field = LEASE_END.above(5);
const PROBES: Field = SUCCESSES.above(5);
const GENERATION: Field = TICK.above(GENERATION_BITS);
const REOPENS: Field = GENERATION.above(5);
const STATE: Field = REOPENS.above(3);
const _: () = assert!(PROBES.end() == TICK.end() && STATE.end() == 64);

/// The last code of those that let calls pass, so that one comparison tells.
const DISABLED: u64 = 1;
/// The code of CLOSED while the limit ramps.
const RAMPING: u64 = 5;

/// A copy of the gate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(u64);

/// What the probes of HALF_OPEN are held to.
#[derive(Clone, Copy, Debug)]
pub struct ProbeRules {
    pub max_probes: u32,
    pub successes_to_close: u32,
    pub lease_s: u64,
}

/// The answer to a caller, given one copy of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Admission {
    /// Enter; nothing to write.
    Enter,
    /// Probe, if this word can be put in place of the one that was asked.
    Probe(Word),
    /// Don't call.
    Refuse(Refusal),
}

/// Why the gate refuses, and the tick that ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Open { reopen_at: u64 },
    Probing { lease_end: u64 },
    ForcedOpen,
}

/// What an event makes of one copy of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// The event is of another generation, or says nothing in this state: write nothing.
    Stale,
    /// Put this word in place; the generation stays.
    Stay(Word),
    /// Put this word in place; whoever does so owes one transition.
    Move(Word),
}

impl Word {
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// `{ state: Closed, generation, since, reopens: 0 }`
    #[must_use]
    pub const fn closed(generation: u32, since: u64) -> Self {
        Self::with(State::Closed, generation, 0).ticked(since)
    }

    /// `{ state: Closed, ramping: true, generation, since, reopens }`
    #[must_use]
    pub const fn ramping(generation: u32, since: u64, reopens: u32) -> Self {
        let word = Self::with(State::Closed, generation, reopens).ticked(since);
        Self(STATE.set(word.0, RAMPING))
    }

    /// `{ state: Open, generation, reopens, reopen_at }`
    #[must_use]
    pub const fn open(generation: u32, reopens: u32, reopen_at: u64) -> Self {
        Self::with(State::Open, generation, reopens).ticked(reopen_at)
    }

    /// `{ state: HalfOpen, generation, reopens, probes, successes, lease_end }`
    #[must_use]
    pub const fn half_open(generation: u32, reopens: u32, probes: u32, successes: u32, lease_end: u64) -> Self {
        Self::with(State::HalfOpen, generation, reopens).probed(probes, successes, lease_end)
    }

    const fn with(state: State, generation: u32, reopens: u32) -> Self {
        let code = match state {
            State::Closed => 0,
            State::Disabled => DISABLED,
            State::Open => 2,
            State::HalfOpen => 3,
            State::ForcedOpen => 4,
        };
        // The generation wraps by design; `set` would stop at the largest.
        let generation = generation as u64 & GENERATION.max();
        Self(STATE.set(REOPENS.set(GENERATION.set(0, generation), reopens as u64), code))
    }

    const fn ticked(self, tick: u64) -> Self {
        Self(TICK.set(self.0, tick))
    }

    const fn probed(self, probes: u32, successes: u32, lease_end: u64) -> Self {
        let word = PROBES.set(SUCCESSES.set(self.0, successes as u64), probes as u64);
        Self(LEASE_END.set(word, lease_end))
    }

    /// The state as written; an elapsed OPEN is still OPEN here. Codes that no transition writes read as CLOSED.
    #[must_use]
    #[inline]
    pub const fn state(self) -> State {
        match STATE.get(self.0) {
            DISABLED => State::Disabled,
            2 => State::Open,
            3 => State::HalfOpen,
            4 => State::ForcedOpen,
            _ => State::Closed,
        }
    }

    /// The state as a caller would meet it: an OPEN whose wait is over is ready to probe (R14).
    #[must_use]
    pub const fn state_at(self, now: Now) -> State {
        match self.state() {
            State::Open if self.has_elapsed(now) => State::HalfOpen,
            state => state,
        }
    }

    #[must_use]
    #[inline]
    pub const fn generation(self) -> u32 {
        GENERATION.get(self.0) as u32
    }

    /// Failed probes and relapses in a row, to 31.
    #[must_use]
    pub const fn reopens(self) -> u32 {
        REOPENS.get(self.0) as u32
    }

    /// The tick of CLOSED's, FORCED_OPEN's or DISABLED's beginning, or of OPEN's end.
    #[must_use]
    pub const fn tick(self) -> u64 {
        TICK.get(self.0)
    }

    #[must_use]
    pub const fn probes(self) -> u32 {
        PROBES.get(self.0) as u32
    }

    #[must_use]
    pub const fn successes(self) -> u32 {
        SUCCESSES.get(self.0) as u32
    }

    /// The second at which HALF_OPEN's slots may be taken over.
    #[must_use]
    pub const fn lease_end(self) -> u64 {
        LEASE_END.get(self.0)
    }

    /// Whether calls enter without probing and without a ramp: no clock and no write is needed then.
    #[must_use]
    #[inline]
    pub const fn lets_pass(self) -> bool {
        STATE.get(self.0) <= DISABLED
    }

    /// Whether this is CLOSED with a limit that ramps.
    #[must_use]
    #[inline]
    pub const fn is_ramping(self) -> bool {
        STATE.get(self.0) == RAMPING
    }

    /// Whether OPEN's wait is over; the one comparison behind decisions, hints and `state_at`.
    #[must_use]
    pub const fn has_elapsed(self, now: Now) -> bool {
        now.tick() >= self.tick()
    }

    const fn has_lease_ended(self, now: Now) -> bool {
        now.second() >= self.lease_end()
    }

    const fn next_generation(self) -> u32 {
        self.generation().wrapping_add(1)
    }

    /// Answers a caller (R1 to R4, R16).
    pub const fn admit(self, now: Now, rules: ProbeRules) -> Admission {
        let lease_end = now.second_after(rules.lease_s);
        match self.state() {
            State::Closed | State::Disabled => Admission::Enter,
            State::ForcedOpen => Admission::Refuse(Refusal::ForcedOpen),
            State::Open if self.has_elapsed(now) => {
                Admission::Probe(Self::half_open(self.next_generation(), self.reopens(), 1, 0, lease_end))
            }
            State::Open => Admission::Refuse(Refusal::Open { reopen_at: self.tick() }),
            State::HalfOpen if self.probes() < rules.max_probes => {
                Admission::Probe(self.probed(self.probes() + 1, self.successes(), lease_end))
            }
            State::HalfOpen if self.has_lease_ended(now) => {
                Admission::Probe(Self::half_open(self.next_generation(), self.reopens(), 1, 0, lease_end))
            }
            State::HalfOpen => Admission::Refuse(Refusal::Probing { lease_end: self.lease_end() }),
        }
    }

    const fn is_of(self, state: State, generation: u32) -> bool {
        self.state() as u8 == state as u8 && self.generation() == generation
    }

    /// CLOSED to OPEN, for a window of `generation` that met a rule (R8).
    pub const fn trip(self, generation: u32, reopen_at: u64) -> Step {
        if self.is_of(State::Closed, generation) {
            Step::Move(Self::open(self.next_generation(), 0, reopen_at))
        } else {
            Step::Stale
        }
    }

    /// A probe of `generation` succeeded (R3).
    pub const fn probe_succeeded(self, generation: u32, now: Now, rules: ProbeRules) -> Step {
        if !self.is_of(State::HalfOpen, generation) {
            return Step::Stale;
        }
        let successes = self.successes() + 1;
        if successes >= rules.successes_to_close {
            Step::Move(Self::closed(self.next_generation(), now.tick()))
        } else {
            Step::Stay(self.probed(self.probes().saturating_sub(1), successes, self.lease_end()))
        }
    }

    /// As [`Self::probe_succeeded`], but what closes, ramps.
    pub const fn probe_succeeded_to_ramp(self, generation: u32, now: Now, rules: ProbeRules) -> Step {
        match self.probe_succeeded(generation, now, rules) {
            Step::Move(next) => Step::Move(Self::ramping(next.generation(), next.tick(), self.reopens())),
            step => step,
        }
    }

    /// The ramp is over: the same generation and window, and nothing reopened any more (R7).
    pub const fn ramped(self) -> Step {
        if self.is_ramping() { Step::Stay(Self::closed(self.generation(), self.tick())) } else { Step::Stale }
    }

    /// CLOSED to OPEN, as [`Self::trip`], while the limit ramps: one reopening more.
    pub fn relapse(self, generation: u32, now: Now, wait: impl Fn(u32) -> u64) -> Step {
        if !self.is_ramping() || self.generation() != generation {
            return Step::Stale;
        }
        Step::Move(self.reopened(now, wait))
    }

    fn reopened(self, now: Now, wait: impl Fn(u32) -> u64) -> Self {
        let reopens = (self.reopens() + 1).min(REOPENS.max() as u32);
        Self::open(self.next_generation(), reopens, now.tick_after(wait(reopens)))
    }

    /// A probe of `generation` failed or was slow (R3); `wait` in ms for the reopenings in a row, this one among them.
    pub fn probe_failed(self, generation: u32, now: Now, wait: impl Fn(u32) -> u64) -> Step {
        if !self.is_of(State::HalfOpen, generation) {
            return Step::Stale;
        }
        Step::Move(self.reopened(now, wait))
    }

    /// A probe of `generation` ended without evidence: its slot is free again (R4).
    pub const fn probe_returned(self, generation: u32) -> Step {
        if self.is_of(State::HalfOpen, generation) {
            Step::Stay(self.probed(self.probes().saturating_sub(1), self.successes(), self.lease_end()))
        } else {
            Step::Stale
        }
    }

    /// Into FORCED_OPEN or DISABLED, by hand; nothing to do if it is there.
    pub const fn force(self, state: State, now: Now) -> Step {
        if self.state() as u8 == state as u8 {
            Step::Stale
        } else {
            Step::Move(Self::with(state, self.next_generation(), 0).ticked(now.tick()))
        }
    }

    /// Out of FORCED_OPEN or DISABLED, by hand; nothing to do elsewhere (R16).
    pub const fn release(self, now: Now) -> Step {
        match self.state() {
            State::ForcedOpen | State::Disabled => Step::Move(Self::closed(self.next_generation(), now.tick())),
            State::Closed | State::Open | State::HalfOpen => Step::Stale,
        }
    }

    /// An empty window for a new geometry; other states begin one anyway when they close (R17). A ramp goes on.
    pub const fn restart(self, now: Now) -> Step {
        match self.state() {
            State::Closed if self.is_ramping() => {
                Step::Move(Self::ramping(self.next_generation(), now.tick(), self.reopens()))
            }
            State::Closed => Step::Move(Self::closed(self.next_generation(), now.tick())),
            State::Open | State::HalfOpen | State::ForcedOpen | State::Disabled => Step::Stale,
        }
    }

    /// The gate of the next tenant of a recycled slot.
    pub const fn forget(self, now: Now) -> Step {
        Step::Move(Self::closed(self.next_generation(), now.tick()))
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct("Gate");
        fields.field("state", &self.state()).field("generation", &self.generation());
        match self.state() {
            State::Closed if self.is_ramping() => {
                fields.field("ramping", &true).field("reopens", &self.reopens()).field("since_ms", &self.tick())
            }
            State::Closed | State::ForcedOpen | State::Disabled => fields.field("since_ms", &self.tick()),
            State::Open => fields.field("reopens", &self.reopens()).field("reopen_at_ms", &self.tick()),
            State::HalfOpen => fields
                .field("reopens", &self.reopens())
                .field("probes", &self.probes())
                .field("successes", &self.successes())
                .field("lease_end_s", &self.lease_end()),
        };
        fields.finish()
    }
}

#[cfg(test)]
#[path = "word_tests.rs"]
mod tests;
