//! Asking to start: the gate, then a bulkhead permit, then a probe slot.

use super::{Answer, Change, Refused, Terms, Token, Words};
use crate::bulkhead;
use crate::bulkhead::stripe;
use crate::event::Cause;
use crate::gate::{self, Admission, Refusal, State};
use crate::policy::Policy;
use crate::priority::{Admit, Priority};
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
        let refusal = if !gate.lets_pass() {
            self.refuse_waiting(gate, || time.now(), || true).map(Answer::open)
        } else if self.is_watched() {
            None
        } else {
            self.refuse_full(|| true).map(Answer::saturated)
        };
        let (answer, change) = match refusal {
            Some(answer) => (answer, None),
            None => match self.judge_first(Terms { policy, policy_version: 0 }, time) {
                Some((answer, change)) => {
                    self.turn_away(change.moved);
                    (answer, Some(change))
                }
                None => self.admit_and_serve(policy, Admit { priority: Priority::Critical, is_async }, time, || true),
            },
        };
        (answer.told(), change)
    }

    /// The same for a call that may matter less.
    ///
    /// # Errors
    ///
    /// [`Refused`], as for [`Self::admit`].
    pub fn admit_as<F: Fn() -> Now>(
        &self,
        policy: &Policy,
        how: Admit,
        time: &Reading<F>,
    ) -> (Result<Token, Refused>, Option<Change>) {
        let (answer, change) = self.admit_and_serve(policy, how, time, || true);
        (answer.told(), change)
    }

    fn admit_and_serve<F: Fn() -> Now>(
        &self,
        policy: &Policy,
        how: Admit,
        time: &Reading<F>,
        is_pinned: impl Fn() -> bool,
    ) -> (Answer, Option<Change>) {
        let mut is_due = false;
        let answered = self.admit_slowly(policy, how, time, is_pinned, &mut is_due);
        if is_due {
            self.bulkhead.serve();
        }
        answered
    }

    /// Whether calls of this priority must ask for a share of the limit.
    #[inline]
    pub(crate) fn sheds(&self, priority: Priority) -> bool {
        self.brief().sheds(priority)
    }

    /// The usual answer, without a look at the policy: a permit from the own stripe. None if it takes more.
    #[inline(always)]
    pub fn enter(&self, gate: gate::Word, is_async: bool, now: impl Fn() -> Now) -> Option<Token> {
        if !gate.lets_pass() || !self.bulkhead.acquire_stashed(stripe::own()) {
            return None;
        }
        let brief = self.brief();
        if !is_async && !brief.is_timed_or_shadowed() {
            return Some(Token::new(gate, false, is_async, None));
        }
        if brief.is_shadowed() {
            return self.enter_followed(gate, is_async, now);
        }
        let started = now();
        let is_watched = self.is_watched();
        if is_watched && !self.watch_or_cancel(gate, started) {
            return None;
        }
        Some(Token::new(gate, false, is_async, Some(started)).watched(is_watched))
    }

    /// As [`Self::enter`], with a permit from wherever there is one: any answer, where the gate lets calls pass and all may use the whole limit.
    /// `is_pinned` and `is_due` as for [`Self::admit_slowly`].
    #[inline(always)]
    pub(crate) fn enter_slowly(
        &self,
        gate: gate::Word,
        is_async: bool,
        now: impl Fn() -> Now,
        is_pinned: impl Fn() -> bool,
        is_due: &mut bool,
    ) -> Answer {
        let thread = stripe::own();
        match self.bulkhead.acquire_slowly(thread, is_due) {
            Ok(()) if is_pinned() => {
                if !is_async && !self.brief().is_timed_or_shadowed() {
                    return Token::new(gate, false, is_async, None).into();
                }
                self.begin_followed(gate, Admit { priority: Priority::Critical, is_async }, now).into()
            }
            Ok(()) => {
                *is_due |= self.bulkhead.cancel_under_lock(thread);
                Answer::RETIRED
            }
            Err(bulkhead::Refused::Full { limit }) => self.refused(Answer::saturated(limit), &is_pinned),
            Err(bulkhead::Refused::Retired | bulkhead::Refused::Shed) => Answer::RETIRED,
        }
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
            self.cancel(token);
            return (Err(Refused::Retired), None);
        }
        let refusal = if gate.lets_pass() {
            self.refuse_full(is_pinned).map(Answer::saturated)
        } else {
            self.refuse_waiting(gate, || time.now(), is_pinned).map(Answer::open)
        };
        let (answer, change) = match refusal {
            Some(answer) => (answer, None),
            None => self.admit_and_serve(policy, Admit::new(), time, is_pinned),
        };
        (answer.told(), change)
    }

    /// Counts a refusal by its reason.
    pub(super) fn refused(&self, refusal: Answer, is_pinned: impl FnOnce() -> bool) -> Answer {
        if !is_pinned() {
            return Answer::RETIRED;
        }
        self.bulkhead.count(stripe::own(), |refusals| refusal.counter(refusals));
        refusal
    }

    /// Judges running calls before a caller is answered, if it must: a caller that trips the target is refused by that. It keeps the tenant.
    pub(crate) fn judge_first<F: Fn() -> Now>(&self, terms: Terms<'_>, time: &Reading<F>) -> Option<(Answer, Change)> {
        if !self.must_judge(|| time.now()) {
            return None;
        }
        let now = time.now();
        let Some(change) = self.judge_running(terms, now) else {
            // Only now: till then others judge as well, so that nobody enters between a judgement and its trip.
            self.note_judged(now);
            return None;
        };
        let refusal = Refusal::Open { reopen_at: change.moved.to.tick() };
        Some((self.refused(refusal.told(now), || true), change))
    }

    /// Any answer but by a judgement of running calls, as [`Self::admit`]; none but `Retired` if the slot is found not to be `is_pinned`, once the
    /// permit would pin it. If it `is_due`, the caller serves those who wait once it holds no lock.
    pub(crate) fn admit_slowly<F: Fn() -> Now>(
        &self,
        policy: &Policy,
        how: Admit,
        time: &Reading<F>,
        is_pinned: impl Fn() -> bool,
        is_due: &mut bool,
    ) -> (Answer, Option<Change>) {
        self.admit_from(false, policy, how, time, is_pinned, is_due)
    }

    /// The same for a caller that may hold a permit already.
    pub(super) fn admit_from<F: Fn() -> Now>(
        &self,
        mut holds_permit: bool,
        policy: &Policy,
        how: Admit,
        time: &Reading<F>,
        is_pinned: impl Fn() -> bool,
        is_due: &mut bool,
    ) -> (Answer, Option<Change>) {
        let thread = stripe::own();
        let started = || (how.is_async || self.brief().is_timed()).then(|| time.now());
        let mut gate = self.gate.load();
        loop {
            let next = if gate.lets_pass() {
                None
            } else if gate.is_ramping() && !holds_permit {
                return (self.admit_ramping(gate, policy, how, time, is_pinned, is_due), None);
            } else {
                match gate.admit(time.now(), policy.probe_rules()) {
                    Admission::Refuse(refusal) => {
                        if holds_permit {
                            *is_due |= self.bulkhead.cancel_under_lock(thread);
                        }
                        return (self.refused(refusal.told(time.now()), &is_pinned), None);
                    }
                    Admission::Enter => None,
                    Admission::Probe(next) => Some(next),
                }
            };
            if !holds_permit {
                match self.take_permit(policy, how, is_due) {
                    Ok(()) => holds_permit = true,
                    Err(bulkhead::Refused::Retired) => return (Answer::RETIRED, None),
                    Err(bulkhead::Refused::Full { limit }) => {
                        return (self.refused(Answer::saturated(limit), &is_pinned), None);
                    }
                    Err(bulkhead::Refused::Shed) => {
                        return (self.refused(Answer::shed(how.priority), &is_pinned), None);
                    }
                }
                if !is_pinned() {
                    *is_due |= self.bulkhead.cancel_under_lock(thread);
                    return (Answer::RETIRED, None);
                }
            }
            let Some(next) = next else {
                let token = Token::new(gate, false, how.is_async, started());
                let token = if policy.stall.is_some() { self.watched(gate, token) } else { token };
                return (self.followed(token, how, time).into(), None);
            };
            match self.gate.take_probe(gate, next) {
                Err(seen) => gate = seen,
                Ok(moved) => {
                    self.count_probe();
                    let cause = if gate.state() == State::Open { Cause::WaitElapsed } else { Cause::LeaseExpired };
                    let change = moved.map(|moved| Change::new(moved, cause, time.now()));
                    let token = Token::new(next, true, how.is_async, started());
                    return (self.followed(token, how, time).into(), change);
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
        how: Admit,
        time: &Reading<F>,
        is_pinned: impl Fn() -> bool,
        is_due: &mut bool,
    ) -> Answer {
        use bulkhead::Refused::{Full, Retired, Shed};
        let mut taken = self.take_permit(policy, how, is_due);
        // Another tenant's ramp is none of the caller's business.
        if matches!(taken, Err(Full { .. } | Shed)) && is_pinned() && self.raise(time.now(), is_due) {
            taken = self.take_permit(policy, how, is_due);
        }
        match taken {
            Err(Retired) => Answer::RETIRED,
            Err(Full { limit }) => self.refused(Answer::saturated(limit), is_pinned),
            Err(Shed) => self.refused(Answer::shed(how.priority), is_pinned),
            Ok(()) if !is_pinned() => {
                *is_due |= self.bulkhead.cancel_under_lock(stripe::own());
                Answer::RETIRED
            }
            Ok(()) => {
                if Self::is_ramp_due(gate, policy, time.now()) {
                    self.raise(time.now(), is_due);
                }
                let started = (how.is_async || policy.times_calls()).then(|| time.now());
                let token = Token::new(gate, false, how.is_async, started);
                let token = if policy.stall.is_some() { self.watched(gate, token) } else { token };
                self.followed(token, how, time).into()
            }
        }
    }

    /// A permit from the whole limit, or from the share that a call may take.
    #[inline(always)]
    fn take_permit(&self, policy: &Policy, how: Admit, is_due: &mut bool) -> Result<(), bulkhead::Refused> {
        let thread = stripe::own();
        match policy.share(how.priority) {
            Some(share) => self.bulkhead.acquire_within(share, is_due),
            None if self.bulkhead.acquire_stashed(thread) => Ok(()),
            None => self.bulkhead.acquire_slowly(thread, is_due),
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
