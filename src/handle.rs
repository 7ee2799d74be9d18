//! A target resolved once, for callers that ask for it often.

use std::fmt;
use std::time::Duration;

use crate::engine::{Engine, Key};
use crate::event::Cause;
use crate::gate::{State, Word};
use crate::outcome::Outcome;
use crate::permit::Permit;
use crate::policy::Policy;
use crate::priority::Admit;
use crate::rejection::Rejection;
use crate::shadow::{ShadowError, ShadowSnapshot};
use crate::slot::Slot;
use crate::snapshot::Snapshot;

/// A target of an engine, resolved once: asking it needs no look at the map.
///
/// It pins the target: as long as a handle lives, the target isn't forgotten.
pub struct Target<'e, K: Key = String> {
    engine: &'e Engine<K>,
    slot: &'e Slot<K>,
}

impl<'e, K: Key> Target<'e, K> {
    /// Takes over one count of the slot's handles.
    pub(crate) fn pinned(engine: &'e Engine<K>, slot: &'e Slot<K>) -> Self {
        Self { engine, slot }
    }

    /// Decides whether a call may start.
    ///
    /// # Errors
    ///
    /// [`Rejection`] says why not, and when to come back. It is counted by its reason.
    ///
    /// # Memory ordering
    ///
    /// A granted permit acquires what the calls before it released when they settled.
    #[inline]
    pub fn admit(&self) -> Result<Permit<'e, K>, Rejection> {
        self.engine.admit_slot(self.slot, false)
    }

    /// Decides whether a call may start that matters more or less than others; see [`Engine::admit_with`].
    ///
    /// # Errors
    ///
    /// [`Rejection`], as for [`Engine::admit_with`].
    pub fn admit_with(&self, how: impl Into<Admit>) -> Result<Permit<'e, K>, Rejection> {
        self.engine.admit_slot_as(self.slot, how.into())
    }

    /// Decides whether a call may start, and waits for a permit if there is none; see [`Engine::admit_waiting`].
    ///
    /// # Errors
    ///
    /// [`Rejection`], as for [`Engine::admit_waiting`].
    pub async fn admit_waiting<S: Future<Output = ()>>(
        &self,
        how: impl Into<Admit>,
        sleep: impl FnOnce(Duration) -> S,
    ) -> Result<Permit<'e, K>, Rejection> {
        self.engine.wait_for(self.slot, how.into().may_be_dropped(), sleep).await
    }

    /// Decides whether a call may start, and blocks the thread while it waits for a permit; see [`Engine::admit_blocking`].
    ///
    /// # Errors
    ///
    /// [`Rejection`], as for [`Engine::admit_waiting`].
    pub fn admit_blocking(&self, how: impl Into<Admit>, at_most: Duration) -> Result<Permit<'e, K>, Rejection> {
        self.engine.block_for(self.slot, how.into(), at_most)
    }

    pub(crate) fn slot(&self) -> &'e Slot<K> {
        self.slot
    }

    /// Runs a call if it may start, and settles it with what `classify` makes of its value; see [`Engine::call`].
    ///
    /// # Errors
    ///
    /// [`Rejection`] if the call may not start; it hasn't run then.
    pub fn call<R>(&self, classify: impl FnOnce(&R) -> Outcome, call: impl FnOnce() -> R) -> Result<R, Rejection> {
        let permit = self.admit()?;
        let value = call();
        permit.settle(classify(&value));
        Ok(value)
    }

    /// Runs an asynchronous call if it may start; see [`Engine::call_async`].
    ///
    /// # Errors
    ///
    /// [`Rejection`] if the call may not start; nothing of it has run then.
    pub async fn call_async<R, F: Future<Output = R>>(
        &self,
        classify: impl FnOnce(&R) -> Outcome,
        call: impl FnOnce() -> F,
    ) -> Result<R, Rejection> {
        let permit = self.engine.admit_slot(self.slot, true)?;
        let value = call().await;
        permit.settle(classify(&value));
        Ok(value)
    }

    /// The state as a caller would meet it now; reading it changes nothing (R14).
    #[must_use]
    pub fn state(&self) -> State {
        self.slot.words.gate.load().state_at(self.engine.read_clock())
    }

    /// The target as it is now; see [`Engine::snapshot`].
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let (snapshot, report) = self.engine.snapshot_slot(self.slot);
        self.engine.turn_away_and_tell(self.slot, report);
        snapshot
    }

    /// Refuses every call until [`release`](Self::release); whether that changed anything.
    pub fn force_open(&self) -> bool {
        self.by_hand(Cause::ForcedOpen, |word, now| word.force(State::ForcedOpen, now))
    }

    /// Turns the breaker off until [`release`](Self::release): calls are still limited and counted. Whether that changed anything.
    pub fn disable(&self) -> bool {
        self.by_hand(Cause::Disabled, |word, now| word.force(State::Disabled, now))
    }

    /// Leaves a forced state for CLOSED with an empty window; in other states it does nothing. Whether that changed anything.
    pub fn release(&self) -> bool {
        self.by_hand(Cause::Released, Word::release)
    }

    fn by_hand(&self, cause: Cause, step: impl Fn(Word, crate::time::Now) -> crate::gate::Step) -> bool {
        let now = self.engine.read_clock();
        let begins = self.slot.words.beginning(now);
        let change = self.slot.words.by_hand(cause, now, |word| step(word, begins));
        let report = change.and_then(|change| self.engine.describe(self.slot, change));
        let changed = report.is_some();
        self.engine.tell(report);
        changed
    }

    /// Puts another policy in force: calls in flight stay counted and the state stays (R17). With another window a CLOSED
    /// target's begins empty. An equal policy changes nothing. A limit set by hand stays unless the
    /// new policy's differs from the old one's, or follows latency by other settings.
    pub fn set_policy(&self, policy: Policy) {
        let report = self.engine.reconfigure(self.slot, policy);
        // A higher limit has room for those who wait.
        self.slot.words.bulkhead.serve();
        self.engine.tell(report);
    }

    /// Sets the limit of calls in flight, 0 among them: a kill switch that spares the breaker. More than 16,777,215 means unlimited.
    ///
    /// Calls in flight go on; once this returns, none starts until fewer than `limit` are in flight. An [adaptive](crate::Adaptive)
    /// limit stands still at it until [`release_limit`](Self::release_limit). While a limit [ramps](crate::PolicyBuilder::ramp), this is
    /// where it ramps to, from now on at the new pace.
    pub fn set_limit(&self, limit: u32) {
        self.engine.set_limit_by_hand(self.slot, limit);
    }

    /// Gives a limit that was set by hand back to the policy: its `max_in_flight`, or, where it is adaptive, where that starts. Whether one
    /// was set.
    pub fn release_limit(&self) -> bool {
        self.engine.release_limit_of(self.slot)
    }

    /// Has a candidate for the target's policy told of each of its calls from now on, without a say in any: what it would have refused, and
    /// what came of that, is in [`shadows`](Self::shadows). Whether it is new: one of this name and policy goes on counting, one
    /// of another policy is replaced. A target has at most 4. It is never forgotten after that.
    ///
    /// # Errors
    ///
    /// [`ShadowError::Name`] and [`ShadowError::TooMany`].
    pub fn shadow(&self, name: &str, policy: Policy) -> Result<bool, ShadowError> {
        self.engine.shadow_slot(self.slot, name, policy)
    }

    /// Takes a shadow away, with its counts; whether there was one.
    pub fn unshadow(&self, name: &str) -> bool {
        self.engine.unshadow_slot(self.slot, name)
    }

    /// The shadows as they are now, in the order in which they came. A shadow with a rule on running calls judges them.
    #[must_use]
    pub fn shadows(&self) -> Vec<ShadowSnapshot> {
        self.engine.shadows_of(self.slot)
    }

    /// Puts a shadow's policy in force, as [`set_policy`](Self::set_policy) does, and takes the shadow away; the policy that was in
    /// force, to go back to or to be a shadow in turn. The other shadows stay.
    ///
    /// # Errors
    ///
    /// [`ShadowError::Unknown`]
    pub fn promote(&self, name: &str) -> Result<Policy, ShadowError> {
        self.engine.promote_slot(self.slot, name)
    }
}

impl<K: Key> Clone for Target<'_, K> {
    fn clone(&self) -> Self {
        self.slot.pin();
        Self { engine: self.engine, slot: self.slot }
    }
}

impl<K: Key> Drop for Target<'_, K> {
    fn drop(&mut self) {
        self.slot.unpin();
    }
}

impl<K: Key> fmt::Debug for Target<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.slot.tenant().as_ref().map(|tenant| std::sync::Arc::clone(&tenant.key));
        let words = &self.slot.words;
        f.debug_struct("Target").field("key", &key).field("gate", &words.gate.load()).finish_non_exhaustive()
    }
}
