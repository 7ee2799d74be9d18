//! R19 and R20: what becomes of a slot whose target was forgotten.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use portcullis::{Cause, Engine, Rejection, Settled, State};

use crate::common::{Bench, Draw, T, listener, race, secs, textbook};

/// An engine in which everything idle goes at the second look.
fn hasty(max_targets: usize) -> Bench {
    Bench::with(textbook(), |builder| builder.max_targets(max_targets).idle_after(secs(1)).forget_after(secs(300)))
}

impl Bench {
    /// Forgets whatever lies idle.
    fn forget(&self) -> usize {
        self.engine.sweep();
        self.advance(secs(301));
        self.engine.sweep()
    }
}

#[test]
fn r20_forgetting_a_target_that_is_not_closed_is_reported() {
    let bench = hasty(10);
    let (heard, observer) = listener();
    let _guard = bench.engine.observe(observer);
    bench.fail(5);
    assert_eq!(bench.forget(), 1);
    let last = bench.log().last().cloned().unwrap();
    assert_eq!((last.from, last.to, last.cause), (State::Open, State::Closed, Cause::Forgotten));
    assert_eq!((last.sequence, last.target.as_str(), last.incarnation), (2, T, 1));
    assert_eq!(heard.lock().unwrap().len(), 2);
}

#[test]
fn r20_forgetting_a_closed_target_is_no_news() {
    let bench = hasty(10);
    bench.succeed(1);
    assert_eq!((bench.forget(), bench.log().len()), (1, 0));
    bench.fail(1);
    assert_eq!((bench.forget(), bench.log().len()), (1, 0));
}

#[test]
fn r20_room_for_a_new_key_reports_who_had_to_go() {
    let bench = hasty(1);
    bench.fail(5);
    assert!(bench.engine.admit("b").is_err());
    bench.advance(secs(301));
    bench.engine.admit("b").unwrap().success();
    assert_eq!(bench.log().last().unwrap().cause, Cause::Forgotten);
}

#[test]
fn r20_a_key_that_comes_back_begins_at_one_with_nothing() {
    let bench = hasty(10);
    for incarnation in 1..=5 {
        assert_eq!(bench.state_or_none(), None);
        bench.fail(4);
        let snapshot = bench.snapshot();
        assert_eq!((snapshot.incarnation, snapshot.totals.failure, snapshot.totals.admitted), (incarnation, 4, 4));
        bench.fail(1);
        let trip = bench.log().last().cloned().unwrap();
        assert_eq!((trip.sequence, trip.incarnation, trip.cause), (1, incarnation, Cause::FailureRate));
        assert!(matches!(bench.refusal(), Rejection::Open { .. }));
        assert_eq!(bench.forget(), 1);
    }
}

impl Bench {
    fn state_or_none(&self) -> Option<State> {
        self.engine.snapshot(T).map(|snapshot| snapshot.state)
    }
}

#[test]
fn r19_a_new_tenant_inherits_nothing_of_the_old_one() {
    let bench = hasty(1);
    bench.fail(4);
    let held = bench.enter();
    assert!(matches!(bench.engine.admit("b").unwrap_err(), Rejection::Exhausted { .. }));
    drop(held);
    bench.engine.force_open(T).unwrap();
    bench.engine.release(T).unwrap();
    bench.fail(4);
    assert_eq!(bench.forget(), 1);
    bench.engine.admit("b").unwrap().success();
    let snapshot = bench.engine.snapshot("b").unwrap();
    let window = snapshot.window.unwrap();
    assert_eq!((window.calls, window.failures, snapshot.state), (1, 0, State::Closed));
    let totals = snapshot.totals;
    assert_eq!((totals.admitted, totals.success, totals.failure, totals.abandoned), (1, 1, 0, 0));
    assert_eq!((snapshot.refusals.total(), snapshot.in_flight, snapshot.policy_version), (0, 0, 0));
    assert!(bench.engine.snapshot(T).is_none());
}

#[test]
fn r19_a_permit_keeps_the_slot_from_any_new_tenant() {
    let bench = hasty(1);
    let permit = bench.enter();
    for _ in 0..5 {
        bench.advance(secs(1_000));
        assert!(bench.engine.admit("b").is_err());
    }
    assert_eq!(permit.failure(), Settled::Recorded);
    assert_eq!(bench.window(), (1, 1));
    assert_eq!(bench.forget(), 1);
    bench.engine.admit("b").unwrap().success();
    assert_eq!(bench.engine.snapshot("b").unwrap().totals.failure, 0);
}

#[test]
fn r19_permits_of_an_old_tenant_never_touch_a_new_one() {
    let bench = hasty(3);
    // Keys f… only fail, keys s… only succeed: a success tenant that shows a failure was touched by another.
    race(4, |thread| {
        let mut draw = Draw(thread as u64);
        for _ in 0..3_000 {
            let key = draw.below(8);
            let name = if key.is_multiple_of(2) { format!("s{key}") } else { format!("f{key}") };
            let Ok(permit) = bench.engine.admit(name.as_str()) else {
                bench.advance(secs(2));
                bench.engine.sweep();
                continue;
            };
            if key.is_multiple_of(2) {
                permit.success();
                if let Some(snapshot) = bench.engine.snapshot(name.as_str()) {
                    assert_eq!((snapshot.state, snapshot.totals.failure), (State::Closed, 0), "{name}");
                }
            } else {
                permit.failure();
            }
            if draw.below(4) == 0 {
                bench.advance(secs(200));
                bench.engine.sweep();
            }
        }
    });
    let log = bench.log();
    assert!(log.iter().all(|transition| transition.target.starts_with('f')), "only what fails ever opens");
    assert!(log.iter().any(|transition| transition.cause == Cause::Forgotten), "slots were recycled");
    assert!(log.iter().any(|transition| transition.incarnation > 8));
}

#[test]
fn r19_incarnations_number_every_target_ever_made() {
    let bench = hasty(10);
    bench.succeed(1);
    bench.engine.admit("b").unwrap().success();
    bench.forget();
    bench.succeed(1);
    assert_eq!(bench.snapshot().incarnation, 3);
    let snapshots = bench.engine.snapshots();
    assert_eq!((snapshots.len(), snapshots[0].0.as_str(), snapshots[0].1.incarnation), (1, T, 3));
}

#[test]
fn r19_a_remembered_key_asks_nobody_elses_target() {
    let bench = hasty(1);
    let ask = |key: &str| bench.engine.admit(key).map(portcullis::Permit::ignore);
    bench.fail(5);
    assert!(matches!(ask(T), Err(Rejection::Open { .. })));
    assert_eq!(bench.forget(), 1);
    // The slot is "b"'s now, and this thread still remembers it as the other key's.
    bench.engine.admit("b").unwrap().success();
    assert_eq!(ask(T), Err(Rejection::Exhausted { max_targets: 1 }));
    bench.engine.force_open("b").unwrap();
    assert_eq!(ask("b"), Err(Rejection::ForcedOpen));
    assert_eq!(ask(T), Err(Rejection::Exhausted { max_targets: 1 }));
    bench.engine.release("b").unwrap();
    bench.engine.set_limit("b", 0).unwrap();
    assert_eq!(ask(T), Err(Rejection::Exhausted { max_targets: 1 }));
    let of_b = bench.engine.snapshot("b").unwrap();
    assert_eq!((of_b.totals.admitted, of_b.in_flight, of_b.refusals.total()), (1, 0, 1));
}

#[test]
fn r19_a_thread_remembers_for_each_engine_by_itself() {
    let (one, other) = (hasty(10), hasty(10));
    one.fail(5);
    assert!(one.admit().is_err());
    other.succeed(1);
    assert_eq!((one.state(), other.state()), (State::Open, State::Closed));
    assert!(one.admit().is_err() && other.admit().is_ok());
}

/// A key that can't be copied for the moment.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Stubborn(u8);

thread_local!(static IS_STUBBORN: Cell<bool> = const { Cell::new(false) });

impl Clone for Stubborn {
    fn clone(&self) -> Self {
        assert!(!IS_STUBBORN.get(), "staged");
        Self(self.0)
    }
}

#[test]
fn r19_a_key_that_panics_when_it_is_remembered_leaves_nothing_in_flight() {
    let policy = textbook().max_in_flight(1).build().unwrap();
    let engine: Engine<Stubborn> = Engine::builder().policy(policy).build();
    engine.target(&Stubborn(1)).unwrap();
    IS_STUBBORN.set(true);
    let asked = catch_unwind(AssertUnwindSafe(|| drop(engine.admit(&Stubborn(1)))));
    IS_STUBBORN.set(false);
    assert!(asked.is_err());
    let seen = engine.snapshot(&Stubborn(1)).unwrap();
    assert_eq!((seen.in_flight, seen.totals.failure, seen.totals.ignored), (0, 0, 1));
    assert!(engine.admit(&Stubborn(1)).is_ok());
}

#[test]
fn r19_a_key_that_finds_no_room_is_not_copied() {
    let engine: Engine<Stubborn> = Engine::builder().max_targets(1).build();
    engine.admit(&Stubborn(1)).unwrap().success();
    IS_STUBBORN.set(true);
    let asked = engine.admit(&Stubborn(2)).map(portcullis::Permit::ignore);
    IS_STUBBORN.set(false);
    assert_eq!(asked, Err(Rejection::Exhausted { max_targets: 1 }));
}
