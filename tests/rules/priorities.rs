//! Calls that matter less stop at their share of the limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use portcullis::{Admit, Engine, Policy, PolicyBuilder, Priority, Rejection, State};

use crate::common::{Bench, T, race, secs, textbook};

const BELOW: [Priority; 2] = [Priority::Normal, Priority::Sheddable];

/// Ten in flight, eight of them normal or less, five sheddable.
fn shared() -> PolicyBuilder {
    textbook().max_in_flight(10).normal_share(0.8).sheddable_share(0.5)
}

fn shed<T: std::fmt::Debug>(priority: Priority) -> impl Fn(Result<T, Rejection>) -> bool {
    move |answer| answer.is_err_and(|rejection| rejection == Rejection::Shed { priority })
}

#[test]
fn lower_calls_stop_at_their_share_of_the_limit_and_critical_ones_at_the_limit() {
    let bench = Bench::new(shared());
    let ask = |priority| bench.engine.admit_with(T, priority);
    let mut held: Vec<_> = (0..5).map(|_| ask(Priority::Sheddable).unwrap()).collect();
    assert!(shed(Priority::Sheddable)(ask(Priority::Sheddable)));
    held.extend((0..3).map(|_| ask(Priority::Normal).unwrap()));
    assert!(shed(Priority::Normal)(ask(Priority::Normal)) && shed(Priority::Sheddable)(ask(Priority::Sheddable)));
    held.push(bench.enter());
    held.push(ask(Priority::Critical).unwrap());
    // Nobody could start now: that says more.
    for priority in [Priority::Critical, Priority::Normal, Priority::Sheddable] {
        assert_eq!(ask(priority).unwrap_err(), Rejection::Saturated { limit: 10 });
    }
    assert_eq!((bench.snapshot().refusals.shed, bench.snapshot().refusals.saturated), (3, 3));
    // Calls in flight count whatever their priority: eight are left, and none of them a lower call's room.
    held.drain(..2).for_each(|permit| {
        permit.success();
    });
    assert!(shed(Priority::Normal)(ask(Priority::Normal)));
    held.pop().unwrap().success();
    ask(Priority::Normal).unwrap().success();
    assert!(shed(Priority::Sheddable)(ask(Priority::Sheddable)));
}

#[test]
fn a_shed_call_is_told_its_priority_code_and_reason() {
    let bench = Bench::new(textbook().max_in_flight(10).normal_share(0.1));
    let _held = bench.enter();
    let rejection = bench.engine.admit_with(T, Priority::Normal).unwrap_err();
    assert_eq!((rejection.code(), rejection.reason(), rejection.retry_after()), ("E905", "shed", None));
    assert_eq!(rejection.to_string(), "calls of priority normal are being shed");
}

#[test]
fn every_way_to_ask_knows_priorities() {
    let (engine, target) = (Arc::new(Engine::<String>::builder().policy(shared().build().unwrap()).build()), "a");
    let _held: Vec<_> = (0..5).map(|_| engine.admit(target).unwrap()).collect();
    let resolved = engine.target(target).unwrap();
    for how in [Admit::from(Priority::Sheddable), Admit::new().priority(Priority::Sheddable).may_be_dropped()] {
        assert!(shed(Priority::Sheddable)(engine.admit_with(target, how)));
        assert!(shed(Priority::Sheddable)(engine.admit_owned_with(target, how)));
        assert!(shed(Priority::Sheddable)(resolved.admit_with(how)));
    }
    assert_eq!(engine.admit_owned_with(target, Priority::Normal).unwrap().success(), portcullis::Settled::Recorded);
    resolved.admit_with(Priority::Normal).unwrap().success();
    let alone =
        portcullis::Standalone::new("alone", Policy::builder().max_in_flight(2).sheddable_share(0.5).build().unwrap());
    let _one = alone.admit_with(Priority::Sheddable).unwrap();
    assert!(shed(Priority::Sheddable)(alone.admit_with(Priority::Sheddable)));
    alone.admit_with(Priority::Normal).unwrap().success();
}

#[test]
fn permits_stashed_anywhere_are_no_reason_to_shed() {
    let bench = Bench::new(textbook().max_in_flight(1_000).normal_share(0.5));
    for _ in 0..2 {
        let held: Vec<_> = (0..800).map(|_| bench.enter()).collect();
        assert!(shed(Priority::Normal)(bench.engine.admit_with(T, Priority::Normal)));
        drop(held);
        let held: Vec<_> = (0..500).map(|_| bench.engine.admit_with(T, Priority::Normal).unwrap()).collect();
        assert!(shed(Priority::Normal)(bench.engine.admit_with(T, Priority::Normal)));
        drop(held);
    }
}

#[test]
fn a_share_is_of_the_limit_in_force() {
    let bench = Bench::new(shared());
    let target = bench.engine.target(T).unwrap();
    let fits = || {
        let held: Vec<_> = std::iter::from_fn(|| target.admit_with(Priority::Sheddable).ok()).collect();
        held.len()
    };
    assert_eq!(fits(), 5);
    target.set_limit(7);
    assert_eq!(fits(), 3, "rounded down");
    target.set_limit(1);
    assert_eq!(fits(), 1, "but one where any may start");
    target.set_limit(0);
    assert_eq!(target.admit_with(Priority::Sheddable).unwrap_err(), Rejection::Saturated { limit: 0 });
    target.set_limit(20);
    assert_eq!(fits(), 10);
    target.set_policy(shared().max_in_flight(30).sheddable_share(0.1).build().unwrap());
    assert_eq!(fits(), 3);
    target.set_policy(shared().unlimited().build().unwrap());
    assert!((0..100).all(|_| target.admit_with(Priority::Sheddable).is_ok()), "nothing is a share of no limit");
}

#[test]
fn a_policy_knows_its_shares() {
    let policy = shared().build().unwrap();
    let shares =
        [Priority::Critical, Priority::Normal, Priority::Sheddable].map(|priority| policy.share_of(priority, 7));
    assert_eq!(shares, [7, 5, 3]);
    assert_eq!(Policy::default().share_of(Priority::Sheddable, 7), 7);
    assert_eq!(policy.share_of(Priority::Sheddable, portcullis::UNLIMITED), portcullis::UNLIMITED);
}

#[test]
fn shares_out_of_range_or_order_are_refused() {
    let refusal = |policy: PolicyBuilder| {
        let error = policy.build().unwrap_err();
        (error.field(), error.value().to_owned(), error.expected().to_owned())
    };
    for share in [0.0, -0.5, 1.1, f64::NAN, 0.000_01] {
        assert_eq!(refusal(Policy::builder().normal_share(share)).0, "normal_share");
        assert_eq!(refusal(Policy::builder().sheddable_share(share)).0, "sheddable_share");
    }
    let wrong = refusal(Policy::builder().normal_share(0.5).sheddable_share(0.6));
    assert_eq!(wrong, ("sheddable_share", "0.6".to_owned(), "at most normal_share, which is 0.5".to_owned()));
    let built = |policy: PolicyBuilder| policy.build().unwrap();
    assert_eq!(
        built(Policy::builder().normal_share(0.5)),
        built(Policy::builder().normal_share(0.5).sheddable_share(0.5))
    );
    // What follows from the normal share goes on to follow from it.
    let moved = built(Policy::builder().normal_share(0.5)).to_builder().normal_share(0.3);
    assert_eq!(built(moved), built(Policy::builder().normal_share(0.3)));
    assert_eq!(built(Policy::builder().normal_share(1.0).sheddable_share(1.0)), Policy::default());
}

#[test]
fn any_priority_may_probe_but_none_outside_its_share() {
    for priority in BELOW {
        let bench = Bench::tripped(shared());
        bench.advance(secs(30));
        let probe = bench.engine.admit_with(T, priority).unwrap();
        assert!(probe.is_probe() && matches!(bench.refusal(), Rejection::Probing { .. }));
        assert!(matches!(bench.engine.admit_with(T, priority).unwrap_err(), Rejection::Probing { .. }));
        probe.success();
        assert_eq!(bench.state(), State::Closed);
    }
    let bench = Bench::new(shared());
    let stragglers: Vec<_> = (0..5).map(|_| bench.enter()).collect();
    bench.fail(5);
    let asked = bench.engine.admit_with(T, Priority::Sheddable).unwrap_err();
    assert!(matches!(asked, Rejection::Open { .. }), "{asked}");
    bench.advance(secs(30));
    // R1: shed, it touches nothing.
    assert!(shed(Priority::Sheddable)(bench.engine.admit_with(T, Priority::Sheddable)));
    assert_eq!(bench.last_state(), State::Open);
    assert!(bench.engine.admit_with(T, Priority::Normal).unwrap().is_probe());
    drop(stragglers);
}

#[test]
fn lower_calls_of_many_threads_never_exceed_their_share() {
    // A limit with stashes, and two for those below.
    let bench = Bench::new(textbook().max_in_flight(600).normal_share(0.004));
    let (lower, refused) = (AtomicU32::new(0), AtomicU32::new(0));
    race(4, |number| {
        for call in 0..5_000 {
            if (call + number) % 4 == 0 {
                bench.enter().success();
            } else if let Ok(permit) = bench.engine.admit_with(T, Priority::Normal) {
                assert!(lower.fetch_add(1, Ordering::SeqCst) < 2);
                std::thread::yield_now();
                lower.fetch_sub(1, Ordering::SeqCst);
                permit.success();
            } else {
                refused.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let snapshot = bench.snapshot();
    assert!(refused.load(Ordering::SeqCst) > 0, "nobody was ever shed: this looked at nothing");
    assert_eq!((snapshot.in_flight, snapshot.refusals.shed), (0, refused.load(Ordering::SeqCst).into()));
    assert_eq!(snapshot.totals.admitted + snapshot.refusals.total(), 20_000);
}
