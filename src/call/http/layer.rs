//! The layer: what every service that it wraps shares.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};
use tower_layer::Layer;

use super::super::caller::Caller;
use super::super::fallback::BoxError;
use super::super::last_good::LastGood;
use super::super::verdict::{Again, Verdict};
use super::judge::{is_idempotent, judge_response};
use super::service::CallService;
use super::stale::{self, Kept};
use crate::engine::Key;
use crate::priority::Priority;

/// Wraps services so that each request is a whole call: fallback( deadline( retry( admission( timeout( service ))))).
///
/// - A caller's `x-request-deadline-ms` or `grpc-timeout` shortens the policy's deadline, and each attempt is sent with what is left for it.
/// - Requests whose method is idempotent, or that carry an `Idempotency-Key`, may be sent again; [`idempotent`](Self::idempotent) says so of others.
/// - The timeout is to the response's headers. A body takes the time that it takes: bound its gaps where it is read.
/// - Each attempt calls a clone of the inner service that was made ready for it.
/// - A 5xx is the answer in the end, unless the policy has a fallback; a fallback is marked by [`FALLBACK_HEADER`](super::super::FALLBACK_HEADER).
/// - A future is boxed once per request; nothing is admitted before it is polled.
///
/// ```
/// use std::sync::Arc;
/// use portcullis::Engine;
/// use portcullis::call::{CallLayer, Caller};
/// use portcullis::tower::{ByAuthority, HttpClassifier};
/// use tower::ServiceBuilder;
///
/// let engine: Arc<Engine> = Arc::new(Engine::builder().build());
/// let caller = Caller::builder(engine).build()?;
/// let service = ServiceBuilder::new()
///     .layer(CallLayer::new(caller, ByAuthority, HttpClassifier::new()))
///     .service_fn(|_request: http::Request<portcullis::call::ReplayBody<String>>| async {
///         Ok::<_, std::io::Error>(http::Response::new(String::new()))
///     });
/// # Ok::<(), portcullis::PolicyError>(())
/// ```
#[derive(Clone)]
pub struct CallLayer<F, C, K: Key = String, J = AnyError> {
    pub(super) shared: Arc<Shared<F, C, K, J>>,
}

pub(super) struct Shared<F, C, K: Key, J> {
    pub(super) caller: Caller<K>,
    pub(super) key: F,
    pub(super) classifier: C,
    pub(super) errors: J,
    pub(super) options: Options,
}

/// Judges the inner service's errors: whether another attempt might do better, under which wire code, and whether it is the caller's own doing
/// ([`Verdict::ignored`]). What an error says about the target is the classifier's to settle. Any `Fn(&E) -> Verdict` does.
pub trait JudgeError<E> {
    /// The verdict on an error.
    fn judge(&self, error: &E) -> Verdict;
}

impl<E, J: Fn(&E) -> Verdict> JudgeError<E> for J {
    fn judge(&self, error: &E) -> Verdict {
        self(error)
    }
}

/// Takes any error for a failure that is worth another attempt: `E902`, no connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnyError;

impl<E> JudgeError<E> for AnyError {
    fn judge(&self, _: &E) -> Verdict {
        Verdict::failure().code("E902")
    }
}

type Answering = Pin<Box<dyn Future<Output = Result<Response<Bytes>, BoxError>> + Send>>;

type JudgeFn = dyn Fn(StatusCode, &HeaderMap) -> Again + Send + Sync;
type IdempotentFn = dyn Fn(&Parts) -> bool + Send + Sync;
type PriorityFn = dyn Fn(&Parts) -> Priority + Send + Sync;
type FallbackFn = dyn Fn(&Parts, Failure) -> Answering + Send + Sync;

#[derive(Clone)]
pub(super) struct Options {
    pub(super) judge: Arc<JudgeFn>,
    pub(super) is_idempotent: Arc<IdempotentFn>,
    pub(super) priority: Option<Arc<PriorityFn>>,
    pub(super) function: Option<Arc<FallbackFn>>,
    pub(super) kept: LastGood<Kept>,
    pub(super) most_of_one: usize,
    pub(super) is_bounded_by_service: bool,
}

/// What a request failed with, for a function that answers in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// The stable wire code.
    pub code: &'static str,
    /// The reason, as in metrics.
    pub reason: &'static str,
    /// Attempts that were admitted.
    pub attempts: u32,
    /// When to come back, if that is known.
    pub retry_after: Option<Duration>,
}

/// Tells whether the scope that a request belongs to has ended; to be put among the request's extensions. An error that comes after that is the
/// caller's doing, whatever it looks like: no evidence about the target, and not tried again.
#[derive(Clone)]
pub struct Scope {
    pub(super) is_over: Arc<dyn Fn() -> bool + Send + Sync>,
    pub(super) is_callers_turn: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl Scope {
    /// Asks this function.
    #[must_use]
    pub fn new(is_over: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_over: Arc::new(is_over), is_callers_turn: None }
    }

    /// Asks this function whether the caller still owes a part of the request. A deadline that passes meanwhile says nothing about the target.
    #[must_use]
    pub fn callers_turn(mut self, is_callers_turn: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.is_callers_turn = Some(Arc::new(is_callers_turn));
        self
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl<F: Clone, C: Clone, K: Key> CallLayer<F, C, K> {
    /// Makes the layer: `key` tells which target a request is for, `classifier` what its response says about that target.
    pub fn new(caller: Caller<K>, key: F, classifier: C) -> Self {
        let options = Options {
            judge: Arc::new(judge_response),
            is_idempotent: Arc::new(|request| is_idempotent(&request.method, &request.headers)),
            priority: None,
            function: None,
            kept: stale::store(16 << 20),
            most_of_one: 256 << 10,
            is_bounded_by_service: false,
        };
        Self { shared: Arc::new(Shared { caller, key, classifier, errors: AnyError, options }) }
    }
}

impl<F: Clone, C: Clone, K: Key, J: Clone> CallLayer<F, C, K, J> {
    /// Sets what the inner service's errors say; [`AnyError`] unless set.
    #[must_use]
    pub fn errors<J2>(self, errors: J2) -> CallLayer<F, C, K, J2> {
        let Shared { caller, key, classifier, options, .. } = &*self.shared;
        let (caller, key, classifier, options) = (caller.clone(), key.clone(), classifier.clone(), options.clone());
        CallLayer { shared: Arc::new(Shared { caller, key, classifier, errors, options }) }
    }

    /// Sets which requests may be made twice; unless set, those whose method is idempotent (RFC 9110) or that carry an `Idempotency-Key`.
    #[must_use]
    pub fn idempotent(self, is_idempotent: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|options| options.is_idempotent = Arc::new(is_idempotent))
    }

    /// Sets how much each request matters; all are critical unless set. A critical request waits for its permit as the engine's policy lets it, and as
    /// [`Typed::priority`](super::super::Typed::priority) says.
    ///
    /// A client's own word may lower it, by [`requested_priority`](crate::tower::requested_priority):
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use portcullis::call::{CallLayer, Caller};
    /// # use portcullis::tower::{ByAuthority, HttpClassifier, requested_priority};
    /// # use portcullis::{Engine, Priority};
    /// # let engine: Arc<Engine> = Arc::new(Engine::builder().build());
    /// # let caller = Caller::builder(engine).build()?;
    /// let layer = CallLayer::new(caller, ByAuthority, HttpClassifier::new())
    ///     .priority(|request| requested_priority(&request.headers, Priority::Critical));
    /// # Ok::<(), portcullis::PolicyError>(())
    /// ```
    #[must_use]
    pub fn priority(self, priority: impl Fn(&Parts) -> Priority + Send + Sync + 'static) -> Self {
        self.with(|options| options.priority = Some(Arc::new(priority)))
    }

    /// Sets which responses are worth another attempt; [`judge_response`] unless set. They count as failures of the call.
    #[must_use]
    pub fn retry_on(self, judge: impl Fn(StatusCode, &HeaderMap) -> Again + Send + Sync + 'static) -> Self {
        self.with(|options| options.judge = Arc::new(judge))
    }

    /// Sets what answers where the policy's fallback is a function. Nothing bounds its time but itself.
    #[must_use]
    pub fn fallback<Fut>(self, function: impl Fn(&Parts, Failure) -> Fut + Send + Sync + 'static) -> Self
    where
        Fut: Future<Output = Result<Response<Bytes>, BoxError>> + Send + 'static,
    {
        self.with(|options| {
            options.function = Some(Arc::new(move |request, failure| Box::pin(function(request, failure))));
        })
    }

    /// Bounds the last good answers that are kept: bytes in all (16 MiB unless set), and of one body (256 KiB).
    #[must_use]
    pub fn keep(self, most: u64, most_of_one: usize) -> Self {
        self.with(|options| {
            options.kept = stale::store(most);
            options.most_of_one = most_of_one;
        })
    }

    /// Leaves the timeout of each attempt to the service: for one that knows whose turn it is while a body is sent, or that has to let go of a
    /// connection before the next call may come.
    ///
    /// It finds the [`Attempt`](super::super::Attempt) among the request's extensions, and ends it by an error that is judged a failure with the
    /// code `E901`. The layer then only cuts what outlasts the deadline. That is abandoned; but a failure of the target if the deadline is the
    /// policy's, and left no more than the timeout.
    #[must_use]
    pub fn bounded_by_service(self) -> Self {
        self.with(|options| options.is_bounded_by_service = true)
    }

    fn with(self, set: impl FnOnce(&mut Options)) -> Self {
        let Shared { caller, key, classifier, errors, options } = &*self.shared;
        let mut options = options.clone();
        set(&mut options);
        let (caller, key, classifier, errors) = (caller.clone(), key.clone(), classifier.clone(), errors.clone());
        Self { shared: Arc::new(Shared { caller, key, classifier, errors, options }) }
    }
}

impl<S, F, C, K: Key, J> Layer<S> for CallLayer<F, C, K, J> {
    type Service = CallService<S, F, C, K, J>;

    fn layer(&self, inner: S) -> Self::Service {
        CallService::new(inner, Arc::clone(&self.shared))
    }
}

impl<F, C: fmt::Debug, K: Key, J> fmt::Debug for CallLayer<F, C, K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { caller, classifier, .. } = &*self.shared;
        f.debug_struct("CallLayer").field("caller", caller).field("classifier", classifier).finish_non_exhaustive()
    }
}
