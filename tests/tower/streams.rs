//! Probes and streams: judged at their headers, holding their slot to the end.

use http::Response;
use portcullis::tower::{GuardedBody, HttpClassifier};
use portcullis::{Cause, Outcome, PolicyBuilder, Rejection, State};
use tower::Service;

use super::support::{Answers, Rig, Script, Seen, Step, answer, next, now, request};
use crate::common::{T, secs, textbook};

fn get(rig: &Rig, classifier: HttpClassifier, response: Response<Script>) -> GuardedBody<Script> {
    now(rig.guard(classifier, Answers::new([response])).call(request())).unwrap().into_body()
}

/// A target whose next call is a probe.
fn about_to_probe(policy: PolicyBuilder) -> Rig {
    let rig = Rig::new(policy);
    rig.trip();
    rig.advance(secs(30));
    rig
}

fn endless() -> Script {
    Script::new((0..1_000).map(|_| Step::Data("event")))
}

#[test]
fn a_probe_s_verdict_falls_at_the_headers_and_its_slot_is_held_to_the_end() {
    let rig = about_to_probe(textbook().max_in_flight(1));
    let mut body = get(&rig, HttpClassifier::new(), answer(200, &[], Script::new([Step::Data("a")])));
    let snapshot = rig.snapshot();
    assert_eq!((snapshot.state, snapshot.in_flight), (State::Closed, 1));
    assert_eq!(rig.engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 1 });
    assert_eq!((next(&mut body), next(&mut body)), (Seen::Data("a".to_owned()), Seen::End));
    drop(body);
    let totals = rig.snapshot().totals;
    assert_eq!((rig.in_flight(), totals.success, totals.abandoned, totals.stale), (0, 1, 0, 0));
}

#[test]
fn a_probe_that_streams_for_ever_does_not_hold_half_open() {
    let rig = about_to_probe(textbook().successes_to_close(3));
    let bodies: Vec<_> = (0..3).map(|_| get(&rig, HttpClassifier::new(), answer(200, &[], endless()))).collect();
    assert_eq!((rig.snapshot().state, rig.in_flight()), (State::Closed, 3));
    drop(bodies);
    assert_eq!((rig.in_flight(), rig.snapshot().totals.abandoned), (0, 0));
}

#[test]
fn a_probe_s_failed_status_reopens_at_the_headers() {
    let rig = about_to_probe(textbook());
    let body = get(&rig, HttpClassifier::new(), answer(503, &[], endless()));
    assert_eq!((rig.snapshot().state, rig.in_flight()), (State::Open, 1));
    assert_eq!(rig.engine.transitions().last().unwrap().cause, Cause::ProbeFailed);
    drop(body);
    assert_eq!(rig.in_flight(), 0);
}

#[test]
fn an_error_after_the_verdict_changes_nothing() {
    let rig = about_to_probe(textbook());
    let mut body = get(&rig, HttpClassifier::new(), answer(200, &[], Script::new([Step::Fail])));
    assert_eq!(next(&mut body), Seen::Broken);
    drop(body);
    let snapshot = rig.snapshot();
    assert_eq!((snapshot.state, snapshot.totals.success, rig.window()), (State::Closed, 1, (0, 0)));
    assert_eq!(snapshot.in_flight, 0);
}

#[test]
fn a_slow_probe_is_judged_by_the_time_to_its_headers() {
    let rig = about_to_probe(textbook().slow_call(secs(1)));
    let body = get(&rig, HttpClassifier::new(), answer(200, &[], endless()));
    rig.advance(secs(60));
    drop(body);
    assert_eq!((rig.snapshot().state, rig.snapshot().totals.slow), (State::Closed, 0));
}

#[test]
fn server_sent_events_are_judged_at_their_headers() {
    for kind in
        ["text/event-stream", "text/event-stream; charset=utf-8", "Text/Event-Stream", " text/event-stream ;x=1"]
    {
        let rig = Rig::new(textbook());
        let response = answer(200, &[("content-type", kind.trim())], endless());
        let mut body = get(&rig, HttpClassifier::new(), response);
        assert_eq!((rig.window(), rig.in_flight()), ((1, 0), 1), "{kind}");
        assert_eq!(next(&mut body), Seen::Data("event".to_owned()));
        rig.advance(secs(3_600));
        drop(body);
        let totals = rig.snapshot().totals;
        assert_eq!((rig.window(), rig.in_flight(), totals.abandoned), ((1, 0), 0, 0), "{kind}");
    }
}

#[test]
fn other_kinds_are_no_streams() {
    let plain: [&[(&str, &str)]; 4] = [
        &[],
        &[("content-type", "text/html")],
        &[("content-type", "text/event-streams")],
        &[("content-type", "application/json; x=text/event-stream")],
    ];
    for pairs in plain {
        let rig = Rig::new(textbook());
        let _body = get(&rig, HttpClassifier::new(), answer(200, pairs, endless()));
        assert_eq!((rig.window(), rig.in_flight()), ((0, 0), 1), "{pairs:?}");
    }
}

#[test]
fn a_failed_stream_is_a_failure_at_its_headers() {
    let rig = Rig::new(textbook());
    let body = get(&rig, HttpClassifier::new(), answer(500, &[("content-type", "text/event-stream")], endless()));
    assert_eq!(rig.window(), (1, 1));
    drop(body);
    assert_eq!((rig.window(), rig.snapshot().totals.failure), ((1, 1), 1));
}

#[test]
fn which_responses_are_streams_is_settable() {
    let polls = HttpClassifier::new().streams(|parts| parts.headers.contains_key("x-long-poll"));
    let rig = Rig::new(textbook());
    let poll = get(&rig, polls.clone(), answer(200, &[("x-long-poll", "1")], endless()));
    assert_eq!((rig.window(), rig.in_flight()), ((1, 0), 1));
    // The predicate replaces the default.
    let events = get(&rig, polls.clone(), answer(200, &[("content-type", "text/event-stream")], endless()));
    assert_eq!((rig.window(), rig.in_flight()), ((1, 0), 2));
    drop((poll, events));
    assert_eq!((rig.in_flight(), rig.snapshot().totals.abandoned), (0, 1));
    // It sees the status, too; and keeps its place beside the other settings.
    let classifier = polls.too_many_requests(Outcome::Ignored).streams(|parts| parts.status == 206);
    let _body = get(&rig, classifier, answer(206, &[], endless()));
    assert_eq!(rig.window(), (2, 0));
}

#[test]
fn an_empty_stream_gives_its_slot_back_when_it_is_dropped() {
    let rig = Rig::new(textbook());
    let response = answer(200, &[("content-type", "text/event-stream")], Script::new([]).of_known_length());
    let body = get(&rig, HttpClassifier::new(), response);
    assert_eq!(rig.window(), (1, 0));
    drop(body);
    assert_eq!((rig.in_flight(), rig.window()), (0, (1, 0)));
}

#[test]
fn a_stream_s_slot_is_back_at_its_end_though_the_body_lives_on() {
    let rig = Rig::new(textbook());
    let stream = || [("content-type", "text/event-stream")];
    let mut ended = get(&rig, HttpClassifier::new(), answer(200, &stream(), Script::new([Step::Data("a")])));
    assert_eq!((next(&mut ended), next(&mut ended)), (Seen::Data("a".to_owned()), Seen::End));
    assert_eq!(rig.in_flight(), 0, "the end of the body, not of the value");
    let mut broken = get(&rig, HttpClassifier::new(), answer(200, &stream(), Script::new([Step::Fail])));
    assert_eq!(next(&mut broken), Seen::Broken);
    assert_eq!(rig.in_flight(), 0);
    drop((ended, broken));
}
