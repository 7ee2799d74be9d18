//! The operator's listener: what the targets are doing, as a page, as JSON and as a stream, and what is done by hand.

mod access;
mod changes;
mod drill;
mod feed;
mod page;
mod shadow;

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use portcullis::{Snapshot, Transition};
use serde_json::{Value, json};

use changes::{Changes, Who};
pub(crate) use drill::{Drills, LONGEST};
use feed::{Events, Feed};

use crate::metrics;
use crate::reply::{json, method_not_allowed};
use crate::server::Handler;
use crate::shared::Shared;

type Answer = Response<Full<Bytes>>;

/// Answers the operator.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    shared: Arc<Shared>,
    changes: Arc<Changes>,
    feed: Arc<Feed>,
    on_loopback: bool,
}

impl Admin {
    /// The operator's view of a gateway, for a listener at this address.
    pub(crate) fn new(shared: Arc<Shared>, address: SocketAddr) -> Self {
        let on_loopback = address.ip().to_canonical().is_loopback();
        Self { shared, changes: Arc::default(), feed: Feed::new(), on_loopback }
    }
}

impl Handler for Admin {
    type Body = Either<Full<Bytes>, Events>;

    async fn handle(self, request: Request<Incoming>, client: HeaderValue) -> Response<Self::Body> {
        let mut answer = match (request.method(), request.uri().path()) {
            (&Method::GET, "/events") => self.events(&request).await,
            (&Method::GET | &Method::HEAD, "/metrics") => self.metrics(&request).await.map(Either::Left),
            _ => self.answer(&request, client).map(Either::Left),
        };
        page::harden(answer.headers_mut());
        answer
    }
}

impl Admin {
    /// The stream of what changes.
    async fn events<B>(&self, request: &Request<B>) -> Response<Either<Full<Bytes>, Events>> {
        if let Err(refusal) = access::check(request, self.on_loopback, self.shared.live().token()) {
            return refusal.map(Either::Left);
        }
        let last = request.headers().get("last-event-id").and_then(|last| last.to_str().ok()).map(str::to_owned);
        let (feed, shared) = (Arc::clone(&self.feed), Arc::clone(&self.shared));
        let joined = tokio::task::spawn_blocking(move || feed.join(&shared, last.as_deref())).await;
        match joined.ok().flatten() {
            Some(events) => {
                let mut response = Response::new(Either::Right(events));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
                response
            }
            None => {
                let message = format!("{} readers are there already", feed::READERS);
                error(StatusCode::SERVICE_UNAVAILABLE, &message).map(Either::Left)
            }
        }
    }

    /// The page that Prometheus reads.
    async fn metrics<B>(&self, request: &Request<B>) -> Answer {
        if let Err(refusal) = access::check(request, self.on_loopback, self.shared.live().token()) {
            return refusal;
        }
        let shared = Arc::clone(&self.shared);
        match tokio::task::spawn_blocking(move || metrics::page(&shared)).await {
            Ok(page) => {
                let mut response = Response::new(Full::from(page));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE));
                response
            }
            Err(_) => error(StatusCode::SERVICE_UNAVAILABLE, "the page couldn't be made"),
        }
    }

    fn answer<B: http_body::Body>(&self, request: &Request<B>, peer: HeaderValue) -> Answer {
        let shared = &self.shared;
        let path = request.uri().path().trim_matches('/');
        let parts: Vec<Cow<'_, str>> =
            path.split('/').map(|part| percent_decode_str(part).decode_utf8_lossy()).collect();
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        if let Some(file) = page::file(&parts).filter(|_| reads) {
            return file;
        }
        // It names nobody, and whoever asks it knows no token.
        if parts.as_slice() == ["healthz"] && reads {
            return health(shared);
        }
        let token = match access::check(request, self.on_loopback, shared.live().token()) {
            Ok(token) => token,
            Err(refusal) => return refusal,
        };
        match parts.as_slice() {
            ["targets"] if reads => targets(shared),
            ["targets", name] if reads => one(shared, name),
            ["transitions"] if reads => transitions(shared),
            ["changes"] if reads => self.changes.told(),
            ["webhooks"] if reads => json(StatusCode::OK, &shared.webhooks().told()),
            ["events"] => method_not_allowed("GET"),
            ["healthz" | "metrics" | "targets" | "transitions" | "changes" | "webhooks"] | ["targets", _] => {
                method_not_allowed("GET, HEAD")
            }
            ["targets", name, action @ ("force-open" | "disable" | "release" | "drill" | "end-drill" | "promote")] => {
                if request.method() != Method::POST {
                    return method_not_allowed("POST");
                }
                if !request.body().is_end_stream() {
                    return error(StatusCode::PAYLOAD_TOO_LARGE, "say it in the path: no body is read");
                }
                let query = request.uri().query();
                let answer = match *action {
                    "drill" => drill::begin(shared, name, query),
                    "promote" => shadow::promote(shared, name, query),
                    _ => act(shared, name, action),
                };
                let who = Who::new(request.headers(), peer, token);
                self.changes.note(&who, action, name, query, answer.status());
                answer
            }
            _ => error(StatusCode::NOT_FOUND, "no such page"),
        }
    }
}

fn error(status: StatusCode, message: &str) -> Answer {
    json(status, &json!({ "error": message }))
}

fn unknown(name: &str) -> Answer {
    error(StatusCode::NOT_FOUND, &format!("no target is named {name:?}"))
}

fn health(shared: &Shared) -> Answer {
    let status = if shared.is_draining() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    json(status, &healthy(shared))
}

fn healthy(shared: &Shared) -> Value {
    let word = if shared.is_draining() { "draining" } else { "ok" };
    let cap = shared.cap();
    json!({ "status": word, "in_flight": cap.inside(), "max_concurrent": cap.limit() })
}

fn targets(shared: &Shared) -> Answer {
    let mut all = shared.engine().snapshots();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    let all: Vec<Value> = all.iter().map(|(name, snapshot)| described(shared, name, snapshot)).collect();
    json(StatusCode::OK, &all)
}

fn one(shared: &Shared, name: &str) -> Answer {
    match shared.engine().snapshot(name) {
        Some(snapshot) => {
            let mut all = described(shared, name, &snapshot);
            let story = shared.watch(name).map(|watch| watch.story()).unwrap_or_default();
            all["recent"] = story.recent.iter().map(told).collect();
            all["shadows"] = shadow::all(shared, name);
            all["trip"] = story.trip.as_ref().map(told).into();
            json(StatusCode::OK, &all)
        }
        None => unknown(name),
    }
}

/// A snapshot with its name, and whether the configuration still has it; what became of its whole calls and the policy of those; the time that a
/// drill still takes; how long its answers took of late, how its attempts failed, and how often it changed its state.
fn described(shared: &Shared, name: &str, snapshot: &Snapshot) -> Value {
    let mut all = json!({ "name": name, "configured": shared.live().has_target(name) });
    if let Some(left) = shared.drills().left(name) {
        all["drill_ms"] = u64::try_from(left.as_millis()).unwrap_or(u64::MAX).into();
    }
    if let Some(watch) = shared.watch(name) {
        let (latency, length) = watch.latency().recent(Instant::now());
        let quantile = |part| latency.quantile(part).map(|latency| latency.as_secs_f64() * 1e3);
        let (p50, p99) = (quantile(0.5), quantile(0.99));
        all["latency"] = json!({ "count": latency.count(), "p50_ms": p50, "p99_ms": p99, "over_ms": millis(length) });
        all["failed_attempts"] = watch.failures().map(|(reason, count)| (reason.to_owned(), json!(count))).collect();
    }
    if let Some(counts) = shared.calls(name) {
        all["calls"] = json!(counts);
    }
    if let Some(policy) = shared.live().call_policy(name) {
        all["call_policy"] = json!(policy);
    }
    if let (Value::Object(all), Ok(Value::Object(fields))) = (&mut all, serde_json::to_value(snapshot)) {
        all.extend(fields);
    }
    all
}

fn transitions(shared: &Shared) -> Answer {
    let engine = shared.engine();
    let log = engine.transitions();
    let log: Vec<Value> = log.iter().map(|transition| told(transition)).collect();
    json(StatusCode::OK, &json!({ "dropped": engine.transitions_dropped(), "transitions": log }))
}

/// Whole milliseconds, rounded up.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn told(transition: &Transition<String>) -> Value {
    json!({
        "target": *transition.target,
        "from": transition.from.as_str(),
        "to": transition.to.as_str(),
        "cause": transition.cause.as_str(),
        "sequence": transition.sequence,
        "generation": transition.generation,
        "at_ms": u64::try_from(transition.at.as_millis()).unwrap_or(u64::MAX),
        "wall": humantime::format_rfc3339_millis(transition.wall).to_string(),
        "evidence": transition.evidence,
        "wait_ms": transition.wait.map(millis),
        "retry_after_ms": transition.retry_after.map(millis),
    })
}

fn act(shared: &Shared, name: &str, action: &str) -> Answer {
    let engine = shared.engine();
    // Acting on a name that nobody configured would create it.
    if engine.snapshot(name).is_none() {
        return unknown(name);
    }
    let drills = shared.drills();
    let done = match action {
        // Whoever acted on it meanwhile ended the drill, and isn't undone.
        "end-drill" => drills.end(name, || engine.release(name)).unwrap_or(Ok(false)),
        // From here on it is as the operator wants it.
        _ => drills.end_and(name, || match action {
            "force-open" => engine.force_open(name),
            "disable" => engine.disable(name),
            _ => engine.release(name),
        }),
    };
    match done {
        Ok(changed) => {
            let state = engine.snapshot(name).map(|snapshot| snapshot.state.as_str());
            json(StatusCode::OK, &json!({ "name": name, "changed": changed, "state": state }))
        }
        Err(rejection) => error(StatusCode::SERVICE_UNAVAILABLE, &rejection.to_string()),
    }
}
