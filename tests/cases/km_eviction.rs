use std::sync::Arc;
use std::time::Duration;

use portcullis::{Cause, Clock, Engine, PolicyBuilder, Rejection, State};

use super::kit::{Overlap, c0, done, race, t0};
use crate::common::{T, secs};

fn engine(policy: PolicyBuilder, max_targets: usize) -> (Engine, Arc<quanta::Mock>) {
    let (clock, time) = Clock::mock();
    let builder = Engine::builder().policy(policy.build().unwrap()).clock(clock).seed(1);
    (builder.max_targets(max_targets).idle_after(secs(1)).forget_after(secs(120)).build(), time)
}

fn fail(engine: &Engine, key: &str, times: usize) {
    (0..times).for_each(|_| done(engine.admit(key).unwrap().failure()));
}

#[test]
fn km07_an_open_target_is_not_idle() {
    let (engine, time) = engine(t0().open_wait(secs(60)), 100);
    fail(&engine, T, 5);
    for _ in 0..4 {
        time.increment(secs(5));
        assert_eq!(engine.sweep(), 0);
    }
    time.increment(secs(1));
    assert_eq!(engine.admit(T).unwrap_err(), Rejection::Open { retry_after: secs(39) });
}

/// Invariant 11: what may go is what a fresh target can't be told from, or what nobody asked for in `forget_after`.
#[test]
fn km07_only_what_is_like_a_fresh_target_goes_early() {
    type Do = fn(&Engine);
    let cases: [(&str, bool, Do); 9] = [
        ("a success", true, |engine| done(engine.admit(T).unwrap().success())),
        ("an ignored call", true, |engine| done(engine.admit(T).unwrap().ignore())),
        ("a failure", false, |engine| fail(engine, T, 1)),
        ("open", false, |engine| fail(engine, T, 5)),
        ("forced open", false, |engine| done(engine.force_open(T))),
        ("disabled", false, |engine| done(engine.disable(T))),
        ("a limit of its own", false, |engine| engine.set_limit(T, 5).unwrap()),
        ("a policy of its own", false, |engine| engine.set_policy(T, c0().jitter(0.2).build().unwrap()).unwrap()),
        ("a call in flight", false, |engine| std::mem::forget(engine.admit(T).unwrap())),
    ];
    for (name, may_go, act) in cases {
        let (engine, time) = engine(c0(), 100);
        act(&engine);
        engine.sweep();
        for _ in 0..10 {
            time.increment(secs(2));
            engine.sweep();
        }
        assert_eq!(engine.is_empty(), may_go, "{name}");
    }
    // And a handle pins it.
    let (engine, time) = engine(c0(), 100);
    let handle = engine.target(T).unwrap();
    handle.admit().unwrap().success();
    for _ in 0..10 {
        time.increment(secs(600));
        engine.sweep();
    }
    assert_eq!(engine.len(), 1);
    drop(handle);
    engine.sweep();
    time.increment(secs(2));
    engine.sweep();
    assert!(engine.is_empty());
}

#[test]
fn km09_made_up_keys_do_not_wash_evidence_away() {
    let (engine, time) = engine(c0().no_failure_rate().consecutive_failures(5), 64);
    for round in 0..5 {
        fail(&engine, T, 1);
        for key in 0..64 {
            time.increment(secs(1));
            if let Ok(permit) = engine.admit(format!("r{round}k{key}").as_str()) {
                permit.success();
            }
        }
        assert!(engine.len() <= 64);
    }
    assert_ne!(engine.snapshot(T).unwrap().state, State::Closed, "five failures in a row, and it isn't closed");
}

#[test]
fn km09_a_new_key_is_refused_rather_than_evidence_dropped() {
    let (engine, _time) = engine(c0(), 2);
    fail(&engine, "a", 1);
    fail(&engine, "b", 1);
    assert_eq!(engine.admit("c").unwrap_err(), Rejection::Exhausted { max_targets: 2 });
    assert_eq!((engine.exhausted(), engine.len()), (1, 2));
    assert_eq!(engine.snapshot("a").unwrap().window.unwrap().failures, 1);
}

#[test]
fn km10_what_is_open_is_counted_from_what_is_there() {
    let (engine, time) = engine(c0(), 100);
    let open = |engine: &Engine| {
        let snapshots = engine.snapshots();
        snapshots.iter().filter(|(_, snapshot)| snapshot.state != State::Closed).count()
    };
    let keys: Vec<String> = (0..100).map(|key| format!("k{key}")).collect();
    keys.iter().for_each(|key| fail(&engine, key, 5));
    assert_eq!(open(&engine), 100);
    time.increment(secs(30));
    let overlap = Overlap::default();
    race(2, |number| {
        for key in &keys {
            overlap.during(|| match number {
                0 => {
                    if let Ok(probe) = engine.admit(key.as_str()) {
                        probe.failure();
                    }
                }
                _ => {
                    time.increment(secs(1));
                    engine.sweep();
                }
            });
        }
    });
    overlap.assert_met();
    for _ in 0..4 {
        time.increment(secs(130));
        engine.sweep();
    }
    assert_eq!((open(&engine), engine.len()), (0, 0));
    let forgotten = engine.transitions().iter().filter(|it| it.cause == Cause::Forgotten).count();
    assert_eq!(forgotten, 100, "each said that it went");
}

#[test]
fn km16_targets_that_nobody_asks_for_cost_nothing_and_go_in_time() {
    let (engine, time) = engine(c0(), 2_000);
    let keys: Vec<String> = (0..2_000).map(|key| format!("k{key}")).collect();
    keys.iter().for_each(|key| fail(&engine, key, 5));
    let events = engine.transitions().len() as u64 + engine.transitions_dropped();
    time.increment(secs(3_600));
    assert_eq!(engine.transitions().len() as u64 + engine.transitions_dropped(), events, "nobody probed");
    // Making a key looks at a few others, so some were seen at the beginning and go now, the rest when they were seen twice.
    let gone = engine.sweep();
    time.increment(secs(120));
    assert_eq!((gone + engine.sweep(), engine.len()), (2_000, 0));
    assert_eq!(engine.transitions().len() as u64 + engine.transitions_dropped(), events + 2_000);
}

/// A new tenant of a recycled place starts at nothing: state, window, streak, and every total.
#[test]
fn km06_a_recycled_target_remembers_nothing() {
    for policy in [c0().consecutive_failures(50), t0().consecutive_failures(50)] {
        let (engine, time) = engine(policy, 1);
        for _ in 0..7 {
            engine.admit("a").unwrap().success();
        }
        fail(&engine, "a", 3);
        engine.admit("a").unwrap().ignore();
        drop(engine.admit("a").unwrap());
        engine.sweep();
        time.increment(Duration::from_secs(121));
        assert_eq!(engine.sweep(), 1);
        let permit = engine.admit("b").unwrap();
        let snapshot = engine.snapshot("b").unwrap();
        assert_eq!((snapshot.incarnation, snapshot.in_flight, snapshot.streak), (2, 1, 0));
        assert_eq!(snapshot.window.unwrap(), Default::default());
        assert_eq!(snapshot.totals.admitted, 1, "{:?}", snapshot.totals);
        permit.success();
        let totals = engine.snapshot("b").unwrap().totals;
        assert_eq!((totals.admitted, totals.success, totals.failure, totals.abandoned), (1, 1, 0, 0));
        assert!(engine.snapshot("a").is_none());
    }
}

/// A permit that outlives the wish to evict keeps its target; its outcome lands where it belongs.
#[test]
fn km10_a_call_in_flight_keeps_its_target() {
    let (engine, time) = engine(c0(), 1);
    let permit = engine.admit("a").unwrap();
    for _ in 0..10 {
        time.increment(secs(1_000));
        assert_eq!(engine.sweep(), 0);
        assert_eq!(engine.admit("b").unwrap_err(), Rejection::Exhausted { max_targets: 1 });
    }
    permit.failure();
    assert_eq!(engine.snapshot("a").unwrap().totals.failure, 1);
}
