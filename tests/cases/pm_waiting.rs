//! Faults of queues for permits.

use std::future::{pending, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use portcullis::{Engine, PolicyBuilder, Priority, Rejection, State};

use super::kit::{c0, done, elapsed};
use crate::common::waiter::Waiter;
use crate::common::{Bench, T, ms};

/// `B(limit)` where calls may wait.
fn queued(limit: u32) -> PolicyBuilder {
    c0().max_in_flight(limit).max_waiting(100).max_wait(ms(100))
}

#[test]
fn pm01_who_gave_up_gets_no_permit_and_loses_none() {
    let bench = Bench::new(queued(1));
    for _ in 0..1_000 {
        let a = bench.enter();
        let b = Waiter::new(bench.engine.admit_waiting(T, Priority::Critical, |_| ready(()))).answer();
        assert_eq!(b.unwrap_err(), Rejection::Saturated { limit: 1 });
        a.success();
        bench.enter().success();
    }
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.waiting, snapshot.waited), (0, 0, 1_000));
}

#[test]
fn pm04_a_grant_that_meets_a_cancellation_is_passed_on() {
    for release_first in [true, false] {
        let bench = Bench::new(queued(1));
        let a = bench.enter();
        let mut b = Waiter::patient(&bench);
        assert!(b.waits());
        if release_first {
            a.success();
            drop(b);
        } else {
            drop(b);
            a.success();
        }
        bench.enter().success();
        // `b` was no call.
        assert_eq!((bench.snapshot().totals.admitted, bench.snapshot().totals.abandoned), (2, 0));
    }
}

#[test]
fn pm13_cancelling_the_first_wakes_the_next() {
    let bench = Bench::new(queued(2));
    let (a, _b) = (bench.enter(), bench.enter());
    let [mut first, mut second] = [(); 2].map(|()| Waiter::patient(&bench));
    assert!(first.waits() && second.waits());
    a.success();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.wakes(), 1);
    second.answer().unwrap().success();
}

#[test]
fn pm15_who_asks_again_at_once_starves_nobody_who_waits() {
    let bench = Bench::new(queued(1));
    let mut held = bench.enter();
    for _ in 0..1_000 {
        let mut waiter = Waiter::patient(&bench);
        assert!(waiter.waits());
        // The holder gives back and asks again, long before the other is polled.
        held.success();
        assert_eq!(bench.refusal(), Rejection::Saturated { limit: 1 });
        held = waiter.answer().unwrap();
    }
    held.success();
}

#[test]
fn pm21_a_limit_raised_from_zero_wakes_who_waits() {
    let bench = Bench::new(queued(1));
    bench.engine.set_limit(T, 0).unwrap();
    let mut waiter = Waiter::patient(&bench);
    assert!(waiter.waits());
    bench.engine.set_limit(T, 1).unwrap();
    assert_eq!(waiter.wakes(), 1);
    waiter.answer().unwrap().success();
}

#[test]
fn pm24_each_that_waited_has_a_permit_of_its_own() {
    let bench = Bench::new(queued(1));
    let mut held = Some(bench.enter());
    let mut waiters: Vec<_> = (0..10).map(|_| Waiter::patient(&bench)).collect();
    assert!(waiters.iter_mut().all(Waiter::waits));
    while !waiters.is_empty() {
        held.take().unwrap().success();
        // Whoever is polled without cause goes on waiting.
        let ready: Vec<bool> = waiters.iter_mut().map(|waiter| waiter.wakes() > 0 || !waiter.waits()).collect();
        assert_eq!(ready.iter().filter(|ready| **ready).count(), 1);
        assert!(ready[0]);
        held = Some(waiters.remove(0).answer().unwrap());
        assert_eq!(bench.snapshot().in_flight, 1);
    }
}

/// A waker that calls the engine when it is woken and when it goes.
struct Nosy {
    engine: Arc<Engine>,
    asked: Arc<AtomicUsize>,
    panics: bool,
}

impl Nosy {
    fn ask(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
        done(self.engine.admit(T).map(portcullis::Permit::ignore));
        self.engine.set_limit(T, 1).unwrap();
        self.engine.admit("another").unwrap().success();
        assert!(!self.panics, "on purpose");
    }
}

impl Wake for Nosy {
    fn wake(self: Arc<Self>) {
        self.ask();
    }
}

impl Drop for Nosy {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.ask();
        }
    }
}

#[test]
fn pm25_wakers_are_woken_and_dropped_outside_of_every_lock() {
    let (clock, _time) = portcullis::Clock::mock();
    let engine = Arc::new(Engine::<String>::builder().policy(queued(1).build().unwrap()).clock(clock).build());
    let asked = Arc::new(AtomicUsize::new(0));
    let waker = |panics| Waker::from(Arc::new(Nosy { engine: Arc::clone(&engine), asked: Arc::clone(&asked), panics }));
    for (ends, panics) in [
        ("dropped", false),
        ("woken", false),
        ("raised", false),
        ("tripped", false),
        ("dropped", true),
        ("woken", true),
    ] {
        let held = engine.admit(T).unwrap();
        let mut waits = Box::pin(engine.admit_waiting(T, Priority::Critical, |_| pending()));
        // The second waker takes the place of the first, which goes.
        for panics in [false, panics] {
            let waker = waker(panics);
            assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            // Nothing but the queue has it.
            std::mem::drop(waker);
        }
        let before = asked.load(Ordering::SeqCst);
        let ended = catch_unwind(AssertUnwindSafe(|| match ends {
            "dropped" => drop(waits),
            "woken" => done(held.success()),
            "raised" => engine.set_limit(T, 2).unwrap(),
            _ => done(engine.force_open(T).unwrap()),
        }));
        assert_eq!(ended.is_err(), panics, "{ends}");
        assert!(asked.load(Ordering::SeqCst) > before, "{ends}: the waker was never used");
        engine.release(T).unwrap();
    }
    let snapshot = engine.snapshot(T).unwrap();
    assert_eq!((snapshot.in_flight, snapshot.waiting, snapshot.limit), (0, 0, 1));
    engine.admit(T).unwrap().success();
}

#[test]
fn sm28_nobody_is_parked_while_recovery_is_probed() {
    let bench = elapsed(queued(10));
    let probe = bench.enter();
    assert!(probe.is_probe());
    assert!(matches!(Waiter::patient(&bench).answer().unwrap_err(), Rejection::Probing { .. }));
    probe.success();
    assert_eq!(bench.state(), State::Closed);
    let Poll::Ready(Ok(permit)) = Waiter::patient(&bench).poll() else { panic!("recovered, and yet parked") };
    permit.success();
}

/// PF-01: polled when it begins to wait, and when there is something for it.
#[test]
fn pf01_a_call_that_waits_is_polled_twice() {
    let bench = Bench::new(queued(1));
    let held = bench.enter();
    let mut waiter = Waiter::patient(&bench);
    assert!(waiter.waits());
    for _ in 0..1_000 {
        assert!(bench.admit().is_err());
        bench.advance(ms(1));
    }
    assert_eq!(waiter.wakes(), 0);
    held.success();
    assert_eq!(waiter.wakes(), 1);
    waiter.answer().unwrap().success();
}
