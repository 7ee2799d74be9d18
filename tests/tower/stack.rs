//! The layer among others: timeouts and retries inside and outside, two layers of a kind.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use portcullis::tower::{Error, classify_fn};
use portcullis::{Outcome, Rejection, State};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, layer::layer_fn, service_fn};

use super::support::{Rig, now, poll};
use crate::common::{ms, secs, textbook};

type Fault = Box<dyn std::error::Error + Send + Sync>;
type Call = Pin<Box<dyn Future<Output = Result<u16, Fault>> + Send>>;

fn verdict<E>(result: &Result<u16, E>) -> Outcome {
    if matches!(result, Ok(status) if *status < 500) { Outcome::Success } else { Outcome::Failure }
}

/// A refusal of a layer further in isn't the target's.
fn own(result: &Result<u16, Error<Fault>>) -> Outcome {
    match result {
        Err(Error::Rejected(_)) => Outcome::Ignored,
        other => verdict(other),
    }
}

/// A timeout on the engine's clock: checked at each poll.
#[derive(Clone)]
struct Timeout<S> {
    inner: S,
    time: Arc<quanta::Mock>,
    after_ms: u64,
}

impl<S, E> Service<u16> for Timeout<S>
where
    S: Service<u16, Response = u16, Error = E>,
    S::Future: Send + 'static,
    E: Into<Fault> + 'static,
{
    type Response = u16;
    type Error = Fault;
    type Future = Call;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: u16) -> Call {
        let time = Arc::clone(&self.time);
        let end = time.value() + self.after_ms * 1_000_000;
        let mut call = Box::pin(self.inner.call(request));
        Box::pin(std::future::poll_fn(move |cx| match call.as_mut().poll(cx) {
            Poll::Pending if time.value() >= end => Poll::Ready(Err("timed out".into())),
            Poll::Pending => Poll::Pending,
            Poll::Ready(result) => Poll::Ready(result.map_err(Into::into)),
        }))
    }
}

fn timeout<S>(rig: &Rig, after_ms: u64) -> impl Layer<S, Service = Timeout<S>> + Clone {
    let time = Arc::clone(&rig.time);
    layer_fn(move |inner| Timeout { inner, time: Arc::clone(&time), after_ms })
}

/// Calls again, up to `attempts` times, what failed and wasn't refused.
#[derive(Clone)]
struct Retry<S> {
    inner: S,
    attempts: usize,
}

impl<S, E> Service<u16> for Retry<S>
where
    S: Service<u16, Response = u16, Error = Error<E>> + Clone + Send + 'static,
    S::Future: Send,
    E: Into<Fault> + Send + 'static,
{
    type Response = u16;
    type Error = Error<E>;
    type Future = Pin<Box<dyn Future<Output = Result<u16, Error<E>>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error<E>>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: u16) -> Self::Future {
        let (mut inner, attempts) = (self.inner.clone(), self.attempts);
        Box::pin(async move {
            let mut result = inner.ready().await?.call(request).await;
            for _ in 1..attempts {
                match result {
                    Err(Error::Inner(_)) => result = inner.ready().await?.call(request).await,
                    other => return other,
                }
            }
            result
        })
    }
}

fn hang(_: u16) -> std::future::Pending<Result<u16, Fault>> {
    std::future::pending()
}

#[test]
fn a_timeout_inside_is_a_failure_of_the_target() {
    let rig = Rig::new(textbook());
    let mut service = ServiceBuilder::new()
        .layer(rig.layer(classify_fn(verdict)))
        .layer(timeout(&rig, 100))
        .service(service_fn(hang));
    for _ in 0..5 {
        let mut call = Box::pin(service.call(1));
        assert!(poll(&mut call).is_pending());
        rig.advance(ms(100));
        assert!(matches!(poll(&mut call), Poll::Ready(Err(Error::Inner(_)))));
        assert_eq!(rig.in_flight(), 0);
    }
    let totals = rig.snapshot().totals;
    assert_eq!((rig.snapshot().state, totals.failure, totals.abandoned), (State::Open, 5, 0));
}

#[test]
fn r11_a_timeout_outside_of_a_second_trips_on_a_hung_target_and_a_short_one_does_not() {
    for (after, state) in [(1_000, State::Open), (500, State::Open), (499, State::Closed)] {
        let rig = Rig::new(textbook());
        let mut service = ServiceBuilder::new()
            .layer(timeout(&rig, after))
            .layer(rig.layer(classify_fn(verdict)))
            .service(service_fn(hang));
        for _ in 0..5 {
            let mut call = Box::pin(service.call(1));
            assert!(poll(&mut call).is_pending());
            rig.advance(ms(after));
            assert!(matches!(poll(&mut call), Poll::Ready(Err(_))));
        }
        assert_eq!((rig.snapshot().state, rig.in_flight()), (state, 0), "{after} ms");
        assert_eq!(rig.snapshot().totals.abandoned, 5);
    }
}

#[test]
fn a_retry_outside_has_each_attempt_admitted_and_settled() {
    let rig = Rig::new(textbook());
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&attempts);
    let flaky = service_fn(move |status: u16| {
        let attempt = count.fetch_add(1, Ordering::SeqCst);
        ready(if attempt % 3 == 2 { Ok(status) } else { Err(Fault::from("flaky")) })
    });
    let retry = layer_fn(|inner| Retry { inner, attempts: 3 });
    let mut service = ServiceBuilder::new().layer(retry).layer(rig.layer(classify_fn(verdict))).service(flaky);
    assert!(matches!(now(service.call(200)), Ok(200)));
    let totals = rig.snapshot().totals;
    assert_eq!((totals.admitted, totals.failure, totals.success), (3, 2, 1));
}

#[test]
fn a_retry_outside_stops_at_the_refusal_and_the_target_is_spared() {
    let rig = Rig::new(textbook());
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&attempts);
    let down = service_fn(move |_: u16| {
        count.fetch_add(1, Ordering::SeqCst);
        ready(Err::<u16, Fault>("down".into()))
    });
    let retry = layer_fn(|inner| Retry { inner, attempts: 100 });
    let mut service = ServiceBuilder::new().layer(retry).layer(rig.layer(classify_fn(verdict))).service(down);
    assert!(matches!(now(service.call(1)), Err(Error::Rejected(Rejection::Open { .. }))));
    assert_eq!((attempts.load(Ordering::SeqCst), rig.snapshot().refusals.open), (5, 1));
}

#[test]
fn a_retry_inside_is_one_call_with_one_outcome() {
    let rig = Rig::new(textbook());
    let attempts = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&attempts);
    let flaky = service_fn(move |status: u16| {
        let attempt = count.fetch_add(1, Ordering::SeqCst);
        ready(if attempt == 2 { Ok(status) } else { Err(Error::Inner(Fault::from("flaky"))) })
    });
    let retry = layer_fn(|inner| Retry { inner, attempts: 3 });
    let mut service = ServiceBuilder::new().layer(rig.layer(classify_fn(verdict))).layer(retry).service(flaky);
    assert!(matches!(now(service.call(200)), Ok(200)));
    assert_eq!((rig.snapshot().totals.admitted, rig.window()), (1, (1, 0)));
}

/// Two layers of equal settings around one service, each with an engine of its own, through an outage of 60 s.
fn two_layers(jitter: f64, judge: fn(&Result<u16, Error<Fault>>) -> Outcome) -> Option<u64> {
    let outer = Rig::new(textbook().jitter(jitter));
    let policy = textbook().jitter(jitter).build().unwrap();
    let (clock, inner_time) = portcullis::Clock::mock();
    let inner = portcullis::Engine::builder().policy(policy).clock(clock).seed(99).build();
    let inner = Rig { engine: Arc::new(inner), time: inner_time };
    let is_up = Arc::new(AtomicUsize::new(0));
    let up = Arc::clone(&is_up);
    let target = service_fn(move |_: u16| {
        ready(if up.load(Ordering::SeqCst) == 1 { Ok(200) } else { Err(Fault::from("down")) })
    });
    let layers = ServiceBuilder::new().layer(outer.layer(classify_fn(judge))).layer(inner.layer(classify_fn(verdict)));
    let mut service = layers.service(target);
    let mut call = || _ = now(service.call(1));
    for _ in 0..60 {
        call();
        outer.advance(secs(1));
        inner.advance(secs(1));
    }
    is_up.store(1, Ordering::SeqCst);
    for second in 0..400 {
        call();
        if [&outer, &inner].iter().all(|rig| rig.snapshot().state == State::Closed) {
            return Some(second);
        }
        outer.advance(secs(1));
        inner.advance(secs(1));
    }
    None
}

#[test]
fn cf_09_two_stacked_layers_of_equal_settings_recover() {
    // The wait that was running when the target came back is 60 s: twice that at the most.
    let waited = two_layers(0.0, own).expect("both close");
    assert!(waited <= 120, "{waited} s");
    let waited = two_layers(0.0, verdict).expect("both close, though the outer one takes refusals for failures");
    assert!(waited <= 120, "{waited} s");
}

#[test]
fn cf_09_layers_out_of_step_recover_if_a_refusal_further_in_is_no_evidence() {
    let waited = two_layers(0.2, own).expect("both close");
    assert!(waited <= 120, "{waited} s");
}

#[test]
fn two_layers_of_one_engine_and_key_count_each_call_twice_and_still_recover() {
    let rig = Rig::new(textbook().max_probes(2).successes_to_close(2));
    let layers = ServiceBuilder::new().layer(rig.layer(classify_fn(own))).layer(rig.layer(classify_fn(verdict)));
    let mut service = layers.service(service_fn(|status: u16| ready(Ok::<u16, Fault>(status))));
    assert!(matches!(now(service.call(200)), Ok(200)));
    assert_eq!(rig.window(), (2, 0));
    rig.trip();
    rig.advance(secs(30));
    assert!(matches!(now(service.call(200)), Ok(200)));
    assert_eq!((rig.snapshot().state, rig.in_flight()), (State::Closed, 0));
}
