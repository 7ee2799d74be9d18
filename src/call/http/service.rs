//! The service: one request is one whole call.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use tokio::time::Instant;
use tower_service::Service;

use super::super::deadline::{remaining, write_remaining};
use super::super::error::CallError;
use super::super::fallback::BoxError;
use super::super::order::{Call, Ended, Steps, deadline};
use super::super::plan::{Attempt, Plan};
use super::super::verdict::{Again, Verdict};
use super::answer::CallBody;
use super::fallback::Fallbacks;
use super::layer::{AnyError, JudgeError, Options, Scope, Shared};
use super::once::Once;
use super::replay::{ReplayBody, Replays};
use crate::engine::Key;
use crate::outcome::Outcome;
use crate::priority::Priority;
use crate::tower::{Classify, KeyFor, RequestPermit};

/// A service whose requests are whole calls; see [`CallLayer`](super::super::CallLayer).
pub struct CallService<S, F, C, K: Key = String, J = AnyError> {
    inner: S,
    shared: Arc<Shared<F, C, K, J>>,
}

impl<S: Clone, F, C, K: Key, J> Clone for CallService<S, F, C, K, J> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<S, F, C, K: Key, J> CallService<S, F, C, K, J> {
    pub(super) fn new(inner: S, shared: Arc<Shared<F, C, K, J>>) -> Self {
        Self { inner, shared }
    }
}

/// The future of one request.
type CallFuture<B, E> = Pin<Box<dyn Future<Output = Result<Response<CallBody<B>>, CallError<E>>> + Send>>;

impl<S, F, C, K, J, B, Res, Guarded> Service<Request<B>> for CallService<S, F, C, K, J>
where
    S: Service<Request<ReplayBody<B>>, Response = Res> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    Res: Send + 'static,
    F: KeyFor<Request<B>, K> + Send + Sync + 'static,
    C: Classify<Res, S::Error, K, Response = Response<Guarded>> + Send + Sync + 'static,
    J: JudgeError<S::Error> + Send + Sync + 'static,
    K: Key + Clone,
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
    Guarded: Send + 'static,
{
    type Response = Response<CallBody<Guarded>>;
    type Error = CallError<S::Error>;
    type Future = CallFuture<Guarded, S::Error>;

    /// Always ready: each attempt makes its own clone of the inner service ready.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The caller's time runs from here, polled or not.
        let started = Instant::now();
        Box::pin(run(self.inner.clone(), Arc::clone(&self.shared), request, started))
    }
}

async fn run<S, F, C, K, J, B, Res, Guarded>(
    inner: S,
    shared: Arc<Shared<F, C, K, J>>,
    request: Request<B>,
    started: Instant,
) -> Result<Response<CallBody<Guarded>>, CallError<S::Error>>
where
    S: Service<Request<ReplayBody<B>>, Response = Res> + Clone,
    F: KeyFor<Request<B>, K>,
    C: Classify<Res, S::Error, K, Response = Response<Guarded>>,
    J: JudgeError<S::Error>,
    K: Key + Clone,
    B: Body,
    B::Error: Into<BoxError>,
{
    let Shared { caller, key, classifier, errors, options } = &*shared;
    let key = key.key(&request);
    let (head, body) = request.into_parts();
    let lane = caller.lane(&key);
    let plan = Plan::new(Arc::clone(&lane), remaining(&head.headers), (options.is_idempotent)(&head), caller.seed());
    let replays =
        if plan.may_repeat() { Replays::kept(body, plan.policy().replay_limit()) } else { Replays::once(body) };
    let policy = Arc::clone(plan.policy());
    let fallbacks = Fallbacks { policy: policy.fallback(), options, counters: &lane.counters, engine: caller.engine() };
    let name = fallbacks.name(&key, &head);
    let scope = head.extensions.get::<Scope>().map(|scope| Arc::clone(&scope.is_over));
    let priority = options.priority.as_ref().map_or(Priority::Critical, |priority| priority(&head));
    let call = Call { engine: caller.engine(), key: &key, priority, plan, scope: scope.as_deref(), started };
    let mut steps = Attempts { inner, head, replays, classifier, errors, options };
    match deadline(call, &mut steps).await {
        Ended::Good(response, _) => Ok(fallbacks.good(response, name)),
        Ended::Bad(response, error) => fallbacks.instead_of(&steps.head, name, error, Some(response)).await,
        Ended::Failed(error) => fallbacks.instead_of(&steps.head, name, error, None).await,
    }
}

/// What an attempt is over HTTP.
struct Attempts<'a, S, B, C, J> {
    inner: S,
    head: Parts,
    replays: Replays<B>,
    classifier: &'a C,
    errors: &'a J,
    options: &'a Options,
}

impl<S, B, C, J, K, Res, Guarded> Steps<K> for Attempts<'_, S, B, C, J>
where
    S: Service<Request<ReplayBody<B>>, Response = Res> + Clone,
    B: Body,
    C: Classify<Res, S::Error, K, Response = Response<Guarded>>,
    J: JudgeError<S::Error>,
    K: Key,
{
    type Raw = Res;
    type Answer = Response<Guarded>;
    type Error = S::Error;
    type Future = Once<S, S::Future, Request<ReplayBody<B>>>;

    fn start(&mut self, attempt: Attempt) -> Self::Future {
        let request = self.replays.next().map(|body| {
            let mut head = self.head.clone();
            write_remaining(&mut head.headers, attempt.timeout);
            head.extensions.insert(attempt);
            Request::from_parts(head, body)
        });
        Once::new(self.inner.clone(), request)
    }

    fn settle(
        &mut self,
        permit: RequestPermit<K>,
        result: Result<Res, S::Error>,
    ) -> (Result<Response<Guarded>, S::Error>, Verdict) {
        let (result, told) = self.classifier.settle_told(permit, result);
        let verdict = match &result {
            Err(error) => self.errors.judge(error),
            Ok(response) => {
                let again = (self.options.judge)(response.status(), response.headers());
                // Whatever counts against the target is a failure for its caller, too, though no other attempt may be worth it.
                let is_told = told == Some(Outcome::Failure);
                let is_failure = is_told || response.status().is_server_error() || again != Again::No;
                let verdict = if is_failure { Verdict::failure() } else { Verdict::success() };
                verdict.again(again).status(response.status().as_u16())
            }
        };
        (result, verdict)
    }

    fn can_replay(&self) -> bool {
        self.replays.can_replay()
    }

    fn take_back(&mut self) -> bool {
        self.replays.take_back()
    }

    fn bounds_itself(&self) -> bool {
        self.options.is_bounded_by_service
    }

    fn is_callers_turn(&self) -> bool {
        let scope = self.head.extensions.get::<Scope>();
        scope.and_then(|scope| scope.is_callers_turn.as_ref()).is_some_and(|is_callers_turn| is_callers_turn())
    }
}

impl<S: fmt::Debug, F, C, K: Key, J> fmt::Debug for CallService<S, F, C, K, J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallService").field("inner", &self.inner).finish_non_exhaustive()
    }
}

/// A whole body.
pub(super) fn whole<B>(response: Response<Bytes>) -> Response<CallBody<B>> {
    response.map(CallBody::of_fallback)
}
