//! Between the public face and the slots: finds the slot, makes the decision, and tells once nothing is held.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::{Engine, Key};
use crate::cache::Place;
use crate::event::Transition;
use crate::gate::{self, State};
use crate::outcome::{Outcome, Settled};
use crate::permit::Permit;
use crate::policy::Policy;
use crate::priority::{Admit, Priority};
use crate::rejection::Rejection;
use crate::slot::{Slot, Tenant};
use crate::snapshot::Snapshot;
use crate::target::{Answer, Change, Ending, Glance, Refused, Signs, Terms, Token};
use crate::time::{Now, Reading};
use crate::window::buckets;
use crate::window::ring::Counted;

impl<K: Key> Engine<K> {
    #[inline]
    pub(crate) fn read_clock(&self) -> Now {
        self.clock.now()
    }

    /// The policy of targets that have none of their own.
    #[cfg(feature = "call")]
    pub(crate) fn default_policy(&self) -> &Policy {
        // The first that was interned.
        self.registry.policies().get(0)
    }

    pub(crate) fn slot(&self, index: u32) -> Option<&Slot<K>> {
        self.registry.slot(index)
    }

    /// Writes a change to the log and the channels. The caller pins the tenant, so that its transitions are all there before the next
    /// tenant's; it [tells](Self::tell) the observers once it holds nothing.
    pub(crate) fn describe(&self, slot: &Slot<K>, change: Change) -> Option<Arc<Transition<K>>> {
        let report = slot.describe(change)?;
        self.hub.write(slot.index, &report);
        Some(report)
    }

    /// Calls the observers. The caller holds no lock and no permit.
    #[inline]
    pub(crate) fn tell(&self, report: Option<Arc<Transition<K>>>) {
        if let Some(report) = report {
            self.hub.tell(report);
        }
    }

    pub(super) fn find_or_make<'e, Q, R>(&'e self, key: &Q, with: impl FnOnce(&'e Slot<K>) -> R) -> Result<R, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.registry.find_or_make(key, || self.read_clock(), &self.hub, with)
    }

    /// Asks for a key: the slot that this thread remembers, if it still is the key's, else the one that the map has.
    #[inline(always)]
    pub(super) fn admit_key<'e, Q>(&'e self, key: &Q, is_async: bool) -> Result<(&'e Slot<K>, Token), Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(place) = self.cache.recall(key)
            && let Some(slot) = self.registry.slot(place.slot)
        {
            match self.admit_remembered(slot, place.epoch, is_async) {
                Ok(token) => return Ok((slot, token)),
                Err(Refused::Rejected(rejection)) => return Err(rejection),
                Err(Refused::Retired) => {}
            }
        }
        self.admit_looked_up(key, Admit { priority: Priority::Critical, is_async }).told()
    }

    /// Asks a slot that was the key's at `epoch`. `Retired` if it isn't any more: nothing was counted then.
    #[inline(always)]
    pub(super) fn admit_remembered(&self, slot: &Slot<K>, epoch: u64, is_async: bool) -> Result<Token, Refused> {
        let words = &slot.words;
        let gate = words.gate.load();
        let Some(token) = words.enter(gate, is_async, || self.read_clock()) else {
            return self
                .admit_remembered_slowly(slot, gate, epoch, Admit { priority: Priority::Critical, is_async })
                .told();
        };
        // Only now: the permit keeps the tenant.
        if words.epoch() == epoch {
            return Ok(token);
        }
        words.cancel(token);
        Err(Refused::Retired)
    }

    #[inline(never)]
    pub(super) fn admit_remembered_slowly(&self, slot: &Slot<K>, gate: gate::Word, epoch: u64, how: Admit) -> Answer {
        let is_pinned = || slot.words.epoch() == epoch;
        if gate.lets_pass() {
            if slot.words.must_judge(|| self.read_clock()) {
                // Who judges may trip, and the tenant must be there to be reported of: the map's lock keeps it.
                return Answer::RETIRED;
            }
            if let Some(limit) = slot.words.refuse_full(is_pinned) {
                return Answer::saturated(limit);
            }
        } else if let Some(nanos) = slot.words.refuse_waiting(gate, || self.read_clock(), is_pinned) {
            return Answer::open(nanos).later(self.clock.resolution());
        } else if gate.is_ramping() && slot.words.must_judge(|| self.read_clock()) {
            return Answer::RETIRED;
        }
        let mut is_due = false;
        let (answer, report) = self.decide(slot, how, is_pinned, &mut is_due);
        self.tell_and_serve(slot, report, is_due);
        answer
    }

    #[inline(never)]
    pub(super) fn admit_looked_up<'e, Q>(&'e self, key: &Q, how: Admit) -> LookedUp<'e, K>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        // The permit is taken under the shard's lock, which keeps the tenant; what happened is told after it.
        let mut is_due = false;
        let decide = |slot: &'e Slot<K>| {
            let place = Place { slot: slot.index, epoch: slot.words.epoch() };
            (slot, place, self.decide_kept(slot, how, || true, &mut is_due))
        };
        match self.find_or_make(key, decide) {
            Ok((slot, place, (answer, report))) => {
                self.tell_and_serve(slot, report, is_due);
                let granted = Granted { engine: self, slot, token: answer.told().ok() };
                self.cache.remember(key, place);
                std::mem::forget(granted);
                LookedUp { slot: Some(slot), answer }
            }
            Err(_) => LookedUp { slot: None, answer: Answer::exhausted(self.registry.max_targets()) },
        }
    }

    /// Asks a slot whose tenant the caller keeps.
    #[inline(always)]
    pub(crate) fn admit_slot<'e>(&'e self, slot: &'e Slot<K>, is_async: bool) -> Result<Permit<'e, K>, Rejection> {
        let gate = slot.words.gate.load();
        if let Some(token) = slot.words.enter(gate, is_async, || self.read_clock()) {
            return Ok(Permit::new(self, slot, token));
        }
        if gate.lets_pass() {
            if !slot.words.is_watched()
                && let Some(limit) = slot.words.refuse_full(|| true)
            {
                return Err(Rejection::Saturated { limit });
            }
        } else if let Some(nanos) = slot.words.refuse_waiting(gate, || self.read_clock(), || true) {
            return Err(Rejection::Open {
                retry_after: Duration::from_nanos(nanos.saturating_add(self.clock.resolution())),
            });
        }
        let answer = self.admit_slot_slowly(slot, Admit { priority: Priority::Critical, is_async });
        answer.told().map(|token| Permit::new(self, slot, token)).map_err(Self::rejection)
    }

    #[inline(never)]
    pub(super) fn admit_slot_slowly(&self, slot: &Slot<K>, how: Admit) -> Answer {
        let mut is_due = false;
        let (answer, report) = self.decide_kept(slot, how, || true, &mut is_due);
        self.tell_and_serve(slot, report, is_due);
        answer
    }

    /// Does what a decision left to be done once no lock is held.
    #[inline]
    fn tell_and_serve(&self, slot: &Slot<K>, report: Option<Arc<Transition<K>>>, is_due: bool) {
        if is_due {
            slot.words.bulkhead.serve();
        }
        self.turn_away_and_tell(slot, report);
    }

    /// As [`Self::tell`], after running calls may have been judged under a lock: nobody waits at a target that they tripped.
    #[inline]
    pub(crate) fn turn_away_and_tell(&self, slot: &Slot<K>, report: Option<Arc<Transition<K>>>) {
        if let Some(report) = report {
            self.turn_away_and_tell_of(slot, report);
        }
    }

    #[cold]
    #[inline(never)]
    fn turn_away_and_tell_of(&self, slot: &Slot<K>, report: Arc<Transition<K>>) {
        // As `Words::turn_away`.
        if report.to == State::Open && !slot.words.gate.load().lets_pass() {
            slot.words.bulkhead.turn_away();
        }
        self.tell(Some(report));
    }

    /// As [`Self::decide`], for a caller that keeps the tenant: it may judge running calls.
    fn decide_kept(
        &self,
        slot: &Slot<K>,
        how: Admit,
        is_pinned: impl Fn() -> bool,
        is_due: &mut bool,
    ) -> (Answer, Option<Arc<Transition<K>>>) {
        if slot.words.is_watched()
            && let Some(refused) = self.judge_first(slot)
        {
            return refused;
        }
        self.decide(slot, how, is_pinned, is_due)
    }

    /// The answer, if running calls trip the target.
    #[cold]
    #[inline(never)]
    fn judge_first(&self, slot: &Slot<K>) -> Option<(Answer, Option<Arc<Transition<K>>>)> {
        let time = Reading::new(|| self.read_clock());
        let (answer, change) = slot.words.judge_first(self.terms(slot), &time)?;
        Some((answer.later(self.clock.resolution()), self.describe(slot, change)))
    }

    /// Asks a slot and describes what that changed; the caller tells it, and serves if that `is_due`, once it holds no lock.
    fn decide(
        &self,
        slot: &Slot<K>,
        how: Admit,
        is_pinned: impl Fn() -> bool,
        is_due: &mut bool,
    ) -> (Answer, Option<Arc<Transition<K>>>) {
        let gate = slot.words.gate.load();
        if gate.lets_pass() && !slot.words.sheds(how.priority) && !slot.words.is_watched() {
            return (slot.words.enter_slowly(gate, how.is_async, || self.read_clock(), is_pinned, is_due), None);
        }
        let time = Reading::new(|| self.read_clock());
        let (answer, change) = slot.words.admit_slowly(self.policy(slot), how, &time, is_pinned, is_due);
        let report = change.and_then(|change| self.describe(slot, change));
        (answer.later(self.clock.resolution()), report)
    }

    pub(super) fn policy(&self, slot: &Slot<K>) -> &Policy {
        self.registry.policies().get(slot.terms().1)
    }

    #[inline(always)]
    pub(super) fn rejection(refused: Refused) -> Rejection {
        match refused {
            Refused::Rejected(rejection) => rejection,
            // Not while the shard is locked or a handle held, as it is wherever this is asked.
            Refused::Retired => Rejection::Saturated { limit: 0 },
        }
    }

    pub(super) fn terms(&self, slot: &Slot<K>) -> Terms<'_> {
        let (policy_version, policy) = slot.terms();
        Terms { policy: self.registry.policies().get(policy), policy_version }
    }

    /// Settles a permit: record, release, and only then tell.
    #[inline(always)]
    pub(crate) fn settle(&self, slot: &Slot<K>, token: Token, ending: Ending) -> Settled {
        match slot.words.glance(token, ending) {
            Glance::Unchanged => {}
            Glance::Timed => {
                let at = self.read_clock();
                match slot.words.count_at_once(token, at) {
                    Counted::Done => {}
                    Counted::Judge(sign) => return self.judge(slot, token, sign, at),
                    Counted::Met | Counted::Elsewhere => return self.settle_slowly(slot, token, ending, Some(at)),
                }
            }
            Glance::Calls { size, sign } if slot.words.write_at_once(token, size, sign) => {}
            Glance::Calls { .. } | Glance::Further => return self.settle_slowly(slot, token, ending, None),
        }
        slot.words.release();
        Settled::Recorded
    }

    /// Settles a success that is counted.
    #[inline(never)]
    fn judge(&self, slot: &Slot<K>, token: Token, sign: buckets::Word, at: Now) -> Settled {
        let change = slot.words.judge(token, sign, at, self.terms(slot));
        let report = change.and_then(|change| self.describe(slot, change));
        slot.words.release();
        self.tell(report);
        Settled::Recorded
    }

    #[inline(never)]
    fn settle_slowly(&self, slot: &Slot<K>, token: Token, ending: Ending, at: Option<Now>) -> Settled {
        self.settle_seen(slot, token, Signs::default(), ending, at)
    }

    /// Settles a permit of whose call something was seen; `at` if the clock was read already.
    #[inline(always)]
    pub(crate) fn settle_seen(
        &self,
        slot: &Slot<K>,
        token: Token,
        signs: Signs,
        ending: Ending,
        at: Option<Now>,
    ) -> Settled {
        if token.ticket().is_some() {
            return self.settle_followed(slot, token, signs, ending, at);
        }
        let (settled, report) = self.note(slot, token, signs, ending, at);
        slot.words.release();
        self.tell(report);
        settled
    }

    /// Records how a permit's call ended; its bulkhead slot stays taken.
    pub(crate) fn record(&self, slot: &Slot<K>, token: Token, signs: Signs, ending: Ending) -> Settled {
        let (token, at) = self.told_shadows(slot, token, (signs, ending), None, true);
        let (settled, report) = self.note(slot, token, signs, ending, at);
        slot.words.hold();
        self.tell(report);
        settled
    }

    #[inline(always)]
    fn note(
        &self,
        slot: &Slot<K>,
        token: Token,
        signs: Signs,
        ending: Ending,
        at: Option<Now>,
    ) -> (Settled, Option<Arc<Transition<K>>>) {
        let time = Reading::new(|| at.unwrap_or_else(|| self.read_clock()));
        let (settled, change) = slot.words.record(token, signs, ending, || self.terms(slot), &time);
        // Before a limit is moved, which may wake those who wait: no code of theirs comes between a change and its report.
        let report = change.and_then(|change| self.describe(slot, change));
        if let Some(samples) = slot.words.samples_due(|| time.now()) {
            self.adapt(slot, samples, time.now());
        }
        (settled, report)
    }

    /// The target as it is once its running calls are judged; the caller keeps the tenant, and tells what that changed once it holds no lock.
    pub(crate) fn snapshot_slot(&self, slot: &Slot<K>) -> (Snapshot, Option<Arc<Transition<K>>>) {
        let now = self.read_clock();
        let change = slot.words.judge_running(self.terms(slot), now);
        let report = change.and_then(|change| self.describe(slot, change));
        let (terms, (incarnation, transitions, adaptive)) = {
            let tenant = slot.tenant();
            let terms = self.terms(slot);
            let shown = |tenant: &Tenant<K>| {
                let transitions = slot.transitions(tenant);
                (tenant.incarnation(), transitions, tenant.show_limit(terms.policy, &slot.words))
            };
            (terms, tenant.as_ref().map_or((0, 0, None), shown))
        };
        let snapshot =
            Snapshot::take((&slot.words, &slot.success_seen), terms.policy, terms.policy_version, incarnation, now);
        (Snapshot { transitions, adaptive, ..snapshot }, report)
    }
}

/// Gives a permit back if the key's own code panics before the caller has it: that says nothing about the target.
struct Granted<'e, K: Key> {
    engine: &'e Engine<K>,
    slot: &'e Slot<K>,
    token: Option<Token>,
}

impl<K: Key> Drop for Granted<'_, K> {
    fn drop(&mut self) {
        if let Some(token) = self.token {
            self.engine.settle(self.slot, token, Ending::Settled(Outcome::Ignored));
        }
    }
}

/// What came of a key that the map was asked for. Not a result, which wouldn't travel in registers.
pub(super) struct LookedUp<'e, K> {
    /// None if there was no room for it.
    slot: Option<&'e Slot<K>>,
    answer: Answer,
}

impl<'e, K: Key> LookedUp<'e, K> {
    #[inline(always)]
    pub(super) fn told(self) -> Result<(&'e Slot<K>, Token), Rejection> {
        match (self.slot, self.answer.told()) {
            (Some(slot), Ok(token)) => Ok((slot, token)),
            (_, Err(refused)) => Err(Engine::<K>::rejection(refused)),
            (None, Ok(_)) => Err(Rejection::Exhausted { max_targets: 0 }),
        }
    }
}
