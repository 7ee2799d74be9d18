//! gRPC: the status in the trailers, or in the headers.

use http::Response;
use http_body_util::Empty;
use portcullis::tower::{Error, GrpcClassifier, GuardedBody};
use portcullis::{Outcome, State};
use tower::Service;

use super::support::{Answers, Rig, Script, Seen, Step, answer, headers, next, now, request};
use crate::common::{ms, secs, textbook};

const CODES: [&str; 17] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"];

fn get(rig: &Rig, classifier: GrpcClassifier, response: Response<Script>) -> GuardedBody<Script> {
    now(rig.guard(classifier, Answers::new([response])).call(request())).unwrap().into_body()
}

/// Success, failure and ignored.
fn ends(rig: &Rig) -> (u64, u64, u64) {
    let totals = rig.snapshot().totals;
    (totals.success, totals.failure, totals.ignored)
}

fn expected(code: &str) -> (u64, u64, u64) {
    match code {
        "1" => (0, 0, 1),
        "2" | "4" | "8" | "13" | "14" | "15" => (0, 1, 0),
        _ => (1, 0, 0),
    }
}

fn trailers(code: &'static str) -> Step {
    Step::Trailers(headers(&[("grpc-status", code), ("grpc-message", "m")]))
}

#[test]
fn every_code_in_the_trailers() {
    for code in CODES {
        let rig = Rig::new(textbook());
        let mut body =
            get(&rig, GrpcClassifier::new(), answer(200, &[], Script::new([Step::Data("m"), trailers(code)])));
        assert_eq!(next(&mut body), Seen::Data("m".to_owned()));
        assert_eq!((rig.in_flight(), ends(&rig)), (1, (0, 0, 0)));
        assert!(matches!(next(&mut body), Seen::Trailers(seen) if seen["grpc-status"] == code));
        assert_eq!((rig.in_flight(), ends(&rig)), (0, expected(code)), "code {code}");
        assert_eq!(next(&mut body), Seen::End);
        drop(body);
        assert_eq!(ends(&rig), expected(code), "once");
    }
}

#[test]
fn every_code_of_an_answer_that_is_trailers_only() {
    for code in CODES {
        let rig = Rig::new(textbook());
        let mut body = get(&rig, GrpcClassifier::new(), answer(200, &[("grpc-status", code)], Script::new([])));
        assert_eq!(ends(&rig), expected(code), "code {code}");
        assert_eq!(next(&mut body), Seen::End);
        drop(body);
        assert_eq!((rig.in_flight(), ends(&rig)), (0, expected(code)));
    }
}

#[test]
fn resource_exhausted_is_settable() {
    for (outcome, ended) in
        [(Outcome::Success, (1, 0, 0)), (Outcome::Failure, (0, 1, 0)), (Outcome::Ignored, (0, 0, 1))]
    {
        let rig = Rig::new(textbook());
        let classifier = GrpcClassifier::new().resource_exhausted(outcome);
        drop(get(&rig, classifier, answer(200, &[("grpc-status", "8")], Script::new([]))));
        assert_eq!(ends(&rig), ended);
        drop(get(&rig, classifier, answer(200, &[("grpc-status", "14")], Script::new([]))));
        assert_eq!(ends(&rig), (ended.0, ended.1 + 1, ended.2));
    }
}

#[test]
fn a_body_that_ends_without_a_status_is_a_failure() {
    for steps in [vec![], vec![Step::Data("m")], vec![Step::Trailers(headers(&[("x-other", "0")]))]] {
        let rig = Rig::new(textbook());
        let mut body = get(&rig, GrpcClassifier::new(), answer(200, &[], Script::new(steps)));
        while next(&mut body) != Seen::End {}
        assert_eq!((rig.in_flight(), ends(&rig)), (0, (0, 1, 0)));
    }
    let rig = Rig::new(textbook());
    let empty = answer(200, &[], Empty::<std::io::Cursor<&'static [u8]>>::new());
    now(rig.guard(GrpcClassifier::new(), Answers::new([empty])).call(request())).unwrap();
    assert_eq!(ends(&rig), (0, 1, 0));
}

#[test]
fn a_status_that_does_not_exist_is_a_failure() {
    for code in ["17", "", "x", "-1", "00", "0 "] {
        let rig = Rig::new(textbook());
        let mut body = get(&rig, GrpcClassifier::new(), answer(200, &[], Script::new([trailers(code)])));
        while next(&mut body) != Seen::End {}
        assert_eq!(ends(&rig), (0, 1, 0), "{code:?}");
    }
}

#[test]
fn an_error_and_a_broken_body_are_failures() {
    let rig = Rig::new(textbook());
    let mut body = get(&rig, GrpcClassifier::new(), answer(200, &[], Script::new([Step::Data("m"), Step::Fail])));
    assert_eq!((next(&mut body), next(&mut body)), (Seen::Data("m".to_owned()), Seen::Broken));
    assert_eq!((rig.in_flight(), ends(&rig)), (0, (0, 1, 0)));
    let inner =
        tower::service_fn(|_: http::Request<()>| std::future::ready(Err::<Response<Script>, _>("no connection")));
    let failed = now(rig.guard(GrpcClassifier::default(), inner).call(request()));
    assert!(matches!(failed, Err(Error::Inner("no connection"))));
    assert_eq!(ends(&rig), (0, 2, 0));
}

#[test]
fn an_answer_that_is_not_grpc_is_judged_by_its_status() {
    for (status, ended) in [(503, (0, 1, 0)), (429, (0, 1, 0)), (404, (1, 0, 0)), (401, (1, 0, 0))] {
        let rig = Rig::new(textbook());
        let mut body = get(&rig, GrpcClassifier::new(), answer(status, &[], Script::new([Step::Data("<html>")])));
        while next(&mut body) != Seen::End {}
        assert_eq!(ends(&rig), ended, "{status}");
    }
}

#[test]
fn r11_a_call_that_the_client_leaves_is_abandoned() {
    for (silent, failures) in [(ms(499), 0), (ms(500), 1)] {
        let rig = Rig::new(textbook());
        let mut body = get(&rig, GrpcClassifier::new(), answer(200, &[], Script::new([Step::Data("m"), Step::Wait])));
        rig.advance(secs(5));
        assert_eq!((next(&mut body), next(&mut body)), (Seen::Data("m".to_owned()), Seen::Nothing));
        rig.advance(silent);
        drop(body);
        assert_eq!((rig.window().1, rig.snapshot().totals.abandoned), (failures, 1));
    }
}

#[test]
fn a_probe_is_judged_by_its_status_not_by_its_headers() {
    for (code, state) in [("0", State::Closed), ("14", State::Open), ("1", State::HalfOpen)] {
        let rig = Rig::new(textbook());
        rig.trip();
        rig.advance(secs(30));
        let mut body = get(&rig, GrpcClassifier::new(), answer(200, &[], Script::new([trailers(code)])));
        assert_eq!(rig.snapshot().state, State::HalfOpen, "headers without a status promise nothing");
        while next(&mut body) != Seen::End {}
        assert_eq!((rig.snapshot().state, rig.snapshot().probes_in_flight), (state, 0), "code {code}");
    }
}

#[test]
fn a_status_that_says_when_to_come_back_is_believed_in_headers_and_trailers() {
    // google.rpc.Status { code: 14, details: [RetryInfo { retry_delay: 90 s }] }
    // The same under the name of google.rpc.ErrorInfo, without padding.
    let details = "CA4aMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkVycm9ySW5mbxIECgIIWg";
    let info = "CA4aMAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIECgIIWg==";
    for (name, value, expected) in [
        ("grpc-retry-pushback-ms", "70000", 70),
        ("grpc-retry-pushback-ms", "-1", 30),
        ("grpc-status-details-bin", info, 90),
        ("grpc-status-details-bin", details, 30),
        ("retry-after", "80", 80),
    ] {
        let rig = Rig::new(textbook());
        for _ in 0..4 {
            drop(get(&rig, GrpcClassifier::new(), answer(200, &[("grpc-status", "14")], Script::new([]))));
        }
        let pairs = [("grpc-status", "14"), (name, value)];
        drop(get(&rig, GrpcClassifier::new(), answer(200, &pairs, Script::new([]))));
        assert_eq!(rig.snapshot().reopen_in, Some(secs(expected)), "{name}: {value} in headers");
        if name == "retry-after" {
            continue; // HTTP's, and no trailer.
        }
        let rig = Rig::new(textbook());
        for _ in 0..5 {
            let steps = [Step::Trailers(headers(&pairs))];
            let mut body = get(&rig, GrpcClassifier::new(), answer(200, &[], Script::new(steps)));
            while next(&mut body) != Seen::End {}
        }
        assert_eq!(rig.snapshot().reopen_in, Some(secs(expected)), "{name}: {value} in trailers");
    }
}
