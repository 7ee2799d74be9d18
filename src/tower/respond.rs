//! Refusals as responses, for services that answer instead of failing.

use http::{HeaderName, HeaderValue, Response, StatusCode, header};

use crate::rejection::Rejection;

/// The stable wire code of a refusal, for callers that would try again: `E904` and `E905` aren't to be.
pub const CODE_HEADER: HeaderName = HeaderName::from_static("x-portcullis-code");

/// The refusal as an HTTP response: 503, `Retry-After` in whole seconds rounded up, and a JSON body with code, reason and message.
///
/// ```
/// use std::time::Duration;
/// use portcullis::{Rejection, tower::respond};
///
/// let response = respond(&Rejection::Open { retry_after: Duration::from_millis(1_200) });
/// assert_eq!(response.status(), 503);
/// assert_eq!(response.headers()["retry-after"], "2");
/// assert!(response.body().starts_with(r#"{"code":"E904","reason":"open""#));
/// ```
#[must_use]
pub fn respond(rejection: &Rejection) -> Response<String> {
    let retry_after = rejection.retry_after();
    // Rounded up, both: a caller who comes back at the time that was said isn't refused for the same reason.
    let millis =
        retry_after.map_or_else(|| "null".to_owned(), |after| after.as_nanos().div_ceil(1_000_000).to_string());
    let (code, reason) = (rejection.code(), rejection.reason());
    // No part of it comes from outside, so nothing needs escaping.
    let body = format!(r#"{{"code":"{code}","reason":"{reason}","message":"{rejection}","retry_after_ms":{millis}}}"#);
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CODE_HEADER, HeaderValue::from_static(code));
    if let Some(after) = retry_after {
        let seconds = after.as_secs().saturating_add(u64::from(after.subsec_nanos() > 0));
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// The refusal as a gRPC response: status unavailable (14), in the headers.
#[must_use]
pub fn respond_grpc(rejection: &Rejection) -> Response<String> {
    let mut response = Response::new(String::new());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("grpc-status", HeaderValue::from_static("14"));
    headers.insert(CODE_HEADER, HeaderValue::from_static(rejection.code()));
    if let Ok(message) = HeaderValue::try_from(format!("{}: {rejection}", rejection.code())) {
        headers.insert("grpc-message", message);
    }
    response
}
