//! The public face: the keyed registry of targets, with clock, default policy and observers.

mod asking;
mod builder;
mod inner;
mod limit;
mod reconfigure;
mod shadows;
mod waiting;

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

pub use builder::EngineBuilder;

use crate::cache::Cache;
use crate::event::hub::Hub;
use crate::event::{Observer, ObserverGuard, Subscription, Transition};
use crate::handle::Target;
use crate::outcome::Outcome;
use crate::permit::{OwnedPermit, Permit};
use crate::policy::Policy;
use crate::registry::Registry;
use crate::rejection::Rejection;
use crate::slot::Slot;
use crate::snapshot::Snapshot;
use crate::time::Started;

/// What names a target. Every type that can is one.
pub trait Key: Eq + Hash + fmt::Debug + Send + Sync + 'static {}

impl<K: Eq + Hash + fmt::Debug + Send + Sync + 'static> Key for K {}

/// Admission for any number of targets, each with its own breaker, window and bulkhead.
///
/// Targets are made when a key is first asked for, and forgotten when they have been idle for long. The engine does no work of its
/// own: no thread, no timer, no task. Share it as a `static`, by reference, or in an `Arc`.
///
/// ```
/// use portcullis::{Engine, Policy, Rejection};
///
/// let engine: Engine = Engine::builder().policy(Policy::builder().max_in_flight(1).build()?).build();
/// let permit = engine.admit("core-banking")?;
/// assert_eq!(engine.admit("core-banking").unwrap_err(), Rejection::Saturated { limit: 1 });
/// engine.admit("claims")?.success(); // another target is untouched
/// permit.success();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Engine<K: Key = String> {
    cache: Cache<K>,
    registry: Registry<K>,
    clock: Started,
    hub: Arc<Hub<K>>,
}

impl<K: Key> Engine<K> {
    /// Starts from the defaults: [`Policy::default`], a precise clock, 10,000 targets.
    pub fn builder() -> EngineBuilder<K> {
        EngineBuilder::default()
    }

    /// Decides whether a call to `key` may start.
    ///
    /// The permit holds a slot of the target's bulkhead until it is settled or dropped. An unknown key becomes a target first. The call counts as
    /// critical: it may use the whole limit, and is never shed; see [`admit_with`](Self::admit_with). It doesn't wait, and is refused while others do.
    ///
    /// # Errors
    ///
    /// [`Rejection`] says why not, and when to come back. It is no outcome; it is counted by its reason.
    ///
    /// # Memory ordering
    ///
    /// A granted permit acquires what the calls before it released when they settled.
    #[inline]
    pub fn admit<Q>(&self, key: &Q) -> Result<Permit<'_, K>, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.admit_key(key, false).map(|(slot, token)| Permit::new(self, slot, token))
    }

    /// As [`admit`](Self::admit), with a permit that owns a reference to the engine.
    ///
    /// # Errors
    ///
    /// [`Rejection`], as for [`admit`](Self::admit).
    pub fn admit_owned<Q>(self: &Arc<Self>, key: &Q) -> Result<OwnedPermit<Arc<Self>, K>, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.admit_key(key, false).map(|(slot, token)| OwnedPermit::new(Arc::clone(self), slot.index, token))
    }

    /// As [`admit_owned`](Self::admit_owned), for a call whose future may be dropped: abandoned, it counts as a failure once it ran for
    /// 500 ms, unless the policy says otherwise.
    ///
    /// # Errors
    ///
    /// [`Rejection`], as for [`admit`](Self::admit).
    pub fn admit_async<Q>(self: &Arc<Self>, key: &Q) -> Result<OwnedPermit<Arc<Self>, K>, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.admit_key(key, true).map(|(slot, token)| OwnedPermit::new(Arc::clone(self), slot.index, token))
    }

    /// Resolves a target for callers that ask for it often; an unknown key becomes one.
    ///
    /// # Errors
    ///
    /// [`Rejection::Exhausted`] if the engine holds `max_targets` and none is idle.
    pub fn target<Q>(&self, key: &Q) -> Result<Target<'_, K>, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let slot = self.find_or_make(key, |slot| {
            slot.pin();
            slot
        })?;
        Ok(Target::pinned(self, slot))
    }

    /// Runs a call if it may start, and settles it with what `classify` makes of its value.
    ///
    /// The outcome is recorded before the value is returned. A panic of either closure counts as a failure and goes on unwinding.
    ///
    /// ```
    /// use portcullis::{Engine, Outcome, Rejection};
    ///
    /// fn verdict(answer: &Result<u32, String>) -> Outcome {
    ///     if answer.is_ok() { Outcome::Success } else { Outcome::Failure }
    /// }
    /// let engine: Engine = Engine::builder().build();
    /// let answer = engine.call("core-banking", verdict, || Ok(42))?;
    /// assert_eq!(answer, Ok(42));
    /// # Ok::<(), Rejection>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rejection`] if the call may not start; it hasn't run then.
    pub fn call<Q, R>(
        &self,
        key: &Q,
        classify: impl FnOnce(&R) -> Outcome,
        call: impl FnOnce() -> R,
    ) -> Result<R, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let permit = self.admit(key)?;
        let value = call();
        permit.settle(classify(&value));
        Ok(value)
    }

    /// Runs an asynchronous call if it may start, and settles it with what `classify` makes of its value.
    ///
    /// `call` isn't even asked for its future if the call may not start. If the returned future is dropped first, the call is
    /// abandoned: a failure once it ran for 500 ms, unless the policy says otherwise. A panic counts as a failure.
    ///
    /// # Errors
    ///
    /// [`Rejection`] if the call may not start; nothing of it has run then.
    pub async fn call_async<Q, R, F: Future<Output = R>>(
        &self,
        key: &Q,
        classify: impl FnOnce(&R) -> Outcome,
        call: impl FnOnce() -> F,
    ) -> Result<R, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let permit = self.admit_key(key, true).map(|(slot, token)| Permit::new(self, slot, token))?;
        let value = call().await;
        permit.settle(classify(&value));
        Ok(value)
    }

    /// The target as it is now; none if the key isn't known. Changes nothing, but that it judges running calls if the policy has a rule on
    /// them: a target that hangs is seen to be open.
    #[must_use]
    pub fn snapshot<Q>(&self, key: &Q) -> Option<Snapshot>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (slot, (snapshot, report)) = self.registry.find(key, |slot| (slot, self.snapshot_slot(slot)))?;
        self.turn_away_and_tell(slot, report);
        Some(snapshot)
    }

    /// All targets as they are now, in no order. Those made or forgotten meanwhile may be missing.
    #[must_use]
    pub fn snapshots(&self) -> Vec<(Arc<K>, Snapshot)> {
        let mut all = Vec::with_capacity(self.len());
        self.visit(|key, snapshot| all.push((Arc::clone(key), snapshot)));
        all
    }

    /// Shows `look` each target as it is just then, in no order, as [`snapshots`](Self::snapshots) but for the memory: a snapshot takes about half a
    /// kilobyte. Nothing is locked while it looks; it may call the engine.
    pub fn visit(&self, mut look: impl FnMut(&Arc<K>, Snapshot)) {
        let key = |slot: &Slot<K>| slot.tenant().as_ref().map(|tenant| Arc::clone(&tenant.key));
        for key in self.registry.slots().filter_map(key) {
            // Under the lock of its shard, so that it is of one tenant.
            if let Some(snapshot) = self.snapshot(&*key) {
                look(&key, snapshot);
            }
        }
    }

    /// Refuses every call to `key` until [`release`](Self::release); whether that changed anything.
    ///
    /// # Errors
    ///
    /// [`Rejection::Exhausted`] if the key is new and there is no room for it.
    pub fn force_open<Q>(&self, key: &Q) -> Result<bool, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.target(key).map(|target| target.force_open())
    }

    /// Turns the breaker of `key` off until [`release`](Self::release): calls are still limited and counted. Whether that changed
    /// anything.
    ///
    /// # Errors
    ///
    /// [`Rejection::Exhausted`] if the key is new and there is no room for it.
    pub fn disable<Q>(&self, key: &Q) -> Result<bool, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.target(key).map(|target| target.disable())
    }

    /// Leaves a forced state for CLOSED, with an empty window; whether that changed anything.
    ///
    /// # Errors
    ///
    /// [`Rejection::Exhausted`] if the key is new and there is no room for it.
    pub fn release<Q>(&self, key: &Q) -> Result<bool, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.target(key).map(|target| target.release())
    }

    /// Puts another policy in force for `key`; see [`Target::set_policy`]. The target is never forgotten after that.
    ///
    /// # Errors
    ///
    /// [`Rejection::Exhausted`] if the key is new and there is no room for it.
    pub fn set_policy<Q>(&self, key: &Q, policy: Policy) -> Result<(), Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.target(key).map(|target| target.set_policy(policy))
    }

    /// Sets the limit of `key`, 0 among them; see [`Target::set_limit`]. The target is never forgotten after that.
    ///
    /// # Errors
    ///
    /// [`Rejection::Exhausted`] if the key is new and there is no room for it.
    pub fn set_limit<Q>(&self, key: &Q, limit: u32) -> Result<(), Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.target(key).map(|target| target.set_limit(limit))
    }

    /// Gives a limit of `key` that was set by hand back to its policy, see [`Target::release_limit`]; whether one was set.
    ///
    /// # Errors
    ///
    /// [`Rejection::Exhausted`] if the key is new and there is no room for it.
    pub fn release_limit<Q>(&self, key: &Q) -> Result<bool, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.target(key).map(|target| target.release_limit())
    }

    /// Registers an observer, until the guard is dropped. Transitions that began before may still be missed.
    pub fn observe(&self, observer: impl Observer<K> + 'static) -> ObserverGuard {
        self.hub.observe(observer)
    }

    /// Opens a channel that holds up to `capacity` transitions (1 to 65,536), each target's in the order of their numbers.
    #[must_use]
    pub fn subscribe(&self, capacity: usize) -> Subscription<K> {
        self.hub.subscribe(capacity)
    }

    /// The log of the last transitions, oldest first, each target's in the order of their numbers.
    #[must_use]
    pub fn transitions(&self) -> Vec<Arc<Transition<K>>> {
        self.hub.log(self.now())
    }

    /// Transitions that the log has no room for any more, or never got.
    #[must_use]
    pub fn transitions_dropped(&self) -> u64 {
        self.hub.dropped()
    }

    /// Panics of observers that were caught.
    #[must_use]
    pub fn observer_panics(&self) -> u64 {
        self.hub.panics()
    }

    /// Refusals of keys for which there was no room.
    #[must_use]
    pub fn exhausted(&self) -> u64 {
        self.registry.exhausted()
    }

    /// Visits every target and forgets those that have been idle for long; how many went. A first visit only notes what it sees.
    pub fn sweep(&self) -> usize {
        self.registry.sweep(self.read_clock(), &self.hub)
    }

    /// How many targets the engine holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.registry.len()
    }

    /// Whether the engine holds no target.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Time since the engine was built, on its clock.
    #[must_use]
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.read_clock().nanos())
    }
}

impl<K: Key> fmt::Debug for Engine<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("targets", &self.len()).field("now", &self.now()).finish_non_exhaustive()
    }
}
