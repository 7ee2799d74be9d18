use std::cell::Cell;
use std::collections::VecDeque;
use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use http::{Response, StatusCode};
use http_body::{Body, Frame};
use portcullis::tower::{Classify, GuardedBody, HttpClassifier, classify_fn};
use portcullis::{Engine, Outcome, State};

use super::in_tower::{layered, now, shared};
use super::kit::{c0, done, elapsed};
use crate::common::{Bench, T, ms, secs};

fn state(engine: &Engine) -> State {
    engine.snapshot(T).unwrap().state
}

/// A body of a few frames, of unknown length.
struct Frames(VecDeque<Result<&'static [u8], &'static str>>);

impl Body for Frames {
    type Data = &'static [u8];
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<&'static [u8]>, &'static str>>> {
        Poll::Ready(self.0.pop_front().map(|frame| frame.map(Frame::data)))
    }
}

fn respond(
    engine: &std::sync::Arc<Engine>,
    status: u16,
    frames: impl IntoIterator<Item = Result<&'static [u8], &'static str>>,
) -> Response<GuardedBody<Frames>> {
    let mut response = Response::new(Frames(frames.into_iter().collect()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    let permit = engine.admit_async(T).unwrap();
    HttpClassifier::new().settle(permit, Ok::<_, ()>(response)).unwrap()
}

fn read(response: Response<GuardedBody<Frames>>) {
    let mut body = Box::pin(response.into_body());
    let mut cx = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(Ok(_))) = body.as_mut().poll_frame(&mut cx) {}
}

#[test]
fn in01_a_refusal_of_the_targets_is_a_healthy_answer() {
    let (engine, _time) = shared(c0());
    for (status, times) in [(400, 100), (404, 100), (401, 5), (408, 5), (200, 5), (302, 5)] {
        (0..times).for_each(|_| read(respond(&engine, status, [])));
    }
    let totals = engine.snapshot(T).unwrap().totals;
    assert_eq!((state(&engine), totals.success, totals.failure), (State::Closed, 220, 0));
    (0..5).for_each(|_| read(respond(&engine, 503, [])));
    assert_eq!(state(&engine), State::Open);
    // 408 is a success: a target that says so is there. 429 is a failure unless set otherwise.
    let (engine, _time) = shared(c0());
    (0..5).for_each(|_| read(respond(&engine, 429, [])));
    assert_eq!(state(&engine), State::Open);
    let (engine, _time) = shared(c0());
    let kind = HttpClassifier::new().too_many_requests(Outcome::Success);
    for _ in 0..5 {
        let mut response = Response::new(Frames(VecDeque::new()));
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        read(kind.settle(engine.admit_async(T).unwrap(), Ok::<_, ()>(response)).unwrap());
    }
    assert_eq!(state(&engine), State::Closed);
}

#[test]
fn in03_the_callers_own_end_is_told_by_scope_not_by_the_errors_shape() {
    // Whoever settles knows its scope: here a flag that the classifier closes over.
    let is_over = Cell::new(true);
    let bench = Bench::new(c0());
    let judge = |answer: &Result<(), &str>| match answer {
        Err(_) if is_over.get() => Outcome::Ignored,
        Err(_) => Outcome::Failure,
        Ok(()) => Outcome::Success,
    };
    for _ in 0..80 {
        assert_eq!(bench.engine.call(T, judge, || Err("budget exceeded")), Ok(Err("budget exceeded")));
    }
    assert_eq!((bench.state(), bench.snapshot().totals.ignored), (State::Closed, 80));
    is_over.set(false);
    (0..5).for_each(|_| done(bench.engine.call(T, judge, || Err("budget exceeded"))));
    assert_eq!(bench.state(), State::Open);
}

#[test]
fn in12_a_body_that_breaks_is_a_failure_and_the_response_waits_for_nothing() {
    let (engine, _time) = shared(c0());
    for call in 0..5 {
        // The response is here while its body isn't read.
        let response = respond(&engine, 200, [Ok(&b"a"[..]), Err("reset")]);
        assert_eq!((response.status(), engine.snapshot(T).unwrap().in_flight), (StatusCode::OK, 1), "call {call}");
        read(response);
    }
    let totals = engine.snapshot(T).unwrap().totals;
    assert_eq!((state(&engine), totals.failure, totals.success), (State::Open, 5, 0));
    // Dropped unread: abandoned, and no evidence, since nobody waited for the target.
    for silence in [ms(0), ms(500), ms(60_000)] {
        let (engine, time) = shared(c0());
        for _ in 0..5 {
            let response = respond(&engine, 200, [Ok(&b"a"[..])]);
            time.increment(silence);
            drop(response);
        }
        assert_eq!(state(&engine), State::Closed, "{silence:?}");
        assert_eq!(engine.snapshot(T).unwrap().totals.abandoned, 5);
    }
}

/// Amended R4: a probe takes its verdict at the headers and only holds its bulkhead slot longer.
#[test]
fn in12_a_probe_is_judged_at_its_headers() {
    let (engine, time) = shared(c0().max_in_flight(1));
    (0..5).for_each(|_| done(engine.admit(T).unwrap().failure()));
    time.increment(secs(30));
    let response = respond(&engine, 200, [Ok(&b"a"[..]), Err("reset")]);
    assert_eq!((state(&engine), engine.snapshot(T).unwrap().in_flight), (State::Closed, 1));
    read(response);
    let snapshot = engine.snapshot(T).unwrap();
    assert_eq!((snapshot.state, snapshot.in_flight, snapshot.totals.success), (State::Closed, 0, 1));
}

#[test]
fn in13_a_failure_in_an_ok_is_a_failure() {
    let (engine, _time) = shared(c0());
    let inner = tower::service_fn(|status: u32| ready(Ok::<u32, &str>(status)));
    let judge = |result: &Result<u32, &str>| match result {
        Ok(503) => Outcome::Failure,
        Ok(_) => Outcome::Success,
        Err(_) => Outcome::Ignored,
    };
    let mut service = layered(&engine, inner, classify_fn(judge));
    (0..5).for_each(|_| assert_eq!(now(tower::Service::call(&mut service, 503)), Ok(503)));
    assert_eq!(state(&engine), State::Open);
}

#[test]
fn in18_a_trial_with_little_traffic_stays_until_its_quota() {
    // protocols.md: it stays HALF_OPEN without limit; an open end is no wedge, since the next caller is always let in.
    let bench = elapsed(c0().successes_to_close(10));
    for call in 1..=10 {
        bench.advance(secs(1_800));
        assert_eq!(bench.state(), State::HalfOpen, "before success {call}");
        bench.succeed(1);
    }
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn in19_one_good_probe_need_not_restore_all() {
    let bench = elapsed(c0().successes_to_close(3));
    bench.succeed(2);
    bench.fail(1);
    assert_eq!(bench.state(), State::Open);
    bench.advance(secs(30));
    bench.succeed(3);
    assert_eq!(bench.state(), State::Closed);
}
