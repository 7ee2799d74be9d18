//! Asking to start: the gate, then a bulkhead permit, then a probe slot.

use super::{Change, Refused, Token, Words};
use crate::bulkhead;
use crate::event::Cause;
use crate::gate::{self, Admission, Refusal, State};
use crate::policy::Policy;
use crate::rejection::Rejection;
use crate::time::{Now, Reading};

impl Words {
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
}

fn rejection(refusal: Refusal, now: Now) -> Rejection {
    match refusal {
        Refusal::Open { reopen_at } => Rejection::Open { retry_after: now.until_tick(reopen_at) },
        Refusal::Probing { lease_end } => Rejection::Probing { retry_after: now.until_second(lease_end) },
        Refusal::ForcedOpen => Rejection::ForcedOpen,
    }
}
