//! Asking with a priority, and asking with patience.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::{Engine, Key};
use crate::cache::Place;
use crate::handle::Target;
use crate::permit::{OwnedPermit, Permit};
use crate::priority::{Admit, Priority};
use crate::rejection::Rejection;
use crate::slot::Slot;
use crate::target::{Answer, Change, Refused, Token};

impl<K: Key> Engine<K> {
    /// Decides whether a call to `key` may start that matters more or less than others; see [`Priority`].
    ///
    /// A critical call is asked for as by [`admit`](Self::admit). One below stops at its share of the limit in force, rounded down but at
    /// least 1: with it, no more calls are in flight at the moment that it is admitted, of whatever priority. Any of them may be the probe of a
    /// target that is open: a call that is likely to fail costs least where it matters least, and a target that only such calls go
    /// to must close again. While calls wait, those below critical are shed.
    ///
    /// # Errors
    ///
    /// [`Rejection`], [`Shed`](Rejection::Shed) among them where a more important call might have started.
    pub fn admit_with<Q>(&self, key: &Q, how: impl Into<Admit>) -> Result<Permit<'_, K>, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.admit_key_as(key, how.into()).map(|(slot, token)| Permit::new(self, slot, token))
    }

    /// As [`admit_with`](Self::admit_with), with a permit that owns a reference to the engine.
    ///
    /// # Errors
    ///
    /// [`Rejection`], as for [`admit_with`](Self::admit_with).
    pub fn admit_owned_with<Q>(
        self: &Arc<Self>,
        key: &Q,
        how: impl Into<Admit>,
    ) -> Result<OwnedPermit<Arc<Self>, K>, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let (slot, token) = self.admit_key_as(key, how.into())?;
        Ok(OwnedPermit::new(Arc::clone(self), slot.index, token))
    }

    /// Decides whether a call to `key` may start, and waits for a permit if there is none and its policy has
    /// [`max_waiting`](crate::PolicyBuilder::max_waiting).
    ///
    /// Waits behind those who came before, and until the future that `sleep` makes of the policy's [`max_wait`](crate::PolicyBuilder::max_wait) is over:
    /// `tokio::time::sleep`, or what your runtime has, or a shorter one of your own. It is made only if the call must wait. Calls that don't
    /// wait overtake nobody: while somebody waits, they are refused. Only critical calls wait, and only for a permit: where the circuit isn't
    /// closed the answer is given at once, as while the limit [ramps](crate::PolicyBuilder::ramp), and calls that wait when it opens are refused then.
    ///
    /// Dropped, the returned future leaves the queue; a permit that it was granted meanwhile goes to the next. The call counts as one
    /// whose future may be dropped, as for [`admit_async`](Self::admit_async), from the moment that it got its permit.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use portcullis::{Engine, Policy, Priority};
    ///
    /// let policy = Policy::builder().max_in_flight(1).max_waiting(100).build()?;
    /// let engine: Engine = Engine::builder().policy(policy).build();
    /// let first = engine.admit("core-banking")?;
    /// let second = engine.admit_waiting("core-banking", Priority::Critical, tokio::time::sleep);
    /// let (_, second) = tokio::join!(async { first.success() }, second);
    /// second?.success();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejection`]: [`Saturated`](Rejection::Saturated) at once if as many wait as may, and once `sleep` is over.
    pub async fn admit_waiting<Q, S: Future<Output = ()>>(
        &self,
        key: &Q,
        how: impl Into<Admit>,
        sleep: impl FnOnce(Duration) -> S,
    ) -> Result<Permit<'_, K>, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let how = how.into().may_be_dropped();
        if let Some(answer) = self.admit_at_once(key, how) {
            return answer;
        }
        let target = self.resolve(key)?;
        self.wait_for(target.slot(), how, sleep).await
    }

    /// As [`admit_waiting`](Self::admit_waiting), with a permit that owns a reference to the engine.
    ///
    /// # Errors
    ///
    /// [`Rejection`], as for [`admit_waiting`](Self::admit_waiting).
    pub async fn admit_waiting_owned<Q, S: Future<Output = ()>>(
        self: &Arc<Self>,
        key: &Q,
        how: impl Into<Admit>,
        sleep: impl FnOnce(Duration) -> S,
    ) -> Result<OwnedPermit<Arc<Self>, K>, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let (_, slot, token) = self.admit_waiting(key, how, sleep).await?.into_parts();
        Ok(OwnedPermit::new(Arc::clone(self), slot.index, token))
    }

    /// As [`admit_waiting`](Self::admit_waiting), for callers without a runtime: blocks the thread for at most `max_wait`, or `at_most` if that is
    /// less, on the engine's clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use portcullis::{Engine, Policy, Priority, Rejection};
    ///
    /// let policy = Policy::builder().max_in_flight(1).max_waiting(100).max_wait(Duration::from_millis(5)).build()?;
    /// let engine: Engine = Engine::builder().policy(policy).build();
    /// let first = engine.admit("core-banking")?;
    /// let second = engine.admit_blocking("core-banking", Priority::Critical, Duration::MAX);
    /// assert_eq!(second.unwrap_err(), Rejection::Saturated { limit: 1 });
    /// first.success();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejection`], as for [`admit_waiting`](Self::admit_waiting).
    pub fn admit_blocking<Q>(
        &self,
        key: &Q,
        how: impl Into<Admit>,
        at_most: Duration,
    ) -> Result<Permit<'_, K>, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let how = how.into();
        if let Some(answer) = self.admit_at_once(key, how) {
            return answer;
        }
        let target = self.resolve(key)?;
        self.block_for(target.slot(), how, at_most)
    }

    /// As [`Self::target`], and remembers where that is: the next call may need no more than a look.
    fn resolve<Q>(&self, key: &Q) -> Result<Target<'_, K>, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let target = self.target(key)?;
        let slot = target.slot();
        let place = Place { slot: slot.index, epoch: slot.words.epoch() };
        if self.cache.recall(key) != Some(place) {
            self.cache.remember(key, place);
        }
        Ok(target)
    }

    /// The answer for a call that won't wait: it mayn't, or it needn't.
    fn admit_at_once<Q>(&self, key: &Q, how: Admit) -> Option<Result<Permit<'_, K>, Rejection>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if how.priority != Priority::Critical {
            return Some(self.admit_with(key, how));
        }
        let (slot, token) = self.enter_key(key, how.is_async)?;
        Some(Ok(Permit::new(self, slot, token)))
    }

    /// As [`Self::admit_key`], for a call that may matter less.
    pub(super) fn admit_key_as<'e, Q>(&'e self, key: &Q, how: Admit) -> Result<(&'e Slot<K>, Token), Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if how.priority == Priority::Critical {
            return self.admit_key(key, how.is_async);
        }
        if let Some(place) = self.cache.recall(key)
            && let Some(slot) = self.registry.slot(place.slot)
        {
            let told = if slot.words.sheds(how.priority) {
                self.admit_remembered_slowly(slot, slot.words.gate.load(), place.epoch, how).told()
            } else {
                self.admit_remembered(slot, place.epoch, how.is_async)
            };
            match told {
                Ok(token) => return Ok((slot, token)),
                Err(Refused::Rejected(rejection)) => return Err(rejection),
                Err(Refused::Retired) => {}
            }
        }
        self.admit_looked_up(key, how).told()
    }

    /// A permit of a key that this thread remembers, if there is one and the slot still is the key's. Nothing is counted if not.
    pub(super) fn enter_key<'e, Q>(&'e self, key: &Q, is_async: bool) -> Option<(&'e Slot<K>, Token)>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let place = self.cache.recall(key)?;
        let slot = self.registry.slot(place.slot)?;
        let token = slot.words.enter_if_room(is_async, || self.read_clock())?;
        if slot.words.epoch() == place.epoch {
            return Some((slot, token));
        }
        slot.words.cancel(token);
        None
    }

    /// As [`Self::admit_slot`], for a call that may matter less.
    pub(crate) fn admit_slot_as<'e>(&'e self, slot: &'e Slot<K>, how: Admit) -> Result<Permit<'e, K>, Rejection> {
        if !slot.words.sheds(how.priority) {
            return self.admit_slot(slot, how.is_async);
        }
        let answer = self.admit_slot_slowly(slot, how);
        answer.told().map(|token| Permit::new(self, slot, token)).map_err(Self::rejection)
    }

    /// What an answer of the words comes to, as [`Self::decide`] has it.
    pub(super) fn answered(
        &self,
        slot: &Slot<K>,
        (answer, change): (Answer, Option<Change>),
    ) -> Result<Token, Rejection> {
        let report = change.and_then(|change| self.describe(slot, change));
        self.tell(report);
        answer.later(self.clock.resolution()).told().map_err(Self::rejection)
    }
}
