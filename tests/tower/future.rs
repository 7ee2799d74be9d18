//! The future of a request: when it settles, and what its end before time means.

use std::future::{Future, pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use portcullis::tower::classify_fn;
use portcullis::{OnAbandon, Outcome, PolicyBuilder, State};
use tower::{Service, service_fn};

use super::support::{Readiness, Rig, Watched, now, poll};
use crate::common::{ms, secs, textbook};

type Answer = Result<u16, &'static str>;

/// Failures that hide in an `Ok`.
fn by_status(result: &Answer) -> Outcome {
    match result {
        Ok(503) | Err(_) => Outcome::Failure,
        Ok(499) => Outcome::Ignored,
        Ok(_) => Outcome::Success,
    }
}

#[test]
fn classify_fn_judges_the_whole_result() {
    let rig = Rig::new(textbook());
    let mut service = rig.guard::<u16, _, _>(classify_fn(by_status), service_fn(|status| ready(Ok(status))));
    for status in [200, 404, 503, 499, 503] {
        assert_eq!(now(service.call(status)), Ok(status));
    }
    let totals = rig.snapshot().totals;
    assert_eq!((totals.success, totals.failure, totals.ignored), (2, 2, 1));
    assert_eq!(rig.window(), (4, 2));
    assert_eq!(now(service.call(503)), Ok(503));
    assert_eq!(rig.snapshot().state, State::Open);
}

#[test]
fn the_permit_is_back_when_the_future_is_ready_though_it_lives_on() {
    let rig = Rig::new(textbook().max_in_flight(1));
    let mut service = rig.guard::<u16, _, _>(classify_fn(by_status), service_fn(|status| ready(Ok(status))));
    let mut finished = Vec::new();
    for status in 0..10 {
        let mut future = Box::pin(service.call(status));
        assert_eq!(poll(&mut future), Poll::Ready(Ok(status)));
        finished.push(future);
        assert_eq!((rig.in_flight(), rig.window().0), (0, u64::from(status) + 1));
    }
    drop(finished);
    assert_eq!((rig.snapshot().totals.abandoned, rig.snapshot().totals.success), (0, 10));
}

/// Drops a call that never ends, after a while.
fn hang(rig: &Rig, after: Duration) {
    let mut service = rig.guard::<u16, _, _>(classify_fn(by_status), service_fn(|_| pending::<Answer>()));
    let mut future = Box::pin(service.call(1));
    assert!(poll(&mut future).is_pending());
    rig.advance(after);
    assert!(poll(&mut future).is_pending());
    assert_eq!(rig.in_flight(), 1);
}

#[test]
fn r11_a_dropped_future_is_a_failure_from_500_ms_on() {
    let rig = Rig::new(textbook());
    (0..10).for_each(|_| hang(&rig, ms(500) - Duration::from_nanos(1)));
    assert_eq!((rig.window(), rig.snapshot().totals.abandoned), ((0, 0), 10));
    (0..5).for_each(|_| hang(&rig, ms(500)));
    assert_eq!((rig.snapshot().state, rig.in_flight()), (State::Open, 0));
}

#[test]
fn a_call_stalls_by_when_its_future_was_polled_first() {
    let rig = Rig::new(textbook().max_in_flight(10).stall_after(secs(8)).stalled_calls(9));
    let mut service = rig.guard::<u16, _, _>(classify_fn(by_status), service_fn(|_| pending::<Answer>()));
    // Its permit is held.
    let waiting = Box::pin(service.call(1));
    let mut begun = Box::pin(service.call(1));
    rig.advance(secs(5));
    assert!(poll(&mut begun).is_pending());
    rig.advance(secs(4));
    assert_eq!(rig.snapshot().stalled, 1);
    drop(waiting);
    assert_eq!(rig.snapshot().stalled, 0);
    rig.advance(secs(5));
    assert_eq!((rig.snapshot().stalled, rig.in_flight()), (1, 1));
    drop(begun);
    assert_eq!((rig.snapshot().stalled, rig.in_flight(), rig.window()), (0, 0, (1, 1)));
}

#[test]
fn r11_the_policy_s_choice_goes_before() {
    let failures = |choice: OnAbandon, after: Duration| {
        let rig = Rig::new(textbook().on_abandon(choice));
        hang(&rig, after);
        rig.window().1
    };
    assert_eq!(failures(OnAbandon::Ignore, secs(60)), 0);
    assert_eq!(failures(OnAbandon::Failure, ms(0)), 1);
    assert_eq!(failures(OnAbandon::FailureAfter(secs(3)), ms(2_999)), 0);
    assert_eq!(failures(OnAbandon::FailureAfter(secs(3)), secs(3)), 1);
}

#[test]
fn r11_a_call_that_hangs_in_readiness_is_abandoned_too() {
    let rig = Rig::new(textbook());
    let mut service = rig.guard::<u16, _, _>(classify_fn(by_status), Watched::new(Readiness::Never));
    let mut future = Box::pin(service.call(1));
    assert!(poll(&mut future).is_pending());
    rig.advance(secs(1));
    drop(future);
    assert_eq!((rig.window(), rig.in_flight()), ((1, 1), 0));
}

#[test]
fn r11_a_future_dropped_before_its_first_poll_gives_its_permit_back() {
    let rig = Rig::new(textbook());
    let inner = Watched::new(Readiness::Ready);
    let mut service = rig.guard::<u16, _, _>(classify_fn(by_status), inner.clone());
    drop(service.call(1));
    assert_eq!((rig.in_flight(), rig.snapshot().totals.abandoned, inner.uses()), (0, 1, (0, 0)));
}

fn panics<V>() -> V {
    std::panic::resume_unwind(Box::new("a call that panics"))
}

/// Counts what a panic in a call comes to.
fn after_panic(policy: PolicyBuilder, call: impl FnOnce(&Rig)) {
    let rig = Rig::new(policy);
    assert!(catch_unwind(AssertUnwindSafe(|| call(&rig))).is_err());
    let totals = rig.snapshot().totals;
    assert_eq!((totals.failure, totals.abandoned, rig.in_flight(), rig.window()), (1, 0, 0, (1, 1)));
}

#[test]
fn r11_a_panic_anywhere_in_a_call_is_a_failure() {
    let policy = || textbook().on_abandon(OnAbandon::Ignore);
    after_panic(policy(), |rig| {
        let inner = Watched::new(Readiness::Panics);
        let _ = now(rig.guard::<u16, _, _>(classify_fn(by_status), inner).call(1));
    });
    after_panic(policy(), |rig| {
        let inner = service_fn(|_: u16| panics::<std::future::Ready<Answer>>());
        let _ = now(rig.guard::<u16, _, _>(classify_fn(by_status), inner).call(1));
    });
    after_panic(policy(), |rig| {
        let inner = service_fn(|_: u16| async { panics::<Answer>() });
        let _ = now(rig.guard::<u16, _, _>(classify_fn(by_status), inner).call(1));
    });
    after_panic(policy(), |rig| {
        let inner = service_fn(|_: u16| ready(Answer::Ok(1)));
        let _ = now(rig.guard::<u16, _, _>(classify_fn(|_: &Answer| panics::<Outcome>()), inner).call(1));
    });
}

#[test]
fn r11_a_panic_is_a_failure_while_the_future_that_panicked_still_lives() {
    let rig = Rig::new(textbook().on_abandon(OnAbandon::Ignore));
    let inner = service_fn(|_: u16| async { panics::<Answer>() });
    let mut service = rig.guard::<u16, _, _>(classify_fn(by_status), inner);
    let mut future = Box::pin(service.call(1));
    // As a runtime does: the panic is caught around the poll, the task dropped after it.
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut future))).is_err());
    assert_eq!((rig.window(), rig.in_flight()), ((1, 1), 0));
    drop(future);
    assert_eq!((rig.snapshot().totals.failure, rig.snapshot().totals.abandoned), (1, 0));
}

#[test]
fn r04_a_probe_whose_future_is_dropped_hands_its_slot_back() {
    let rig = Rig::new(textbook());
    rig.trip();
    rig.advance(secs(30));
    hang(&rig, ms(10));
    assert_eq!((rig.snapshot().state, rig.snapshot().probes_in_flight), (State::HalfOpen, 0));
    hang(&rig, secs(1));
    assert_eq!(rig.snapshot().state, State::Open, "a probe that hung is a failure");
}

#[tokio::test]
async fn a_task_that_panics_on_a_runtime_is_a_failure() {
    let rig = Rig::new(textbook().on_abandon(OnAbandon::Ignore));
    let inner = service_fn(|_: u16| async {
        tokio::task::yield_now().await;
        panics::<Answer>()
    });
    let mut service = rig.guard::<u16, _, _>(classify_fn(by_status), inner);
    let task = tokio::spawn(service.call(1));
    assert!(task.await.is_err_and(|error| error.is_panic()));
    assert_eq!((rig.window(), rig.in_flight()), ((1, 1), 0));
}

#[tokio::test]
async fn a_task_that_is_aborted_is_abandoned() {
    let rig = Rig::new(textbook());
    let mut service = rig.guard::<u16, _, _>(classify_fn(by_status), service_fn(|_| pending::<Answer>()));
    let task = tokio::spawn(service.call(1));
    tokio::task::yield_now().await;
    rig.advance(secs(1));
    task.abort();
    assert!(task.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!((rig.window(), rig.in_flight(), rig.snapshot().totals.abandoned), ((1, 1), 0, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_settle_exactly_once_each() {
    let rig = Rig::new(textbook().max_in_flight(1_000).min_calls(10).failure_rate(1.0));
    let inner = service_fn(|number: u16| async move {
        tokio::task::yield_now().await;
        Answer::Ok(number % 7)
    });
    let service = rig.guard::<u16, _, _>(classify_fn(by_status), inner);
    let tasks: Vec<_> = (0..500).map(|number| tokio::spawn(service.clone().call(number))).collect();
    for (number, task) in (0..).zip(tasks) {
        assert_eq!(task.await.unwrap(), Ok(number % 7));
    }
    let totals = rig.snapshot().totals;
    assert_eq!((totals.admitted, totals.success, rig.in_flight()), (500, 500, 0));
}

#[test]
fn a_future_polled_past_its_end_stays_quiet() {
    let rig = Rig::new(textbook());
    rig.trip();
    let mut service = rig.guard::<u16, _, _>(classify_fn(by_status), service_fn(|status| ready(Ok(status))));
    let mut refused = Box::pin(service.call(1));
    let first = poll(&mut refused);
    assert_eq!(poll(&mut refused), first);
    fn is_future<F: Future>(_: &F) {}
    is_future(&refused);
}
