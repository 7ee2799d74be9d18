//! The permit lives as long as the response body.

use std::time::Duration;

use http::Response;
use http_body::Body;
use http_body_util::{Empty, Full};
use portcullis::tower::{GuardedBody, HttpClassifier};
use portcullis::{OnAbandon, Rejection, State};
use tower::Service;

use super::support::{Answers, Rig, Script, Seen, Step, answer, headers, next, now, request};
use crate::common::{ms, secs, textbook};

/// Sends one request and gets the body of its answer.
fn get<B: Body>(rig: &Rig, response: Response<B>) -> GuardedBody<B> {
    now(rig.guard(HttpClassifier::new(), Answers::new([response])).call(request())).unwrap().into_body()
}

fn script(rig: &Rig, status: u16, steps: impl IntoIterator<Item = Step>) -> GuardedBody<Script> {
    get(rig, answer(status, &[], Script::new(steps)))
}

fn data(text: &str) -> Seen {
    Seen::Data(text.to_owned())
}

#[test]
fn the_permit_is_held_to_the_end_of_the_body() {
    let rig = Rig::new(textbook().max_in_flight(1));
    let mut body = script(&rig, 200, [Step::Data("a"), Step::Wait, Step::Data("b")]);
    for seen in [data("a"), Seen::Nothing, data("b")] {
        assert_eq!((rig.in_flight(), rig.window()), (1, (0, 0)));
        assert_eq!(rig.engine.admit(crate::common::T).unwrap_err(), Rejection::Saturated { limit: 1 });
        assert_eq!(next(&mut body), seen);
    }
    assert_eq!(rig.in_flight(), 1, "a body of unknown length ends with the poll that says so");
    assert_eq!(next(&mut body), Seen::End);
    assert_eq!((rig.in_flight(), rig.window()), (0, (1, 0)));
    drop(body);
    let totals = rig.snapshot().totals;
    assert_eq!((totals.success, totals.abandoned, totals.admitted), (1, 0, 1));
}

#[test]
fn a_body_of_known_length_ends_at_its_last_frame() {
    let rig = Rig::new(textbook());
    let steps = [Step::Data("a"), Step::Data("b")];
    let mut body = get(&rig, answer(200, &[], Script::new(steps).of_known_length()));
    assert_eq!((next(&mut body), rig.in_flight()), (data("a"), 1));
    assert_eq!((next(&mut body), rig.in_flight()), (data("b"), 0));
    assert_eq!(rig.window(), (1, 0));
    assert!(body.is_end_stream());
    // Whoever asks again or drops it changes nothing.
    assert_eq!(next(&mut body), Seen::End);
    drop(body);
    assert_eq!((rig.window(), rig.snapshot().totals.admitted), ((1, 0), 1));
}

#[test]
fn a_full_body_ends_with_its_one_frame() {
    let rig = Rig::new(textbook());
    let mut body = get(&rig, answer(200, &[], Full::new(std::io::Cursor::new(&b"all"[..]))));
    assert_eq!(rig.in_flight(), 1);
    assert_eq!(next(&mut body), data("all"));
    assert_eq!((rig.in_flight(), rig.window()), (0, (1, 0)));
}

#[test]
fn an_empty_body_has_ended_when_the_response_is_there() {
    let rig = Rig::new(textbook());
    let body = get(&rig, answer(503, &[], Empty::<std::io::Cursor<&'static [u8]>>::new()));
    assert_eq!((rig.in_flight(), rig.window()), (0, (1, 1)), "though nobody asked it for anything");
    drop(body);
    assert_eq!(rig.snapshot().totals.abandoned, 0);
}

#[test]
fn an_error_in_the_body_is_a_failure_whatever_the_status_was() {
    for status in [200, 404, 429, 500] {
        let rig = Rig::new(textbook());
        let mut body = script(&rig, status, [Step::Data("a"), Step::Fail, Step::Data("never mind")]);
        assert_eq!(next(&mut body), data("a"));
        assert_eq!((rig.in_flight(), next(&mut body)), (1, Seen::Broken));
        assert_eq!((rig.in_flight(), rig.window()), (0, (1, 1)), "{status}");
        assert_eq!(next(&mut body), data("never mind"));
        drop(body);
        assert_eq!((rig.window(), rig.snapshot().totals.failure), ((1, 1), 1));
    }
}

#[test]
fn a_failed_status_is_a_failure_at_its_headers_once_and_its_slot_is_held_to_the_end() {
    let rig = Rig::new(textbook());
    let mut body = script(&rig, 502, [Step::Data("sorry")]);
    assert_eq!((rig.window(), rig.in_flight()), ((1, 1), 1));
    assert_eq!((next(&mut body), next(&mut body)), (data("sorry"), Seen::End));
    assert_eq!((rig.window(), rig.snapshot().totals.failure, rig.in_flight()), ((1, 1), 1, 0));
    // Who retries drops it unread.
    drop(script(&rig, 503, [Step::Data("sorry")]));
    assert_eq!((rig.window(), rig.snapshot().totals.abandoned), ((2, 2), 0));
}

#[test]
fn a_content_length_is_a_known_length() {
    let rig = Rig::new(textbook());
    let steps = [Step::Data("ab"), Step::Data("cd")];
    let mut body = get(&rig, answer(200, &[("content-length", "4")], Script::new(steps)));
    assert_eq!((next(&mut body), rig.in_flight()), (data("ab"), 1));
    assert_eq!((next(&mut body), rig.in_flight()), (data("cd"), 0));
    assert_eq!(rig.window(), (1, 0));
    for (status, pairs) in [(204, [("x-a", "1")]), (304, [("content-length", "9")]), (200, [("content-length", "0")])] {
        let rig = Rig::new(textbook());
        let _body = get(&rig, answer(status, &pairs, Script::new([])));
        assert_eq!((rig.in_flight(), rig.window()), (0, (1, 0)), "{status} has no body");
    }
}

#[test]
fn a_content_length_that_is_not_kept_to_or_no_number_does_no_harm() {
    for length in ["2", "99", "x", "-1", "18446744073709551616"] {
        let rig = Rig::new(textbook());
        let steps = [Step::Data("abc"), Step::Data("d")];
        let mut body = get(&rig, answer(200, &[("content-length", length)], Script::new(steps)));
        assert_eq!((next(&mut body), next(&mut body), next(&mut body)), (data("abc"), data("d"), Seen::End));
        assert_eq!((rig.in_flight(), rig.window(), rig.snapshot().totals.admitted), (0, (1, 0), 1), "{length}");
    }
}

#[test]
fn trailers_come_through_before_and_after_the_last_byte() {
    let trailers = || headers(&[("x-sum", "1")]);
    let rig = Rig::new(textbook());
    let mut body = script(&rig, 200, [Step::Data("a"), Step::Trailers(trailers())]);
    assert_eq!((next(&mut body), next(&mut body)), (data("a"), Seen::Trailers(trailers())));
    assert_eq!((rig.in_flight(), next(&mut body), rig.in_flight()), (1, Seen::End, 0));
    let rig = Rig::new(textbook());
    let steps = [Step::Data("a"), Step::Trailers(trailers())];
    let mut body = get(&rig, answer(200, &[], Script::new(steps).of_known_length()));
    assert_eq!((next(&mut body), rig.in_flight()), (data("a"), 0), "the last byte of a known length is the end");
    assert_eq!((next(&mut body), rig.window()), (Seen::Trailers(trailers()), (1, 0)));
}

#[test]
fn hints_are_the_inner_body_s() {
    let rig = Rig::new(textbook());
    let steps = [Step::Data("ab"), Step::Data("c")];
    let mut body = get(&rig, answer(200, &[], Script::new(steps).of_known_length()));
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(3), false));
    next(&mut body);
    assert_eq!(body.size_hint().exact(), Some(1));
    assert!(format!("{body:?}").contains("Script"));
}

#[test]
fn r11_a_body_dropped_at_once_says_nothing() {
    let rig = Rig::new(textbook());
    for _ in 0..10 {
        drop(script(&rig, 200, [Step::Data("a"), Step::Data("b")]));
    }
    assert_eq!((rig.in_flight(), rig.window(), rig.snapshot().totals.abandoned), (0, (0, 0), 10));
}

#[test]
fn r11_a_body_that_was_silent_for_500_ms_is_a_failure_of_the_target() {
    for (silent, failures) in [(ms(500) - Duration::from_nanos(1), 0), (ms(500), 1), (secs(60), 1)] {
        let rig = Rig::new(textbook());
        let mut body = script(&rig, 200, [Step::Data("a"), Step::Wait]);
        assert_eq!((next(&mut body), next(&mut body)), (data("a"), Seen::Nothing));
        rig.advance(silent);
        drop(body);
        assert_eq!((rig.window(), rig.in_flight()), ((failures, failures), 0), "{silent:?}");
    }
}

#[test]
fn r11_a_flowing_body_that_the_client_leaves_is_no_failure_however_long_it_ran() {
    let rig = Rig::new(textbook());
    let mut body = script(&rig, 200, (0..100).map(|_| Step::Data("part")));
    for _ in 0..99 {
        rig.advance(ms(499));
        assert_eq!(next(&mut body), data("part"));
    }
    rig.advance(ms(499));
    drop(body);
    assert_eq!((rig.window(), rig.snapshot().totals.abandoned), ((0, 0), 1));
}

#[test]
fn r11_headers_are_a_sign_of_life_and_polls_without_a_frame_are_none() {
    let rig = Rig::new(textbook());
    let inner = tower::service_fn(|_: http::Request<()>| async {
        tokio::task::yield_now().await;
        Ok::<_, &'static str>(answer(200, &[], Script::new((0..9).map(|_| Step::Wait))))
    });
    let mut future = Box::pin(rig.guard(HttpClassifier::new(), inner).call(request()));
    assert!(super::support::poll(&mut future).is_pending());
    // The answer takes long; its body is left soon after it.
    rig.advance(secs(10));
    let std::task::Poll::Ready(Ok(response)) = super::support::poll(&mut future) else { panic!("it is ready") };
    rig.advance(ms(499));
    drop(response);
    assert_eq!(rig.window(), (0, 0));
    let mut body = script(&rig, 200, (0..9).map(|_| Step::Wait));
    assert_eq!(next(&mut body), Seen::Nothing);
    for _ in 0..5 {
        rig.advance(ms(100));
        assert_eq!(next(&mut body), Seen::Nothing);
    }
    drop(body);
    assert_eq!(rig.window(), (1, 1));
}

#[test]
fn r11_a_caller_who_does_not_read_says_nothing_about_the_target() {
    let rig = Rig::new(textbook());
    let body = script(&rig, 200, [Step::Data("a"), Step::Wait]);
    rig.advance(secs(60));
    drop(body);
    let mut body = script(&rig, 200, [Step::Data("a"), Step::Wait]);
    assert_eq!(next(&mut body), data("a"));
    rig.advance(secs(60));
    drop(body);
    // Nor does the time before it began to wait.
    let mut body = script(&rig, 200, [Step::Data("a"), Step::Wait]);
    assert_eq!(next(&mut body), data("a"));
    rig.advance(secs(60));
    assert_eq!(next(&mut body), Seen::Nothing);
    rig.advance(ms(499));
    drop(body);
    assert_eq!((rig.window(), rig.in_flight(), rig.snapshot().totals.abandoned), ((0, 0), 0, 3));
}

#[test]
fn r11_the_policy_s_choice_goes_before() {
    let rig = Rig::new(textbook().on_abandon(OnAbandon::Failure));
    drop(script(&rig, 200, [Step::Data("a")]));
    assert_eq!(rig.window(), (1, 1));
    let rig = Rig::new(textbook().on_abandon(OnAbandon::Ignore));
    let body = script(&rig, 200, [Step::Wait]);
    rig.advance(secs(60));
    drop(body);
    assert_eq!(rig.window(), (0, 0));
}

#[test]
fn r11_a_body_dropped_by_a_panic_is_a_failure() {
    let rig = Rig::new(textbook().on_abandon(OnAbandon::Ignore));
    let body = script(&rig, 200, [Step::Data("a")]);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _body = body;
        std::panic::resume_unwind(Box::new("the server panics"));
    }));
    assert!(unwound.is_err());
    assert_eq!((rig.window(), rig.in_flight()), ((1, 1), 0));
}

#[test]
fn r09_the_time_of_a_call_is_to_its_headers() {
    let rig = Rig::new(textbook().slow_call(secs(1)));
    let mut body = script(&rig, 200, [Step::Data("a"), Step::Data("b")]);
    for _ in 0..2 {
        rig.advance(secs(5));
        next(&mut body);
    }
    assert_eq!(
        (next(&mut body), rig.snapshot().totals.slow),
        (Seen::End, 0),
        "how fast a body is read is its reader's doing"
    );
    let inner = tower::service_fn(|_: http::Request<()>| async {
        tokio::task::yield_now().await;
        Ok::<_, &'static str>(answer(200, &[], Script::new([])))
    });
    let mut future = Box::pin(rig.guard(HttpClassifier::new(), inner).call(request()));
    assert!(super::support::poll(&mut future).is_pending());
    rig.advance(secs(1));
    let std::task::Poll::Ready(Ok(response)) = super::support::poll(&mut future) else { panic!("it is ready") };
    assert_eq!((next(&mut response.into_body()), rig.snapshot().totals.slow), (Seen::End, 1));
}

#[test]
fn r05_a_body_that_outlives_its_generation_is_stale() {
    let rig = Rig::new(textbook());
    let mut body = script(&rig, 200, [Step::Data("a")]);
    rig.trip();
    assert_eq!((next(&mut body), next(&mut body)), (data("a"), Seen::End));
    let snapshot = rig.snapshot();
    assert_eq!((snapshot.totals.stale, snapshot.in_flight, snapshot.state), (1, 0, State::Open));
}
