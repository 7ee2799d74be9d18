use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, Pending, Ready, pending, ready};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use portcullis::tower::{Admission, AdmissionFuture, AdmissionLayer, Classify, Error, HttpClassifier, classify_fn};
use portcullis::{Clock, Engine, Outcome, PolicyBuilder, Rejection, State};
use tower::{Layer, Service};

use super::kit::{c0, done, t0};
use crate::common::{T, ms, secs};

/// An engine in an `Arc`, as the layer wants it, with its time.
pub(super) fn shared(policy: PolicyBuilder) -> (Arc<Engine>, Arc<quanta::Mock>) {
    let (clock, time) = Clock::mock();
    let engine = Engine::builder().policy(policy.build().unwrap()).clock(clock).seed(1).build();
    (Arc::new(engine), time)
}

pub(super) fn layered<S, C: Clone>(
    engine: &Arc<Engine>,
    inner: S,
    classifier: C,
) -> Admission<S, fn(&u32) -> String, C> {
    let key: fn(&u32) -> String = |_| T.to_owned();
    AdmissionLayer::new(Arc::clone(engine), key, classifier).layer(inner)
}

pub(super) fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

pub(super) fn now<F: Future>(future: F) -> F::Output {
    match poll(pin!(future)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it was to be ready"),
    }
}

/// By error: any is a failure.
fn by_error<T, E>(result: &Result<T, E>) -> Outcome {
    if result.is_ok() { Outcome::Success } else { Outcome::Failure }
}

fn state(engine: &Engine) -> State {
    engine.snapshot(T).unwrap().state
}

/// A service that notes what is done to it, and panics if it is called on a clone that wasn't made ready.
#[derive(Debug)]
struct Inner {
    is_ready: bool,
    readiness: Rc<Cell<Poll<Result<(), &'static str>>>>,
    polls: Rc<Cell<u32>>,
    calls: Rc<Cell<u32>>,
}

impl Inner {
    fn new(readiness: Poll<Result<(), &'static str>>) -> Self {
        let readiness = Rc::new(Cell::new(readiness));
        Self { is_ready: false, readiness, polls: Rc::default(), calls: Rc::default() }
    }
}

impl Clone for Inner {
    fn clone(&self) -> Self {
        let (readiness, polls, calls) = (Rc::clone(&self.readiness), Rc::clone(&self.polls), Rc::clone(&self.calls));
        Self { is_ready: false, readiness, polls, calls }
    }
}

impl Service<u32> for Inner {
    type Response = u32;
    type Error = &'static str;
    type Future = Ready<Result<u32, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.polls.set(self.polls.get() + 1);
        self.is_ready = self.readiness.get() == Poll::Ready(Ok(()));
        self.readiness.get()
    }

    fn call(&mut self, request: u32) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "called without being ready");
        self.calls.set(self.calls.get() + 1);
        ready(Ok(request))
    }
}

#[test]
fn in09_only_a_service_that_was_made_ready_is_called() {
    let (engine, _time) = shared(c0());
    let inner = Inner::new(Poll::Ready(Ok(())));
    let mut service = layered(&engine, inner.clone(), classify_fn(by_error));
    // First call, a call of a clone that was never polled, and a call again as a retry would make it.
    assert_eq!(now(service.call(1)), Ok(1));
    let mut clone = service.clone();
    assert_eq!(now(clone.call(2)), Ok(2));
    assert!(service.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready());
    assert_eq!(now(service.clone().call(3)), Ok(3));
    assert_eq!((inner.calls.get(), inner.polls.get()), (3, 3));
}

#[test]
fn in10_an_open_breaker_refuses_without_touching_the_inner_service() {
    let (engine, time) = shared(c0());
    let inner = Inner::new(Poll::Pending);
    let mut service = layered(&engine, inner.clone(), classify_fn(by_error));
    (0..5).for_each(|_| done(engine.admit(T).unwrap().failure()));
    assert!(matches!(service.poll_ready(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(()))));
    assert_eq!(now(service.call(1)), Err(Error::Rejected(Rejection::Open { retry_after: secs(30) })));
    assert_eq!((inner.polls.get(), inner.calls.get()), (0, 0));
    // Closed again: readiness is asked at each call, so a connection that broke since is seen.
    time.increment(secs(30));
    inner.readiness.set(Poll::Ready(Ok(())));
    assert_eq!(now(service.call(2)), Ok(2));
    inner.readiness.set(Poll::Ready(Err("disconnected")));
    assert_eq!(now(service.call(3)), Err(Error::Inner("disconnected")));
    inner.readiness.set(Poll::Pending);
    let mut waiting = Box::pin(service.call(4));
    assert!(poll(waiting.as_mut()).is_pending());
}

/// The inner service isn't ready: its error settles the probe.
#[test]
fn sm36_a_probe_whose_connection_fails_is_a_failed_probe() {
    let (engine, time) = shared(c0());
    let inner = Inner::new(Poll::Ready(Err("no connection")));
    let mut service = layered(&engine, inner.clone(), classify_fn(by_error));
    (0..5).for_each(|_| done(engine.admit(T).unwrap().failure()));
    time.increment(secs(30));
    assert_eq!(now(service.call(1)), Err(Error::Inner("no connection")));
    assert_eq!((state(&engine), engine.snapshot(T).unwrap().in_flight), (State::Open, 0));
    time.increment(secs(1));
    let refused = Error::Rejected(Rejection::Open { retry_after: secs(29) });
    assert_eq!(now(service.clone().call(2)), Err(refused));
}

#[test]
fn pm10_the_permit_is_back_when_the_response_is_there() {
    let (engine, _time) = shared(c0().max_in_flight(1));
    let mut service = layered(&engine, Inner::new(Poll::Ready(Ok(()))), classify_fn(by_error));
    let mut first = Box::pin(service.call(1));
    assert_eq!(poll(first.as_mut()), Poll::Ready(Ok(1)));
    // The finished future still lives.
    assert_eq!(now(service.call(2)), Ok(2));
    drop(first);
    assert_eq!(engine.snapshot(T).unwrap().totals.admitted, 2);
}

#[test]
fn pm12_a_ready_clone_that_never_calls_holds_nothing() {
    let (engine, _time) = shared(c0().max_in_flight(2));
    let service = layered(&engine, Inner::new(Poll::Ready(Ok(()))), classify_fn(by_error));
    let mut clones = [service.clone(), service.clone(), service];
    for clone in &mut clones {
        assert!(clone.poll_ready(&mut Context::from_waker(Waker::noop())).is_ready());
    }
    assert!(engine.is_empty(), "being ready asks for nothing");
    let [_, _, mut last] = clones;
    assert_eq!(now(last.call(1)), Ok(1));
}

#[test]
fn pm16_a_task_may_admit_as_often_as_there_are_permits() {
    let (engine, _time) = shared(c0().max_in_flight(10_000));
    let mut service =
        layered(&engine, tower::service_fn(|_: u32| pending::<Result<u32, Infallible>>()), classify_fn(by_error));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    // Tokio's budget per poll is 128 operations; an atomic try takes none of them.
    let calls: Vec<_> = runtime.block_on(async { (0..10_000).map(|call| service.call(call)).collect() });
    assert_eq!((engine.snapshot(T).unwrap().in_flight, engine.snapshot(T).unwrap().refusals.total()), (10_000, 0));
    let refused = now(service.call(0));
    assert_eq!(refused, Err(Error::Rejected(Rejection::Saturated { limit: 10_000 })));
    drop(calls);
    assert_eq!(engine.snapshot(T).unwrap().in_flight, 0);
}

#[test]
fn in04_a_hung_target_opens_with_the_timeout_inside_or_outside() {
    // Inside: the timeout is an error of what the breaker wraps.
    let (engine, _time) = shared(t0());
    let inner = tower::service_fn(|_: u32| ready(Err::<u32, _>("elapsed")));
    let mut service = layered(&engine, inner, classify_fn(by_error));
    (0..5).for_each(|call| assert_eq!(now(service.call(call)), Err(Error::Inner("elapsed"))));
    assert_eq!(state(&engine), State::Open);
    // Outside: the future is dropped after a second.
    for (ran, expected) in [(secs(1), State::Open), (ms(500), State::Open), (ms(499), State::Closed)] {
        let (engine, time) = shared(t0());
        let inner = tower::service_fn(|_: u32| -> Pending<Result<u32, Infallible>> { pending() });
        let mut service = layered(&engine, inner, classify_fn(by_error));
        for call in 0..5 {
            let mut future = Box::pin(service.call(call));
            assert!(poll(future.as_mut()).is_pending());
            time.increment(ran);
        }
        assert_eq!((state(&engine), engine.snapshot(T).unwrap().in_flight), (expected, 0), "after {ran:?}");
    }
}

#[test]
fn in04_an_error_that_nobody_named_is_a_failure() {
    fn is_failure<E: Clone>(error: E) -> bool {
        let (engine, _time) = shared(c0());
        let permit = engine.admit_async(T).unwrap();
        let result: Result<http::Response<String>, E> = Err(error);
        assert!(HttpClassifier::new().settle(permit, result).is_err());
        engine.snapshot(T).unwrap().totals.failure == 1
    }
    assert!(is_failure("anything") && is_failure(std::io::ErrorKind::TimedOut) && is_failure(()));
}

#[test]
fn in07_refusals_are_no_evidence() {
    let (engine, time) = shared(c0());
    let mut service = layered(&engine, Inner::new(Poll::Ready(Ok(()))), classify_fn(by_error));
    (0..5).for_each(|_| done(engine.admit(T).unwrap().failure()));
    for call in 0..100_000 {
        assert!(matches!(now(service.call(call)), Err(Error::Rejected(Rejection::Open { .. }))));
    }
    time.increment(secs(30));
    assert_eq!(now(service.call(1)), Ok(1));
    engine.admit(T).unwrap().failure();
    let snapshot = engine.snapshot(T).unwrap();
    assert_eq!((snapshot.state, snapshot.window.unwrap().calls, snapshot.refusals.open), (State::Closed, 1, 100_000));
}

#[test]
fn km03_the_layers_future_is_send_and_holds_no_guard() {
    fn is_sendable<T: Send + 'static>(_: &T) {}
    let (engine, _time) = shared(c0());
    let inner = tower::service_fn(|_: u32| pending::<Result<u32, Infallible>>());
    let mut service = layered(&engine, inner, classify_fn(by_error));
    let mut future: Pin<Box<AdmissionFuture<_, _, _, _>>> = Box::pin(service.call(1));
    is_sendable(&future);
    assert!(poll(future.as_mut()).is_pending());
    // On the same thread, under the same key: everything that needs the shard, its write lock too.
    engine.admit(T).unwrap().success();
    engine.sweep();
    (0..200).for_each(|key| drop(engine.admit(format!("other {key}").as_str()).unwrap()));
    assert_eq!(engine.snapshot(T).unwrap().in_flight, 1);
    drop(future);
    assert_eq!(engine.snapshot(T).unwrap().in_flight, 0);
}

#[test]
fn pm22_a_refused_request_never_reaches_the_inner_service() {
    let (engine, _time) = shared(c0().max_in_flight(1));
    let inner = Inner::new(Poll::Ready(Ok(())));
    let mut service = layered(&engine, inner.clone(), classify_fn(by_error));
    let _held = engine.admit(T).unwrap();
    assert!(now(service.call(1)).is_err());
    assert_eq!((inner.polls.get(), inner.calls.get()), (0, 0));
    // Refusals come from the future, which may be asked as often as one likes; admission happens once.
    let mut refused = Box::pin(service.call(2));
    assert!(poll(refused.as_mut()).is_ready() && poll(refused.as_mut()).is_ready());
    assert_eq!(engine.snapshot(T).unwrap().refusals.saturated, 2);
}
