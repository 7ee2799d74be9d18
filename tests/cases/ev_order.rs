use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use portcullis::{Engine, Transition};

use super::kit::{Overlap, assert_ordered, c0, done, race};
use crate::common::{Bench, T};

fn toggle(engine: &Engine, key: &str, times: usize) {
    for _ in 0..times {
        assert!(engine.force_open(key).unwrap() && engine.release(key).unwrap());
    }
}

#[test]
fn ev03_no_call_comes_after_the_guard_is_gone() {
    let (overlap, calls) = (Overlap::default(), Arc::new(AtomicUsize::new(0)));
    for _ in 0..300 {
        let bench = Bench::new(c0());
        let gone = Arc::new(AtomicBool::new(false));
        let (is_gone, called) = (Arc::clone(&gone), Arc::clone(&calls));
        let guard = bench.engine.observe(move |_: &Transition| {
            assert!(!is_gone.load(Ordering::SeqCst), "called after it was unregistered");
            called.fetch_add(1, Ordering::SeqCst);
        });
        let guard = Mutex::new(Some(guard));
        race(2, |number| {
            overlap.during(|| match number {
                0 => toggle(&bench.engine, T, 5),
                _ => {
                    drop(guard.lock().unwrap().take());
                    gone.store(true, Ordering::SeqCst);
                }
            });
        });
        toggle(&bench.engine, T, 1);
        assert_eq!(bench.engine.observer_panics(), 0);
    }
    overlap.assert_met();
    assert!(calls.load(Ordering::SeqCst) > 0, "nothing was ever heard of");
}

#[test]
fn ev03_an_observer_may_unregister_itself() {
    let bench = Bench::new(c0());
    let (own, calls) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
    let (inside, called) = (Arc::clone(&own), Arc::clone(&calls));
    let guard = bench.engine.observe(move |_: &Transition| {
        called.fetch_add(1, Ordering::SeqCst);
        drop(inside.lock().unwrap().take());
    });
    *own.lock().unwrap() = Some(guard);
    toggle(&bench.engine, T, 3);
    assert_eq!((calls.load(Ordering::SeqCst), bench.engine.observer_panics()), (1, 0));
}

/// EV-04's choice: the bound is `Sync`, and two threads may be inside at once; the sequence numbers tell the order.
#[test]
fn ev04_every_transition_is_heard_once_by_an_observer_that_is_sync() {
    let bench = Bench::new(c0());
    let heard: Arc<Mutex<HashMap<String, Vec<u64>>>> = Arc::default();
    let hears = Arc::clone(&heard);
    let _guard = bench.engine.observe(move |transition: &Transition| {
        hears.lock().unwrap().entry(transition.target.to_string()).or_default().push(transition.sequence);
    });
    let overlap = Overlap::default();
    race(4, |number| {
        for _ in 0..200 {
            overlap.during(|| done(bench.engine.force_open("shared")));
            done(bench.engine.release("shared"));
            toggle(&bench.engine, &format!("own {number}"), 1);
        }
    });
    overlap.assert_met();
    for (key, sequences) in &mut *heard.lock().unwrap() {
        sequences.sort_unstable();
        let all: Vec<u64> = (1..=sequences.len() as u64).collect();
        assert_eq!(*sequences, all, "{key}");
        let generation = bench.engine.snapshot(key.as_str()).unwrap().generation;
        assert_eq!(u64::from(generation), sequences.len() as u64, "{key}");
    }
}

/// Invariant 8 in threads: what the log and a subscription deliver is in order, unbroken and complete.
#[test]
fn ev04_the_log_is_in_order_whoever_made_the_transitions() {
    let overlap = Overlap::default();
    for _ in 0..20 {
        let bench = Bench::new(c0().open_wait(std::time::Duration::from_millis(1)));
        let subscription = bench.engine.subscribe(100_000);
        race(4, |number| {
            for call in 0..150 {
                overlap.during(|| match bench.engine.admit(T) {
                    Ok(permit) if (call + number) % 3 == 0 => drop(permit.success()),
                    Ok(permit) => drop(permit.failure()),
                    Err(_) => bench.time.increment(1_000_000_u64),
                });
            }
        });
        assert!(assert_ordered(&bench, &subscription) > 10);
    }
    overlap.assert_met();
}

#[test]
fn ev10_observers_come_and_go_while_others_are_called() {
    let bench = Bench::new(c0());
    let overlap = Overlap::default();
    let heard = Arc::new(AtomicUsize::new(0));
    let hears = Arc::clone(&heard);
    let _steady = bench.engine.observe(move |_: &Transition| done(hears.fetch_add(1, Ordering::SeqCst)));
    race(2, |number| {
        for _ in 0..2_000 {
            overlap.during(|| match number {
                0 => toggle(&bench.engine, T, 1),
                _ => drop(bench.engine.observe(|_: &Transition| {})),
            });
        }
    });
    overlap.assert_met();
    assert_eq!((heard.load(Ordering::SeqCst), bench.engine.observer_panics()), (4_000, 0));
}

/// An observer registered before a transition hears of it; one that an observer registers hears of the next.
#[test]
fn ev10_an_observer_hears_of_what_begins_after_it() {
    let bench = Arc::new(Bench::new(c0()));
    let late = Arc::new(AtomicUsize::new(0));
    let (engine, hears) = (Arc::downgrade(&bench), Arc::clone(&late));
    let _first = bench.engine.observe(move |transition: &Transition| {
        let Some(bench) = engine.upgrade() else { return };
        if transition.sequence == 1 {
            let hears = Arc::clone(&hears);
            bench.engine.observe(move |_: &Transition| done(hears.fetch_add(1, Ordering::SeqCst))).forever();
        }
    });
    toggle(&bench.engine, T, 1);
    assert_eq!(late.load(Ordering::SeqCst), 1, "of the second transition");
}
