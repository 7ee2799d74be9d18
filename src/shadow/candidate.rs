//! One shadow: a second set of words, under a policy of its own, and what came of its decisions in fact.

use std::sync::Arc;
use std::time::Duration;

use super::{ShadowSnapshot, Trip};
use crate::adaptive::Rules;
use crate::adaptive::samples::Samples;
use crate::counters::Counter;
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::priority::{Admit, Priority};
use crate::snapshot::{AdaptiveSnapshot, Snapshot};
use crate::sync::Mutex;
use crate::target::{Change, Ending, Signs, Terms, Token, Words};
use crate::time::{AnyReading, Now};

/// Which of the target's tenants and refusals a shadow begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beginning {
    pub(crate) at: Now,
    pub(crate) salt: u32,
    pub(crate) incarnation: u64,
    /// Calls that the target had refused by then.
    pub(crate) refused: u64,
}

/// A policy that is told of each call and decides nothing.
///
/// Its words are moved by the protocols of a target's. Nobody waits at them, and nobody moves them by hand.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) policy: Policy,
    begun: Beginning,
    words: Words,
    success_seen: Counter,
    asked_seen: Counter,
    refused_but_succeeded: Counter,
    failures_avoided: Counter,
    refused_without_verdict: Counter,
    transitions: Counter,
    trips: Counter,
    last_trip: Mutex<Option<Trip>>,
}

#[cfg(test)]
pub(crate) const BYTES: usize = size_of::<Candidate>();

/// What a shadow made of a call that runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    /// The shadow's own, or, where it would have refused, no more than how the call began.
    token: Token,
    is_granted: bool,
}

impl Candidate {
    pub(crate) fn new(name: &str, policy: Policy, begun: Beginning) -> Self {
        let words = Words::new(&policy);
        words.recycle(&policy, begun.salt);
        Self {
            name: name.to_owned(),
            policy,
            begun,
            words,
            success_seen: Counter::default(),
            asked_seen: Counter::default(),
            refused_but_succeeded: Counter::default(),
            failures_avoided: Counter::default(),
            refused_without_verdict: Counter::default(),
            transitions: Counter::default(),
            trips: Counter::default(),
            last_trip: Mutex::new(None),
        }
    }

    fn terms(&self) -> Terms<'_> {
        Terms { policy: &self.policy, policy_version: 0 }
    }

    /// Whether it would let a call start that starts in any case.
    pub(super) fn ask(&self, how: Admit, time: &AnyReading<'_>) -> Seat {
        let (told, change) = if how.priority == Priority::Critical {
            self.words.admit(&self.policy, how.is_async, time)
        } else {
            match self.words.judge_first(self.terms(), time) {
                Some((answer, change)) => (answer.told(), Some(change)),
                None => self.words.admit_as(&self.policy, how, time),
            }
        };
        self.note(change);
        told.map_or_else(
            |_| {
                let is_timed = how.is_async || self.policy.times_calls();
                let token = Token::outside(how.is_async, is_timed.then(|| time.now()));
                Seat { token, is_granted: false }
            },
            |token| Seat { token, is_granted: true },
        )
    }

    /// How the call ended; what it holds of the limit is kept.
    pub(super) fn hear(&self, seat: Seat, signs: Signs, ending: Ending, time: &AnyReading<'_>) {
        if seat.is_granted {
            let (_, change) = self.words.record(seat.token, signs, ending, || self.terms(), time);
            self.note(change);
            if let (Some(rules), Some(samples)) = (&self.policy.adaptive, self.words.samples_due(|| time.now())) {
                self.adapt(rules, samples, time.now());
            }
            return;
        }
        let began = seat.token.started().filter(|_| !signs.waits);
        let silent = || signs.alive.or(began).map(|since| time.now().nanos_since(since));
        let came_of_it = match ending.means(seat.token.is_async(), silent, &self.policy) {
            Outcome::Success => &self.refused_but_succeeded,
            Outcome::Failure => &self.failures_avoided,
            Outcome::Ignored => &self.refused_without_verdict,
        };
        came_of_it.add(1);
    }

    #[cold]
    fn adapt(&self, rules: &Rules, samples: &Samples, now: Now) {
        // Nobody is to be served.
        let _ = self.words.adapt(rules, &self.policy, samples, now);
    }

    /// Gives back what a call holds that was [heard](Self::hear).
    pub(super) fn release(&self, seat: Seat) {
        if seat.is_granted {
            self.words.release();
        }
    }

    /// As [`Words::hold`].
    pub(super) fn hold(&self, seat: Seat) {
        if seat.is_granted {
            self.words.hold();
        }
    }

    /// As [`Words::release_held`].
    pub(super) fn release_held(&self, seat: Seat) {
        if seat.is_granted {
            self.words.release_held();
        }
    }

    /// Forgets a call that was never made. If it would have been refused, it counts as one without a verdict.
    pub(super) fn cancel(&self, Seat { token, is_granted }: Seat) {
        if !is_granted {
            self.refused_without_verdict.add(1);
            return;
        }
        if token.is_probe() {
            let _ = self.words.gate.apply(|word| word.probe_returned(token.generation()));
        }
        self.words.cancel(token);
    }

    /// The call begins only now.
    #[cfg(feature = "tower")]
    pub(super) fn begun(&self, seat: Seat, at: Now) -> Seat {
        let token = if seat.is_granted { self.words.begun(seat.token, at) } else { seat.token.begun(Some(at)) };
        Seat { token, ..seat }
    }

    /// The call gave its first sign of life.
    pub(super) fn answered(&self, seat: Seat) -> Seat {
        Seat { token: self.words.unwatched(seat.token), ..seat }
    }

    #[inline]
    fn note(&self, change: Option<Change>) {
        if let Some(change) = change {
            self.count(change);
        }
    }

    #[cold]
    #[inline(never)]
    fn count(&self, Change { moved, cause, evidence, at, .. }: Change) {
        self.transitions.add(1);
        let Some(evidence) = evidence else { return };
        self.trips.add(1);
        let wait = at.until_tick(moved.to.tick());
        let trip = Trip { at: Duration::from_nanos(at.nanos()), cause, wait, evidence };
        let mut last = self.last_trip.lock();
        // Two threads may come in another order than they tripped it.
        if last.as_ref().is_none_or(|last| last.at <= trip.at) {
            *last = Some(trip);
        }
    }

    pub(crate) fn snapshot(&self, refused_by_now: u64, now: Now) -> ShadowSnapshot {
        // As a snapshot of the target does: one that hangs is seen to be open.
        self.note(self.words.judge_running(self.terms(), now));
        // Before the refusals: a call is refused before anything comes of that.
        let [refused_but_succeeded, failures_avoided, refused_without_verdict, trips] =
            [&self.refused_but_succeeded, &self.failures_avoided, &self.refused_without_verdict, &self.trips]
                .map(Counter::get);
        let Beginning { at, incarnation, refused, .. } = self.begun;
        let would_be = Snapshot::take((&self.words, &self.success_seen), &self.policy, 0, incarnation, now);
        let transitions = self.transitions.get();
        let control =
            self.policy.adaptive.as_ref().map(|_| self.words.samples().and_then(|samples| *samples.control()));
        ShadowSnapshot {
            name: self.name.clone(),
            since: Duration::from_nanos(at.nanos()),
            // What was admitted may be seen to go back a little; a series of this must not.
            asked: self.asked_seen.at_least(would_be.totals.admitted + would_be.refusals.total()),
            refused: would_be.refusals.total(),
            refused_but_succeeded,
            failures_avoided,
            refused_without_verdict,
            trips,
            last_trip: self.last_trip.lock().clone(),
            not_asked: refused_by_now.saturating_sub(refused),
            would_be: Snapshot {
                transitions,
                adaptive: control.map(|control| AdaptiveSnapshot::of(control, false)),
                ..would_be
            },
        }
    }
}

/// The shadows of a target, in the order in which they came.
pub(super) type Set = Arc<[Arc<Candidate>]>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_never_goes_back() {
        let begun = Beginning { at: Now::from_millis(0), salt: 0, incarnation: 0, refused: 0 };
        let candidate = Candidate::new("strict", Policy::default(), begun);
        let asked = || candidate.snapshot(0, Now::from_millis(1)).asked;
        let read = || Now::from_millis(1);
        let time = AnyReading::new(&read);
        let ask = || candidate.ask(Admit { priority: Priority::Critical, is_async: false }, &time);
        let seat = ask();
        assert_eq!(asked(), 1);
        candidate.cancel(seat);
        assert_eq!((asked(), candidate.words.bulkhead.usage().in_flight), (1, 0));
        let _ = (ask(), ask());
        assert_eq!(asked(), 2);
    }
}
