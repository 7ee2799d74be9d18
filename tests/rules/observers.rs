//! R20: observers may do anything, and hurt nobody.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use portcullis::{Clock, Engine, Observer, ObserverGuard, Policy, Settled, State, Transition};

use crate::common::{Bench, T, listener, race, secs, textbook};

/// An engine that observers can reach.
fn shared() -> (Arc<Engine>, Arc<quanta::Mock>) {
    let (clock, time) = Clock::mock();
    (Arc::new(Engine::builder().policy(textbook().build().unwrap()).clock(clock).seed(1).build()), time)
}

fn trip(engine: &Engine, key: &str) {
    (0..5).for_each(|_| assert_eq!(engine.admit(key).unwrap().failure(), Settled::Recorded));
}

#[test]
fn r20_an_observer_may_call_everything_from_inside() {
    let (engine, _time) = shared();
    let calls = Arc::new(AtomicU64::new(0));
    let (inside, counted) = (Arc::clone(&engine), Arc::clone(&calls));
    let depth = AtomicU64::new(0);
    let guard = engine.observe(move |transition: &Transition| {
        assert_eq!(depth.fetch_add(1, Ordering::SeqCst), 0, "an observer is never inside of itself");
        counted.fetch_add(1, Ordering::SeqCst);
        let key = transition.target.as_str();
        if key == T {
            // The word has changed: the decision is the new state's.
            assert!(inside.admit(key).is_err());
        }
        let other = format!("{key}+");
        if other.len() < T.len() + 4 {
            // From inside one: transitions of others, which wait for this call to end.
            trip(&inside, &other);
            inside.force_open(other.as_str()).unwrap();
            inside.disable(other.as_str()).unwrap();
            inside.release(other.as_str()).unwrap();
            inside.set_policy(other.as_str(), Policy::default()).unwrap();
            inside.set_limit(other.as_str(), 5).unwrap();
        }
        let _snapshot = inside.snapshot(key);
        let _all = (inside.snapshots(), inside.transitions(), inside.transitions_dropped(), inside.sweep());
        inside.observe(|_: &Transition| ()).forever();
        drop(inside.observe(|_: &Transition| ()));
        drop(inside.subscribe(1));
        drop(inside.target(key));
        depth.fetch_sub(1, Ordering::SeqCst);
    });
    trip(&engine, T);
    drop(guard);
    // The first, and for each of three keys more: trip, forced, disabled, released, a new geometry.
    let heard = calls.load(Ordering::SeqCst);
    assert!(heard > 4 * 3, "{heard}");
    assert_eq!((engine.observer_panics(), heard), (0, engine.transitions().len() as u64));
}

#[test]
fn r20_an_observer_runs_after_the_permit_is_back() {
    let (engine, _time) = shared();
    engine.set_limit(T, 1).unwrap();
    let (inside, seen) = (Arc::clone(&engine), Arc::new(Mutex::new(Vec::new())));
    let shared = Arc::clone(&seen);
    let _guard = engine.observe(move |transition: &Transition| {
        shared.lock().unwrap().push(inside.snapshot(transition.target.as_str()).unwrap().in_flight);
    });
    trip(&engine, T);
    assert_eq!(*seen.lock().unwrap(), [0]);
}

#[test]
fn r20_a_panicking_observer_hurts_neither_the_call_nor_the_other_observers() {
    let bench = Bench::new(textbook());
    let (before, observer) = listener();
    let _first = bench.engine.observe(observer);
    let _second = bench.engine.observe(|_: &Transition| std::panic::resume_unwind(Box::new("an observer")));
    let (after, observer) = listener();
    let _third = bench.engine.observe(observer);
    bench.fail(4);
    assert_eq!(bench.enter().failure(), Settled::Recorded);
    bench.advance(secs(30));
    bench.probe().success();
    assert_eq!((before.lock().unwrap().len(), after.lock().unwrap().len()), (3, 3));
    assert_eq!((bench.engine.observer_panics(), bench.log().len()), (3, 3));
    assert_eq!((bench.snapshot().in_flight, bench.state()), (0, State::Closed));
}

#[test]
fn r20_a_payload_that_panics_when_it_is_dropped_ends_nothing() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                std::panic::resume_unwind(Box::new("again"));
            }
        }
    }
    let bench = Bench::new(textbook());
    let _guard = bench.engine.observe(|_: &Transition| std::panic::resume_unwind(Box::new(Bomb)));
    let (heard, observer) = listener();
    let _other = bench.engine.observe(observer);
    bench.fail(5);
    assert_eq!((bench.engine.observer_panics(), heard.lock().unwrap().len()), (1, 1));
}

#[test]
fn r20_a_dropped_guard_ends_it_and_forever_does_not() {
    let bench = Bench::new(textbook());
    let (dropped, observer) = listener();
    let guard = bench.engine.observe(observer);
    let (kept, observer) = listener();
    bench.engine.observe(observer).forever();
    let target = bench.engine.target(T).unwrap();
    target.force_open();
    drop(guard);
    target.release();
    assert_eq!((dropped.lock().unwrap().len(), kept.lock().unwrap().len()), (1, 2));
}

#[test]
fn r20_no_callback_begins_or_runs_on_once_the_guard_is_gone() {
    for _ in 0..200 {
        let bench = Bench::new(textbook());
        let gone = Arc::new(AtomicBool::new(false));
        let late = Arc::new(AtomicU64::new(0));
        let (is_gone, count) = (Arc::clone(&gone), Arc::clone(&late));
        let guard = Mutex::new(Some(bench.engine.observe(move |_: &Transition| {
            std::thread::yield_now();
            count.fetch_add(u64::from(is_gone.load(Ordering::SeqCst)), Ordering::SeqCst);
        })));
        race(3, |thread| {
            let target = bench.engine.target(T).unwrap();
            for _ in 0..20 {
                if thread == 0 {
                    drop(guard.lock().unwrap().take());
                    gone.store(true, Ordering::SeqCst);
                } else {
                    target.force_open();
                    target.release();
                }
            }
        });
        assert_eq!(late.load(Ordering::SeqCst), 0);
    }
}

#[test]
fn r20_a_guard_may_be_dropped_inside_its_own_observer() {
    let bench = Bench::new(textbook());
    let slot: Arc<Mutex<Option<ObserverGuard>>> = Arc::default();
    let (own, calls) = (Arc::clone(&slot), Arc::new(AtomicU64::new(0)));
    let counted = Arc::clone(&calls);
    let guard = bench.engine.observe(move |_: &Transition| {
        counted.fetch_add(1, Ordering::SeqCst);
        drop(own.lock().unwrap().take());
    });
    *slot.lock().unwrap() = Some(guard);
    let target = bench.engine.target(T).unwrap();
    target.force_open();
    target.release();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[test]
fn r20_registering_while_others_dispatch_loses_nothing_for_those_there() {
    let bench = Bench::with(textbook(), |builder| builder.log_capacity(100_000));
    let (heard, observer) = listener();
    let _guard = bench.engine.observe(observer);
    race(4, |thread| {
        let target = bench.engine.target(format!("{thread}").as_str()).unwrap();
        for _ in 0..300 {
            if thread % 2 == 0 {
                target.force_open();
                target.release();
            } else {
                let guard = bench.engine.observe(|_: &Transition| ());
                drop((guard, bench.engine.subscribe(1)));
            }
        }
    });
    assert_eq!(heard.lock().unwrap().len(), 2 * 300 * 2);
    assert_eq!(bench.log().len(), 2 * 300 * 2);
}

#[test]
fn r20_a_slow_observer_blocks_no_other_thread() {
    let bench = Bench::new(textbook());
    let (entered, has_entered) = mpsc::channel();
    let (leave, may_leave) = mpsc::channel::<()>();
    let (may_leave, entered) = (Mutex::new(may_leave), Mutex::new(entered));
    let _guard = bench.engine.observe(move |transition: &Transition| {
        if transition.target.as_str() == T {
            entered.lock().unwrap().send(()).unwrap();
            may_leave.lock().unwrap().recv().unwrap();
        }
    });
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| bench.engine.force_open(T).unwrap());
        has_entered.recv().unwrap();
        // The observer is inside now, and stays there until all this is done.
        assert!(bench.admit().is_err());
        let other = bench.engine.target("claims").unwrap();
        other.admit().unwrap().success();
        assert!(other.force_open() && other.release());
        let (heard, observer) = listener();
        drop(bench.engine.observe(observer));
        assert_eq!((heard.lock().unwrap().len(), bench.log().len()), (0, 3));
        assert_eq!(bench.state(), State::ForcedOpen);
        leave.send(()).unwrap();
        assert!(slow.join().unwrap());
    });
}

#[test]
fn r20_a_type_of_one_s_own_can_observe_keys_of_any_type() {
    struct Count(&'static OnceLock<(u16, State)>);
    impl Observer<u16> for Count {
        fn on_transition(&self, transition: &Transition<u16>) {
            let _ = self.0.set((*transition.target, transition.to));
        }
    }
    static HEARD: OnceLock<(u16, State)> = OnceLock::new();
    let engine: Engine<u16> = Engine::builder().build();
    engine.observe(Count(&HEARD)).forever();
    engine.force_open(&7).unwrap();
    assert_eq!(HEARD.get(), Some(&(7, State::ForcedOpen)));
}
