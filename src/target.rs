//! A target's words, and the two things that calls do with them: ask to start, and settle.
//!
//! The order of the steps is what the rules rest on:
//!
//! - Admission reads the gate, takes a bulkhead permit, and only then, where the gate wants a probe, its slot (R1). A lost CAS
//!   decides again on the new word (R2). Nothing is ever rolled back but the permit.
//! - Settlement reads the gate again, since a clean window can't tell a stale outcome; records in every window before any rule is
//!   judged, so that two rules met at once are one trip; and moves the gate. Its caller gives the permit back last, since
//!   that unpins the slot (protocol K), and reports after that, on owned data.

mod admit;
mod care;
mod followed;
pub(crate) mod ramp;
mod settle;
mod stalls;
mod token;
mod verdict;
mod wait;

pub(crate) use token::Answer;
pub use token::Token;
pub(crate) use wait::Asked;

use std::time::Duration;

use crate::adaptive::samples::Samples;
use crate::bulkhead::Bulkhead;
use crate::counters::{Counter, Counters};
use crate::event::Cause;
use crate::gate::{self, Moved, ProbeRules};
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::policy::brief::Brief;
use crate::rejection::Rejection;
use crate::shadow::desk::Desk;
use crate::sync::{AtomicU32, AtomicU64, Lazy, Ordering, Role, role};
use crate::time::{Now, saturating_nanos};
use crate::trip::Evidence;
use crate::window::{calls, clean, marks, streak};

/// Acquire: pairs with `NEXT_EPOCH`; whoever still sees the epoch it knows asks the tenant it means.
const READ_EPOCH: Role = role("epoch.read", Ordering::Acquire);
/// Release: pairs with `READ_EPOCH`; before all that the next tenant writes.
const NEXT_EPOCH: Role = role("epoch.raise", Ordering::Release);
/// Relaxed: written while the slot is retired, published by the Release that reinstates the bulkhead.
const SALT: Role = role("salt", Ordering::Relaxed);
/// Acquire: pairs with `SET_BRIEF`.
const READ_BRIEF: Role = role("brief.read", Ordering::Acquire);
/// Release: pairs with `READ_BRIEF`; whoever sees a policy's brief sees what putting it in force changed before.
const SET_BRIEF: Role = role("brief.set", Ordering::Release);

/// All that races for one target.
///
/// In the order of its cache lines: what every call reads and hardly anybody writes, to the middle of the bulkhead; the first stripe, which
/// every call writes until there are more; the pool, which is written when stashes run out or over and whenever there are none, and what
/// failures write. Nothing of the third line is read by the usual call, but the streak and the window of time of policies that have them.
#[derive(Debug)]
#[repr(C)]
pub struct Words {
    pub gate: gate::Cell,
    pub clean: clean::Cell,
    brief: AtomicU32,
    /// What makes this target's jitter its own; written while nobody calls.
    salt: AtomicU32,
    /// Tenants that the words have had; never wraps.
    epoch: AtomicU64,
    pub bulkhead: Bulkhead,
    pub calls: calls::Cell,
    pub streak: streak::Cell,
    rare: Lazy<Rare>,
}

/// What a healthy target with a window of calls never needs.
///
/// The first line is what each failure writes, the sign at its end.
#[derive(Debug, Default)]
#[repr(C, align(64))]
struct Rare {
    counters: Counters,
    /// Probes settled as ignored in a row.
    ignored: streak::Cell,
    marks: marks::Marks,
    slow_calls: calls::Cell,
    /// What calls took, where the limit follows that.
    samples: Lazy<Samples>,
    width: stalls::Width,
    limiter: Lazy<ramp::Limiter>,
    probes: Counter,
    /// Those who are told of each call and decide nothing, and what they make of it.
    shadows: Lazy<Desk>,
}

/// What the first failure, refusal or hold of a target takes.
#[cfg(test)]
pub(crate) const RARE_BYTES: usize = size_of::<Rare>();
/// What a limit that was ever moved takes.
#[cfg(test)]
pub(crate) const LIMITER_BYTES: usize = size_of::<ramp::Limiter>();

/// What a call let be known of its target on the way, for answers that arrive in parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signs {
    /// When the target began to answer; what comes after is also the caller's pace.
    pub(crate) answered: Option<Now>,
    /// The last sign of life, if there was any.
    pub(crate) alive: Option<Now>,
    /// Whether the call waits to begin: its length says nothing.
    pub(crate) waits: bool,
    /// The milliseconds after which the target said to come back; 0 if it said nothing.
    back_in_ms: u64,
}

impl Signs {
    /// The target said to come back after that.
    pub fn ask_back(&mut self, wait: Duration) {
        self.back_in_ms = saturating_nanos(wait).div_ceil(1_000_000);
    }

    /// Whether nothing was seen.
    pub(crate) const fn are_none(self) -> bool {
        self.answered.is_none() && self.alive.is_none() && self.back_in_ms == 0
    }
}

/// A refusal inside the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Rejected(Rejection),
    /// The slot has no tenant: ask the map.
    Retired,
}

/// How a permit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Settled(Outcome),
    /// Dropped unsettled.
    Abandoned,
    /// Dropped while its thread panicked.
    Panicked,
}

/// What a call's end takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    /// A success that leaves every word as it is: recorded by that alone.
    Unchanged,
    /// A success to be counted in a window of time.
    Timed,
    /// A success to be written into a window of `size` calls, whose sign this was.
    Calls { size: u32, sign: clean::Word },
    /// All else.
    Further,
}

/// A transition that this thread made, to be reported once it holds nothing.
#[derive(Debug)]
#[must_use]
pub struct Change {
    pub moved: Moved,
    pub cause: Cause,
    pub evidence: Option<Box<Evidence>>,
    /// The milliseconds that the target asked for, where it opened; 0 if none.
    pub asked_ms: u64,
    pub at: Now,
}

impl Change {
    /// One that nobody asked a wait for.
    fn new(moved: Moved, cause: Cause, at: Now) -> Self {
        Self { moved, cause, evidence: None, asked_ms: 0, at }
    }
}

/// The settings that a decision is made under.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    pub policy: &'a Policy,
    pub policy_version: u32,
}

impl Policy {
    fn probe_rules(&self) -> ProbeRules {
        ProbeRules {
            max_probes: self.max_probes,
            successes_to_close: self.successes_to_close,
            lease_s: self.probe_lease_s,
        }
    }
}

impl Words {
    #[must_use]
    pub fn new(policy: &Policy) -> Self {
        let words = Self {
            gate: gate::Cell::default(),
            clean: clean::Cell::default(),
            brief: AtomicU32::new(Brief::from(policy).bits()),
            salt: AtomicU32::new(0),
            bulkhead: Bulkhead::new(policy.first_limit()),
            calls: calls::Cell::default(),
            streak: streak::Cell::default(),
            rare: Lazy::default(),
            epoch: AtomicU64::new(0),
        };
        words.watch_from_now(policy);
        words
    }

    #[inline]
    fn brief(&self) -> Brief {
        Brief::from_bits(self.brief.load(READ_BRIEF))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(policy: crate::PolicyBuilder) -> Words {
        Words::new(&policy.build().unwrap())
    }

    #[test]
    fn a_permit_at_hand_is_given_at_once() {
        let words = words(Policy::builder().max_in_flight(1_000));
        let gate = words.gate.load();
        assert!(words.enter(gate, false, Now::default).is_none());
        assert_eq!((words.bulkhead.acquire(0), words.bulkhead.acquire(1)), (Ok(()), Ok(())));
        let [plain, timed] = [false, true].map(|is_async| words.enter(gate, is_async, || Now::from_millis(7)));
        assert_eq!(plain.map(Token::started), Some(None));
        assert_eq!(timed.map(Token::started), Some(Some(Now::from_millis(7))));
        assert!(words.enter(gate::Word::open(1, 0, 5), false, Now::default).is_none());
    }

    #[test]
    fn full_and_open_are_refused_at_once_and_counted_if_the_slot_is_the_callers() {
        let words = words(Policy::builder().max_in_flight(1));
        assert_eq!(words.refuse_full(|| true), None);
        assert_eq!(words.bulkhead.acquire(0), Ok(()));
        assert_eq!((words.refuse_full(|| false), words.refuse_full(|| true)), (None, Some(1)));

        let open = gate::Word::open(1, 0, 5);
        let at = |millis| move || Now::from_millis(millis);
        assert_eq!(words.refuse_waiting(open, at(4), || true), Some(1_000_000));
        assert_eq!(
            (words.refuse_waiting(open, at(4), || false), words.refuse_waiting(open, at(5), || true)),
            (None, None)
        );
        let forced = gate::Word::half_open(1, 0, 1, 0, 9);
        assert_eq!(words.refuse_waiting(forced, at(0), || true), None);
        let counted = words.bulkhead.refusals();
        assert_eq!((counted.saturated, counted.open, counted.total()), (1, 1, 2));
    }

    #[test]
    fn a_success_changes_nothing_where_the_window_is_full_and_clean_and_no_streak_is_on() {
        let success = Ending::Settled(Outcome::Success);
        let policy = || Policy::builder().window(crate::Window::calls(3)).min_calls(3).consecutive_failures(9);
        let (words, policy) = (words(policy()), policy().build().unwrap());
        let time = crate::time::Reading::new(Now::default);
        let terms = Terms { policy: &policy, policy_version: 0 };
        let token = || words.admit(&policy, false, &time).0.unwrap();
        let is_unchanged = |token, ending| words.glance(token, ending) == Glance::Unchanged;
        let end = |ending| {
            let told = words.record(token(), Signs::default(), ending, || terms, &time);
            words.release();
            told.0
        };
        for _ in 0..3 {
            assert!(!is_unchanged(token(), success));
            let _ = end(success);
        }
        assert!(is_unchanged(token(), success));
        assert!(!is_unchanged(token(), Ending::Settled(Outcome::Failure)));
        assert!(!is_unchanged(token(), Ending::Abandoned));
        let _ = end(Ending::Settled(Outcome::Failure));
        // The failure is in the window for three calls more, and the streak for one.
        for _ in 0..3 {
            assert!(!is_unchanged(token(), success));
            let _ = end(success);
        }
        assert!(is_unchanged(token(), success));
        let early = token();
        let _ = words
            .by_hand(Cause::ForcedOpen, Now::default(), |word| word.force(gate::State::ForcedOpen, Now::default()));
        assert!(!is_unchanged(early, success));
        // Closed again, and the sign is of the window before.
        let _ = words.by_hand(Cause::Released, Now::default(), |word| word.release(Now::default()));
        assert!(!is_unchanged(early, success));
    }

    #[test]
    fn a_success_in_a_full_window_is_judged_once_after_a_failure_and_after_a_new_policy() {
        let policy = |rate| {
            let policy = Policy::builder().window(crate::Window::calls(4)).min_calls(4).failure_rate(rate);
            policy.build().unwrap()
        };
        let (before, after) = (policy(0.5), policy(0.2));
        let words = Words::new(&before);
        let time = crate::time::Reading::new(Now::default);
        // Whether the policy was looked at, and a rule met.
        let end = |policy, outcome| {
            let token = words.admit(policy, false, &time).0.unwrap();
            let is_judged = std::cell::Cell::new(false);
            let terms = || {
                is_judged.set(true);
                Terms { policy, policy_version: 0 }
            };
            let change = words.record(token, Signs::default(), Ending::Settled(outcome), terms, &time).1;
            words.release();
            (is_judged.get(), change.is_some())
        };
        let _ = end(&before, Outcome::Failure);
        for _ in 0..3 {
            // Until the window is full a success may complete `min_calls`.
            assert_eq!(end(&before, Outcome::Success), (true, false));
        }
        assert_eq!(end(&before, Outcome::Failure), (true, false));
        assert_eq!(end(&before, Outcome::Success), (true, false));
        assert_eq!(end(&before, Outcome::Success), (false, false));
        words.adopt(&before, &after);
        assert_eq!(end(&after, Outcome::Success), (true, true));
    }
}
