//! Shadows: policies that are told of each call and decide nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use portcullis::{
    Admit, Cause, OnAbandon, Outcome, Policy, Priority, Rejection, Settled, ShadowError, ShadowSnapshot, State, Window,
};

use crate::common::{Bench, T, listener, ms, race, secs, take, textbook};

/// Two failures in a row open it for 30 s; one success closes.
fn strict() -> portcullis::PolicyBuilder {
    textbook().consecutive_failures(2)
}

impl Bench {
    fn shadowed(policy: portcullis::PolicyBuilder) -> Self {
        let bench = Self::new(Policy::builder().no_window());
        bench.shadow("strict", policy);
        bench
    }

    fn shadow(&self, name: &str, policy: portcullis::PolicyBuilder) {
        assert_eq!(self.engine.shadow(T, name, policy.build().unwrap()), Ok(true));
    }

    fn seen(&self) -> ShadowSnapshot {
        self.engine.shadows(T).remove(0)
    }
}

fn came_of(shadow: &ShadowSnapshot) -> [u64; 4] {
    [shadow.refused, shadow.refused_but_succeeded, shadow.failures_avoided, shadow.refused_without_verdict]
}

#[test]
fn what_a_shadow_would_have_refused_counts_by_what_came_of_it() {
    let bench = Bench::shadowed(strict());
    bench.fail(2);
    let open = bench.seen();
    assert_eq!((open.asked, open.trips, open.would_be.state, came_of(&open)), (2, 1, State::Open, [0; 4]));
    let running = bench.enter();
    bench.succeed(3);
    bench.fail(2);
    let _ = bench.enter().ignore();
    let seen = bench.seen();
    assert_eq!((came_of(&seen), seen.would_be.refusals.open, seen.asked), ([7, 3, 2, 1], 7, 9));
    let _ = running.success();
    assert_eq!(came_of(&bench.seen()), [7, 4, 2, 1]);
    // What it would not have heard of changed nothing there.
    let totals = bench.seen().would_be.totals;
    assert_eq!((totals.admitted, totals.failure, totals.success), (2, 2, 0));
}

#[test]
fn a_shadow_has_probes_of_its_own() {
    let bench = Bench::shadowed(strict());
    bench.fail(2);
    bench.advance(secs(30));
    assert_eq!(bench.seen().would_be.state, State::HalfOpen);
    let probe = bench.enter();
    assert!(!probe.is_probe(), "to the target it is a call like any other");
    bench.succeed(1);
    assert_eq!(bench.seen().would_be.refusals.probing, 1);
    let _ = probe.failure();
    let again = bench.seen().would_be;
    assert_eq!((again.state, again.reopens, again.reopen_in), (State::Open, 1, Some(secs(60))));
    bench.advance(secs(60));
    bench.succeed(1);
    let closed = bench.seen();
    assert_eq!((closed.would_be.state, closed.trips), (State::Closed, 1));
    assert_eq!(bench.log().len(), 0);
}

#[test]
fn a_call_that_a_shadow_granted_before_it_tripped_is_stale_to_it() {
    let bench = Bench::shadowed(strict());
    let late = bench.enter();
    bench.fail(2);
    bench.advance(secs(30));
    assert_eq!(late.failure(), Settled::Recorded);
    let seen = bench.seen().would_be;
    assert_eq!((seen.state, seen.totals.stale, seen.in_flight), (State::HalfOpen, 1, 0));
    // And the other way about: the target's generation ends, the shadow's goes on.
    let late = bench.enter();
    bench.engine.force_open(T).unwrap();
    bench.engine.release(T).unwrap();
    assert_eq!(late.success(), Settled::Stale);
    assert_eq!(bench.seen().would_be.state, State::Closed);
}

#[test]
fn drops_and_panics_count_by_the_shadows_own_rules() {
    let policy = strict().on_abandon(OnAbandon::Failure);
    let bench = Bench::shadowed(policy);
    drop(bench.enter());
    let panics = || {
        let _permit = bench.enter();
        panic!("a call fails");
    };
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!((bench.seen().trips, bench.snapshot().totals.abandoned), (1, 1));
    drop(bench.enter());
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(came_of(&bench.seen()), [2, 0, 2, 0]);
    // Of a future that is dropped nothing is known before 500 ms.
    let bench = Bench::shadowed(strict());
    bench.fail(2);
    for wait in [ms(499), ms(500)] {
        let permit = bench.engine.admit_with(T, Admit::new().may_be_dropped()).unwrap();
        bench.advance(wait);
        drop(permit);
    }
    assert_eq!(came_of(&bench.seen()), [2, 0, 1, 1]);
}

#[tokio::test]
async fn every_kind_of_permit_gives_back_what_the_shadow_holds() {
    let bench = Bench::new(textbook().max_in_flight(100).max_waiting(1));
    bench.shadow("strict", strict().max_in_flight(100));
    let Bench { engine, time } = bench;
    let engine = Arc::new(engine);
    let now = || engine.shadows(T).remove(0).would_be.in_flight;
    {
        let target = engine.target(T).unwrap();
        let _held = target.admit().unwrap().record(Outcome::Success);
        let _also_held = engine.admit_owned(T).unwrap().record(Outcome::Success);
        let never = |_| std::future::pending();
        let _borrowed = (
            engine.admit(T).unwrap(),
            target.admit_with(Priority::Sheddable).unwrap(),
            engine.admit_with(T, Priority::Normal).unwrap(),
            engine.admit_waiting(T, Priority::Critical, never).await.unwrap(),
            engine.admit_blocking(T, Priority::Critical, secs(1)).unwrap(),
        );
        let _owned = (engine.admit_owned(T).unwrap(), engine.admit_async(T).unwrap());
        let mut touched = engine.admit_owned_with(T, Priority::Normal).unwrap();
        touched.touch();
        assert_eq!((now(), engine.snapshot(T).unwrap().in_flight), (10, 10));
        time.increment(1_000);
        let _ = touched.success();
        assert_eq!(now(), 9);
    }
    engine.call(T, |()| Outcome::Success, || ()).unwrap();
    engine.call_async(T, |()| Outcome::Success, async || ()).await.unwrap();
    let seen = engine.shadows(T).remove(0);
    assert_eq!((now(), seen.asked, seen.would_be.totals.success, seen.would_be.totals.abandoned), (0, 12, 5, 7));
}

#[tokio::test]
async fn a_shadow_is_asked_when_the_wait_for_a_permit_is_over() {
    let bench = Bench::new(textbook().max_in_flight(1).max_waiting(1));
    bench.shadow("strict", strict());
    let first = bench.enter();
    let never = |_| std::future::pending();
    let second = bench.engine.admit_waiting(T, Priority::Critical, never);
    let gives_back = async {
        assert_eq!(bench.seen().asked, 1);
        let _ = first.success();
    };
    let (second, ()) = tokio::join!(second, gives_back);
    assert_eq!((bench.seen().asked, bench.seen().would_be.in_flight), (2, 1));
    let _ = second.unwrap().success();
    assert_eq!(bench.seen().would_be.in_flight, 0);
}

#[test]
fn a_shadow_has_a_limit_and_shares_of_its_own() {
    let bench = Bench::shadowed(strict().max_in_flight(4).sheddable_share(0.5));
    let permits = take(&bench, 2);
    let shed = bench.engine.admit_with(T, Priority::Sheddable).unwrap();
    let more = take(&bench, 3);
    let seen = bench.seen().would_be;
    assert_eq!((seen.refusals.shed, seen.refusals.saturated, seen.in_flight), (1, 1, 4));
    assert_eq!((bench.snapshot().in_flight, bench.snapshot().refusals.total()), (6, 0));
    let _ = shed.failure();
    drop((permits, more));
    assert_eq!((came_of(&bench.seen()), bench.seen().would_be.in_flight), ([2, 0, 1, 1], 0));
}

#[test]
fn a_shadow_judges_slow_and_stalled_calls_that_the_target_does_not_time() {
    let slow = Policy::builder().window(Window::calls(2)).min_calls(2).slow_call(secs(2)).slow_rate(1.0);
    let bench = Bench::shadowed(slow);
    for permit in take(&bench, 2) {
        bench.advance(secs(2));
        let _ = permit.success();
    }
    let seen = bench.seen();
    assert_eq!(seen.last_trip.map(|trip| trip.cause), Some(Cause::SlowRate));
    assert_eq!((seen.trips, bench.snapshot().totals.slow), (1, 0));

    let bench = Bench::shadowed(strict().stall_after(secs(1)).stalled_calls(2));
    let hanging = take(&bench, 2);
    bench.advance(secs(2));
    let seen = bench.seen();
    assert_eq!(seen.last_trip.map(|trip| (trip.cause, trip.wait)), Some((Cause::StalledCalls, secs(30))));
    drop(hanging);
    assert_eq!(bench.seen().would_be.in_flight, 0);
}

#[test]
fn calls_that_the_target_refuses_are_not_shown_to_its_shadows() {
    let bench = Bench::new(textbook());
    bench.fail(5);
    assert!(bench.admit().is_err());
    bench.shadow("mild", textbook().failure_rate(0.9));
    (0..3).for_each(|_| assert!(bench.admit().is_err()));
    let seen = bench.seen();
    assert_eq!((seen.asked, seen.not_asked, seen.would_be.state), (0, 3, State::Closed));
}

#[test]
fn a_target_that_is_disabled_shows_its_shadows_every_call_and_one_forced_open_none() {
    let bench = Bench::new(textbook().consecutive_failures(1));
    bench.shadow("same", textbook().consecutive_failures(1));
    bench.engine.disable(T).unwrap();
    bench.fail(3);
    let seen = bench.seen();
    assert_eq!((seen.asked, seen.trips, seen.failures_avoided), (3, 1, 2));
    bench.engine.force_open(T).unwrap();
    assert!(bench.admit().is_err());
    bench.advance(secs(30));
    let seen = bench.seen();
    assert_eq!((seen.asked, seen.not_asked, seen.would_be.state), (3, 1, State::HalfOpen));
}

#[test]
fn no_log_and_no_observer_hears_of_a_shadow() {
    let bench = Bench::shadowed(strict());
    let (heard, observer) = listener();
    let _guard = bench.engine.observe(observer);
    let channel = bench.engine.subscribe(10);
    bench.fail(2);
    bench.advance(secs(30));
    bench.succeed(1);
    let seen = bench.seen();
    assert_eq!((seen.trips, seen.would_be.state, seen.would_be.generation), (1, State::Closed, 3));
    assert!(heard.lock().unwrap().is_empty() && bench.log().is_empty() && channel.try_recv().is_err());
    let trip = seen.last_trip.unwrap();
    let at = bench.engine.now() - secs(30);
    assert_eq!((trip.at, trip.wait, trip.evidence.streak), (at, secs(30), 2));
    // The target's own numbers begin at 1.
    bench.engine.force_open(T).unwrap();
    assert_eq!(bench.log().last().map(|transition| transition.sequence), Some(1));
}

#[test]
fn a_shadow_of_the_same_policy_goes_on_counting_and_one_of_another_begins() {
    let bench = Bench::shadowed(strict());
    bench.fail(2);
    bench.advance(secs(5));
    assert_eq!(bench.engine.shadow(T, "strict", strict().build().unwrap()), Ok(false));
    assert_eq!((bench.seen().trips, bench.seen().since), (1, bench.engine.now() - secs(5)));
    let running = bench.enter();
    bench.shadow("strict", strict().max_probes(2));
    let seen = bench.seen();
    assert_eq!((seen.trips, seen.asked, seen.since), (0, 0, bench.engine.now()));
    // A call goes on with those it was shown to.
    let _ = running.failure();
    assert_eq!((bench.seen().asked, came_of(&bench.seen())), (0, [0; 4]));
}

#[test]
fn a_target_has_at_most_four_shadows_with_names_that_can_be_read() {
    let bench = Bench::new(textbook());
    let shadow = |name: &str| bench.engine.shadow(T, name, Policy::default());
    for name in ["", "two\nlines", &"x".repeat(65)] {
        assert_eq!(shadow(name), Err(ShadowError::Name), "{name:?}");
    }
    for name in ["a", "b", "c", &"d".repeat(64)] {
        assert_eq!(shadow(name), Ok(true));
    }
    assert_eq!(shadow("e"), Err(ShadowError::TooMany { most: 4 }));
    assert_eq!(shadow("b"), Ok(false));
    bench.succeed(1);
    assert!(bench.engine.shadows(T).iter().all(|shadow| shadow.asked == 1));
    assert_eq!([bench.engine.unshadow(T, "b"), bench.engine.unshadow(T, "b")], [true, false]);
    assert_eq!(shadow("e"), Ok(true));
    let names: Vec<String> = bench.engine.shadows(T).into_iter().map(|shadow| shadow.name).collect();
    assert_eq!(names.join(" "), format!("a c {} e", "d".repeat(64)));
}

#[test]
fn nothing_is_made_of_a_key_by_looking_for_its_shadows() {
    let bench = Bench::new(textbook());
    assert_eq!(bench.engine.promote("nobody", "strict"), Err(ShadowError::Unknown));
    assert!(!bench.engine.unshadow("nobody", "strict") && bench.engine.shadows("nobody").is_empty());
    assert!(bench.engine.is_empty());
    let full = Bench::with(textbook(), |builder| builder.max_targets(1));
    drop(full.enter());
    let refused = full.engine.shadow("another", "strict", Policy::default());
    assert_eq!(refused, Err(ShadowError::Rejected(Rejection::Exhausted { max_targets: 1 })));
}

#[test]
fn a_target_with_a_shadow_is_not_forgotten() {
    let bench = Bench::with(textbook(), |builder| builder.idle_after(secs(1)));
    bench.shadow("strict", strict());
    bench.succeed(1);
    drop(bench.engine.admit("another"));
    let swept: usize = (0..3)
        .map(|_| {
            bench.advance(secs(100));
            bench.engine.sweep()
        })
        .sum();
    assert_eq!((swept, bench.engine.len(), bench.seen().asked), (1, 1, 1));
}

#[test]
fn r17_a_promoted_shadow_is_the_policy_and_the_one_before_is_told() {
    let before = textbook().max_in_flight(10);
    let bench = Bench::new(before.clone());
    bench.shadow("strict", strict().max_in_flight(4));
    bench.shadow("other", strict());
    bench.fail(3);
    let permits = take(&bench, 6);
    assert_eq!(bench.engine.promote(T, "strict"), Ok(before.build().unwrap()));
    let after = bench.snapshot();
    assert_eq!((after.in_flight, after.limit, after.policy_version), (6, 4, 1));
    assert_eq!(after.policy, strict().max_in_flight(4).build().unwrap());
    // The window stays with the target, and the shadow's state is not taken over.
    assert_eq!((after.state, bench.window()), (State::Closed, (3, 3)));
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 4 });
    assert_eq!(bench.engine.promote(T, "strict"), Err(ShadowError::Unknown));
    let left = bench.engine.shadows(T);
    assert_eq!((left.len(), left[0].name.as_str(), left[0].asked, left[0].not_asked), (1, "other", 9, 1));
    drop(permits);
    // And back.
    bench.shadow("before", textbook().max_in_flight(10));
    assert!(bench.engine.promote(T, "before").is_ok());
    assert_eq!(bench.snapshot().limit, 10);
}

#[test]
fn another_policy_leaves_the_shadows_where_they_are() {
    let bench = Bench::shadowed(strict());
    bench.fail(1);
    let running = bench.enter();
    bench.engine.set_policy(T, textbook().slow_call(secs(1)).build().unwrap()).unwrap();
    let _ = running.failure();
    assert_eq!((bench.seen().asked, bench.seen().trips), (2, 1));
    bench.succeed(1);
    assert_eq!(bench.seen().asked, 3);
}

#[test]
fn shadows_that_come_go_and_are_promoted_among_calls_lose_none_of_them() {
    let live = |limit| Policy::builder().no_window().max_in_flight(limit);
    let bench = Bench::new(live(50));
    bench.shadow("stays", Policy::builder().max_in_flight(2).consecutive_failures(3).open_wait(ms(1)).jitter(0.0));
    let made = race(4, |thread| {
        let mut made = 0;
        for round in 0..3_000 {
            if thread == 0 && round % 3 == 0 {
                let policy = live(50 + round % 2).build().unwrap();
                bench.engine.shadow(T, "moves", policy).unwrap();
                match round % 4 {
                    0 => drop(bench.engine.promote(T, "moves").unwrap()),
                    1 => assert!(bench.engine.unshadow(T, "moves")),
                    _ => {}
                }
            }
            let permit = bench.enter();
            made += 1;
            match (round + thread as u32) % 5 {
                0 => drop(permit),
                1 | 2 => drop(permit.failure()),
                3 => drop(permit.record(Outcome::Success)),
                _ => drop(permit.success()),
            }
            if thread == 1 {
                bench.advance(ms(1));
            }
        }
        made
    });
    let made: u64 = made.into_iter().sum();
    let seen = bench.seen();
    let [refused, succeeded, failed, without] = came_of(&seen);
    assert_eq!((seen.name.as_str(), seen.asked, bench.snapshot().totals.admitted), ("stays", made, made));
    assert_eq!((refused, seen.would_be.in_flight), (succeeded + failed + without, 0));
    let totals = seen.would_be.totals;
    assert_eq!(totals.admitted, made - refused);
    assert!(seen.trips > 0 && refused > 0 && succeeded > 0, "{seen:?}");
}
