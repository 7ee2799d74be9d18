//! Calls of any kind: what a closure does, with everything that is to be said about the call.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::backup::{Backup, fallback};
use super::caller::Caller;
use super::error::CallError;
use super::fallback::FallbackKind;
use super::order::{Call, Steps, deadline};
use super::plan::{Attempt, Plan};
use super::steps::{Judged, Plain, Settled};
use super::verdict::Verdict;
use crate::engine::Key;
use crate::priority::Priority;
use crate::tower::RequestPermit;

/// An answer, and where it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<T> {
    pub(super) value: T,
    pub(super) attempts: u32,
    pub(super) fallback: Option<FallbackKind>,
    pub(super) is_failure: bool,
}

impl<T> Answer<T> {
    /// The value.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// Attempts that were admitted.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Which fallback it comes from; none if it is the target's own.
    pub fn fallback(&self) -> Option<FallbackKind> {
        self.fallback
    }

    /// Whether it is an answer of the target's that its verdict calls a failure, handed on for want of a better one.
    pub fn is_failure(&self) -> bool {
        self.is_failure
    }
}

impl<T> Deref for Answer<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

type Scope<'a> = Box<dyn Fn() -> bool + Send + Sync + 'a>;

/// A call to one target, made by [`Caller::to`]: say what is to be said about it, then run it.
#[must_use = "nothing is called until it is run"]
pub struct Typed<'a, K: Key, Q: ?Sized> {
    pub(super) caller: &'a Caller<K>,
    pub(super) key: &'a Q,
    pub(super) priority: Priority,
    pub(super) is_idempotent: bool,
    pub(super) left: Option<Duration>,
    pub(super) scope: Option<Scope<'a>>,
}

impl<'a, K, Q> Typed<'a, K, Q>
where
    K: Key + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    pub(super) fn new(caller: &'a Caller<K>, key: &'a Q) -> Self {
        Self { caller, key, priority: Priority::Critical, is_idempotent: false, left: None, scope: None }
    }

    /// Sets how much the call matters: critical unless set.
    ///
    /// Each attempt is asked for with it. One below critical is refused where it reaches its share of the limit ([`Rejection::Shed`](crate::Rejection::Shed)), and
    /// like any refusal that isn't tried again. A critical one waits for its permit if the engine's policy has
    /// [`max_waiting`](crate::PolicyBuilder::max_waiting): for [`max_wait`](crate::PolicyBuilder::max_wait), but no longer than leaves its whole timeout before the deadline.
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Says that the call does no harm if it is made twice. Unless it is said, there is one attempt.
    pub fn idempotent(mut self, is_idempotent: bool) -> Self {
        self.is_idempotent = is_idempotent;
        self
    }

    /// Sets how long the caller still waits; zero has passed. The policy's deadline holds, too.
    pub fn deadline(mut self, left: Duration) -> Self {
        self.left = Some(left);
        self
    }

    /// Sets how it is told that the caller's own scope has ended: cancelled, hung up, shut down. An error that comes after that says nothing
    /// about the target, whatever it looks like, and isn't tried again.
    pub fn scope(mut self, is_over: impl Fn() -> bool + Send + Sync + 'a) -> Self {
        self.scope = Some(Box::new(is_over));
        self
    }

    /// Runs the call: a value is a success, an error a failure worth another attempt.
    ///
    /// # Errors
    ///
    /// [`CallError`] says what came of it.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time enabled.
    pub async fn run<T, E, F>(self, start: impl FnMut(Attempt) -> F) -> Result<Answer<T>, CallError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.run_steps(Backup::refuse(), Plain { start }).await
    }

    /// Runs the call, judges each result by `judge`, and answers a failure by `backup`.
    ///
    /// A value that is a failure by its verdict is still the answer, marked by [`Answer::is_failure`], unless the backup has a better one.
    ///
    /// # Errors
    ///
    /// [`CallError`] says what came of it, and what of the backup.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time enabled.
    pub async fn run_or<T, E, F>(
        self,
        backup: Backup<'_, T, E>,
        judge: impl Fn(&Result<T, E>) -> Verdict,
        start: impl FnMut(Attempt) -> F,
    ) -> Result<Answer<T>, CallError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        self.run_steps(backup, Judged { start, judge }).await
    }

    /// Runs the call, and leaves to `settle` what becomes of each attempt's permit: for answers that carry it on, in a body.
    ///
    /// # Errors
    ///
    /// [`CallError`] says what came of it, and what of the backup.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with time enabled.
    pub async fn run_settled<R, T, E, F>(
        self,
        backup: Backup<'_, T, E>,
        settle: impl FnMut(RequestPermit<K>, Result<R, E>) -> (Result<T, E>, Verdict),
        start: impl FnMut(Attempt) -> F,
    ) -> Result<Answer<T>, CallError<E>>
    where
        F: Future<Output = Result<R, E>>,
    {
        self.run_steps(backup, Settled { start, settle }).await
    }

    async fn run_steps<S: Steps<K>>(
        self,
        backup: Backup<'_, S::Answer, S::Error>,
        mut steps: S,
    ) -> Result<Answer<S::Answer>, CallError<S::Error>> {
        let Self { caller, key, priority, is_idempotent, left, scope } = self;
        let lane = caller.lane(key);
        let plan = Plan::new(Arc::clone(&lane), left, is_idempotent, caller.seed());
        let scope = scope.as_deref().map(|is_over| is_over as &(dyn Fn() -> bool + Send + Sync));
        let call = Call { engine: caller.engine(), key, priority, plan, scope, started: Instant::now() };
        let ended = deadline(call, &mut steps).await;
        fallback(backup, ended, &lane.counters, caller.engine().now()).await
    }
}

impl<K: Key, Q: fmt::Debug + ?Sized> fmt::Debug for Typed<'_, K, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, priority, is_idempotent, left, .. } = self;
        let mut fields = f.debug_struct("Typed");
        fields.field("key", key).field("priority", priority).field("is_idempotent", is_idempotent);
        fields.field("deadline", left).finish_non_exhaustive()
    }
}
