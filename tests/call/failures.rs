//! What counts against the target is a failure for its caller, too.

use bytes::Bytes;
use http::{HeaderValue, Request};
use http_body_util::Full;
use portcullis::Outcome;
use portcullis::call::{CallLayer, Cause, FALLBACK_HEADER, Fallback, FallbackValue, respond};
use portcullis::tower::{GrpcClassifier, HttpClassifier, classify_fn};
use tower::{Layer, Service};

use super::layer::{Upstream, answer, get};
use super::support::{World, patient, three};
use crate::common::T;

fn world() -> World {
    World::new(patient(), three().fallback(Fallback::Value(FallbackValue::default())))
}

fn key(_: &Request<Full<Bytes>>) -> String {
    T.to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_grpc_failure_in_the_headers_is_answered_by_the_fallback() {
    let world = world();
    let grpc = CallLayer::new(world.caller.clone(), key, GrpcClassifier::new());
    let mut failures = 0;
    for (status, is_failure) in [(2, true), (4, true), (8, true), (13, true), (15, true), (5, false), (1, false)] {
        let mut response = answer(200, "");
        response.headers_mut().insert("grpc-status", HeaderValue::from(status));
        let upstream = Upstream::new([response]);
        let response = grpc.clone().layer(upstream.clone()).call(get()).await.unwrap();
        failures += u64::from(is_failure);
        assert_eq!(response.headers().contains_key(FALLBACK_HEADER), is_failure, "{status}");
        assert_eq!((world.counts().failed, world.counts().fallback_value), (failures, failures), "{status}");
        // None of them is worth another attempt.
        assert_eq!(upstream.heads.lock().unwrap().len(), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_the_failure_that_its_classifier_says_it_is() {
    let world = world();
    for (outcome, failures) in [(Outcome::Success, 0), (Outcome::Ignored, 0), (Outcome::Failure, 1)] {
        let http = HttpClassifier::new().too_many_requests(outcome);
        let mut service = CallLayer::new(world.caller.clone(), key, http).layer(Upstream::new([answer(429, "")]));
        let response = service.call(get()).await.unwrap();
        assert_eq!(
            (response.status().as_u16(), world.counts().failed),
            (if failures == 1 { 200 } else { 429 }, failures)
        );
    }
    let own = classify_fn(|_: &Result<_, _>| Outcome::Failure);
    let mut service = CallLayer::new(world.caller.clone(), key, own).layer(Upstream::new([answer(204, "")]));
    let request: Request<Full<Bytes>> = get();
    assert!(service.call(request).await.unwrap().headers().contains_key(FALLBACK_HEADER));
    assert_eq!((world.counts().failed, world.totals()), (2, [1, 2, 1, 0]));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_late_on_arrival_is_answered_by_no_fallback() {
    let world = world();
    let mut request = get();
    request.headers_mut().insert("x-request-deadline-ms", HeaderValue::from_static("0"));
    let http = CallLayer::new(world.caller.clone(), key, HttpClassifier::new());
    let error = http.layer(Upstream::new([])).call(request).await.unwrap_err();
    assert_eq!((error.cause(), respond(&error).status().as_u16()), (&Cause::Deadline { on_arrival: true }, 504));
    assert_eq!((world.counts().deadline_refused, world.counts().fallback_value), (1, 0));
}
