//! Waiting for a permit: asking with a place in the queue, and what comes of it.
//!
//! Only where nothing but a permit is missing: in CLOSED and DISABLED. In every other state the answer doesn't hang on one, and is
//! given at once. While the limit ramps as well: nothing but an admission raises it, so that who waits might sleep past a raise that time
//! alone brings. Whoever waited decides by the gate as it is then, with the permit in hand or, if he was turned away, without.

use std::task::Waker;

use super::{Answer, Change, Terms, Token, Words};
use crate::bulkhead::waiting::{Joined, Left};
use crate::bulkhead::{Refused, Ticket, Told, stripe};
use crate::gate::Moved;
use crate::policy::Policy;
use crate::priority::{Admit, Priority};
use crate::time::{Now, Reading};

/// What asking came to.
#[derive(Debug)]
#[must_use]
pub(crate) enum Asked {
    Answered((Answer, Option<Change>)),
    /// The waker is woken once there is an answer.
    Waits(Ticket),
}

impl Words {
    /// A permit from wherever there is one, where the gate lets calls pass; none, and nothing counted, if it takes more. The caller holds
    /// no lock.
    pub(crate) fn enter_if_room(&self, is_async: bool, now: impl Fn() -> Now) -> Option<Token> {
        let gate = self.gate.load();
        // Where running calls are counted, whoever comes may have to judge them first.
        if !gate.lets_pass() || self.is_watched() || self.bulkhead.acquire(stripe::own()).is_err() {
            return None;
        }
        Some(self.begin_followed(gate, Admit { priority: Priority::Critical, is_async }, now))
    }

    /// As [`admit_slowly`](Self::admit_slowly), but waits for a permit if there is none and the policy lets the call. The caller pins the slot
    /// and holds no lock.
    pub(crate) fn admit_or_wait<F: Fn() -> Now>(
        &self,
        terms: Terms<'_>,
        how: Admit,
        time: &Reading<F>,
        waker: &Waker,
    ) -> Asked {
        let Terms { policy, .. } = terms;
        if let Some((answer, change)) = self.judge_first(terms, time) {
            self.turn_away(change.moved);
            return Asked::Answered((answer, Some(change)));
        }
        let gate = self.gate.load();
        if gate.is_ramping() && Self::is_ramp_due(gate, policy, time.now()) {
            let mut is_due = false;
            self.raise(time.now(), &mut is_due);
            if is_due {
                self.bulkhead.serve();
            }
        }
        let answer = |answer| Asked::Answered((answer, None));
        let after_all = |holds_permit| Asked::Answered(self.admit_after(holds_permit, policy, how, time));
        if how.priority != Priority::Critical || policy.max_waiting == 0 || !self.gate.load().lets_pass() {
            return after_all(false);
        }
        if self.bulkhead.acquire(stripe::own()).is_ok() {
            return after_all(true);
        }
        match self.bulkhead.join(policy.max_waiting.into(), waker.clone()) {
            Ok(Joined::Granted) => after_all(true),
            // In the queue first, then a look at the gate: a trip in between is seen here or sees us there.
            Ok(Joined::Waits(ticket)) if self.gate.load().lets_pass() => Asked::Waits(ticket),
            Ok(Joined::Waits(ticket)) => after_all(self.bulkhead.leave(&ticket) == Left::Told(Told::Granted)),
            Err(Refused::Full { limit }) => answer(self.refused(Answer::saturated(limit), || true)),
            Err(Refused::Retired | Refused::Shed) => answer(Answer::RETIRED),
        }
    }

    /// The same, as a model asks.
    ///
    /// # Errors
    ///
    /// The ticket, if the call waits.
    #[cfg(portcullis_loom)]
    pub fn ask_or_wait<F: Fn() -> Now>(
        &self,
        policy: &Policy,
        time: &Reading<F>,
    ) -> Result<Result<Token, super::Refused>, Ticket> {
        match self.admit_or_wait(Terms { policy, policy_version: 0 }, Admit::new(), time, Waker::noop()) {
            Asked::Answered((answer, _)) => Ok(answer.told()),
            Asked::Waits(ticket) => Err(ticket),
        }
    }

    /// The answer for a ticket, if there is one yet; else `waker` is woken when there is.
    pub(crate) fn hear<'p, F: Fn() -> Now>(
        &self,
        ticket: &Ticket,
        policy: impl FnOnce() -> &'p Policy,
        how: Admit,
        time: &Reading<F>,
        waker: &Waker,
    ) -> Option<(Answer, Option<Change>)> {
        let told = self.bulkhead.hear(ticket, waker)?;
        Some(self.admit_after(told == Told::Granted, policy(), how, time))
    }

    /// The answer for a ticket that is given up: a refusal, unless there was another just before.
    pub(crate) fn give_up<F: Fn() -> Now>(
        &self,
        ticket: &Ticket,
        policy: &Policy,
        how: Admit,
        time: &Reading<F>,
    ) -> (Answer, Option<Change>) {
        match self.bulkhead.leave(ticket) {
            Left::Waiting => (self.refused(Answer::saturated(self.bulkhead.limit()), || true), None),
            Left::Told(told) => self.admit_after(told == Told::Granted, policy, how, time),
        }
    }

    /// Ends the wait of a caller that is gone.
    pub(crate) fn desert(&self, ticket: &Ticket) {
        if self.bulkhead.leave(ticket) == Left::Told(Told::Granted) {
            self.bulkhead.cancel(stripe::own());
        }
    }

    /// Decides after a wait, or instead of one.
    fn admit_after<F: Fn() -> Now>(
        &self,
        holds_permit: bool,
        policy: &Policy,
        how: Admit,
        time: &Reading<F>,
    ) -> (Answer, Option<Change>) {
        let mut is_due = false;
        let answered = self.admit_from(holds_permit, policy, how, time, || true, &mut is_due);
        if is_due {
            self.bulkhead.serve();
        }
        answered
    }

    /// After a transition: nobody waits at a gate that lets no call pass. The caller holds no lock then. One that ramps comes from states
    /// where nobody waits.
    pub(crate) fn turn_away(&self, moved: Moved) {
        // Where the gate lets calls pass again by now, who waits there waits rightly; whoever moves it next turns away by himself.
        if !moved.to.lets_pass() && !moved.to.is_ramping() && !self.gate.load().lets_pass() {
            self.bulkhead.turn_away();
        }
    }
}
