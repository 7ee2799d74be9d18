//! One attempt at one of a target's upstreams: the turn that each URL takes, and the timeout.

use std::error::Error as StdError;
use std::fmt;
use std::io::ErrorKind::AddrNotAvailable;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Request, Response, Uri, Version, header};
use http_body::Body;
use hyper_util::client::legacy;
use portcullis::call::FALLBACK_HEADER;
use tokio::time::Instant;

use crate::body::{Download, Progress, Sent};
use crate::client::Client;
use crate::headers::strip_hop_by_hop;
use crate::trace;

/// How much longer a call that was given up keeps its place. Its connection is closed by another task, and the upstream has
/// to notice: only then may the next call come, or the upstream holds more than its limit.
pub(crate) const LETTING_GO: Duration = Duration::from_millis(5);

/// Marks requests and answers that may stay open for as long as they like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream;

/// Marks answers that an upstream says are a fallback: it may be a gateway itself, whose word clients get, but it isn't this one's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elsewhere;

/// Why an attempt brought no answer.
#[derive(Debug)]
pub(crate) enum CallError {
    /// No head of an answer in time.
    Timeout {
        /// The time that there was.
        limit: Duration,
    },
    /// No connection.
    Unreachable(String),
    /// A connection, but what came back wasn't an answer.
    Broken(String),
    /// No connection, for want of the gateway's own descriptors or ports: no call was made.
    Exhausted(String),
    /// The client, not the upstream, left its part undone.
    Client {
        /// What it did.
        what: &'static str,
    },
}

impl CallError {
    /// The names of all kinds, in answers and metrics.
    pub(crate) const REASONS: [&'static str; 5] = ["timeout", "unreachable", "broken", "process", "client"];

    /// The place of this kind among [`Self::REASONS`].
    pub(crate) fn kind(&self) -> usize {
        match self {
            Self::Timeout { .. } => 0,
            Self::Unreachable(_) => 1,
            Self::Broken(_) => 2,
            Self::Exhausted(_) => 3,
            Self::Client { .. } => 4,
        }
    }

    pub(crate) fn reason(&self) -> &'static str {
        Self::REASONS[self.kind()]
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout { limit } => write!(f, "no answer within {limit:?}"),
            Self::Unreachable(why) => write!(f, "no connection: {why}"),
            Self::Broken(why) => write!(f, "no usable answer: {why}"),
            Self::Exhausted(why) => write!(f, "the gateway can open no connection: {why}"),
            Self::Client { what } => write!(f, "the client {what}"),
        }
    }
}

impl StdError for CallError {}

/// A target's upstreams, which its routes share.
#[derive(Clone, Debug)]
pub(crate) struct Upstream(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    client: Client,
    // Each with the `Host` that is asked for there.
    places: Vec<(Authority, HeaderValue)>,
    next: AtomicUsize,
    timeout: Duration,
    stream: bool,
}

impl Upstream {
    pub(crate) fn new(client: Client, target: &crate::config::Target) -> Self {
        let places = target.upstream.iter().map(|authority| (authority.clone(), host(authority))).collect();
        let (timeout, stream) = (target.timeout, target.stream);
        Self(Arc::new(Shared { client, places, next: AtomicUsize::new(0), timeout, stream }))
    }

    /// The turn of a new call. Each further attempt of it takes the next one, whatever others take meanwhile.
    pub(crate) fn turn(&self) -> usize {
        self.0.next.fetch_add(1, Ordering::Relaxed)
    }

    /// The time for an attempt that isn't told otherwise.
    pub(crate) fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// Makes one attempt.
    pub(crate) async fn call(&self, mut request: Request<Sent>, terms: Terms) -> Result<Response<Download>, CallError> {
        let shared = &*self.0;
        let Terms { turn, timeout, end, upload } = terms;
        let Some((authority, host)) = shared.places.get(turn % shared.places.len().max(1)) else {
            return Err(CallError::Unreachable("the target has no upstream".to_owned()));
        };
        *request.uri_mut() = at(authority, request.uri());
        *request.version_mut() = Version::HTTP_11;
        request.headers_mut().insert(header::HOST, host.clone());
        if !request.body().is_end_stream() && request.body().size_hint().exact().is_none() {
            // For methods that seldom have a body, the client would leave out one whose length it doesn't know.
            request.headers_mut().insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        let declared = shared.stream || request.extensions().get::<Stream>().is_some();
        let span = trace::attempt(&mut request, authority);
        let answer = answer(shared.client.request(request), timeout, upload.as_deref()).await;
        if let Some(span) = span {
            trace::attempted(&span, &answer);
        }
        if let Err(CallError::Timeout { .. }) = answer {
            tokio::time::sleep(LETTING_GO).await;
        }
        let answer = answer?;
        let (mut head, body) = answer.into_parts();
        if head.status.is_informational() {
            return Err(CallError::Broken(format!("an interim answer, {}, in place of one", head.status)));
        }
        strip_hop_by_hop(&mut head.headers);
        head.version = Version::HTTP_11;
        if head.headers.contains_key(FALLBACK_HEADER) {
            head.extensions.insert(Elsewhere);
        }
        let stream = declared || is_event_stream(&head.headers);
        if stream {
            head.extensions.insert(Stream);
        }
        let limit = (!stream).then_some(shared.timeout);
        Ok(Response::from_parts(head, Download::new(body, limit, end, upload)))
    }
}

/// What an attempt is made by.
#[derive(Debug)]
pub(crate) struct Terms {
    /// Which of the upstreams.
    pub(crate) turn: usize,
    /// The time to the head of the answer.
    pub(crate) timeout: Duration,
    /// When the answer's body must have ended, unless it is a stream.
    pub(crate) end: Option<Instant>,
    /// How the request's body stands, if it has one.
    pub(crate) upload: Option<Arc<Progress>>,
}

/// Waits for the head of the answer: `limit` from the start, or from when the client last sent a piece of its body.
async fn answer<R>(
    response: impl Future<Output = Result<R, legacy::Error>>,
    limit: Duration,
    upload: Option<&Progress>,
) -> Result<R, CallError> {
    let mut response = std::pin::pin!(response);
    let mut deadline = Instant::now() + limit;
    loop {
        match tokio::time::timeout_at(deadline, response.as_mut()).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(_)) if upload.is_some_and(Progress::has_failed) => {
                return Err(CallError::Client { what: "broke off its request" });
            }
            Ok(Err(error)) if !error.is_connect() => return Err(CallError::Broken(causes(&error))),
            Ok(Err(error)) if is_own(&error) => return Err(CallError::Exhausted(causes(&error))),
            Ok(Err(error)) => return Err(CallError::Unreachable(causes(&error))),
            Err(_) => {}
        }
        let later = upload.map(|upload| upload.last() + limit);
        match later.filter(|&later| later > deadline) {
            Some(later) => deadline = later,
            None if upload.is_some_and(Progress::is_clients_turn) => {
                return Err(CallError::Client { what: "sent no more of its request" });
            }
            None => return Err(CallError::Timeout { limit }),
        }
    }
}

/// The `Host` of an upstream: without the port that goes without saying.
fn host(authority: &Authority) -> HeaderValue {
    let named = if authority.port_u16() == Some(80) { authority.host() } else { authority.as_str() };
    // Whatever is an authority is a field's value.
    HeaderValue::from_str(named).unwrap_or(HeaderValue::from_static(""))
}

/// The same path and query at an upstream.
fn at(authority: &Authority, asked: &Uri) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(authority.clone());
    parts.path_and_query = Some(asked.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")));
    // All three parts are there, which is the only thing that is asked of them.
    Uri::from_parts(parts).unwrap_or_default()
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
}

/// Whether a connection failed for want of something of the gateway's own, which says nothing about the target: the process has no
/// descriptor left, or the machine has none, or no port.
fn is_own(error: &(dyn StdError + 'static)) -> bool {
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    std::iter::successors(Some(error), |&error| error.source())
        .filter_map(|error| error.downcast_ref::<std::io::Error>())
        .any(|error| matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) || error.kind() == AddrNotAvailable)
}

/// The last cause says most: `Connection refused`, not `client error`.
pub(crate) fn causes(error: &dyn StdError) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
