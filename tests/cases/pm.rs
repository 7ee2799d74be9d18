use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use portcullis::{Clock, Engine, Outcome, Policy, Rejection, Transition, UNLIMITED};

use super::kit::{Overlap, c0, elapsed, opened, race};
use crate::common::{Bench, T};

fn bulkhead(limit: u32) -> Bench {
    Bench::new(Policy::builder().max_in_flight(limit).no_window())
}

#[test]
fn pm03_nothing_is_released_twice() {
    // A listener that panics at every transition, and calls that end in each way there is.
    let bench = Bench::new(c0().max_in_flight(2).consecutive_failures(1));
    bench.engine.observe(|_: &Transition| panic!("a listener's")).forever();
    for call in 0..100 {
        match bench.engine.admit(T) {
            Ok(permit) if call % 3 == 0 => drop(permit.failure()),
            Ok(permit) if call % 3 == 1 => drop(permit),
            Ok(permit) => drop(permit.record(Outcome::Success)),
            Err(_) => bench.advance(std::time::Duration::from_secs(30)),
        }
    }
    assert!(bench.engine.observer_panics() > 10);
    bench.engine.disable(T).unwrap();
    let held = [bench.engine.admit(T).unwrap(), bench.engine.admit(T).unwrap()];
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 2 });
    drop(held);
    assert_eq!(bench.snapshot().in_flight, 0);
}

#[test]
fn pm06_the_limit_is_the_last_that_enters() {
    for limit in [1_u32, 2, 3, 127, 128, 129, 512, 513, 1_000] {
        let bench = bulkhead(limit);
        let held: Vec<_> = (0..limit).map(|_| bench.engine.admit(T).unwrap()).collect();
        assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Saturated { limit });
        assert_eq!(bench.snapshot().in_flight, limit);
        drop(held);
        assert_eq!(bench.snapshot().in_flight, 0);
    }
    let none = bulkhead(1);
    none.engine.set_limit(T, 0).unwrap();
    assert_eq!(none.engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 0 });
    let unlimited = Bench::new(Policy::builder());
    let held: Vec<_> = (0..10_000).map(|_| unlimited.engine.admit(T).unwrap()).collect();
    assert_eq!((unlimited.snapshot().in_flight, unlimited.snapshot().limit), (10_000, UNLIMITED));
    drop(held);
}

#[test]
fn pm09_a_permit_that_moves_into_detached_work_holds_its_slot() {
    let (clock, _time) = Clock::mock();
    let policy = Policy::builder().max_in_flight(1).build().unwrap();
    let engine: Arc<Engine> = Arc::new(Engine::builder().policy(policy).clock(clock).build());
    let permit = engine.admit_owned(T).unwrap();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let work = std::thread::spawn(move || {
        wait.recv().unwrap();
        permit.success()
    });
    // The caller has given up long ago; the work goes on.
    assert_eq!(engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 1 });
    go.send(()).unwrap();
    assert_eq!(work.join().unwrap(), portcullis::Settled::Recorded);
    assert!(engine.admit(T).is_ok());
}

#[test]
fn pm19_a_limit_below_what_is_in_flight_loses_nothing() {
    let bench = bulkhead(10);
    let mut held: Vec<_> = (0..8).map(|_| bench.engine.admit(T).unwrap()).collect();
    bench.engine.set_limit(T, 3).unwrap();
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 3 });
    held.truncate(3);
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 3 });
    held.truncate(2);
    held.push(bench.engine.admit(T).unwrap());
    assert_eq!(bench.snapshot().in_flight, 3);
    bench.engine.set_limit(T, 10).unwrap();
    let more: Vec<_> = (0..8).filter_map(|_| bench.engine.admit(T).ok()).collect();
    assert_eq!((more.len(), bench.snapshot().in_flight), (7, 10));
}

/// The same where permits are stashed, and with the limit going up and down under load.
#[test]
fn pm19_a_limit_that_moves_under_load_is_never_passed() {
    let (overlap, most) = (Overlap::default(), AtomicUsize::new(0));
    let bench = bulkhead(1_000);
    drop((0..700).map(|_| bench.engine.admit(T).unwrap()).collect::<Vec<_>>());
    let inside = AtomicUsize::new(0);
    race(3, |number| {
        for step in 0..2_000_u32 {
            if number == 0 {
                overlap.during(|| bench.engine.set_limit(T, if step % 2 == 0 { 3 } else { 1_000 }).unwrap());
            } else {
                let permit = overlap.during(|| bench.engine.admit(T));
                if let Ok(permit) = permit {
                    most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    permit.success();
                }
            }
        }
    });
    overlap.assert_met();
    bench.engine.set_limit(T, 3).unwrap();
    assert_eq!(bench.snapshot().in_flight, 0);
    let held: Vec<_> = (0..1_000).filter_map(|_| bench.engine.admit(T).ok()).collect();
    assert_eq!((held.len(), most.into_inner() <= 2), (3, true));
}

#[test]
fn pm21_a_limit_of_zero_is_a_kill_switch() {
    let bench = bulkhead(1);
    bench.succeed(1);
    bench.engine.set_limit(T, 0).unwrap();
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 0 });
    bench.engine.set_limit(T, 1).unwrap();
    assert!(bench.engine.admit(T).is_ok());
    assert_eq!(Policy::builder().max_in_flight(0).build().unwrap_err().field(), "max_in_flight");
}

#[test]
fn pm22_no_work_starts_before_it_is_admitted() {
    let ran = Cell::new(0);
    let call = |bench: &Bench| bench.engine.call(T, |(): &()| Outcome::Success, || ran.set(ran.get() + 1));
    let full = bulkhead(1);
    let _held = full.engine.admit(T).unwrap();
    assert!(call(&full).is_err());
    let open = opened(c0());
    assert!(call(&open).is_err());
    let probing = elapsed(c0());
    let _probe = probing.engine.admit(T).unwrap();
    assert!(call(&probing).is_err());
    let refused = open.engine.call_async(
        T,
        |(): &()| Outcome::Success,
        || {
            ran.set(ran.get() + 1);
            std::future::ready(())
        },
    );
    let mut refused = Box::pin(refused);
    let waker = Waker::noop();
    assert!(matches!(refused.as_mut().poll(&mut Context::from_waker(waker)), Poll::Ready(Err(_))));
    assert_eq!(ran.get(), 0);
}

/// Invariant 7, in threads that hold several permits at once.
#[test]
fn pm06_the_limit_holds_in_a_race() {
    for limit in [1_u32, 3, 130, 600] {
        let (overlap, inside, refused) = (Overlap::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        let bench = bulkhead(limit);
        // Enough for one thread alone to meet the limit.
        let per_thread = limit as usize + 1;
        race(4, |_| {
            for _ in 0..100 {
                let mut held = Vec::new();
                for _ in 0..per_thread {
                    match overlap.during(|| bench.engine.admit(T)) {
                        Ok(permit) => {
                            let before = inside.fetch_add(1, Ordering::SeqCst);
                            assert!(before < limit as usize, "{before} were inside of {limit}");
                            held.push(permit);
                        }
                        Err(refusal) => {
                            assert_eq!(refusal, Rejection::Saturated { limit });
                            refused.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                }
                for permit in held {
                    inside.fetch_sub(1, Ordering::SeqCst);
                    permit.success();
                }
            }
        });
        overlap.assert_met();
        assert!(refused.into_inner() > 0, "the limit of {limit} was never met");
        let held: Vec<_> = (0..=limit).filter_map(|_| bench.engine.admit(T).ok()).collect();
        assert_eq!(held.len(), limit as usize, "every permit is there again");
    }
}
