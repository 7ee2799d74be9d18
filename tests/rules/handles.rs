//! Handles, stand-alone targets, owned permits, static engines.

use std::sync::{Arc, LazyLock};

use portcullis::{
    Clock, Engine, Held, OwnedHeld, OwnedPermit, Permit, Policy, Rejection, Settled, Snapshot, Standalone, State,
    Target, Transition,
};

use crate::common::{Bench, T, ms, secs, textbook};

fn shared() -> (Arc<Engine>, Arc<quanta::Mock>) {
    let (clock, time) = Clock::mock();
    (Arc::new(Engine::builder().policy(textbook().build().unwrap()).clock(clock).build()), time)
}

#[test]
fn a_handle_and_the_key_are_one_target() {
    let bench = Bench::new(textbook().max_in_flight(5));
    let target = bench.engine.target(T).unwrap();
    let clone = target.clone();
    let permits = (target.admit().unwrap(), clone.admit().unwrap(), bench.enter());
    assert_eq!((target.snapshot().in_flight, bench.engine.len()), (3, 1));
    drop(permits);
    (0..5).for_each(|_| assert_eq!(target.admit().unwrap().failure(), Settled::Recorded));
    assert!(matches!(bench.refusal(), Rejection::Open { .. }));
    assert_eq!((clone.state(), target.snapshot().state), (State::Open, State::Open));
    target.set_limit(0);
    assert_eq!(bench.snapshot().limit, 0);
    target.set_policy(Policy::default());
    assert_eq!(bench.snapshot().policy, Policy::default());
}

#[test]
fn a_permit_outlives_the_handle_that_gave_it() {
    let bench = Bench::new(textbook());
    let permit = bench.engine.target(T).unwrap().admit().unwrap();
    assert_eq!(permit.success(), Settled::Recorded);
}

#[test]
fn a_standalone_target_does_all_of_it() {
    let (clock, time) = Clock::mock();
    let ledger = Standalone::with_clock("ledger", textbook().max_in_flight(3).build().unwrap(), clock);
    let permits: Vec<_> = (0..3).map(|_| ledger.admit().unwrap()).collect();
    assert_eq!(ledger.admit().unwrap_err(), Rejection::Saturated { limit: 3 });
    drop(permits);
    (0..5).for_each(|_| assert_eq!(ledger.admit().unwrap().failure(), Settled::Recorded));
    assert_eq!(ledger.admit().unwrap_err(), Rejection::Open { retry_after: secs(30) });
    time.increment(secs(30));
    let probe = ledger.admit().unwrap();
    assert!(probe.is_probe());
    probe.success();
    assert_eq!(ledger.target().unwrap().state(), State::Closed);
    assert_eq!(ledger.engine().transitions().len(), 3);
    assert_eq!(ledger.engine().transitions()[0].target.as_str(), "ledger");
}

#[test]
fn a_standalone_target_is_never_forgotten() {
    let (clock, time) = Clock::mock();
    let ledger = Standalone::with_clock("ledger", Policy::default(), clock);
    for _ in 0..5 {
        time.increment(secs(1_000_000));
        assert_eq!(ledger.engine().sweep(), 0);
        drop(ledger.target().unwrap());
    }
    assert_eq!(ledger.engine().admit("other").unwrap_err(), Rejection::Exhausted { max_targets: 1 });
    ledger.admit().unwrap().success();
    assert_eq!(ledger.engine().snapshot("ledger").unwrap().totals.success, 1);
}

#[test]
fn an_owned_permit_moves_where_it_likes() {
    let (engine, _) = shared();
    let permit = engine.admit_owned(T).unwrap();
    let thread = std::thread::spawn(move || permit.success());
    assert_eq!(thread.join().unwrap(), Settled::Recorded);
    for (index, end) in [OwnedPermit::success, OwnedPermit::failure, OwnedPermit::ignore].into_iter().enumerate() {
        assert_eq!(end(engine.admit_owned(T).unwrap()), Settled::Recorded, "{index}");
    }
    drop(engine.admit_owned(T).unwrap());
    let snapshot = engine.snapshot(T).unwrap();
    let totals = snapshot.totals;
    assert_eq!((totals.success, totals.failure, totals.ignored, totals.abandoned), (2, 1, 1, 1));
    assert_eq!(snapshot.in_flight, 0);
}

#[test]
fn an_owned_permit_keeps_its_engine_alive() {
    let (engine, _) = shared();
    let channel = engine.subscribe(10);
    let permits: Vec<_> = (0..5).map(|_| engine.admit_owned(T).unwrap()).collect();
    drop(engine);
    permits.into_iter().for_each(|permit| assert_eq!(permit.failure(), Settled::Recorded));
    assert_eq!(channel.recv().unwrap().to, State::Open);
    assert!(channel.recv().is_err(), "the engine went with the last permit");
}

#[test]
fn an_owned_permit_is_stale_like_any_other() {
    let (engine, time) = shared();
    let old = engine.admit_owned(T).unwrap();
    (0..5).for_each(|_| assert_eq!(engine.admit_owned(T).unwrap().failure(), Settled::Recorded));
    time.increment(secs(30));
    let probe = engine.admit_owned(T).unwrap();
    assert!(probe.is_probe() && !old.is_probe());
    assert_eq!(old.success(), Settled::Stale);
    assert_eq!(probe.success(), Settled::Recorded);
}

#[test]
fn an_owned_permit_recorded_holds_its_slot() {
    let (engine, _) = shared();
    engine.set_limit(T, 1).unwrap();
    let held = engine.admit_owned(T).unwrap().record(portcullis::Outcome::Failure);
    assert_eq!(held.settled(), Settled::Recorded);
    assert_eq!(engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 1 });
    assert_eq!(engine.snapshot(T).unwrap().totals.failure, 1);
    drop(held);
    let snapshot = engine.snapshot(T).unwrap();
    assert_eq!((snapshot.in_flight, snapshot.totals.admitted, snapshot.totals.abandoned), (0, 1, 0));
}

#[test]
fn r11_an_async_permit_dropped_is_judged_by_how_long_the_target_was_silent() {
    let (engine, time) = shared();
    let calls = || engine.snapshot(T).unwrap().window.unwrap().failures;
    let quick = engine.admit_async(T).unwrap();
    time.increment(ms(499));
    drop(quick);
    assert_eq!(calls(), 0);
    let slow = engine.admit_async(T).unwrap();
    time.increment(ms(500));
    drop(slow);
    assert_eq!(calls(), 1);
    // A sign of life starts the silence again.
    let mut flowing = engine.admit_async(T).unwrap();
    for _ in 0..10 {
        time.increment(ms(499));
        flowing.touch();
    }
    time.increment(ms(499));
    drop(flowing);
    assert_eq!(calls(), 1);
    let mut stalled = engine.admit_async(T).unwrap();
    stalled.touch();
    time.increment(ms(500));
    drop(stalled);
    assert_eq!(calls(), 2);
    // The sync one is ignored by default, touched or not.
    let mut sync = engine.admit_owned(T).unwrap();
    sync.touch();
    time.increment(secs(60));
    drop(sync);
    assert_eq!(calls(), 2);
}

#[test]
fn r09_a_touched_call_is_as_slow_as_its_first_sign_of_life() {
    for (answered, slow) in [(ms(999), 0), (secs(1), 1)] {
        let (engine, time) = shared();
        engine.set_policy(T, textbook().slow_call(secs(1)).build().unwrap()).unwrap();
        let mut permit = engine.admit_async(T).unwrap();
        time.increment(answered);
        permit.touch();
        time.increment(secs(60));
        permit.touch();
        permit.success();
        assert_eq!(engine.snapshot(T).unwrap().totals.slow, slow, "{answered:?}");
    }
}

#[test]
fn a_static_engine_gives_permits_that_last() {
    static ENGINE: LazyLock<Engine<u32>> = LazyLock::new(|| Engine::builder().build());
    let permit: Permit<'static, u32> = ENGINE.admit(&7).unwrap();
    let target: Target<'static, u32> = ENGINE.target(&7).unwrap();
    let thread = std::thread::spawn(move || {
        let held: Held<'static, u32> = permit.record(portcullis::Outcome::Success);
        (held.settled(), target.snapshot().in_flight)
    });
    assert_eq!(thread.join().unwrap(), (Settled::Recorded, 1));
    assert_eq!(ENGINE.snapshot(&7).unwrap().in_flight, 0);
}

#[test]
fn keys_of_any_type_and_any_length_are_targets() {
    let engine: Engine<(u8, String)> = Engine::builder().build();
    engine.admit(&(1, "a".to_owned())).unwrap().success();
    assert!(engine.snapshot(&(2, "a".to_owned())).is_none());
    let engine: Engine = Engine::builder().build();
    let long = "k".repeat(64 << 10);
    engine.admit(long.as_str()).unwrap().failure();
    engine.admit(&long).unwrap().failure();
    engine.admit("").unwrap().success();
    assert_eq!(engine.snapshot(&long).unwrap().totals.failure, 2);
    assert_eq!(engine.len(), 2);
}

#[test]
fn everything_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Engine>();
    shared::<Standalone>();
    shared::<Target<'static>>();
    shared::<Permit<'static>>();
    shared::<Held<'static>>();
    shared::<OwnedPermit<Arc<Engine>>>();
    shared::<OwnedHeld<Arc<Engine>>>();
    shared::<Snapshot>();
    shared::<Transition>();
    shared::<Rejection>();
    shared::<Policy>();
    shared::<Clock>();
}
