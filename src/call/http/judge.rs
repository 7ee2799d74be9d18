//! What a response says about trying again.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode};

use super::super::verdict::Again;
use super::super::{CODE_HEADER, IDEMPOTENCY_KEY};
use crate::tower::come_back;

/// Whether another attempt might do better than this response.
///
/// 500, 502, 503 and 504 might, and gRPC's unavailable (14) in the headers; not before `Retry-After`, or gRPC's `grpc-retry-pushback-ms`
/// or the `google.rpc.RetryInfo` in `grpc-status-details-bin`, the longer of both, says so. No 4xx: 408 and
/// 429 would only be made worse. No refusal of another portcullis, which says `E904` or `E905` in `x-portcullis-code`.
#[must_use]
pub fn judge_response(status: StatusCode, headers: &HeaderMap) -> Again {
    if matches!(headers.get(CODE_HEADER).map(http::HeaderValue::as_bytes), Some(b"E904" | b"E905")) {
        return Again::No;
    }
    let is_worth_it = match status.as_u16() {
        500 | 502 | 503 | 504 => true,
        200 => headers.get("grpc-status").is_some_and(|status| status == "14"),
        _ => false,
    };
    if !is_worth_it {
        return Again::No;
    }
    // A negative pushback forbids it: gRPC's retry design, A6.
    let mut pushback = None;
    if let Some(value) = headers.get("grpc-retry-pushback-ms") {
        match value.to_str().ok().and_then(|text| text.parse().ok()) {
            Some(millis) => pushback = Some(Duration::from_millis(millis)),
            None => return Again::No,
        }
    }
    let grpc = pushback.max(come_back::grpc(headers));
    grpc.or_else(|| retry_after(headers, SystemTime::now())).map_or(Again::Yes, Again::After)
}

/// The wait that `Retry-After` asks for: seconds, or a date against the answer's own `Date`, or against `now` if it has none: the one place where
/// wall time counts. Zero if the date has passed.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    come_back::retry_after(headers, now)
}

/// Whether a request may be made twice: its method says so, or its caller by an `Idempotency-Key`.
pub(super) fn is_idempotent(method: &Method, headers: &HeaderMap) -> bool {
    // RFC 9110, 9.2.2.
    let by_method =
        matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE | Method::PUT | Method::DELETE);
    by_method || headers.get(IDEMPOTENCY_KEY).is_some_and(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        };
        fields.iter().map(field).collect()
    }

    fn judge(status: u16, fields: &[(&'static str, &'static str)]) -> Again {
        judge_response(StatusCode::from_u16(status).unwrap(), &headers(fields))
    }

    #[test]
    fn only_system_errors_are_worth_another_attempt() {
        for status in [500, 502, 503, 504] {
            assert_eq!(judge(status, &[]), Again::Yes, "{status}");
        }
        for status in [200, 204, 302, 400, 404, 408, 409, 425, 429, 501, 505] {
            assert_eq!(judge(status, &[("retry-after", "1")]), Again::No, "{status}");
        }
        assert_eq!(judge(503, &[("x-portcullis-code", "E904")]), Again::No);
        assert_eq!(judge(503, &[("x-portcullis-code", "E905"), ("retry-after", "1")]), Again::No);
        assert_eq!(judge(504, &[("x-portcullis-code", "E901")]), Again::Yes);
    }

    #[test]
    fn grpc_is_judged_by_its_own_words() {
        let second = Again::After(Duration::from_secs(1));
        assert_eq!(judge(200, &[("grpc-status", "14")]), Again::Yes);
        assert_eq!(judge(200, &[("grpc-status", "13")]), Again::No);
        assert_eq!(judge(200, &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "1000")]), second);
        assert_eq!(judge(200, &[("grpc-status", "14"), ("grpc-retry-pushback-ms", "-1")]), Again::No);
        // A status (14) with a `RetryInfo` of 5 s.
        let details =
            ("grpc-status-details-bin", "CA4aMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgIIBQ");
        let unavailable = ("grpc-status", "14");
        let five = Again::After(Duration::from_secs(5));
        assert_eq!(judge(200, &[unavailable, details]), five);
        assert_eq!(judge(200, &[unavailable, details, ("grpc-retry-pushback-ms", "1000")]), five);
        assert_eq!(judge(200, &[unavailable, details, ("grpc-retry-pushback-ms", "-1")]), Again::No);
    }

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let after = |text| retry_after(&headers(&[("retry-after", text)]), now);
        assert_eq!(after("120"), Some(Duration::from_secs(120)));
        assert_eq!(after("Sun, 06 Nov 1994 08:50:37 GMT"), Some(Duration::from_secs(60)));
        assert_eq!(after("Sun, 06 Nov 1994 08:49:36 GMT"), Some(Duration::ZERO));
        assert_eq!(after("99999999999999999999999"), Some(Duration::from_secs(u64::MAX)));
        for text in ["", "-1", "1.5", "soon"] {
            assert_eq!(after(text), None, "{text}");
        }
    }

    #[test]
    fn a_method_or_a_key_makes_a_request_idempotent() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
            assert!(is_idempotent(&method.parse().unwrap(), &HeaderMap::new()), "{method}");
        }
        for method in ["POST", "PATCH", "CONNECT", "PURGE"] {
            assert!(!is_idempotent(&method.parse().unwrap(), &HeaderMap::new()), "{method}");
        }
        assert!(is_idempotent(&Method::POST, &headers(&[("idempotency-key", "a1")])));
        assert!(!is_idempotent(&Method::POST, &headers(&[("idempotency-key", "")])));
    }
}
