//! Failed calls as responses, for services that answer instead of failing.

use http::{HeaderValue, Response, StatusCode};

use super::super::FALLBACK_HEADER;
use super::super::error::{CallError, Cause};
use crate::tower::{grpc, json, respond as refused, respond_grpc as refused_grpc};

/// The failure as an HTTP response: 503 for a refusal, 504 for no answer in time, 502 for no connection, else 500; with `x-portcullis-code`, and
/// a JSON body with code, reason and message; with `x-portcullis-fallback: failed`, too, if there was a fallback that failed. What an inner error
/// says isn't shown: it may speak of what callers aren't to know.
///
/// ```
/// # use portcullis::call::{CallPolicy, Caller, respond};
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let caller = Caller::builder(std::sync::Arc::new(portcullis::Engine::<String>::builder().build())).build()?;
/// let late = caller.to("core-banking").deadline(Duration::ZERO).run(|_| async { Ok::<_, std::io::Error>(()) }).await;
/// let response = respond(&late.unwrap_err());
/// assert_eq!((response.status().as_u16(), &response.headers()["x-portcullis-code"]), (504, &"E901".parse()?));
/// # Ok(())
/// # }
/// ```
#[must_use]
pub fn respond<E>(error: &CallError<E>) -> Response<String> {
    let words = (error.code(), error.reason());
    let status = match (error.cause(), error.code()) {
        (Cause::Rejected(rejection), _) => return marked(refused(rejection), error),
        (Cause::TimedOut { .. } | Cause::Deadline { .. }, _) | (_, "E901") => StatusCode::GATEWAY_TIMEOUT,
        (_, "E902") => StatusCode::BAD_GATEWAY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    marked(json(status, words, message(error), None), error)
}

/// The failure as a gRPC response, all in the headers: unavailable (14) for a refusal or no connection, deadline exceeded (4) for no answer in
/// time, else internal (13). When to come back stands as `google.rpc.RetryInfo` in `grpc-status-details-bin`, and a
/// fallback that failed, too, as in [`respond`].
#[must_use]
pub fn respond_grpc<E>(error: &CallError<E>) -> Response<String> {
    let status = match (error.cause(), error.code()) {
        (Cause::Rejected(rejection), _) => return marked(refused_grpc(rejection), error),
        (Cause::TimedOut { .. } | Cause::Deadline { .. }, _) | (_, "E901") => 4,
        (_, "E902") => 14,
        _ => 13,
    };
    marked(grpc(status, error.code(), message(error), None), error)
}

/// With the mark of a fallback that failed, as it stands in a target's own answer.
fn marked<E>(mut response: Response<String>, error: &CallError<E>) -> Response<String> {
    if error.fallback_error().is_some() {
        response.headers_mut().insert(FALLBACK_HEADER, HeaderValue::from_static("failed"));
    }
    response
}

fn message<E>(error: &CallError<E>) -> String {
    match error.cause() {
        Cause::Failed(_) if error.code() == "E902" => "no connection to the target".to_owned(),
        Cause::Failed(_) => "the call failed".to_owned(),
        // The words of our own causes, whatever the error's type.
        Cause::Rejected(rejection) => Cause::<&str>::Rejected(*rejection).to_string(),
        Cause::TimedOut { after } => Cause::<&str>::TimedOut { after: *after }.to_string(),
        Cause::Deadline { on_arrival } => Cause::<&str>::Deadline { on_arrival: *on_arrival }.to_string(),
        Cause::Answered { status } => Cause::<&str>::Answered { status: *status }.to_string(),
    }
}
