//! What an HTTP status says.

use std::future::ready;

use http::{Response, StatusCode};
use http_body_util::{Empty, Full};
use portcullis::tower::{Error, HttpClassifier};
use portcullis::{Outcome, State};
use tower::{Service, service_fn};

use super::support::{Answers, Rig, answer, now, request};
use crate::common::{secs, textbook};

type Nothing = Empty<std::io::Cursor<&'static [u8]>>;

/// The totals of success, failure and ignored after one answer of this status.
fn judged(classifier: HttpClassifier, status: u16) -> (u64, u64, u64) {
    let rig = Rig::new(textbook());
    let mut service = rig.guard(classifier, Answers::new([answer(status, &[], Nothing::new())]));
    let response = now(service.call(request())).unwrap();
    assert_eq!(response.status().as_u16(), status, "the status goes through");
    let totals = rig.snapshot().totals;
    assert_eq!((rig.in_flight(), totals.admitted), (0, 1));
    (totals.success, totals.failure, totals.ignored)
}

#[test]
fn every_status_that_there_is() {
    for status in 100..=999 {
        let expected = match status {
            429 | 500..=599 => (0, 1, 0),
            _ => (1, 0, 0),
        };
        assert_eq!(judged(HttpClassifier::new(), status), expected, "{status}");
    }
    assert_eq!(judged(HttpClassifier::default(), 429), (0, 1, 0));
}

#[test]
fn too_many_requests_is_settable_and_nothing_else_moves_with_it() {
    for (outcome, expected) in
        [(Outcome::Success, (1, 0, 0)), (Outcome::Failure, (0, 1, 0)), (Outcome::Ignored, (0, 0, 1))]
    {
        let classifier = HttpClassifier::new().too_many_requests(outcome);
        assert_eq!(judged(classifier.clone(), 429), expected);
        assert_eq!(judged(classifier.clone(), 428), (1, 0, 0));
        assert_eq!(judged(classifier, 503), (0, 1, 0));
    }
}

#[test]
fn an_error_is_a_failure_and_comes_through() {
    let rig = Rig::new(textbook());
    let inner = service_fn(|_: http::Request<()>| ready(Err::<Response<Nothing>, _>("no connection")));
    let mut service = rig.guard(HttpClassifier::new(), inner);
    for _ in 0..5 {
        assert!(matches!(now(service.call(request())), Err(Error::Inner("no connection"))));
    }
    assert_eq!((rig.snapshot().state, rig.snapshot().totals.failure), (State::Open, 5));
}

#[test]
fn in_01_client_errors_never_trip_and_server_errors_do() {
    let rig = Rig::new(textbook());
    let statuses = [[400_u16; 100], [404; 100]].concat().into_iter().chain([401; 5]).chain([503; 5]);
    let mut service =
        rig.guard(HttpClassifier::new(), Answers::new(statuses.map(|status| answer(status, &[], Nothing::new()))));
    for _ in 0..205 {
        now(service.call(request())).unwrap();
    }
    assert_eq!((rig.snapshot().state, rig.window()), (State::Closed, (10, 0)));
    for _ in 0..5 {
        now(service.call(request())).unwrap();
    }
    assert_eq!(rig.snapshot().state, State::Open);
}

#[test]
fn headers_extensions_and_version_go_through() {
    let rig = Rig::new(textbook());
    let mut made = answer(204, &[("x-one", "1")], Full::new(std::io::Cursor::new(&b"body"[..])));
    made.extensions_mut().insert(42_u8);
    *made.version_mut() = http::Version::HTTP_2;
    let mut service = rig.guard(HttpClassifier::new(), Answers::new([made]));
    let response = now(service.call(request())).unwrap();
    assert_eq!((response.status(), response.version()), (StatusCode::NO_CONTENT, http::Version::HTTP_2));
    assert_eq!((&response.headers()["x-one"], response.extensions().get::<u8>()), (&"1".parse().unwrap(), Some(&42)));
}

#[test]
fn retry_after_of_the_failure_that_opens_is_believed() {
    let answers = |said: &'static str| {
        let answer = move |status| answer(status, &[("retry-after", said)], Nothing::new());
        Answers::new([answer(503), answer(503), answer(503), answer(503), answer(429)])
    };
    let wait = |classifier: HttpClassifier, said| {
        let rig = Rig::new(textbook());
        let mut service = rig.guard(classifier, answers(said));
        (0..5).for_each(|_| drop(now(service.call(request())).unwrap()));
        rig.snapshot().reopen_in
    };
    assert_eq!(wait(HttpClassifier::new(), "70"), Some(secs(70)));
    assert_eq!(wait(HttpClassifier::new(), "7000"), Some(secs(300)));
    assert_eq!(wait(HttpClassifier::new(), "later"), Some(secs(30)));
    // A 429 that is a success says nothing of when to come back; it completes the five calls that are judged.
    assert_eq!(wait(HttpClassifier::new().too_many_requests(Outcome::Success), "70"), Some(secs(30)));
}
