use std::sync::Barrier;

use portcullis::{Outcome, State, Window};

use super::kit::{c0, done, opened, race};
use crate::common::{Bench, T, secs};

#[test]
fn pf03_what_threads_did_is_what_was_counted() {
    // Throughput is the benches' to judge; that the counts are those of some order of the calls is judged here.
    let bench =
        Bench::new(c0().window(Window::calls(100)).min_calls(100).failure_rate(1.0).consecutive_failures(u32::MAX));
    race(4, |number| {
        for call in 0..1_000 {
            let permit = bench.engine.admit(T).unwrap();
            done(if (call + number) % 4 == 0 { permit.success() } else { permit.failure() });
        }
    });
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.totals.success, snapshot.totals.failure, snapshot.totals.admitted), (1_000, 3_000, 4_000));
    assert_eq!((snapshot.window.unwrap().calls, snapshot.in_flight, snapshot.state), (100, 0, State::Closed));
}

#[test]
fn pf07_nothing_is_locked_while_a_call_runs() {
    // Sixteen calls that each wait for all others to be inside: one lock around them, and none would return.
    let bench = Bench::new(c0().max_in_flight(16));
    let inside = Barrier::new(16);
    let answers = race(16, |_| {
        bench.engine.call(
            T,
            |(): &()| Outcome::Success,
            || {
                inside.wait();
                bench.engine.snapshot(T).unwrap();
            },
        )
    });
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(bench.snapshot().totals.success, 16);
}

/// PF-01: a refusal is an answer, never a wait that somebody would have to wake.
#[cfg(feature = "tower")]
#[test]
fn pf01_a_refused_request_is_polled_once() {
    use portcullis::tower::classify_fn;
    let (engine, _time) = super::in_tower::shared(c0().max_in_flight(1));
    let inner = tower::service_fn(|_: u32| std::future::pending::<Result<u32, ()>>());
    let mut service = super::in_tower::layered(&engine, inner, classify_fn(|_: &Result<u32, ()>| Outcome::Success));
    let _held = engine.admit(T).unwrap();
    for call in 0..1_000 {
        assert!(super::in_tower::poll(std::pin::pin!(tower::Service::call(&mut service, call))).is_ready());
    }
}

#[test]
fn in07_a_storm_of_refusals_changes_nothing() {
    let bench = opened(c0());
    let before = bench.snapshot();
    race(4, |_| (0..50_000).for_each(|_| assert!(bench.engine.admit(T).is_err())));
    let after = bench.snapshot();
    assert_eq!((after.generation, after.totals, after.reopen_in), (before.generation, before.totals, before.reopen_in));
    assert_eq!(after.refusals.open, 200_001);
    bench.advance(secs(30));
    bench.succeed(1);
    bench.fail(1);
    assert_eq!((bench.state(), bench.snapshot().window.unwrap().calls), (State::Closed, 1));
}
