//! Closures: the outcome before the value, a panic as a failure, a dropped future as abandoned.

use std::cell::Cell;
use std::future::{Future, pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use portcullis::{OnAbandon, Outcome, Rejection, Standalone, State};

use crate::common::{Bench, T, ms, secs, textbook};

fn verdict(value: &Result<u32, &str>) -> Outcome {
    if value.is_ok() { Outcome::Success } else { Outcome::Failure }
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The value of a future that never waits.
fn now<F: Future>(future: F) -> F::Output {
    match poll(pin!(future)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

#[test]
fn r10_call_records_before_it_returns() {
    let bench = Bench::new(textbook());
    for _ in 0..5 {
        assert_eq!(bench.engine.call(T, verdict, || Err("down")), Ok(Err("down")));
    }
    assert_eq!(bench.engine.call(T, verdict, || Ok(1)), Err(Rejection::Open { retry_after: secs(30) }));
    bench.advance(secs(30));
    assert_eq!(bench.engine.call(T, verdict, || Ok(7)), Ok(Ok(7)));
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn r12_call_does_not_run_what_may_not_start() {
    let bench = Bench::tripped(textbook());
    let ran = Cell::new(false);
    let run = || {
        ran.set(true);
        Ok(1)
    };
    assert!(bench.engine.call(T, verdict, run).is_err());
    assert!(bench.engine.target(T).unwrap().call(verdict, run).is_err());
    let asked = || {
        ran.set(true);
        ready(Ok(1))
    };
    assert!(now(bench.engine.call_async(T, verdict, asked)).is_err());
    assert!(now(bench.engine.target(T).unwrap().call_async(verdict, asked)).is_err());
    assert!(!ran.get());
    assert_eq!(bench.snapshot().refusals.open, 4);
}

#[test]
fn r11_a_panic_in_call_or_in_classify_is_a_failure_and_goes_on() {
    let bench = Bench::new(textbook());
    let call = || bench.engine.call(T, |_: &()| Outcome::Success, || std::panic::resume_unwind(Box::new("boom")));
    let payload = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"boom"));
    let classify = || bench.engine.call(T, |_| std::panic::resume_unwind(Box::new("judge")), || 1);
    assert!(catch_unwind(AssertUnwindSafe(classify)).is_err());
    let target = bench.engine.target(T).unwrap();
    let call = || target.call(|_: &()| Outcome::Success, || std::panic::resume_unwind(Box::new("boom")));
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.totals.failure, snapshot.totals.abandoned, snapshot.in_flight), (3, 0, 0));
    assert_eq!(bench.window(), (3, 3));
}

#[test]
fn r11_a_panic_in_an_async_call_is_a_failure_and_goes_on() {
    let bench = Bench::new(textbook());
    let boom = || -> () { std::panic::resume_unwind(Box::new("boom")) };
    let asked = || -> std::future::Ready<()> { std::panic::resume_unwind(Box::new("boom")) };
    let classify = |_: &()| Outcome::Success;
    let judge = |_: &()| -> Outcome { std::panic::resume_unwind(Box::new("judge")) };
    let runs: [&dyn Fn(); 3] = [
        &|| now(bench.engine.call_async(T, classify, || async { boom() })).expect("admitted"),
        &|| now(bench.engine.call_async(T, classify, asked)).expect("admitted"),
        &|| now(bench.engine.call_async(T, judge, || ready(()))).expect("admitted"),
    ];
    for run in runs {
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    }
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.totals.failure, snapshot.totals.abandoned, snapshot.in_flight), (3, 0, 0));
}

#[test]
fn r10_call_async_records_before_it_returns() {
    let bench = Bench::new(textbook());
    for _ in 0..5 {
        assert_eq!(now(bench.engine.call_async(T, verdict, || ready(Err("down")))), Ok(Err("down")));
    }
    assert_eq!(bench.state(), State::Open);
    bench.advance(secs(30));
    let target = bench.engine.target(T).unwrap();
    assert_eq!(now(target.call_async(verdict, || async { Ok(3) })), Ok(Ok(3)));
    assert_eq!(bench.state(), State::Closed);
}

/// Starts an async call that never ends and drops it after a while.
fn hang(bench: &Bench, through_target: bool, after: std::time::Duration) {
    let classify = |_: &()| Outcome::Success;
    let target = bench.engine.target(T).unwrap();
    if through_target {
        let mut call = Box::pin(target.call_async(classify, pending::<()>));
        assert!(poll(call.as_mut()).is_pending());
        bench.advance(after);
    } else {
        let mut call = Box::pin(bench.engine.call_async(T, classify, pending::<()>));
        assert!(poll(call.as_mut()).is_pending());
        assert_eq!(bench.snapshot().in_flight, 1);
        bench.advance(after);
    }
}

#[test]
fn r11_an_async_call_dropped_after_500_ms_is_a_failure_and_before_it_is_not() {
    for through_target in [false, true] {
        let bench = Bench::new(textbook());
        (0..9).for_each(|_| hang(&bench, through_target, ms(500) - std::time::Duration::from_nanos(1)));
        assert_eq!(bench.window(), (0, 0));
        (0..4).for_each(|_| hang(&bench, through_target, ms(500)));
        assert_eq!(bench.window(), (4, 4));
        hang(&bench, through_target, secs(60));
        assert_eq!((bench.state(), bench.snapshot().totals.abandoned), (State::Open, 14));
    }
}

#[test]
fn r11_a_choice_of_the_policy_goes_before_the_async_default() {
    for (choice, after, failures) in [
        (OnAbandon::Ignore, secs(60), 0),
        (OnAbandon::Failure, ms(0), 1),
        (OnAbandon::FailureAfter(secs(2)), ms(1_999), 0),
        (OnAbandon::FailureAfter(secs(2)), secs(2), 1),
    ] {
        let bench = Bench::new(textbook().on_abandon(choice));
        hang(&bench, false, after);
        assert_eq!(bench.window(), (failures, failures), "{choice:?}");
    }
}

#[test]
fn r11_a_future_that_was_never_polled_was_never_a_call() {
    let bench = Bench::new(textbook());
    drop(bench.engine.call_async(T, |_: &()| Outcome::Success, pending::<()>));
    assert!(bench.engine.is_empty());
}

#[test]
fn call_settles_with_every_outcome() {
    let bench = Bench::new(textbook());
    for outcome in [Outcome::Success, Outcome::Failure, Outcome::Ignored] {
        bench.engine.call(T, |_| outcome, || ()).unwrap();
        now(bench.engine.call_async(T, |_| outcome, || ready(()))).unwrap();
    }
    let totals = bench.snapshot().totals;
    assert_eq!((totals.success, totals.failure, totals.ignored), (2, 2, 2));
}

#[test]
fn call_futures_can_move_between_threads() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let bench = Bench::new(textbook());
    let target = bench.engine.target(T).unwrap();
    assert_eq!(now(is_send(bench.engine.call_async(T, verdict, || ready(Ok(1))))), Ok(Ok(1)));
    assert_eq!(now(is_send(target.call_async(verdict, || ready(Ok(1))))), Ok(Ok(1)));
}

#[tokio::test]
async fn call_async_needs_nothing_of_a_runtime_and_runs_on_one() {
    let target = Standalone::new("ledger", textbook().build().unwrap());
    let handle = target.target().unwrap();
    let value = handle.call_async(
        |_| Outcome::Success,
        || async {
            tokio::task::yield_now().await;
            9
        },
    );
    assert_eq!(value.await, Ok(9));
}
