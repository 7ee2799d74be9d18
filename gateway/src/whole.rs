//! Whole calls: the library's layer, around attempts at a target's upstreams.
//!
//! The attempts bound themselves. They know whose turn it is while a request's body is still being sent, and an attempt that is given up keeps
//! its place until its upstream has noticed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{HeaderMap, Request, Response, header};
use http_body_util::Either;
use portcullis::call::{
    Again, Attempt, CallBody, CallError as Failed, CallLayer, CallPolicy, CallService, Caller, ReplayBody, Scope,
    Verdict,
};
use portcullis::tower::{Classify, GuardedBody, HttpClassifier, RequestPermit};
use portcullis::{Outcome, Priority};
use tokio::time::Instant;
use tower_layer::Layer as _;
use tower_service::Service;

use crate::body::{Download, Progress, Upload};
use crate::upstream::{CallError, LETTING_GO, Stream, Terms, Upstream};
use crate::watch::Watch;

/// What a whole call fails with.
pub(crate) type Error = Failed<CallError>;

type Named = fn(&Request<Upload>) -> String;
type Judge = fn(&CallError) -> Verdict;

/// What the whole calls of all targets share, for as long as the process runs: budgets, counters, the last good answers.
pub(crate) type Layer = CallLayer<Named, Settle, String, Judge>;

/// Makes the layer.
pub(crate) fn layer(caller: Caller) -> Layer {
    let (name, judge): (Named, Judge) = (name, judge);
    let layer = CallLayer::new(caller, name, Settle::new()).errors(judge).bounded_by_service();
    layer.priority(|request| request.extensions.get::<Priority>().copied().unwrap_or_default())
}

/// The policy as it is kept to. Each attempt that is given up takes a little longer than its timeout, and a deadline that just holds all of them
/// must not cut the last one for that.
pub(crate) fn in_force(policy: &CallPolicy, has_deadline: bool) -> CallPolicy {
    if !has_deadline {
        return policy.clone();
    }
    let overhead = 2 * LETTING_GO * policy.attempts();
    // It is longer than the one that was accepted, and no day.
    policy.to_builder().deadline(policy.deadline() + overhead).build().unwrap_or_else(|_| policy.clone())
}

/// The target that a request is for.
#[derive(Clone, Debug)]
struct Name(Box<str>);

fn name(request: &Request<Upload>) -> String {
    request.extensions().get::<Name>().map(|name| name.0.to_string()).unwrap_or_default()
}

/// What the client's fault or the gateway's own means for the rest of the call.
fn judge(error: &CallError) -> Verdict {
    match error {
        CallError::Timeout { .. } => Verdict::failure().code("E901"),
        CallError::Unreachable(_) | CallError::Broken(_) => Verdict::failure().code("E902"),
        // Another attempt would want what there is none of.
        CallError::Exhausted(_) => Verdict::failure().again(Again::No).code("E905"),
        CallError::Client { .. } => Verdict::ignored(),
    }
}

/// The classifier of answers; by itself it would take each error for the target's.
#[derive(Clone, Debug)]
pub(crate) struct Settle(HttpClassifier);

impl Settle {
    pub(crate) fn new() -> Self {
        // The upstream marks them: by their type, or because the configuration says so.
        Self(HttpClassifier::new().streams(|head| head.extensions.get::<Stream>().is_some()))
    }
}

/// As the classifier does, but for calls that failed by the client's fault or the gateway's own.
impl Classify<Response<Download>, CallError, String> for Settle {
    type Response = Response<GuardedBody<Download>>;

    fn settle(
        &self,
        permit: RequestPermit,
        result: Result<Response<Download>, CallError>,
    ) -> Result<Self::Response, CallError> {
        self.settle_told(permit, result).0
    }

    fn settle_told(
        &self,
        permit: RequestPermit,
        result: Result<Response<Download>, CallError>,
    ) -> (Result<Self::Response, CallError>, Option<Outcome>) {
        match result {
            Err(error @ (CallError::Client { .. } | CallError::Exhausted(_))) => {
                permit.ignore();
                (Err(error), Some(Outcome::Ignored))
            }
            other => self.0.settle_told(permit, other),
        }
    }
}

/// The whole calls to one target.
#[derive(Debug)]
pub(crate) struct Whole {
    service: CallService<Attempts, Named, Settle, String, Judge>,
    upstream: Upstream,
}

impl Whole {
    pub(crate) fn new(layer: &Layer, upstream: &Upstream, probe_timeout: Duration, watch: &Arc<Watch>) -> Self {
        let watch = Arc::clone(watch);
        let service = layer.layer(Attempts { upstream: upstream.clone(), probe_timeout, watch });
        Self { service, upstream: upstream.clone() }
    }

    /// Makes one call; `end` is when the answer's body must have ended.
    pub(crate) async fn call(
        &self,
        target: &str,
        mut request: Request<Upload>,
        end: Option<Instant>,
    ) -> Result<Response<CallBody<GuardedBody<Download>>>, Box<Error>> {
        let upload = request.body().progress();
        name_the_host(request.headers_mut());
        let extensions = request.extensions_mut();
        extensions.insert(Name(target.into()));
        if let Some(upload) = &upload {
            let (failed, turn) = (Arc::clone(upload), Arc::clone(upload));
            extensions.insert(Scope::new(move || failed.has_failed()).callers_turn(move || turn.is_clients_turn()));
        }
        extensions.insert(First { turn: self.upstream.turn(), end, upload });
        self.service.clone().call(request).await.map_err(Box::new)
    }
}

/// An answer that is kept for others is kept under the host that was asked for, too.
fn name_the_host(headers: &mut HeaderMap) {
    if let Some(host) = headers.get("x-forwarded-host").cloned() {
        headers.insert(header::HOST, host);
    }
}

/// What all attempts of one call have in common.
#[derive(Clone, Debug)]
struct First {
    turn: usize,
    end: Option<Instant>,
    upload: Option<Arc<Progress>>,
}

/// Makes single attempts at a target's upstreams.
#[derive(Clone, Debug)]
pub(crate) struct Attempts {
    upstream: Upstream,
    probe_timeout: Duration,
    watch: Arc<Watch>,
}

impl Service<Request<ReplayBody<Upload>>> for Attempts {
    type Response = Response<Download>;
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Download>, CallError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<Upload>>) -> Self::Future {
        let upstream = self.upstream.clone();
        let First { turn, end, upload } =
            request.extensions().get::<First>().cloned().unwrap_or(First { turn: 0, end: None, upload: None });
        let attempt = request.extensions().get::<Attempt>();
        let (number, is_probe) = attempt.map_or((1, false), |attempt| (attempt.number, attempt.is_probe));
        let timeout = if is_probe { self.probe_timeout } else { upstream.timeout() };
        if let Some(upload) = upload.as_ref().filter(|_| number > 1) {
            upload.begin_again();
        }
        // The next upstream each time: one of several may be the only one that is ill.
        let turn = turn.wrapping_add(number as usize - 1);
        let watch = Arc::clone(&self.watch);
        Box::pin(async move {
            let begun = Instant::now();
            let answer = upstream.call(request.map(Either::Right), Terms { turn, timeout, end, upload }).await;
            watch.attempted(begun.into_std(), &answer);
            answer
        })
    }
}
