//! Refusals as responses, for services that answer instead of failing.

use std::fmt::Display;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use super::retry_info;
use crate::rejection::Rejection;

/// The stable wire code of a refusal, for callers that would try again: `E904` and `E905` aren't to be.
pub const CODE_HEADER: HeaderName = HeaderName::from_static("x-portcullis-code");

/// The code of gRPC's status for "not now".
const UNAVAILABLE: u8 = 14;

/// The refusal as an HTTP response: 503, `Retry-After` in whole seconds rounded up, and a JSON body with code, reason and message.
///
/// ```
/// use std::time::Duration;
/// use portcullis::{Rejection, tower::respond};
///
/// let response = respond(&Rejection::Open { retry_after: Duration::from_millis(1_200) });
/// assert_eq!(response.status(), 503);
/// assert_eq!(response.headers()["retry-after"], "2");
/// assert_eq!(response.headers()["x-portcullis-code"], "E904");
/// assert!(response.body().starts_with(r#"{"code":"E904","reason":"open""#));
/// ```
#[must_use]
pub fn respond(rejection: &Rejection) -> Response<String> {
    let words = (rejection.code(), rejection.reason());
    json(StatusCode::SERVICE_UNAVAILABLE, words, rejection, rejection.retry_after())
}

/// The refusal as a gRPC response: status unavailable (14), in the headers; when to come back as `google.rpc.RetryInfo` in
/// `grpc-status-details-bin`.
#[must_use]
pub fn respond_grpc(rejection: &Rejection) -> Response<String> {
    grpc(UNAVAILABLE, rejection.code(), rejection, rejection.retry_after())
}

/// A JSON answer. No part of it may come from outside: nothing is escaped.
pub(crate) fn json(
    status: StatusCode,
    (code, reason): (&'static str, &'static str),
    message: impl Display,
    retry_after: Option<Duration>,
) -> Response<String> {
    // Rounded up, both: a caller who comes back at the time that was said isn't refused for the same reason.
    let millis =
        retry_after.map_or_else(|| "null".to_owned(), |after| after.as_nanos().div_ceil(1_000_000).to_string());
    let body = format!(r#"{{"code":"{code}","reason":"{reason}","message":"{message}","retry_after_ms":{millis}}}"#);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CODE_HEADER, HeaderValue::from_static(code));
    if let Some(after) = retry_after {
        let seconds = after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0));
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// A gRPC answer that is all headers.
pub(crate) fn grpc(
    status: u8,
    code: &'static str,
    message: impl Display,
    retry_after: Option<Duration>,
) -> Response<String> {
    let message = format!("{code}: {message}");
    let mut response = Response::new(String::new());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", u16::from(status).into());
    headers.insert(CODE_HEADER, HeaderValue::from_static(code));
    if let Some(details) = retry_after.and_then(|after| retry_info::details(status, &message, after)) {
        headers.insert("grpc-status-details-bin", details);
    }
    if let Ok(message) = HeaderValue::try_from(message) {
        headers.insert("grpc-message", message);
    }
    response
}
