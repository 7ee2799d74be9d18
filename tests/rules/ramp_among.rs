//! A limit that ramps, where others have a say as well: shares, the queue, running calls, what calls take.

use portcullis::{Adaptive, Cause, Permit, PolicyBuilder, Priority, Rejection, Rule, State};

use crate::common::waiter::Waiter;
use crate::common::{Bench, T, ms, secs, take, textbook};

/// From 1 to 101 calls in 10 s: ten more each second.
fn ramping() -> PolicyBuilder {
    textbook().max_in_flight(101).ramp(secs(10))
}

/// Closed just now.
fn recovered(policy: PolicyBuilder) -> Bench {
    let bench = Bench::new(policy);
    bench.fail(1);
    while bench.state() == State::Closed {
        bench.fail(1);
    }
    bench.advance(bench.snapshot().reopen_in.unwrap());
    bench.probe().success();
    assert_eq!((bench.state(), bench.snapshot().limit), (State::Closed, 1));
    bench
}

#[test]
fn a_share_is_of_what_the_ramp_allows_by_now() {
    let bench = recovered(ramping().normal_share(0.5));
    let normal = || bench.engine.admit_with(T, Priority::Normal);
    let mut held: Vec<Permit<'_>> = Vec::new();
    for (second, limit) in [(0, 1), (5, 51), (9, 91), (10, 101)] {
        while bench.snapshot().ramps_for.is_some_and(|left| left > secs(10 - second)) {
            bench.advance(secs(1));
        }
        // The first who asks is one that a share refuses, at the limit as it was.
        held.extend(std::iter::from_fn(|| normal().ok()));
        assert_eq!(held.len(), (limit / 2).max(1), "after {second} s");
        let refusal =
            if limit == 1 { Rejection::Saturated { limit: 1 } } else { Rejection::Shed { priority: Priority::Normal } };
        assert_eq!(normal().unwrap_err(), refusal, "after {second} s");
    }
    assert_eq!(take(&bench, 51).len(), 51);
}

#[test]
fn nobody_waits_while_the_limit_ramps() {
    let bench = recovered(ramping().max_in_flight(2).max_waiting(5));
    let first = bench.enter();
    assert_eq!(Waiter::patient(&bench).answer().unwrap_err(), Rejection::Saturated { limit: 1 });
    bench.advance(ms(9_999));
    assert_eq!(Waiter::patient(&bench).answer().unwrap_err(), Rejection::Saturated { limit: 1 });
    // Who asks after it finds the full limit, and waits there.
    bench.advance(ms(1));
    let second = Waiter::patient(&bench).answer().unwrap();
    let mut third = Waiter::patient(&bench);
    assert!(third.waits());
    second.success();
    assert_eq!(third.wakes(), 1);
    third.answer().unwrap().success();
    first.success();
    assert_eq!((bench.snapshot().waited, bench.snapshot().in_flight), (1, 0));
}

#[test]
fn who_asks_first_after_a_ramp_waits_if_even_the_full_limit_is_reached() {
    let bench = recovered(ramping().max_waiting(5));
    bench.engine.set_limit(T, 1).unwrap();
    let first = bench.enter();
    bench.advance(secs(10));
    let mut second = Waiter::patient(&bench);
    assert!(second.waits());
    bench.engine.set_limit(T, 2).unwrap();
    assert_eq!(second.wakes(), 1);
    second.answer().unwrap().success();
    first.success();
}

#[test]
fn what_hangs_trips_while_the_limit_ramps_and_is_one_reopening_more() {
    let stalling = || ramping().stall_after(secs(1));
    let bench = recovered(stalling().stalled_calls(1));
    let hung = bench.enter();
    bench.advance(secs(2));
    assert_eq!((bench.snapshot().state, bench.log().last().unwrap().cause), (State::Open, Cause::StalledCalls));
    assert_eq!((bench.snapshot().reopens, bench.snapshot().full_limit, bench.snapshot().limit), (1, 101, 101));
    hung.success();
    // A caller judges as well, also where it remembers the key and no permit is left.
    let bench = recovered(stalling().stalled_calls(1));
    let hung = bench.enter();
    assert!(matches!(bench.refusal(), Rejection::Saturated { limit: 1 }));
    bench.advance(secs(2));
    assert!(matches!(bench.refusal(), Rejection::Open { .. }));
    assert_eq!(bench.snapshot().reopens, 1);
    hung.success();
}

#[test]
fn a_stalled_share_is_of_what_the_ramp_allows_by_now() {
    let bench = recovered(ramping().stall_after(secs(8)).stalled_share(0.09));
    let held = bench.enter();
    bench.advance(secs(1));
    let more = take(&bench, 9);
    // Nobody has asked since: the limit that was raised last is 11, of which one is a share that trips.
    bench.advance(ms(8_500));
    assert_eq!((bench.snapshot().state, bench.snapshot().limit, bench.snapshot().stalled), (State::Closed, 96, 1));
    bench.advance(ms(600));
    assert_eq!(bench.snapshot().state, State::Open);
    let met = bench.log().last().unwrap().evidence.as_ref().unwrap().met[0];
    assert_eq!((met.rule, met.count, met.calls), (Rule::StalledShare, 10, 101));
    drop((held, more));
}

#[test]
fn an_adaptive_limit_moves_only_where_the_ramp_leads() {
    let aimd = Adaptive::aimd(ms(20)).start(101);
    let bench = recovered(ramping().max_in_flight(1_000).adaptive(aimd));
    let mut fulls = Vec::new();
    for step in 0..200_u64 {
        let snapshot = bench.snapshot();
        let full = u64::from(snapshot.full_limit);
        let elapsed = 10_000 - snapshot.ramps_for.unwrap().as_millis() as u64;
        assert_eq!(elapsed, step * 50);
        assert_eq!(u64::from(snapshot.limit), 1 + (full - 1) * elapsed / 10_000, "to {full}, after {elapsed} ms");
        let held: Vec<_> = std::iter::from_fn(|| bench.admit().ok()).collect();
        assert_eq!(held.len(), snapshot.limit as usize, "after {elapsed} ms");
        bench.advance(ms(50));
        for permit in held {
            permit.success();
        }
        fulls.push(full);
    }
    assert!(fulls.is_sorted_by(|before, after| before >= after), "{fulls:?}");
    assert!(fulls[199] < fulls[0], "what takes 50 ms is too slow: {fulls:?}");
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.ramps_for, snapshot.limit), (None, snapshot.full_limit));
    let held = take(&bench, snapshot.limit as usize);
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: snapshot.limit });
    drop(held);
}
