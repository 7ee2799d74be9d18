//! Spans: one per request, and under it one per attempt at an upstream.
//!
//! They are `debug` spans of the target `portcullis_gateway::trace`. At the default level of the log a request pays for the look at a number that
//! says so, and nothing else: no name is made, no context kept.
//!
//! | field | is |
//! | --- | --- |
//! | `http.request.method`, `url.path` | what was asked for: a usual method or `_OTHER`, and 512 bytes of the path, never the query |
//! | `portcullis.target` | the target's name; none if no route leads anywhere |
//! | `portcullis.decision` | `admitted`, `refused`, `unasked` (a route without admission) or `fallback` (this gateway's own) |
//! | `portcullis.attempts` | attempts at an upstream |
//! | `portcullis.code`, `portcullis.reason` | as in the gateway's own answer; none if the answer isn't its own |
//! | `http.response.status_code` | what the client was told |
//!
//! A request's span lasts to the end of the answer's body, an attempt's to the head of the upstream's answer. A request whose client goes away has no
//! status.

#[cfg(feature = "otlp")]
mod context;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use http::uri::Authority;
use http::{Method, Request, Response, Uri};
use portcullis::call::FALLBACK_HEADER;
use tracing::field::Empty;
use tracing::{Span, debug_span};

use crate::reply::Reply;
use crate::stack::Stack;
use crate::upstream::{CallError, Elsewhere};

/// Bytes of a path that a span has.
const LONGEST_PATH: usize = 512;

/// A request's span, if anybody wants to see it. A clone is of the same span, which ends with the last of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traced(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    span: Span,
    attempts: AtomicU32,
    // Whether the route asks for admission, once there is a route.
    is_asked: OnceLock<bool>,
}

impl Traced {
    /// Begins a request's span.
    pub(crate) fn begin<B>(request: &Request<B>) -> Self {
        let span = debug_span!(
            "request",
            otel.kind = "server",
            otel.name = name(request.method()),
            otel.status_code = Empty,
            http.request.method = known(request.method()).unwrap_or("_OTHER"),
            url.path = path(request.uri()),
            portcullis.target = Empty,
            portcullis.decision = Empty,
            portcullis.attempts = Empty,
            portcullis.code = Empty,
            portcullis.reason = Empty,
            http.response.status_code = Empty,
        );
        if span.is_disabled() {
            return Self(None);
        }
        #[cfg(feature = "otlp")]
        context::follow(&span, request.headers());
        Self(Some(Arc::new(Inner { span, attempts: AtomicU32::new(0), is_asked: OnceLock::new() })))
    }

    /// The span of the request, for what is done in its name; none if nobody wants to see it.
    pub(crate) fn span(&self) -> Option<&Span> {
        self.0.as_deref().map(|inner| &inner.span)
    }

    /// Where the request goes. Its attempts become part of its trace.
    pub(crate) fn routed<B>(&self, stack: &Stack, request: &mut Request<B>) {
        let Some(inner) = self.0.as_deref() else { return };
        let target = stack.name();
        inner.span.record("portcullis.target", target);
        inner.span.record("otel.name", format!("{} {target}", name(request.method())));
        let _ = inner.is_asked.set(stack.is_asked());
        request.extensions_mut().insert(self.clone());
    }

    /// The gateway has an answer of its own.
    pub(crate) fn replied(&self, reply: &Reply<'_>) {
        let Some(Inner { span, .. }) = self.0.as_deref() else { return };
        span.record("portcullis.code", reply.code());
        span.record("portcullis.reason", reply.reason());
    }

    /// The head of an answer is there.
    pub(crate) fn answered<B>(&self, response: &Response<B>) {
        let Some(Inner { span, attempts, is_asked }) = self.0.as_deref() else { return };
        span.record("http.response.status_code", response.status().as_u16());
        if response.status().is_server_error() {
            span.record("otel.status_code", "ERROR");
        }
        let Some(&is_asked) = is_asked.get() else { return };
        let attempts = attempts.load(Ordering::Relaxed);
        span.record("portcullis.attempts", attempts);
        let decision = match (has_fallback(response), attempts, is_asked) {
            (true, ..) => "fallback",
            (false, 0, _) => "refused",
            (false, _, true) => "admitted",
            (false, _, false) => "unasked",
        };
        span.record("portcullis.decision", decision);
    }
}

/// A method that isn't made up by who asks.
fn known(method: &Method) -> Option<&str> {
    let all = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS];
    all.contains(method).then(|| method.as_str())
}

/// Names of spans are few.
fn name(method: &Method) -> &str {
    known(method).unwrap_or("HTTP")
}

/// The path, cut where it gets long: thousands of spans may wait for a collector.
fn path(uri: &Uri) -> &str {
    let path = uri.path();
    &path[..path.floor_char_boundary(LONGEST_PATH)]
}

/// Whether the answer is a fallback of this gateway's: an upstream's word for it would be anybody's.
fn has_fallback<B>(response: &Response<B>) -> bool {
    let mark = response.headers().get(FALLBACK_HEADER);
    mark.is_some_and(|mark| mark != "failed") && response.extensions().get::<Elsewhere>().is_none()
}

/// Begins the span of an attempt, if the request has one, and makes the upstream a part of the trace.
pub(crate) fn attempt<B>(request: &mut Request<B>, upstream: &Authority) -> Option<Span> {
    let traced = request.extensions().get::<Traced>()?;
    let inner = traced.0.as_deref()?;
    let before = inner.attempts.fetch_add(1, Ordering::Relaxed);
    let span = debug_span!(
        parent: &inner.span,
        "attempt",
        otel.kind = "client",
        otel.name = name(request.method()),
        otel.status_code = Empty,
        http.request.method = known(request.method()).unwrap_or("_OTHER"),
        http.request.resend_count = (before > 0).then_some(before),
        server.address = upstream.host(),
        server.port = upstream.port_u16().unwrap_or(80),
        http.response.status_code = Empty,
        error.type = Empty,
    );
    #[cfg(feature = "otlp")]
    context::lead(&span, request.headers_mut());
    Some(span)
}

/// Ends the span of an attempt.
pub(crate) fn attempted<B>(span: &Span, answer: &Result<Response<B>, CallError>) {
    let is_error = match answer {
        Ok(response) => {
            span.record("http.response.status_code", response.status().as_u16());
            response.status().is_client_error() || response.status().is_server_error()
        }
        Err(error) => {
            span.record("error.type", error.reason());
            true
        }
    };
    if is_error {
        span.record("otel.status_code", "ERROR");
    }
}
