//! Engine, policies and what targets' calls share, in one handle.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

use super::counters::CallCounts;
use super::error::CallError;
use super::lane::Lane;
use super::policy::CallPolicy;
use super::typed::Typed;
use crate::counters::Counter;
use crate::engine::{Engine, Key};
use crate::policy::{Policy, PolicyError};

/// Calls targets as their policies say; clones are handles of the same.
///
/// A target with a declaration of its own keeps its budget and counters for good. Those that go by the default are kept as long as
/// they are among the last `max_targets` that were called.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use portcullis::Engine;
/// use portcullis::call::{CallPolicy, Caller};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine: Arc<Engine> = Arc::new(Engine::builder().build());
/// let patient = CallPolicy::builder().timeout(Duration::from_secs(2)).attempts(3).build()?;
/// let caller = Caller::builder(engine).target("core-banking".to_owned(), patient).build()?;
///
/// // Once, whatever comes of it:
/// let balance = caller.call("core-banking", || async { Ok::<_, std::io::Error>(42) }).await?;
/// assert_eq!(balance, 42);
///
/// // Again after a failure, since it does no harm twice:
/// let answer = caller.to("core-banking").idempotent(true).run(|_attempt| async { Ok::<_, std::io::Error>(43) }).await?;
/// assert_eq!((*answer, answer.attempts()), (43, 1));
/// # Ok(())
/// # }
/// ```
pub struct Caller<K: Key = String> {
    shared: Arc<Shared<K>>,
}

type Lanes<K> = Cache<K, Arc<Lane>, ahash::RandomState>;

struct Shared<K: Key> {
    engine: Arc<Engine<K>>,
    default: Arc<CallPolicy>,
    /// Without a bound.
    declared: Lanes<K>,
    others: Lanes<K>,
    seed: u64,
    calls: Counter,
}

impl<K: Key> Clone for Caller<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K: Key> Caller<K> {
    /// Starts from the defaults: [`CallPolicy::default`] for all targets.
    pub fn builder(engine: Arc<Engine<K>>) -> CallerBuilder<K> {
        CallerBuilder { engine, default: CallPolicy::default(), declared: Vec::new(), max_targets: 10_000, seed: None }
    }

    /// The engine that admits.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine<K>> {
        &self.shared.engine
    }

    /// Begins a call to `key` that has more to be said about it; see [`Typed`].
    pub fn to<'a, Q>(&'a self, key: &'a Q) -> Typed<'a, K, Q>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        Typed::new(self, key)
    }

    /// Calls `key` once: admitted, within its timeout, and never again. A value is a success, an error a failure.
    ///
    /// # Errors
    ///
    /// [`CallError`] says what came of it.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time enabled.
    pub async fn call<Q, T, E, F>(&self, key: &Q, call: impl FnOnce() -> F) -> Result<T, CallError<E>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        F: Future<Output = Result<T, E>>,
    {
        let mut call = Some(call);
        let once = move |_| {
            let call = call.take();
            async move {
                match call {
                    Some(call) => call().await,
                    // A call that isn't idempotent is started once.
                    None => std::future::pending().await,
                }
            }
        };
        self.to(key).run(once).await.map(super::typed::Answer::into_inner)
    }

    /// Calls `key` once, blocking this thread; see [`Typed::run_blocking`] for more, and for what is asked of the client.
    ///
    /// # Errors
    ///
    /// [`CallError`] says what came of it.
    pub fn call_blocking<Q, T, E>(&self, key: &Q, call: impl FnOnce() -> Result<T, E>) -> Result<T, CallError<E>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let mut call = Some(call);
        let once = move |_| {
            call.take().map_or_else(|| unreachable!("a call that isn't idempotent is started once"), |call| call())
        };
        self.to(key).run_blocking(once).map(super::typed::Answer::into_inner)
    }

    /// The policy in force for `key`.
    #[must_use]
    pub fn policy<Q>(&self, key: &Q) -> Arc<CallPolicy>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.known(key).map_or_else(|| Arc::clone(&self.shared.default), |lane| lane.in_force().policy)
    }

    /// Puts another policy in force for `key`, and declares it if it wasn't. Calls under way go on by the old one; the budget stays, unless
    /// `retry_memory` is another: then it begins anew.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] if it doesn't go with the engine's policy for the same target, see [`CallPolicy::check_with`].
    pub fn set_policy(&self, key: K, policy: CallPolicy) -> Result<(), PolicyError> {
        policy.check_with(&self.engine_policy(&key))?;
        let Shared { declared, others, .. } = &*self.shared;
        let known = declared.get(&key).or_else(|| others.remove(&key));
        let lane = known.unwrap_or_else(|| Arc::new(Lane::new(Arc::default())));
        lane.set_policy(policy);
        declared.insert(key, lane);
        Ok(())
    }

    /// What became of the calls to `key`; none if it wasn't called or declared, or was forgotten.
    #[must_use]
    pub fn counts<Q>(&self, key: &Q) -> Option<CallCounts>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.known(key).map(|lane| lane.counters.read())
    }

    /// What became of the calls of all targets, in no order.
    #[must_use]
    pub fn all_counts(&self) -> Vec<(Arc<K>, CallCounts)> {
        let lanes = self.shared.declared.iter().chain(&self.shared.others);
        lanes.map(|(key, lane)| (key, lane.counters.read())).collect()
    }

    fn known<Q>(&self, key: &Q) -> Option<Arc<Lane>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.shared.declared.get(key).or_else(|| self.shared.others.get(key))
    }

    pub(super) fn lane<Q>(&self, key: &Q) -> Arc<Lane>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let Shared { declared, others, default, .. } = &*self.shared;
        let make = || Arc::new(Lane::new(Arc::clone(default)));
        declared.get(key).unwrap_or_else(|| others.get_with_by_ref(key, make))
    }

    /// A number of its own for each call, from which its backoffs are drawn.
    pub(super) fn seed(&self) -> u64 {
        self.shared.seed.wrapping_add(self.shared.calls.add(1) << 8)
    }

    fn engine_policy(&self, key: &K) -> Policy {
        let snapshot = self.shared.engine.snapshot(key);
        snapshot.map_or_else(|| self.shared.engine.default_policy().clone(), |snapshot| snapshot.policy)
    }
}

impl<K: Key> fmt::Debug for Caller<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { engine, default, .. } = &*self.shared;
        f.debug_struct("Caller").field("engine", engine).field("default", default).finish_non_exhaustive()
    }
}

/// Collects what a [`Caller`] goes by.
#[derive(Debug)]
#[must_use]
pub struct CallerBuilder<K: Key = String> {
    engine: Arc<Engine<K>>,
    default: CallPolicy,
    declared: Vec<(K, CallPolicy)>,
    max_targets: u64,
    seed: Option<u64>,
}

impl<K: Key> CallerBuilder<K> {
    /// Sets the policy of targets that have no declaration of their own.
    pub fn policy(mut self, policy: CallPolicy) -> Self {
        self.default = policy;
        self
    }

    /// Declares a target.
    pub fn target(mut self, key: K, policy: CallPolicy) -> Self {
        self.declared.push((key, policy));
        self
    }

    /// Bounds the targets without a declaration that are remembered: 10,000 unless set, and 1 at the least. A target that is
    /// forgotten begins anew, and with a fresh budget each call could be retried.
    pub fn max_targets(mut self, targets: u64) -> Self {
        self.max_targets = targets.max(1);
        self
    }

    /// Makes the backoffs the same in every run; drawn at random unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Checks the policies against the engine's, and builds the caller.
    ///
    /// # Errors
    ///
    /// [`PolicyError`] as for [`CallPolicy::check_with`].
    pub fn build(self) -> Result<Caller<K>, PolicyError> {
        let hasher = ahash::RandomState::new;
        let others = Cache::builder().max_capacity(self.max_targets).eviction_policy(EvictionPolicy::lru());
        self.default.check_with(self.engine.default_policy())?;
        let seed = self.seed.unwrap_or_else(|| ahash::RandomState::new().hash_one(0_u8));
        let (engine, default) = (self.engine, Arc::new(self.default));
        let others = others.build_with_hasher(hasher());
        let declared = Cache::builder().build_with_hasher(hasher());
        let shared = Shared { engine, default, declared, others, seed, calls: Counter::default() };
        let caller = Caller { shared: Arc::new(shared) };
        for (key, policy) in self.declared {
            caller.set_policy(key, policy)?;
        }
        Ok(caller)
    }
}
