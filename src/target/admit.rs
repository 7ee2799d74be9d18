//! Asking to start: the gate, then a bulkhead permit, then a probe slot.

use super::{Answer, Change, Refused, Token, Words};
use crate::bulkhead;
use crate::bulkhead::stripe;
use crate::event::Cause;
use crate::gate::{self, Admission, Refusal, State};
use crate::policy::Policy;
use crate::time::{Now, Reading};

impl Words {
    /// Decides whether a call may start. A transition that it made must be reported, whatever the answer.
    ///
    /// # Errors
    ///
    /// [`Refused`], counted by its reason unless the slot is retired.
    pub fn admit<F: Fn() -> Now>(
        &self,
        policy: &Policy,
        is_async: bool,
        time: &Reading<F>,
    ) -> (Result<Token, Refused>, Option<Change>) {
        let gate = self.gate.load();
        if let Some(token) = self.enter(gate, is_async, || time.now()) {
            return (Ok(token), None);
        }
        let refusal = if gate.lets_pass() {
            self.refuse_full(|| true).map(Answer::saturated)
        } else {
            self.refuse_waiting(gate, || time.now(), || true).map(Answer::open)
        };
        let (answer, change) = match refusal {
            Some(answer) => (answer, None),
            None => self.admit_slowly(policy, is_async, time, || true),
        };
        (answer.told(), change)
    }

    /// The usual answer, without a look at the policy: a permit from the own stripe. None if it takes more.
    #[inline(always)]
    pub fn enter(&self, gate: gate::Word, is_async: bool, now: impl FnOnce() -> Now) -> Option<Token> {
        if !gate.lets_pass() || !self.bulkhead.acquire_stashed(stripe::own()) {
            return None;
        }
        let started = if is_async || self.brief().is_timed() { Some(now()) } else { None };
        Some(Token::new(gate, false, is_async, started))
    }

    /// Refuses at a glance while every permit is out: the limit. None if it takes more to tell.
    ///
    /// `is_pinned` is asked once the words have been read, and before the refusal is counted: if the slot is another tenant's by now, the
    /// refusal wasn't the caller's.
    #[inline(always)]
    pub(crate) fn refuse_full(&self, is_pinned: impl FnOnce() -> bool) -> Option<u32> {
        let limit = self.bulkhead.limit_if_full().filter(|_| is_pinned())?;
        self.bulkhead.count(stripe::own(), |refusals| &refusals.saturated);
        Some(limit)
    }

    /// Refuses at a glance while OPEN's wait lasts: the nanoseconds left. None if it takes more to tell; `is_pinned` as for
    /// [`Self::refuse_full`].
    #[inline(always)]
    pub(crate) fn refuse_waiting(
        &self,
        gate: gate::Word,
        now: impl FnOnce() -> Now,
        is_pinned: impl FnOnce() -> bool,
    ) -> Option<u64> {
        if gate.state() != State::Open {
            return None;
        }
        let left = now().nanos_until_tick(gate.tick());
        if left == 0 || !is_pinned() {
            return None;
        }
        self.bulkhead.count(stripe::own(), |refusals| &refusals.open);
        Some(left)
    }

    /// As an engine asks a slot that a thread remembers to be a key's: `Retired` if it was the key's at `epoch` and isn't any more.
    #[cfg(portcullis_loom)]
    pub fn admit_remembered<F: Fn() -> Now>(
        &self,
        policy: &Policy,
        epoch: u64,
        time: &Reading<F>,
    ) -> (Result<Token, Refused>, Option<Change>) {
        let is_pinned = || self.epoch() == epoch;
        let gate = self.gate.load();
        if let Some(token) = self.enter(gate, false, || time.now()) {
            if is_pinned() {
                return (Ok(token), None);
            }
            self.cancel();
            return (Err(Refused::Retired), None);
        }
        let refusal = if gate.lets_pass() {
            self.refuse_full(is_pinned).map(Answer::saturated)
        } else {
            self.refuse_waiting(gate, || time.now(), is_pinned).map(Answer::open)
        };
        let (answer, change) = match refusal {
            Some(answer) => (answer, None),
            None => self.admit_slowly(policy, false, time, is_pinned),
        };
        (answer.told(), change)
    }

    /// Counts a refusal by its reason.
    fn refused(&self, refusal: Answer, is_pinned: impl FnOnce() -> bool) -> Answer {
        if !is_pinned() {
            return Answer::RETIRED;
        }
        self.bulkhead.count(stripe::own(), |refusals| refusal.counter(refusals));
        refusal
    }

    /// Any answer, as [`Self::admit`]; none but `Retired` if the slot is found not to be `is_pinned`, once the permit would pin it.
    ///
    /// Always inline: the answer and the change go through memory otherwise, which limits below the stashes pay at each call.
    #[inline(always)]
    pub(crate) fn admit_slowly<F: Fn() -> Now>(
        &self,
        policy: &Policy,
        is_async: bool,
        time: &Reading<F>,
        is_pinned: impl Fn() -> bool,
    ) -> (Answer, Option<Change>) {
        let thread = stripe::own();
        let started = || (is_async || self.brief().is_timed()).then(|| time.now());
        let mut gate = self.gate.load();
        let mut holds_permit = false;
        loop {
            let next = if gate.lets_pass() {
                None
            } else if gate.is_ramping() && !holds_permit {
                return (self.admit_ramping(gate, policy, is_async, time, is_pinned), None);
            } else {
                match gate.admit(time.now(), policy.probe_rules()) {
                    Admission::Refuse(refusal) => {
                        if holds_permit {
                            self.bulkhead.cancel(thread);
                        }
                        return (self.refused(refusal.told(time.now()), &is_pinned), None);
                    }
                    Admission::Enter => None,
                    Admission::Probe(next) => Some(next),
                }
            };
            if !holds_permit {
                match self.bulkhead.acquire(thread) {
                    Ok(()) => holds_permit = true,
                    Err(bulkhead::Refused::Retired) => return (Answer::RETIRED, None),
                    Err(bulkhead::Refused::Full { limit }) => {
                        return (self.refused(Answer::saturated(limit), &is_pinned), None);
                    }
                }
                if !is_pinned() {
                    self.bulkhead.cancel(thread);
                    return (Answer::RETIRED, None);
                }
            }
            let Some(next) = next else {
                return (Token::new(gate, false, is_async, started()).into(), None);
            };
            match self.gate.take_probe(gate, next) {
                Err(seen) => gate = seen,
                Ok(moved) => {
                    let cause = if gate.state() == State::Open { Cause::WaitElapsed } else { Cause::LeaseExpired };
                    let change = moved.map(|moved| Change::new(moved, cause, time.now()));
                    return (Token::new(next, true, is_async, started()).into(), change);
                }
            }
        }
    }
}

impl Words {
    /// Answers under a `gate` whose limit ramps. The end of the ramp is found by whoever asks after it, and what rises with time by
    /// whoever would be refused.
    #[cold]
    #[inline(never)]
    fn admit_ramping<F: Fn() -> Now>(
        &self,
        gate: gate::Word,
        policy: &Policy,
        is_async: bool,
        time: &Reading<F>,
        is_pinned: impl Fn() -> bool,
    ) -> Answer {
        let thread = stripe::own();
        let mut taken = self.bulkhead.acquire(thread);
        // Another tenant's ramp is none of the caller's business.
        if matches!(taken, Err(bulkhead::Refused::Full { .. })) && is_pinned() && self.raise(time.now()) {
            taken = self.bulkhead.acquire(thread);
        }
        match taken {
            Err(bulkhead::Refused::Retired) => Answer::RETIRED,
            Err(bulkhead::Refused::Full { limit }) => self.refused(Answer::saturated(limit), is_pinned),
            Ok(()) if !is_pinned() => {
                self.bulkhead.cancel(thread);
                Answer::RETIRED
            }
            Ok(()) => {
                if Self::is_ramp_due(gate, policy, time.now()) {
                    self.raise(time.now());
                }
                let started = (is_async || policy.times_calls()).then(|| time.now());
                Token::new(gate, false, is_async, started).into()
            }
        }
    }
}

impl Refusal {
    fn told(self, now: Now) -> Answer {
        match self {
            Self::Open { reopen_at } => Answer::open(now.nanos_until_tick(reopen_at)),
            Self::Probing { lease_end } => Answer::probing(now.nanos_until_second(lease_end)),
            Self::ForcedOpen => Answer::FORCED_OPEN,
        }
    }
}
