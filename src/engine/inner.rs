//! Between the public face and the slots: finds the slot, makes the decision, and tells once nothing is held.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::{Engine, Key};
use crate::cache::Place;
use crate::event::{Cause, Transition};
use crate::gate;
use crate::outcome::{Outcome, Settled};
use crate::permit::Permit;
use crate::policy::Policy;
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
        let LookedUp { slot, answer } = self.admit_looked_up(key, is_async);
        match (slot, answer.told()) {
            (Some(slot), Ok(token)) => Ok((slot, token)),
            (_, Err(refused)) => Err(Self::rejection(refused)),
            (None, Ok(_)) => Err(Rejection::Exhausted { max_targets: 0 }),
        }
    }

    /// Asks a slot that was the key's at `epoch`. `Retired` if it isn't any more: nothing was counted then.
    #[inline(always)]
    fn admit_remembered(&self, slot: &Slot<K>, epoch: u64, is_async: bool) -> Result<Token, Refused> {
        let words = &slot.words;
        let gate = words.gate.load();
        let Some(token) = words.enter(gate, is_async, || self.read_clock()) else {
            return self.admit_remembered_slowly(slot, gate, epoch, is_async).told();
        };
        // Only now: the permit keeps the tenant.
        if words.epoch() == epoch {
            return Ok(token);
        }
        words.cancel();
        Err(Refused::Retired)
    }

    #[inline(never)]
    fn admit_remembered_slowly(&self, slot: &Slot<K>, gate: gate::Word, epoch: u64, is_async: bool) -> Answer {
        let is_pinned = || slot.words.epoch() == epoch;
        if gate.lets_pass() {
            if let Some(limit) = slot.words.refuse_full(is_pinned) {
                return Answer::saturated(limit);
            }
        } else if let Some(nanos) = slot.words.refuse_waiting(gate, || self.read_clock(), is_pinned) {
            return Answer::open(nanos).later(self.clock.resolution());
        }
        let (answer, report) = self.decide(slot, is_async, is_pinned);
        self.tell(report);
        answer
    }

    #[inline(never)]
    fn admit_looked_up<'e, Q>(&'e self, key: &Q, is_async: bool) -> LookedUp<'e, K>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        // The permit is taken under the shard's lock, which keeps the tenant; what happened is told after it.
        let decide = |slot: &'e Slot<K>| {
            let place = Place { slot: slot.index, epoch: slot.words.epoch() };
            let told = match slot.words.enter(slot.words.gate.load(), is_async, || self.read_clock()) {
                Some(token) => (token.into(), None),
                None => self.decide(slot, is_async, || true),
            };
            (slot, place, told)
        };
        match self.find_or_make(key, decide) {
            Ok((slot, place, (answer, report))) => {
                self.tell(report);
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
            if let Some(limit) = slot.words.refuse_full(|| true) {
                return Err(Rejection::Saturated { limit });
            }
        } else if let Some(nanos) = slot.words.refuse_waiting(gate, || self.read_clock(), || true) {
            return Err(Rejection::Open {
                retry_after: Duration::from_nanos(nanos.saturating_add(self.clock.resolution())),
            });
        }
        let answer = self.admit_slot_slowly(slot, is_async);
        answer.told().map(|token| Permit::new(self, slot, token)).map_err(Self::rejection)
    }

    #[inline(never)]
    fn admit_slot_slowly(&self, slot: &Slot<K>, is_async: bool) -> Answer {
        let (answer, report) = self.decide(slot, is_async, || true);
        self.tell(report);
        answer
    }

    /// Asks a slot and describes what that changed; the caller tells it once it holds no lock.
    fn decide(
        &self,
        slot: &Slot<K>,
        is_async: bool,
        is_pinned: impl Fn() -> bool,
    ) -> (Answer, Option<Arc<Transition<K>>>) {
        let time = Reading::new(|| self.read_clock());
        let (_, policy) = slot.terms();
        let policy = self.registry.policies().get(policy);
        let (answer, change) = slot.words.admit_slowly(policy, is_async, &time, is_pinned);
        let report = change.and_then(|change| self.describe(slot, change));
        (answer.later(self.clock.resolution()), report)
    }

    #[inline(always)]
    fn rejection(refused: Refused) -> Rejection {
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
    pub(crate) fn settle_seen(
        &self,
        slot: &Slot<K>,
        token: Token,
        signs: Signs,
        ending: Ending,
        at: Option<Now>,
    ) -> Settled {
        let (settled, report) = self.note(slot, token, signs, ending, at);
        slot.words.release();
        self.tell(report);
        settled
    }

    /// Records how a permit's call ended; its bulkhead slot stays taken.
    pub(crate) fn record(&self, slot: &Slot<K>, token: Token, signs: Signs, ending: Ending) -> Settled {
        let (settled, report) = self.note(slot, token, signs, ending, None);
        slot.words.hold();
        self.tell(report);
        settled
    }

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
        if let Some(samples) = slot.words.samples_due(|| time.now()) {
            self.adapt(slot, samples, time.now());
        }
        (settled, change.and_then(|change| self.describe(slot, change)))
    }

    pub(crate) fn snapshot_slot(&self, slot: &Slot<K>) -> Snapshot {
        let (terms, (incarnation, adaptive)) = {
            let tenant = slot.tenant();
            let terms = self.terms(slot);
            let shown = |tenant: &Tenant<K>| (tenant.incarnation, tenant.show_limit(terms.policy, &slot.words));
            (terms, tenant.as_ref().map_or((0, None), shown))
        };
        let snapshot = Snapshot::take(&slot.words, terms.policy, terms.policy_version, incarnation, self.read_clock());
        Snapshot { adaptive, ..snapshot }
    }

    /// Puts a policy in force for a pinned slot; the report if that emptied a window.
    pub(crate) fn reconfigure(&self, slot: &Slot<K>, policy: Policy) -> Option<Arc<Transition<K>>> {
        let policies = self.registry.policies();
        let index = policies.intern(policy);
        let mut tenant = slot.tenant();
        let tenant = tenant.as_mut()?;
        tenant.is_configured = true;
        let (_, before) = slot.terms();
        if before == index {
            return None;
        }
        let (before, after) = (policies.get(before), policies.get(index));
        slot.set_policy(index);
        let now = self.read_clock();
        tenant.adopt_limit(before, after, &slot.words, now);
        slot.words.adopt_ramp(after, now);
        slot.words.adopt(before, after);
        if before.geometry == after.geometry || slot.words.is_blank(before, now) {
            return None;
        }
        let begins = slot.words.beginning(now);
        let change = slot.words.by_hand(Cause::PolicyChanged, now, |word| word.restart(begins))?;
        let report = slot.report(change, tenant);
        self.hub.write(slot.index, &report);
        Some(report)
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
struct LookedUp<'e, K> {
    /// None if there was no room for it.
    slot: Option<&'e Slot<K>>,
    answer: Answer,
}
