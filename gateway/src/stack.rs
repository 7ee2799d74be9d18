//! What a route's requests go through: admission, unless the route is without, then one attempt at an upstream; or as many as a whole call
//! makes, where the target's policy or the request's deadline asks for one.
//!
//! For one attempt the engine is asked directly, with the layer's classifier and body, but without the layer: a route's target is known
//! beforehand, so there is no key to be made for each request, and no service to be cloned.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, Request, Response};
use http_body_util::Either;
use portcullis::call::{CallBody, DEADLINE_HEADER, GRPC_TIMEOUT, remaining, write_remaining};
use portcullis::tower::{Classify as _, GuardedBody, requested_priority};
use portcullis::{Admit, Engine, Priority, Rejection};
use tokio::time::Instant;

use crate::body::{Download, Upload};
use crate::upstream::{CallError, Terms, Upstream};
use crate::watch::Watch;
use crate::whole::{Error as WholeError, Settle, Whole};

/// The body of an upstream's answer, with the permit of its call if there is one; or that of a whole call.
pub(crate) type Answer = Either<Either<GuardedBody<Download>, Download>, Pin<Box<CallBody<GuardedBody<Download>>>>>;

/// What stands between a route and its target.
#[derive(Debug)]
pub(crate) struct Stack {
    target: Box<str>,
    // None where nobody is asked: the engine doesn't know of those calls.
    admission: Option<Admission>,
    upstream: Upstream,
    deadline: Option<Duration>,
}

/// Who is asked, and how.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) engine: Arc<Engine<String>>,
    pub(crate) settle: Settle,
    pub(crate) whole: Whole,
    pub(crate) watch: Arc<Watch>,
    /// Whether all calls are whole ones; else only those that bring a deadline.
    pub(crate) is_whole: bool,
    pub(crate) asks: Asks,
}

/// How much a route's requests matter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    pub(crate) priority: Priority,
    /// Whether a request may say that it matters less.
    pub(crate) heeds_header: bool,
    /// Whether critical requests may wait for a place.
    pub(crate) may_wait: bool,
}

impl Asks {
    fn priority(self, headers: &HeaderMap) -> Priority {
        if self.heeds_header { requested_priority(headers, self.priority) } else { self.priority }
    }
}

/// Why there is no answer of an upstream or a fallback.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// One attempt wasn't admitted.
    Rejected(Rejection),
    /// One attempt failed.
    Failed(CallError),
    /// The request's time is over.
    Deadline {
        /// Whether it was when the request came.
        on_arrival: bool,
    },
    /// A whole call failed.
    Whole(Box<WholeError>),
}

impl Stack {
    /// `admission` is asked about each call, if there is one; `deadline` bounds the answers' bodies, and calls that it isn't asked about as a whole.
    pub(crate) fn new(
        target: &str,
        admission: Option<Admission>,
        upstream: Upstream,
        deadline: Option<Duration>,
    ) -> Self {
        Self { target: target.into(), admission, upstream, deadline }
    }

    /// The target's name.
    pub(crate) fn name(&self) -> &str {
        &self.target
    }

    /// Whether anybody is asked.
    pub(crate) fn is_asked(&self) -> bool {
        self.admission.is_some()
    }

    /// Makes one call. What few calls need is boxed: the others would be moved with room for it.
    pub(crate) async fn call(&self, mut request: Request<Upload>) -> Result<Response<Answer>, Unanswered> {
        let left = deadline(request.headers());
        let end = self.deadline.map(|deadline| Instant::now() + deadline);
        let Some(admission) = &self.admission else {
            let answer = match left.into_iter().chain(self.deadline).min() {
                None => self.attempt(request, None).await.map_err(Unanswered::Failed),
                Some(limit) => Box::pin(self.within(limit, request, end)).await,
            };
            return Ok(answer?.map(|body| Either::Left(Either::Right(body))));
        };
        let priority = admission.asks.priority(request.headers());
        if admission.is_whole || left.is_some() {
            request.extensions_mut().insert(priority);
            let answer = Box::pin(admission.whole.call(&self.target, request, end)).await.map_err(Unanswered::Whole)?;
            return Ok(answer.map(|body| Either::Right(Box::pin(body))));
        }
        // Dropped together with this future it is an abandoned call, and a failure where the future panics.
        let how = Admit::from(priority).may_be_dropped();
        let (engine, target) = (&admission.engine, &*self.target);
        let permit = if admission.asks.may_wait && priority == Priority::Critical {
            Box::pin(engine.admit_waiting_owned(target, how, tokio::time::sleep)).await
        } else {
            engine.admit_owned_with(target, how)
        };
        let permit = permit.map_err(Unanswered::Rejected)?;
        let begun = Instant::now();
        // Who has a deadline makes whole calls.
        let answer = self.attempt(request, None).await;
        admission.watch.attempted_alone(permit.is_probe(), begun.into_std(), &answer);
        let answer = admission.settle.settle(permit, answer).map_err(Unanswered::Failed)?;
        Ok(answer.map(|body| Either::Left(Either::Left(body))))
    }

    fn attempt(
        &self,
        request: Request<Upload>,
        end: Option<Instant>,
    ) -> impl Future<Output = Result<Response<Download>, CallError>> {
        let upload = request.body().progress();
        let terms = Terms { turn: self.upstream.turn(), timeout: self.upstream.timeout(), end, upload };
        self.upstream.call(request.map(Either::Left), terms)
    }

    /// A call that no policy is asked about. The time that it may take holds all the same.
    async fn within(
        &self,
        limit: Duration,
        mut request: Request<Upload>,
        end: Option<Instant>,
    ) -> Result<Response<Download>, Unanswered> {
        if limit.is_zero() {
            return Err(Unanswered::Deadline { on_arrival: true });
        }
        write_remaining(request.headers_mut(), limit.min(self.upstream.timeout()));
        let in_time = tokio::time::timeout(limit, self.attempt(request, end)).await;
        in_time.map_err(|_| Unanswered::Deadline { on_arrival: false })?.map_err(Unanswered::Failed)
    }
}

/// The time that the client gives it, if it says so. Few do, and a look at each name costs less than two searches.
fn deadline(headers: &HeaderMap) -> Option<Duration> {
    static NAMES: [HeaderName; 2] = [DEADLINE_HEADER, GRPC_TIMEOUT];
    if headers.keys().any(|name| NAMES.contains(name)) { remaining(headers) } else { None }
}
