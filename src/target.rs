//! A target's words, and the two things that calls do with them: ask to start, and settle.
//!
//! The order of the steps is what the rules rest on:
//!
//! - Admission reads the gate, takes a bulkhead permit, and only then, where the gate wants a probe, its slot (R1). A lost CAS
//!   decides again on the new word (R2). Nothing is ever rolled back but the permit.
//! - Settlement reads the gate again, since a clean window can't tell a stale outcome; records in every window before any rule is
//!   judged, so that two rules met at once are one trip; and moves the gate. Its caller gives the permit back last, since
//!   that unpins the slot (protocol K), and reports after that, on owned data.

use crate::bulkhead::{self, Bulkhead, Usage};
use crate::counters::{Counter, Counters};
use crate::event::Cause;
use crate::gate::{self, Admission, Applied, Moved, ProbeRules, Refusal, State, Step};
use crate::outcome::{Outcome, Settled};
use crate::policy::{OnAbandon, Policy};
use crate::rejection::Rejection;
use crate::sync::{AtomicU64, Lazy, Ordering};
use crate::time::{Now, Reading, saturating_nanos};
use crate::trip::Evidence;
use crate::window::{Counts, Geometry, Recorded, buckets, calls, streak};

/// All that races for one target.
#[derive(Debug)]
pub struct Words {
    pub gate: gate::Cell,
    pub bulkhead: Bulkhead,
    pub streak: streak::Cell,
    pub calls: calls::Cell,
    rare: Lazy<Rare>,
    /// What makes this target's jitter its own; written while nobody calls.
    salt: AtomicU64,
    /// Calls that earlier tenants settled.
    settled_before: AtomicU64,
    /// The most successes that a snapshot has shown.
    pub(crate) success_seen: Counter,
}

/// What a healthy target with a window of calls never needs.
#[derive(Debug, Default)]
struct Rare {
    counters: Counters,
    slow_calls: calls::Cell,
    ring: buckets::Ring,
    /// Probes settled as ignored in a row.
    ignored: streak::Cell,
}

/// The right to run one call, as plain data. Whoever holds it owes the target a settlement and a release.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub generation: u32,
    pub is_probe: bool,
    /// Dropping it unsettled means what it means for async calls.
    pub(crate) is_async: bool,
    pub(crate) stripe: usize,
    pub(crate) started: Option<Now>,
    /// When the target began to answer; what comes after is also the caller's pace.
    pub(crate) answered: Option<Now>,
    /// The target's last sign of life in this call, if it gave any.
    pub(crate) alive: Option<Now>,
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

/// A transition that this thread made, to be reported once it holds nothing.
#[derive(Debug)]
#[must_use]
pub struct Change {
    pub moved: Moved,
    pub cause: Cause,
    pub evidence: Option<Box<Evidence>>,
    pub at: Now,
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
    pub fn new(limit: u32, salt: u64) -> Self {
        Self {
            gate: gate::Cell::default(),
            bulkhead: Bulkhead::new(limit),
            streak: streak::Cell::default(),
            calls: calls::Cell::default(),
            rare: Lazy::default(),
            salt: AtomicU64::new(salt),
            settled_before: AtomicU64::new(0),
            success_seen: Counter::default(),
        }
    }

    /// Decides whether a call may start. A transition that it made must be reported, whatever the answer.
    ///
    /// # Errors
    ///
    /// [`Refused`], counted by its reason unless the slot is retired.
    #[inline]
    pub fn admit<F: Fn() -> Now>(
        &self,
        policy: &Policy,
        is_async: bool,
        time: &Reading<F>,
    ) -> (Result<Token, Refused>, Option<Change>) {
        let stripe = 0;
        let gate = self.gate.load();
        if !gate.lets_pass() {
            return self.admit_guarded(gate, policy, is_async, time);
        }
        match self.bulkhead.acquire(stripe) {
            Ok(()) => (Ok(Self::token(gate, false, is_async, stripe, policy, time)), None),
            Err(refused) => (Err(self.refuse_full(refused)), None),
        }
    }

    #[cold]
    #[inline(never)]
    fn admit_guarded<F: Fn() -> Now>(
        &self,
        mut gate: gate::Word,
        policy: &Policy,
        is_async: bool,
        time: &Reading<F>,
    ) -> (Result<Token, Refused>, Option<Change>) {
        let (stripe, now, rules) = (0, time.now(), policy.probe_rules());
        let mut holds_permit = false;
        loop {
            let next = match gate.admit(now, rules) {
                Admission::Refuse(refusal) => {
                    if holds_permit {
                        self.bulkhead.cancel(stripe);
                    }
                    return (Err(self.refuse(rejection(refusal, now))), None);
                }
                Admission::Enter => None,
                Admission::Probe(next) => Some(next),
            };
            if !holds_permit {
                if let Err(refused) = self.bulkhead.acquire(stripe) {
                    return (Err(self.refuse_full(refused)), None);
                }
                holds_permit = true;
            }
            let Some(next) = next else {
                return (Ok(Self::token(gate, false, is_async, stripe, policy, time)), None);
            };
            match self.gate.take_probe(gate, next) {
                Err(seen) => gate = seen,
                Ok(moved) => {
                    let change = moved.map(|moved| Change {
                        moved,
                        cause: if gate.state() == State::Open { Cause::WaitElapsed } else { Cause::LeaseExpired },
                        evidence: None,
                        at: now,
                    });
                    return (Ok(Self::token(next, true, is_async, stripe, policy, time)), change);
                }
            }
        }
    }

    fn token<F: Fn() -> Now>(
        gate: gate::Word,
        is_probe: bool,
        is_async: bool,
        stripe: usize,
        policy: &Policy,
        time: &Reading<F>,
    ) -> Token {
        let started = (is_async || policy.times_calls()).then(|| time.now());
        Token { generation: gate.generation(), is_probe, is_async, stripe, started, answered: None, alive: None }
    }

    #[cold]
    fn refuse_full(&self, refused: bulkhead::Refused) -> Refused {
        match refused {
            bulkhead::Refused::Full { limit } => self.refuse(Rejection::Saturated { limit }),
            bulkhead::Refused::Retired => Refused::Retired,
        }
    }

    fn refuse(&self, rejection: Rejection) -> Refused {
        self.counters().refused(&rejection);
        Refused::Rejected(rejection)
    }

    /// Records how a call ended; the permit stays held until [`Words::release`]. A transition must be reported after that.
    pub fn record<F: Fn() -> Now>(
        &self,
        token: Token,
        ending: Ending,
        terms: Terms<'_>,
        time: &Reading<F>,
    ) -> (Settled, Option<Change>) {
        let ran = token.started.map(|started| token.answered.unwrap_or_else(|| time.now()).nanos_since(started));
        let silent = token.alive.or(token.started).map(|since| time.now().nanos_since(since));
        let outcome = outcome(ending, token.is_async, silent, terms.policy);
        let slow = matches!(ending, Ending::Settled(Outcome::Success | Outcome::Failure))
            && terms.policy.slow_call_nanos.is_some_and(|slow_call| ran.is_some_and(|ran| ran >= slow_call));
        let gate = self.gate.load();
        let (settled, change) = if gate.generation() != token.generation {
            (Settled::Stale, None)
        } else if token.is_probe {
            self.probe_ended(token.generation, outcome, ending, slow, terms.policy, time)
        } else if outcome == Outcome::Ignored || gate.state() != State::Closed {
            (Settled::Recorded, None)
        } else {
            self.call_ended(gate, outcome == Outcome::Failure, slow, terms, time)
        };
        self.count(settled, ending, slow);
        (settled, change)
    }

    /// Gives the permit of a recorded call back.
    #[inline]
    pub fn release(&self, token: Token) {
        self.bulkhead.release(token.stripe);
    }

    /// Notes that the permit of a recorded call is held on to.
    pub fn hold(&self) {
        self.counters().held.raise();
    }

    /// Gives such a permit back.
    pub fn release_held(&self, token: Token) {
        // Before the call counts as settled: a snapshot then misses it for a moment, and never shows it twice.
        self.counters().held.lower();
        self.release(token);
    }

    fn call_ended<F: Fn() -> Now>(
        &self,
        gate: gate::Word,
        failed: bool,
        slow: bool,
        terms: Terms<'_>,
        time: &Reading<F>,
    ) -> (Settled, Option<Change>) {
        let (policy, generation) = (terms.policy, gate.generation());
        let Recorded::Counted(counts) = self.record_window(gate, failed, slow, policy, time) else {
            return (Settled::Stale, None);
        };
        let mut streak = 0;
        if policy.consecutive_failures.is_some() {
            if failed {
                let Recorded::Counted(length) = self.streak.failed(generation, &self.gate) else {
                    return (Settled::Stale, None);
                };
                streak = length;
            } else {
                self.streak.succeeded(generation);
            }
        }
        if streak == 0 && counts.failures == 0 && counts.slow == 0 {
            return (Settled::Recorded, None);
        }
        let change = Evidence::judge(policy, terms.policy_version, streak, counts)
            .and_then(|evidence| self.trip(generation, policy, evidence, time.now()));
        (Settled::Recorded, change)
    }

    fn record_window<F: Fn() -> Now>(
        &self,
        gate: gate::Word,
        failed: bool,
        slow: bool,
        policy: &Policy,
        time: &Reading<F>,
    ) -> Recorded<Counts> {
        let generation = gate.generation();
        match policy.geometry {
            None => Recorded::Counted(Counts::default()),
            Some(Geometry::Calls(size)) => {
                let Recorded::Counted(window) = self.calls.record(failed, generation, size, &self.gate) else {
                    return Recorded::Stale;
                };
                let (calls, failures) = window.counts(size);
                let mut counts = Counts { calls: calls.into(), failures: failures.into(), slow: 0 };
                if policy.slow_rate_bp.is_some() {
                    let slow_calls = &self.rare.force().slow_calls;
                    let Recorded::Counted(window) = slow_calls.record(slow, generation, size, &self.gate) else {
                        return Recorded::Stale;
                    };
                    // The two words may have met the outcomes in different orders. Whoever is last in this one sees all calls in the
                    // other, and judges what no one else could.
                    let (calls, failures) = self.calls.counts(generation, size);
                    counts =
                        Counts { calls: calls.into(), failures: failures.into(), slow: window.counts(size).1.into() };
                }
                Recorded::Counted(counts)
            }
            Some(Geometry::Time { width_ms, buckets }) => {
                let view = buckets::View::new(generation, gate.tick(), width_ms, buckets, time.now());
                self.rare.force().ring.record(&view, failed, slow, &self.gate)
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn trip(&self, generation: u32, policy: &Policy, evidence: Box<Evidence>, now: Now) -> Option<Change> {
        let reopen_at = now.tick_after(policy.wait_ms(0, self.draw(generation)));
        match self.gate.apply(|word| word.trip(generation, reopen_at)) {
            Applied::Moved(moved) => {
                Some(Change { moved, cause: Cause::from(evidence.rule()), evidence: Some(evidence), at: now })
            }
            // Another outcome tripped on the same window: its report is the only one.
            Applied::Stale | Applied::Stayed => None,
        }
    }

    fn probe_ended<F: Fn() -> Now>(
        &self,
        generation: u32,
        outcome: Outcome,
        ending: Ending,
        slow: bool,
        policy: &Policy,
        time: &Reading<F>,
    ) -> (Settled, Option<Change>) {
        let (now, rules) = (time.now(), policy.probe_rules());
        let good = match outcome {
            Outcome::Success => !slow,
            Outcome::Failure => false,
            Outcome::Ignored
                if ending == Ending::Settled(Outcome::Ignored) && self.is_enough_ignored(generation, policy) =>
            {
                true
            }
            Outcome::Ignored => {
                let applied = self.gate.apply(|word| word.probe_returned(generation));
                return (settled(applied), None);
            }
        };
        let (applied, cause) = if good {
            if let Some(rare) = self.rare.get() {
                rare.ignored.succeeded(generation);
            }
            let begins = self.beginning(now);
            (self.gate.apply(|word| word.probe_succeeded(generation, begins, rules)), Cause::ProbesSucceeded)
        } else {
            let wait = |reopens| policy.wait_ms(reopens, self.draw(generation));
            let cause = if outcome == Outcome::Failure { Cause::ProbeFailed } else { Cause::ProbeSlow };
            (self.gate.apply(|word| word.probe_failed(generation, now, wait)), cause)
        };
        let change = match applied {
            Applied::Moved(moved) => Some(Change { moved, cause, evidence: None, at: now }),
            Applied::Stale | Applied::Stayed => None,
        };
        (settled(applied), change)
    }

    /// Whether this ignored probe is the one that makes so many in a row count as a success (R4).
    fn is_enough_ignored(&self, generation: u32, policy: &Policy) -> bool {
        let length = self.rare.force().ignored.failed(generation, &self.gate);
        // Not >=: two probes may pass the mark before the first of them has reset the streak.
        matches!(length, Recorded::Counted(length) if length.is_multiple_of(u64::from(policy.ignored_probes)))
    }

    /// This target's jitter for the trip that ends `generation`.
    fn draw(&self, generation: u32) -> u64 {
        mix(self.salt.load(Ordering::Relaxed) ^ u64::from(generation))
    }

    #[inline]
    fn count(&self, settled: Settled, ending: Ending, slow: bool) {
        if settled == Settled::Recorded && ending == Ending::Settled(Outcome::Success) && !slow {
            return;
        }
        let counters = self.counters();
        if slow && settled == Settled::Recorded {
            counters.slow.add(1);
        }
        match (settled, ending) {
            (Settled::Stale, _) => counters.stale.add(1),
            (_, Ending::Settled(Outcome::Success)) => 0,
            (_, Ending::Settled(Outcome::Failure) | Ending::Panicked) => counters.failure.add(1),
            (_, Ending::Settled(Outcome::Ignored)) => counters.ignored.add(1),
            (_, Ending::Abandoned) => counters.abandoned.add(1),
        };
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.rare.force().counters
    }

    pub(crate) fn counters_if_any(&self) -> Option<&Counters> {
        self.rare.get().map(|rare| &rare.counters)
    }

    /// When a window that is opened now begins: after every bucket that is there. Usually that is now; only where several windows fell
    /// into one millisecond, or the clock stepped back, it is later.
    #[must_use]
    pub fn beginning(&self, now: Now) -> Now {
        let newest = self.rare.get().and_then(|rare| rare.ring.newest_start());
        newest.map_or(now, |start| now.max(Now::from_millis(start.saturating_add(1))))
    }

    /// Whether nothing is remembered that another policy could judge: no call in the window, no streak.
    #[must_use]
    pub fn is_blank(&self, policy: &Policy, now: Now) -> bool {
        let gate = self.gate.load();
        let calls = self.window(gate, policy, now).map_or(0, |counts| counts.calls);
        calls == 0 && self.streak.count(gate.generation()) == 0
    }

    /// Empties the words that `before` had no rule for and `after` has: they weren't written for a while, and speak of another time.
    pub fn adopt(&self, before: &Policy, after: &Policy) {
        let generation = self.gate.load().generation();
        if before.consecutive_failures.is_none() && after.consecutive_failures.is_some() {
            self.streak.succeeded(generation);
        }
        if before.slow_rate_bp.is_none() && after.slow_rate_bp.is_some() {
            self.rare.force().slow_calls.empty(generation);
        }
    }

    /// Applies what was done by hand.
    pub fn by_hand(&self, cause: Cause, now: Now, step: impl Fn(gate::Word) -> Step) -> Option<Change> {
        match self.gate.apply(step) {
            Applied::Moved(moved) => Some(Change { moved, cause, evidence: None, at: now }),
            Applied::Stale | Applied::Stayed => None,
        }
    }

    /// What the window of the gate's generation holds.
    #[must_use]
    pub fn window(&self, gate: gate::Word, policy: &Policy, now: Now) -> Option<Counts> {
        let generation = gate.generation();
        match policy.geometry? {
            _ if gate.state() != State::Closed => Some(Counts::default()),
            Geometry::Calls(size) => {
                let (calls, failures) = self.calls.counts(generation, size);
                let slow = self.rare.get().map_or(0, |rare| rare.slow_calls.counts(generation, size).1);
                Some(Counts { calls: calls.into(), failures: failures.into(), slow: slow.into() })
            }
            Geometry::Time { width_ms, buckets } => {
                let view = buckets::View::new(generation, gate.tick(), width_ms, buckets, now);
                Some(self.rare.get().map_or(Counts::default(), |rare| rare.ring.counts(&view)))
            }
        }
    }

    /// Whether a failure or slow call is remembered that a fresh target wouldn't have.
    #[must_use]
    pub fn holds_evidence(&self, gate: gate::Word, policy: &Policy, now: Now) -> bool {
        let counts = self.window(gate, policy, now).unwrap_or_default();
        self.streak.count(gate.generation()) > 0 || counts.failures > 0 || counts.slow > 0
    }

    /// Makes the words a new tenant's. Only for whoever retired the bulkhead.
    pub(crate) fn recycle(&self, salt: u64) {
        if let Some(counters) = self.counters_if_any() {
            counters.reset();
        }
        self.success_seen.reset();
        // Relaxed, both: published by the Release that reinstates the bulkhead.
        self.settled_before.store(self.bulkhead.usage().settled, Ordering::Relaxed);
        self.salt.store(salt, Ordering::Relaxed);
    }

    /// Calls of the present tenant, in flight and settled.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let usage = self.bulkhead.usage();
        Usage { settled: usage.settled.saturating_sub(self.settled_before.load(Ordering::Relaxed)), ..usage }
    }
}

fn settled(applied: Applied) -> Settled {
    match applied {
        Applied::Stale => Settled::Stale,
        Applied::Stayed | Applied::Moved(_) => Settled::Recorded,
    }
}

fn rejection(refusal: Refusal, now: Now) -> Rejection {
    match refusal {
        Refusal::Open { reopen_at } => Rejection::Open { retry_after: now.until_tick(reopen_at) },
        Refusal::Probing { lease_end } => Rejection::Probing { retry_after: now.until_second(lease_end) },
        Refusal::ForcedOpen => Rejection::ForcedOpen,
    }
}

/// What an ending says about the target (R11), which was silent for so many nanoseconds.
fn outcome(ending: Ending, is_async: bool, silent: Option<u64>, policy: &Policy) -> Outcome {
    match ending {
        Ending::Settled(outcome) => outcome,
        Ending::Panicked => Outcome::Failure,
        Ending::Abandoned => {
            let default = if is_async { OnAbandon::ASYNC } else { OnAbandon::Ignore };
            match policy.on_abandon.unwrap_or(default) {
                OnAbandon::Ignore => Outcome::Ignored,
                OnAbandon::Failure => Outcome::Failure,
                OnAbandon::FailureAfter(least) => {
                    if silent.is_some_and(|silent| silent >= saturating_nanos(least)) {
                        Outcome::Failure
                    } else {
                        Outcome::Ignored
                    }
                }
            }
        }
    }
}

/// The finalizer of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
fn mix(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
