//! The gateway's own answers: JSON with a stable code, and when to come back.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use portcullis::Rejection;
use portcullis::call::{CODE_HEADER, Cause, FALLBACK_HEADER};
use serde::Serialize;

use crate::stack::Unanswered;
use crate::upstream::CallError;
use crate::whole;

/// What to wait where nobody can tell when it will work again: the least that `Retry-After` can say.
const HINT: Duration = Duration::from_secs(1);

/// An answer that didn't come from an upstream.
#[derive(Debug, Serialize)]
pub(crate) struct Reply<'a> {
    #[serde(skip)]
    status: StatusCode,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    reason: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    // If there was more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    #[serde(skip)]
    fallback_failed: bool,
}

impl<'a> Reply<'a> {
    /// The target's breaker or bulkhead said no.
    fn rejected(target: &'a str, rejection: Rejection) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: rejection.code(),
            target: Some(target),
            reason: rejection.reason(),
            message: rejection.to_string(),
            retry_after_ms: Some(millis_up(rejection.retry_after().unwrap_or(HINT))),
            attempts: None,
            fallback_failed: false,
        }
    }

    /// The process as a whole is at its cap.
    pub(crate) fn full(target: &'a str, limit: u32) -> Self {
        Self {
            status: StatusCode::SERVICE_UNAVAILABLE,
            code: "E905",
            target: Some(target),
            reason: "process",
            message: format!("the gateway works on {limit} requests already"),
            retry_after_ms: Some(millis_up(HINT)),
            attempts: None,
            fallback_failed: false,
        }
    }

    /// The call was made and brought no answer.
    fn failed(target: &'a str, error: &CallError) -> Self {
        let (status, code) = match error {
            CallError::Timeout { .. } => (StatusCode::GATEWAY_TIMEOUT, "E901"),
            CallError::Unreachable(_) | CallError::Broken(_) => (StatusCode::BAD_GATEWAY, "E902"),
            CallError::Exhausted(_) => (StatusCode::SERVICE_UNAVAILABLE, "E905"),
            CallError::Client { .. } => (StatusCode::REQUEST_TIMEOUT, "E408"),
        };
        let blameless = matches!(error, CallError::Client { .. });
        Self {
            status,
            code,
            target: Some(target),
            reason: error.reason(),
            message: error.to_string(),
            retry_after_ms: (!blameless).then(|| millis_up(HINT)),
            attempts: None,
            fallback_failed: false,
        }
    }

    /// The request's time is over. When it has more is for its client to say.
    fn late(target: &'a str, on_arrival: bool) -> Self {
        let message = if on_arrival { "the deadline had passed on arrival" } else { "no answer before the deadline" };
        let reply = Self::plain(StatusCode::GATEWAY_TIMEOUT, "E901", "deadline", message);
        Self { target: Some(target), ..reply }
    }

    /// There is no answer of an upstream or a fallback.
    pub(crate) fn unanswered(target: &'a str, why: &Unanswered) -> Self {
        match why {
            Unanswered::Rejected(rejection) => Self::rejected(target, *rejection),
            Unanswered::Failed(error) => Self::failed(target, error),
            Unanswered::Deadline { on_arrival } => Self::late(target, *on_arrival),
            Unanswered::Whole(error) => Self::whole(target, error),
        }
    }

    fn whole(target: &'a str, error: &whole::Error) -> Self {
        let mut reply = match error.cause() {
            Cause::Rejected(rejection) => Self::rejected(target, *rejection),
            Cause::Deadline { on_arrival } => Self::late(target, *on_arrival),
            Cause::Failed(error) => Self::failed(target, error),
            // Attempts end themselves and answers are handed on, so nothing else is left.
            other => {
                let reply = Self::plain(StatusCode::BAD_GATEWAY, error.code(), other.reason(), &other.to_string());
                Self { target: Some(target), ..reply }
            }
        };
        reply.attempts = Some(error.attempts()).filter(|&attempts| attempts > 1);
        if let Some(failed) = error.fallback_error() {
            reply.message = format!("{}; the fallback failed: {failed}", reply.message);
            reply.fallback_failed = true;
        }
        reply
    }

    /// No route leads anywhere for this request.
    pub(crate) fn no_route() -> Self {
        Self::plain(StatusCode::NOT_FOUND, "E404", "no_route", "no route for this host and path")
    }

    /// The request asks for a protocol that isn't spoken here.
    pub(crate) fn no_upgrade() -> Self {
        Self::plain(StatusCode::NOT_IMPLEMENTED, "E501", "upgrade", "upgrades and tunnels are not supported")
    }

    /// The request names no host, or more than one.
    pub(crate) fn no_host() -> Self {
        Self::plain(StatusCode::BAD_REQUEST, "E400", "host", "a request must name one host, with or without a port")
    }

    /// The body comes in a coding that nobody here takes off.
    pub(crate) fn no_coding() -> Self {
        Self::plain(StatusCode::NOT_IMPLEMENTED, "E501", "coding", "no transfer coding but chunked is supported")
    }

    fn plain(status: StatusCode, code: &'static str, reason: &'static str, message: &str) -> Self {
        Self {
            status,
            code,
            target: None,
            reason,
            message: message.to_owned(),
            retry_after_ms: None,
            attempts: None,
            fallback_failed: false,
        }
    }

    /// The stable code.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn reason(&self) -> &'static str {
        self.reason
    }

    pub(crate) fn into_response(self) -> Response<Full<Bytes>> {
        let mut response = json(self.status, &self);
        // Who calls through a gateway of its own tells a refusal by it, and doesn't try that again.
        response.headers_mut().insert(CODE_HEADER, HeaderValue::from_static(self.code));
        if self.fallback_failed {
            response.headers_mut().insert(FALLBACK_HEADER, HeaderValue::from_static("failed"));
        }
        if let Some(wait) = self.retry_after_ms {
            let seconds = wait.div_ceil(1_000).max(1);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Rounded up, so that nobody comes back too early.
fn millis_up(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// A response with a JSON body.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    // Only a map with keys that aren't text can't be written, and there is none.
    let body = serde_json::to_vec(value).unwrap_or_else(|_| b"{}".to_vec());
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A response that names the methods that would do.
pub(crate) fn method_not_allowed(allowed: &'static str) -> Response<Full<Bytes>> {
    let message = serde_json::json!({ "error": format!("use {allowed}") });
    let mut response = json(StatusCode::METHOD_NOT_ALLOWED, &message);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(reply: Reply<'_>) -> (Response<Full<Bytes>>, serde_json::Value) {
        let text = serde_json::to_value(&reply).unwrap();
        (reply.into_response(), text)
    }

    #[test]
    fn retry_after_is_rounded_up_to_whole_seconds() {
        let wait = Duration::from_micros(2_000_001);
        let (response, json) = body(Reply::rejected("core-banking", Rejection::Open { retry_after: wait }));
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "3");
        assert_eq!(json["retry_after_ms"], 2001);
        assert_eq!((json["code"].as_str(), json["reason"].as_str()), (Some("E904"), Some("open")));
        assert_eq!(json["target"], "core-banking");
    }

    #[test]
    fn a_full_share_says_the_least_that_the_header_can() {
        let (response, json) = body(Reply::rejected("claims", Rejection::Saturated { limit: 3 }));
        assert_eq!(response.headers()["retry-after"], "1");
        assert_eq!((json["code"].as_str(), json["reason"].as_str()), (Some("E905"), Some("saturated")));
    }

    #[test]
    fn no_route_names_no_target() {
        let (response, json) = body(Reply::no_route());
        assert_eq!(response.status(), 404);
        assert!(json.get("target").is_none() && json.get("retry_after_ms").is_none());
    }
}
