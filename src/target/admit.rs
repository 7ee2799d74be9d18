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
            self.refuse_full().map(Answer::saturated)
        } else {
            self.refuse_waiting(gate, || time.now()).map(Answer::open)
        };
        let (answer, change) = match refusal {
            Some(answer) => (answer, None),
            None => self.admit_slowly(policy, is_async, time),
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
    #[inline(always)]
    pub(crate) fn refuse_full(&self) -> Option<u32> {
        let limit = self.bulkhead.limit_if_full()?;
        self.bulkhead.count(stripe::own(), |refusals| &refusals.saturated);
        Some(limit)
    }

    /// Refuses at a glance while OPEN's wait lasts: the nanoseconds left. None if it takes more to tell.
    #[inline(always)]
    pub(crate) fn refuse_waiting(&self, gate: gate::Word, now: impl FnOnce() -> Now) -> Option<u64> {
        if gate.state() != State::Open {
            return None;
        }
        let left = now().nanos_until_tick(gate.tick());
        if left == 0 {
            return None;
        }
        self.bulkhead.count(stripe::own(), |refusals| &refusals.open);
        Some(left)
    }

    /// Any answer, as [`Self::admit`].
    pub(crate) fn admit_slowly<F: Fn() -> Now>(
        &self,
        policy: &Policy,
        is_async: bool,
        time: &Reading<F>,
    ) -> (Answer, Option<Change>) {
        let thread = stripe::own();
        let started = || (is_async || policy.times_calls()).then(|| time.now());
        let mut gate = self.gate.load();
        let mut holds_permit = false;
        loop {
            let next = if gate.lets_pass() {
                None
            } else {
                match gate.admit(time.now(), policy.probe_rules()) {
                    Admission::Refuse(refusal) => {
                        if holds_permit {
                            self.bulkhead.cancel(thread);
                        }
                        return (self.refuse(thread, refusal, time.now()), None);
                    }
                    Admission::Enter => None,
                    Admission::Probe(next) => Some(next),
                }
            };
            if !holds_permit {
                if let Err(refused) = self.bulkhead.acquire(thread) {
                    return (self.refuse_permit(thread, refused), None);
                }
                holds_permit = true;
            }
            let Some(next) = next else {
                return (Token::new(gate, false, is_async, started()).into(), None);
            };
            match self.gate.take_probe(gate, next) {
                Err(seen) => gate = seen,
                Ok(moved) => {
                    let change = moved.map(|moved| Change {
                        moved,
                        cause: if gate.state() == State::Open { Cause::WaitElapsed } else { Cause::LeaseExpired },
                        evidence: None,
                        at: time.now(),
                    });
                    return (Token::new(next, true, is_async, started()).into(), change);
                }
            }
        }
    }

    fn refuse(&self, thread: usize, refusal: Refusal, now: Now) -> Answer {
        match refusal {
            Refusal::Open { reopen_at } => {
                self.bulkhead.count(thread, |refusals| &refusals.open);
                Answer::open(now.nanos_until_tick(reopen_at))
            }
            Refusal::Probing { lease_end } => {
                self.bulkhead.count(thread, |refusals| &refusals.probing);
                Answer::probing(now.nanos_until_second(lease_end))
            }
            Refusal::ForcedOpen => {
                self.bulkhead.count(thread, |refusals| &refusals.forced);
                Answer::FORCED_OPEN
            }
        }
    }

    fn refuse_permit(&self, thread: usize, refused: bulkhead::Refused) -> Answer {
        match refused {
            bulkhead::Refused::Full { limit } => {
                self.bulkhead.count(thread, |refusals| &refusals.saturated);
                Answer::saturated(limit)
            }
            bulkhead::Refused::Retired => Answer::RETIRED,
        }
    }
}
