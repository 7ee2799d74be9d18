//! A target at which the models ask and settle, as the engine does but for keys and observers.

use std::sync::{Mutex, PoisonError};
use std::task::Waker;
use std::time::Duration;

use loom::sync::atomic::{AtomicU32, Ordering};
use portcullis::internals::{
    Change, Counts, Ending, GateWord, Glance, Now, Reading, Refused, Signs, Step, Terms, Ticket, Token, Told, Words,
};
use portcullis::{Cause, Outcome, Policy, PolicyBuilder, Settled};

/// When the wait of a trip at 0 is over.
pub const ELAPSED: u64 = 10;

/// A policy whose waits the models know.
///
/// # Panics
///
/// If the policy is refused.
#[must_use]
pub fn build(policy: PolicyBuilder) -> Policy {
    let policy = policy.open_wait(Duration::from_millis(ELAPSED)).jitter(0.0).probe_lease(Duration::from_secs(1));
    policy.build().unwrap_or_else(|error| panic!("{error}"))
}

/// Trips at the first failure, closes at the first success.
pub fn touchy() -> PolicyBuilder {
    Policy::builder().no_window().consecutive_failures(1).successes_to_close(1)
}

/// What a racer was told, and the transition that it made on the way.
pub type Said = (&'static str, Option<Cause>);

#[derive(Debug)]
pub struct Desk {
    pub words: Words,
    policy: Policy,
    /// Another, and 1 once it is in force.
    next: Option<(Policy, AtomicU32)>,
    /// Permits that were granted before the race.
    granted: Vec<Token>,
    /// Who waits.
    tickets: Mutex<Vec<Ticket>>,
    /// Each transition reported so far. Plain std: loom's threads take turns, and none is switched away from inside.
    changes: Mutex<Vec<(u32, Cause)>>,
    /// Tenants that the slot has had before this one. Loom's, so that it sees a race about it.
    evicted: AtomicU32,
}

/// A clock that stands at `millis`: time in a model is what the model says.
fn at(millis: u64) -> Reading<impl Fn() -> Now> {
    Reading::new(move || Now::from_millis(millis))
}

impl Desk {
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let words = Words::new(&policy);
        Self {
            words,
            policy,
            next: None,
            granted: Vec::new(),
            tickets: Mutex::default(),
            changes: Mutex::default(),
            evicted: AtomicU32::new(0),
        }
    }

    /// With `calls` admitted before the race.
    #[must_use]
    pub fn with_calls(policy: Policy, calls: usize) -> Self {
        let mut desk = Self::new(policy);
        for _ in 0..calls {
            desk.grant(0);
        }
        desk
    }

    /// Admits a call at `millis`, before the race.
    pub fn grant(&mut self, millis: u64) {
        let (token, _) = self.admit(millis);
        self.granted.extend(token.ok());
    }

    /// A permit that was granted before the race.
    #[must_use]
    pub fn granted(&self, index: usize) -> Token {
        self.granted[index]
    }

    pub fn admit(&self, millis: u64) -> (Result<Token, &'static str>, Option<Cause>) {
        let (answer, change) = self.words.admit(&self.policy, false, &at(millis));
        let answer = answer.map_err(|refused| match refused {
            Refused::Rejected(rejection) => rejection.reason(),
            Refused::Retired => "retired",
        });
        (answer, self.note(change))
    }

    /// Asks at `millis` and keeps what it got.
    pub fn ask(&self, millis: u64) -> Said {
        match self.admit(millis) {
            (Ok(token), cause) => (if token.is_probe() { "probes" } else { "enters" }, cause),
            (Err(reason), cause) => (reason, cause),
        }
    }

    /// Asks at `millis`, and waits if it must.
    pub fn ask_or_wait(&self, millis: u64) -> &'static str {
        match self.words.ask_or_wait(&self.policy, &at(millis)) {
            Ok(answer) => match answer {
                Ok(_) => "enters",
                Err(Refused::Rejected(rejection)) => rejection.reason(),
                Err(Refused::Retired) => "retired",
            },
            Err(ticket) => {
                self.tickets.lock().unwrap_or_else(PoisonError::into_inner).push(ticket);
                "waits"
            }
        }
    }

    /// What the last that waits is told.
    pub fn hear(&self) -> &'static str {
        let ticket = self.tickets.lock().unwrap_or_else(PoisonError::into_inner).pop();
        match ticket.and_then(|ticket| self.words.bulkhead.hear(&ticket, Waker::noop())) {
            None => "still waits",
            Some(Told::Granted) => "granted",
            Some(Told::TurnedAway) => "turned away",
        }
    }

    pub fn settle(&self, token: Token, outcome: Outcome) -> Said {
        self.end(token, Ending::Settled(outcome), 0)
    }

    /// Settles a success as the engine does: one that changes nothing isn't recorded.
    pub fn succeed(&self, token: Token) -> Said {
        if self.words.glance(token, Ending::Settled(Outcome::Success)) != Glance::Unchanged {
            return self.settle(token, Outcome::Success);
        }
        self.words.release();
        ("unchanged", None)
    }

    /// A twin of [`Self::succeed`] that judges by the policy that it read before it looked at the words.
    pub fn succeed_by_the_policy_before(&self, token: Token) -> Said {
        let terms = Terms { policy: self.policy(), policy_version: 0 };
        let ending = Ending::Settled(Outcome::Success);
        let (_, change) = self.words.record(token, Signs::default(), ending, || terms, &at(0));
        self.words.release();
        ("recorded", self.note(change))
    }

    /// Records how a call ended, and gives its permit back last.
    pub fn end(&self, token: Token, ending: Ending, millis: u64) -> Said {
        let said = self.record(token, ending, millis);
        self.words.release();
        said
    }

    /// Records an outcome of the slot's first tenant.
    pub fn record(&self, token: Token, ending: Ending, millis: u64) -> Said {
        let terms = || Terms { policy: self.policy(), policy_version: 0 };
        let (settled, change) = self.words.record(token, Signs::default(), ending, terms, &at(millis));
        assert_eq!(self.evicted.load(Ordering::Acquire), 0, "an outcome reached another tenant");
        (if settled == Settled::Recorded { "recorded" } else { "stale" }, self.note(change))
    }

    /// The policy in force.
    fn policy(&self) -> &Policy {
        match &self.next {
            Some((policy, in_force)) if in_force.load(Ordering::Acquire) == 1 => policy,
            _ => &self.policy,
        }
    }

    /// Puts another policy in force, which the words are told of after that.
    pub fn adopt(&self, policy: &Policy) {
        if let Some((_, in_force)) = &self.next {
            in_force.store(1, Ordering::Release);
        }
        self.words.adopt(&self.policy, policy);
    }

    /// Puts the policy in force that the desk was given for that.
    pub fn adopt_next(&self) {
        if let Some((policy, _)) = &self.next {
            self.adopt(policy);
        }
    }

    /// With a policy that can be put in force during the race.
    #[must_use]
    pub fn or(mut self, policy: Policy) -> Self {
        self.next = Some((policy, AtomicU32::new(0)));
        self
    }

    /// Sets the limit at `millis`.
    pub fn set_limit(&self, limit: u32, millis: u64) -> Said {
        if self.words.set_limit(limit, self.policy(), Now::from_millis(millis)) {
            self.words.bulkhead.serve();
        }
        ("set", None)
    }

    pub fn by_hand(&self, cause: Cause, step: impl Fn(GateWord) -> Step) -> Said {
        ("by hand", self.note(self.words.by_hand(cause, Now::default(), step)))
    }

    /// Hands the slot to another tenant if nothing is in flight, in the order of the registry.
    pub fn recycle(&self) -> Said {
        if !self.words.bulkhead.retire() {
            return ("stays", None);
        }
        self.evicted.store(1, Ordering::Release);
        let said = self.by_hand(Cause::Forgotten, |gate| gate.forget(Now::default()));
        self.words.bulkhead.reinstate(self.policy.max_in_flight());
        said
    }

    fn note(&self, change: Option<Change>) -> Option<Cause> {
        let change = change?;
        let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.push((change.moved.to.generation(), change.cause));
        Some(change.cause)
    }

    /// Asserts that each generation was begun and reported exactly once, and returns the gate as it is.
    pub fn gate(&self) -> GateWord {
        let gate = self.words.gate.load();
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reported: Vec<u32> = changes.iter().map(|(generation, _)| *generation).collect();
        reported.sort_unstable();
        let begun: Vec<u32> = (1..=gate.generation()).collect();
        assert_eq!(reported, begun, "each new generation is one transition");
        gate
    }

    /// Calls, failures and slow calls of the present window, and the streak.
    pub fn window(&self) -> (Counts, u64) {
        let gate = self.words.gate.load();
        let counts = self.words.window(gate, &self.policy, Now::default()).unwrap_or_default();
        (counts, self.words.streak.count(gate.generation()))
    }

    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.words.bulkhead.usage().in_flight
    }
}
