//! What a response says about its target.

use std::fmt;
use std::sync::Arc;

use http::response::Parts;
use http::{HeaderMap, Response, StatusCode, header};
use http_body::Body;

use super::RequestPermit;
use super::body::{GuardedBody, Judged};
use super::come_back;
use crate::engine::Key;
use crate::outcome::Outcome;

/// Settles the permit of a request with what came of it.
///
/// A classifier may hand the permit on, for instance in a response body that settles it at its end. [`classify_fn`] makes one from a
/// function of the whole result.
pub trait Classify<Res, Err, K: Key> {
    /// The response as the caller gets it.
    type Response;

    /// Settles the permit, or hands it on.
    ///
    /// # Errors
    ///
    /// The error that came in.
    fn settle(&self, permit: RequestPermit<K>, result: Result<Res, Err>) -> Result<Self::Response, Err>;

    /// As [`settle`](Self::settle), and says what is known of the outcome by now: none if it is still to be told by the body, or if the
    /// classifier doesn't say. A whole call asks its fallback for the failures among them.
    fn settle_told(
        &self,
        permit: RequestPermit<K>,
        result: Result<Res, Err>,
    ) -> (Result<Self::Response, Err>, Option<Outcome>) {
        (self.settle(permit, result), None)
    }
}

/// Makes a classifier from a function of the result: an outcome for values of any kind, failures hidden in an `Ok` among them.
pub fn classify_fn<Res, Err, F: Fn(&Result<Res, Err>) -> Outcome>(classify: F) -> ClassifyFn<F> {
    ClassifyFn(classify)
}

/// A classifier made by [`classify_fn`].
#[derive(Clone, Copy)]
pub struct ClassifyFn<F>(F);

impl<F> fmt::Debug for ClassifyFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassifyFn").finish_non_exhaustive()
    }
}

impl<Res, Err, K: Key, F: Fn(&Result<Res, Err>) -> Outcome> Classify<Res, Err, K> for ClassifyFn<F> {
    type Response = Res;

    fn settle(&self, permit: RequestPermit<K>, result: Result<Res, Err>) -> Result<Res, Err> {
        self.settle_told(permit, result).0
    }

    fn settle_told(&self, permit: RequestPermit<K>, result: Result<Res, Err>) -> (Result<Res, Err>, Option<Outcome>) {
        let outcome = (self.0)(&result);
        permit.settle(outcome);
        (result, Some(outcome))
    }
}

type IsStream = Arc<dyn Fn(&Parts) -> bool + Send + Sync>;

/// Judges HTTP responses: 5xx and errors are failures, 429 as set, everything else is a success once its body has ended.
///
/// A failure is judged at the headers, with their `Retry-After`. An error is a failure whatever it is: no connection, no answer in time, an answer that can't be read.
#[derive(Clone)]
pub struct HttpClassifier {
    too_many_requests: Outcome,
    is_stream: IsStream,
}

impl Default for HttpClassifier {
    fn default() -> Self {
        Self::new()
    }
}

impl HttpClassifier {
    /// 429 is a failure; `text/event-stream` is a stream.
    #[must_use]
    pub fn new() -> Self {
        Self { too_many_requests: Outcome::Failure, is_stream: Arc::new(is_event_stream) }
    }

    /// Sets what 429 says: a failure of a target that is overloaded, or a success of one that guards itself well.
    #[must_use]
    pub fn too_many_requests(mut self, outcome: Outcome) -> Self {
        self.too_many_requests = outcome;
        self
    }

    /// Sets which responses are streams, judged at their headers: server-sent events, long polls.
    #[must_use]
    pub fn streams(mut self, is_stream: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.is_stream = Arc::new(is_stream);
        self
    }

    fn judge(&self, status: StatusCode) -> Outcome {
        match status {
            StatusCode::TOO_MANY_REQUESTS => self.too_many_requests,
            status if status.is_server_error() => Outcome::Failure,
            _ => Outcome::Success,
        }
    }
}

fn is_event_stream(parts: &Parts) -> bool {
    let content_type = parts.headers.get(header::CONTENT_TYPE).map_or(&b""[..], header::HeaderValue::as_bytes);
    let media_type = content_type.split(|byte| *byte == b';').next().unwrap_or_default();
    media_type.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
}

impl fmt::Debug for HttpClassifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClassifier").field("too_many_requests", &self.too_many_requests).finish_non_exhaustive()
    }
}

impl<B: Body, Err, K: Key> Classify<Response<B>, Err, K> for HttpClassifier {
    type Response = Response<GuardedBody<B, K>>;

    fn settle(&self, permit: RequestPermit<K>, result: Result<Response<B>, Err>) -> Result<Self::Response, Err> {
        self.settle_told(permit, result).0
    }

    fn settle_told(
        &self,
        mut permit: RequestPermit<K>,
        result: Result<Response<B>, Err>,
    ) -> (Result<Self::Response, Err>, Option<Outcome>) {
        let (parts, body) = match result {
            Ok(response) => response.into_parts(),
            Err(error) => {
                permit.failure();
                return (Err(error), Some(Outcome::Failure));
            }
        };
        let outcome = self.judge(parts.status);
        if outcome == Outcome::Failure {
            come_back::http(&parts.headers).into_iter().for_each(|wait| permit.note_retry_after(wait));
        }
        // Nothing in a body can mend a failure, and who retries drops it unread.
        let now = outcome == Outcome::Failure || permit.is_probe() || (self.is_stream)(&parts);
        let judged = if now { Judged::Headers(outcome) } else { Judged::End(outcome) };
        (Ok(guarded(parts, body, permit, judged)), judged.by_now())
    }
}

/// The response with its permit in its body.
fn guarded<B: Body, K: Key>(
    parts: Parts,
    body: B,
    permit: RequestPermit<K>,
    judged: Judged,
) -> Response<GuardedBody<B, K>> {
    let content_length = || parts.headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    let length = match (parts.status, judged) {
        // Trailers come after the last byte.
        (_, Judged::Trailers(_)) => None,
        (StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED, _) => Some(0),
        _ => body.size_hint().exact().or_else(content_length),
    };
    Response::from_parts(parts, GuardedBody::new(body, length, permit, judged))
}

/// Judges gRPC responses by their `grpc-status`, in the headers or in the trailers.
///
/// Failures are the codes that speak of the target: unknown (2), deadline exceeded (4), resource exhausted (8, as set), internal (13),
/// unavailable (14), data loss (15), and a body that ends without a status. Cancelled (1) is no evidence. All others
/// are answers. When to come back is read from `grpc-retry-pushback-ms` and `google.rpc.RetryInfo`. A probe is judged at its headers if they carry the status, else at its trailers: headers without one promise nothing.
#[derive(Clone, Copy, Debug)]
pub struct GrpcClassifier {
    resource_exhausted: Outcome,
}

impl Default for GrpcClassifier {
    fn default() -> Self {
        Self::new()
    }
}

impl GrpcClassifier {
    /// Resource exhausted is a failure.
    #[must_use]
    pub fn new() -> Self {
        Self { resource_exhausted: Outcome::Failure }
    }

    /// Sets what resource exhausted says.
    #[must_use]
    pub fn resource_exhausted(mut self, outcome: Outcome) -> Self {
        self.resource_exhausted = outcome;
        self
    }

    /// What the headers or trailers say, if they carry a status.
    pub(super) fn judge(self, headers: &HeaderMap) -> Option<Outcome> {
        let status = headers.get("grpc-status")?;
        Some(match status.as_bytes() {
            b"1" => Outcome::Ignored,
            b"8" => self.resource_exhausted,
            b"2" | b"4" | b"13" | b"14" | b"15" => Outcome::Failure,
            b"0" | b"3" | b"5" | b"6" | b"7" | b"9" | b"10" | b"11" | b"12" | b"16" => Outcome::Success,
            // A status that doesn't exist is an answer that can't be read.
            _ => Outcome::Failure,
        })
    }
}

impl<B: Body, Err, K: Key> Classify<Response<B>, Err, K> for GrpcClassifier {
    type Response = Response<GuardedBody<B, K>>;

    fn settle(&self, permit: RequestPermit<K>, result: Result<Response<B>, Err>) -> Result<Self::Response, Err> {
        self.settle_told(permit, result).0
    }

    fn settle_told(
        &self,
        mut permit: RequestPermit<K>,
        result: Result<Response<B>, Err>,
    ) -> (Result<Self::Response, Err>, Option<Outcome>) {
        let (parts, body) = match result {
            Ok(response) => response.into_parts(),
            Err(error) => {
                permit.failure();
                return (Err(error), Some(Outcome::Failure));
            }
        };
        let judged = match self.judge(&parts.headers) {
            Some(outcome) => Judged::Headers(outcome),
            None if parts.status == StatusCode::OK => Judged::Trailers(*self),
            // Not gRPC at all, but a proxy's answer.
            None => Judged::Headers(HttpClassifier::new().judge(parts.status)),
        };
        if matches!(judged, Judged::Headers(Outcome::Failure)) {
            let wait = come_back::grpc(&parts.headers).or_else(|| come_back::http(&parts.headers));
            wait.into_iter().for_each(|wait| permit.note_retry_after(wait));
        }
        (Ok(guarded(parts, body, permit, judged)), judged.by_now())
    }
}
