use portcullis::{Cause, OnAbandon, Outcome, Rejection, Settled, State};

use super::kit::{c0, elapsed, opened, t0};
use crate::common::{Bench, T, ms, secs};

#[test]
fn sm30_returned_slots_are_refilled_and_verdicts_are_not() {
    let bench = elapsed(c0().max_probes(3).successes_to_close(3));
    let mut admitted = 0;
    while bench.state() != State::Closed {
        bench.succeed(1);
        admitted += 1;
    }
    assert_eq!(admitted, 3);

    // R4: ten ignored in a row count as one success, so 9 of them here, and 12 admissions, not 13.
    let bench = elapsed(c0().max_probes(3).successes_to_close(3));
    (0..9).for_each(|_| {
        bench.engine.admit(T).unwrap().ignore();
    });
    assert_eq!((bench.state(), bench.snapshot().probe_successes), (State::HalfOpen, 0));
    bench.succeed(3);
    assert_eq!((bench.state(), bench.snapshot().totals.success), (State::Closed, 3));
}

#[test]
fn sm31_one_lost_probe_of_many_does_not_keep_half_open() {
    // 1,000 probes are tested as 31 (protocols.md); 31 successes are asked for and one is lost.
    let bench = elapsed(c0().max_probes(31).successes_to_close(31).probe_lease(secs(30)));
    let mut probes: Vec<_> = (0..31).map(|_| bench.engine.admit(T).unwrap()).collect();
    std::mem::forget(probes.pop());
    probes.into_iter().for_each(|probe| assert_eq!(probe.success(), Settled::Recorded));
    assert_eq!((bench.state(), bench.snapshot().probe_successes), (State::HalfOpen, 30));
    // Slots are free, so the next call completes the quota, long before the lease ends.
    bench.succeed(1);
    assert_eq!(bench.state(), State::Closed);

    // With one slot there is no other, and the lease decides.
    let bench = elapsed(c0().probe_lease(secs(30)));
    std::mem::forget(bench.engine.admit(T).unwrap());
    bench.advance(secs(30));
    bench.succeed(1);
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn sm33_a_stream_without_verdicts_leaves_half_open() {
    let bench = elapsed(c0().successes_to_close(2));
    for round in 0..20 {
        assert_eq!(bench.state(), State::HalfOpen, "after {round} ignored probes");
        bench.engine.admit(T).unwrap().ignore();
    }
    assert_eq!(bench.state(), State::Closed);
    assert_eq!((bench.snapshot().totals.ignored, bench.snapshot().totals.success), (20, 0));
    assert_eq!(bench.log().last().unwrap().cause, Cause::ProbesSucceeded);
}

#[test]
fn sm33_ignored_probes_count_in_a_row_only() {
    let bench = elapsed(c0().successes_to_close(3).ignored_probes(2));
    bench.engine.admit(T).unwrap().ignore();
    bench.succeed(1);
    bench.engine.admit(T).unwrap().ignore();
    assert_eq!(bench.snapshot().probe_successes, 1, "the row was broken by a success");
    bench.engine.admit(T).unwrap().ignore();
    assert_eq!(bench.snapshot().probe_successes, 2);
    // A row doesn't reach over into the next half-open period.
    bench.engine.admit(T).unwrap().ignore();
    bench.fail(1);
    bench.advance(secs(30));
    bench.engine.admit(T).unwrap().ignore();
    assert_eq!((bench.state(), bench.snapshot().probe_successes), (State::HalfOpen, 0));
}

#[test]
fn sm33_ignored_outcomes_do_not_make_failures_look_like_half() {
    // 1.7 % real failures between answers that say nothing: the rate is over what has evidence, and `min_calls` of that.
    let bench = Bench::new(c0().min_calls(10));
    for call in 0..600 {
        let permit = bench.engine.admit(T).unwrap();
        if call % 60 == 59 {
            permit.failure();
        } else if call % 5 == 4 {
            permit.success();
        } else {
            permit.ignore();
        }
    }
    assert_eq!((bench.state(), bench.snapshot().totals.ignored), (State::Closed, 480));
}

#[test]
fn sm34_calls_that_are_all_abandoned_trip_by_policy() {
    let abandon = |policy: portcullis::PolicyBuilder, ran| {
        let bench = Bench::new(policy);
        for _ in 0..100 {
            let Ok(permit) = bench.engine.admit(T) else { break };
            bench.advance(ran);
            drop(permit);
        }
        (bench.state(), bench.snapshot().totals)
    };
    // protocols.md: `failure_after` is what "all abandoned" became; it looks at each call alone.
    let after = || t0().on_abandon(OnAbandon::FailureAfter(ms(500)));
    let (state, totals) = abandon(after(), secs(1));
    assert_eq!((state, totals.abandoned, totals.failure), (State::Open, 5, 0));
    assert_eq!(abandon(after(), ms(500)).0, State::Open, "tested with >=");
    assert_eq!(abandon(after(), ms(499)).0, State::Closed, "a client that hangs up at once says nothing");
    assert_eq!(abandon(t0().on_abandon(OnAbandon::Ignore), secs(1)).0, State::Closed);
    assert_eq!(abandon(t0().on_abandon(OnAbandon::Failure), ms(0)).0, State::Open);
    assert_eq!(abandon(t0(), secs(1)).0, State::Closed, "ignored unless the call is async");
}

#[test]
fn sm34_an_abandoned_async_call_is_a_failure_after_500_ms_of_silence() {
    for (ran, state) in [(ms(499), State::Closed), (ms(500), State::Open)] {
        let bench = Bench::new(t0());
        for _ in 0..5 {
            let mut call = Box::pin(bench.engine.call_async(T, |(): &()| Outcome::Success, std::future::pending));
            assert!(call.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
            bench.advance(ran);
            drop(call);
        }
        assert_eq!((bench.state(), bench.snapshot().in_flight), (state, 0));
    }
}

#[test]
fn sm34_an_abandoned_probe_is_judged_before_its_slot_goes_back() {
    let bench = elapsed(c0().on_abandon(OnAbandon::FailureAfter(ms(500))));
    let probe = bench.engine.admit(T).unwrap();
    bench.advance(ms(500));
    drop(probe);
    assert_eq!((bench.state(), bench.log().last().unwrap().cause), (State::Open, Cause::ProbeFailed));
}

#[test]
fn sm36_every_way_out_of_a_call_settles_its_permit() {
    // What stands between admission and the call itself: an error, an early return, a panic.
    let engine_at = || elapsed(c0());
    let bench = engine_at();
    let answer = bench.engine.call(T, |answer: &Result<(), &str>| verdict(answer), || Err("no connection"));
    assert_eq!((answer, bench.state()), (Ok(Err("no connection")), State::Open));
    bench.advance(secs(1));
    assert!(bench.engine.admit(T).is_err());

    let bench = engine_at();
    let panics = || {
        let _ = bench.engine.call(T, |(): &()| Outcome::Success, || panic!("while dialling"));
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    assert_eq!((bench.state(), bench.snapshot().in_flight), (State::Open, 0));

    let bench = engine_at();
    let panics = || {
        let _ = bench.engine.call(T, |(): &()| panic!("while judging"), || ());
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    assert_eq!((bench.state(), bench.snapshot().in_flight), (State::Open, 0));
}

fn verdict(answer: &Result<(), &str>) -> Outcome {
    if answer.is_ok() { Outcome::Success } else { Outcome::Failure }
}

#[test]
fn sm37_a_probe_dropped_by_a_shutdown_closes_nothing() {
    let bench = elapsed(c0());
    drop(bench.engine.admit(T).unwrap());
    assert_eq!(bench.state(), State::HalfOpen);
    assert!(bench.path().iter().all(|(_, to)| *to != State::Closed));
    assert_eq!((bench.snapshot().totals.success, bench.snapshot().totals.abandoned), (0, 1));
}

#[test]
fn sm37_an_async_probe_dropped_by_a_shutdown_closes_nothing() {
    let bench = elapsed(c0());
    let mut call = Box::pin(bench.engine.call_async(T, |(): &()| Outcome::Success, std::future::pending));
    assert!(call.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending());
    drop(call);
    assert!(bench.path().iter().all(|(_, to)| *to != State::Closed));
}

/// A slow trickle: each probe takes longer than a third of the lease, one after the other (R4's amendment).
#[test]
fn sm31_the_lease_runs_from_each_grant() {
    let bench = opened(c0().successes_to_close(3).probe_lease(secs(10)));
    bench.advance(secs(30));
    for _ in 0..3 {
        let probe = bench.engine.admit(T).unwrap();
        bench.advance(secs(9));
        assert!(matches!(bench.engine.admit(T), Err(Rejection::Probing { .. })));
        assert_eq!(probe.success(), Settled::Recorded);
    }
    assert_eq!((bench.state(), bench.snapshot().totals.stale), (State::Closed, 0));
}
