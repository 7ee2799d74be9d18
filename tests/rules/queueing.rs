//! Calls that wait for a permit: bounded, in order, and nobody forgotten.

use std::future::{Future, pending, poll_fn, ready};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use portcullis::{Engine, Policy, PolicyBuilder, Priority, Rejection, State};

use crate::common::waiter::{Waiter, Woken};
use crate::common::{Bench, T, ms, secs, textbook};

/// One in flight, two may wait.
fn queued() -> PolicyBuilder {
    textbook().max_in_flight(1).max_waiting(2)
}

#[test]
fn nobody_waits_unless_the_policy_says_so() {
    let bench = Bench::new(textbook().max_in_flight(1));
    let held = bench.enter();
    assert_eq!(Waiter::patient(&bench).answer().unwrap_err(), Rejection::Saturated { limit: 1 });
    let blocked = bench.engine.admit_blocking(T, Priority::Critical, Duration::MAX);
    assert_eq!(blocked.unwrap_err(), Rejection::Saturated { limit: 1 });
    held.success();
    Waiter::patient(&bench).answer().unwrap().success();
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.waiting, snapshot.waited, snapshot.refusals.saturated), (0, 0, 2));
}

#[test]
fn a_waiting_call_is_woken_once_when_there_is_a_permit_for_it() {
    let bench = Bench::new(queued());
    let held = bench.enter();
    let mut waiter = Waiter::patient(&bench);
    assert!(waiter.waits());
    (0..1_000).for_each(|_| assert!(bench.admit().is_err()));
    assert_eq!(waiter.wakes(), 0);
    held.success();
    assert_eq!(waiter.wakes(), 1);
    waiter.answer().unwrap().success();
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.waiting, snapshot.waited), (0, 0, 1));
    // Whoever waited and got a permit was never refused.
    assert_eq!((snapshot.refusals.saturated, snapshot.totals.success), (1_000, 2));
}

#[test]
fn who_came_first_goes_first_and_newcomers_overtake_nobody() {
    let bench = Bench::new(queued().max_waiting(3).max_in_flight(2).normal_share(0.9));
    let held = [bench.enter(), bench.enter()];
    let mut waiters = [(); 3].map(|()| Waiter::patient(&bench));
    assert!(waiters.iter_mut().all(Waiter::waits));
    let [one, two] = held;
    one.success();
    assert_eq!(waiters.each_ref().map(Waiter::wakes), [1, 0, 0]);
    // What the first was granted is no one else's, though it hasn't come for it.
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 2 });
    assert!(bench.engine.admit_with(T, Priority::Normal).is_err());
    two.failure();
    assert_eq!(waiters.each_ref().map(Waiter::wakes), [1, 1, 0]);
    let [first, second, mut third] = waiters;
    let (second, first) = (second.answer().unwrap(), first.answer().unwrap());
    assert!(third.waits());
    first.success();
    third.answer().unwrap().success();
    second.success();
    assert!(bench.admit().is_ok(), "nobody waits any more");
}

#[test]
fn the_queue_is_bounded() {
    let bench = Bench::new(queued());
    let _held = bench.enter();
    let mut waiters = [(); 2].map(|()| Waiter::patient(&bench));
    assert!(waiters.iter_mut().all(Waiter::waits));
    assert_eq!(Waiter::patient(&bench).answer().unwrap_err(), Rejection::Saturated { limit: 1 });
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.waiting, snapshot.waited, snapshot.refusals.saturated), (2, 2, 1));
    let [first, second] = waiters;
    drop(first);
    let mut again = Waiter::patient(&bench);
    assert!(again.waits());
    drop((second, again));
    assert_eq!((bench.snapshot().waiting, bench.snapshot().waited), (0, 3));
}

#[test]
fn a_future_that_is_dropped_leaves_the_queue_and_passes_on_what_it_was_granted() {
    let bench = Bench::new(queued());
    let held = bench.enter();
    let [mut first, mut second] = [(); 2].map(|()| Waiter::patient(&bench));
    assert!(first.waits() && second.waits());
    held.success();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.wakes(), 1);
    drop(second);
    let snapshot = bench.snapshot();
    // Neither was a call.
    assert_eq!((snapshot.in_flight, snapshot.totals.admitted, snapshot.totals.abandoned), (0, 1, 0));
    bench.enter().success();
    let mut never_polled = Waiter::patient(&bench);
    never_polled.woken = Arc::default();
    drop(never_polled);
}

#[test]
fn waiting_ends_with_the_caller_s_timer_made_of_the_policy_s_time() {
    let bench = Bench::new(queued().max_wait(ms(70)));
    let held = bench.enter();
    let mut asked_for = None;
    let mut waiter = Waiter::new(bench.engine.admit_waiting(T, Priority::Critical, |wait| {
        asked_for = Some(wait);
        let mut polls = 0;
        poll_fn(move |_| {
            polls += 1;
            if polls < 3 { Poll::Pending } else { Poll::Ready(()) }
        })
    }));
    assert!(waiter.waits() && waiter.waits());
    assert_eq!(waiter.answer().unwrap_err(), Rejection::Saturated { limit: 1 });
    assert_eq!(asked_for, Some(ms(70)));
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.waiting, snapshot.refusals.saturated), (0, 1));
    // A permit that comes at the last moment isn't refused.
    let mut waiter = Waiter::new(bench.engine.admit_waiting(T, Priority::Critical, |_| async {
        held.success();
    }));
    let Poll::Ready(Ok(permit)) = waiter.poll() else { panic!("granted while its timer ran out") };
    permit.success();
    let _held = bench.enter();
    let at_once = Waiter::new(bench.engine.admit_waiting(T, Priority::Critical, |_| ready(())));
    assert!(at_once.answer().is_err());
}

#[test]
fn who_needn_t_wait_makes_no_timer() {
    let bench = Bench::new(queued());
    let no_timer = |_| -> std::future::Pending<()> { panic!("a timer was made") };
    for priority in [Priority::Critical, Priority::Normal] {
        Waiter::new(bench.engine.admit_waiting(T, priority, no_timer)).answer().unwrap().success();
    }
    let target = bench.engine.target(T).unwrap();
    let held = Waiter::new(async { target.admit_waiting(Priority::Critical, no_timer).await }).answer().unwrap();
    // Only what is critical waits.
    let lower = Waiter::new(bench.engine.admit_waiting(T, Priority::Normal, no_timer)).answer();
    assert_eq!(lower.unwrap_err(), Rejection::Saturated { limit: 1 });
    let lower = Waiter::new(async { target.admit_waiting(Priority::Sheddable, no_timer).await }).answer();
    assert_eq!(lower.unwrap_err(), Rejection::Saturated { limit: 1 });
    held.success();
}

#[test]
fn all_who_wait_are_refused_when_the_circuit_opens() {
    for by_hand in [false, true] {
        let bench = Bench::new(queued().consecutive_failures(1));
        let held = bench.enter();
        let mut waiters = [(); 2].map(|()| Waiter::patient(&bench));
        assert!(waiters.iter_mut().all(Waiter::waits));
        if by_hand {
            bench.engine.force_open(T).unwrap();
        } else {
            held.failure();
        }
        assert_eq!(waiters.each_ref().map(Waiter::wakes), [1, 1]);
        for waiter in waiters {
            let refused = waiter.answer().unwrap_err();
            let expected = if by_hand { "forced" } else { "open" };
            assert_eq!(refused.reason(), expected);
        }
        let snapshot = bench.snapshot();
        assert_eq!((snapshot.waiting, snapshot.refusals.open + snapshot.refusals.forced), (0, 2));
        // And nobody begins to wait there.
        assert!(Waiter::patient(&bench).answer().is_err());
    }
}

#[test]
fn nobody_waits_for_a_probe() {
    let bench = Bench::tripped(queued());
    bench.advance(secs(30));
    let probe = bench.probe();
    assert!(matches!(Waiter::patient(&bench).answer().unwrap_err(), Rejection::Probing { .. }));
    probe.success();
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn a_permit_that_comes_as_the_circuit_opens_may_be_the_probe() {
    let bench = Bench::new(queued().max_in_flight(2).consecutive_failures(1));
    let [one, two] = [bench.enter(), bench.enter()];
    let mut waiter = Waiter::patient(&bench);
    assert!(waiter.waits());
    one.success();
    two.failure();
    bench.advance(secs(30));
    let permit = waiter.answer().unwrap();
    assert!(permit.is_probe());
    permit.success();
    assert_eq!((bench.state(), bench.snapshot().in_flight), (State::Closed, 0));
}

#[test]
fn a_raised_limit_wakes_as_many_as_it_has_room_for() {
    let bench = Bench::new(queued().max_waiting(3));
    let _held = bench.enter();
    let mut waiters = [(); 3].map(|()| Waiter::patient(&bench));
    assert!(waiters.iter_mut().all(Waiter::waits));
    bench.engine.set_limit(T, 2).unwrap();
    assert_eq!(waiters.each_ref().map(Waiter::wakes), [1, 0, 0]);
    bench.engine.set_policy(T, queued().max_in_flight(4).build().unwrap()).unwrap();
    assert_eq!(waiters.each_ref().map(Waiter::wakes), [1, 1, 1]);
    assert!(waiters.into_iter().all(|waiter| waiter.answer().is_ok()));
}

#[test]
fn a_lowered_limit_grants_nothing_until_the_count_is_under_it() {
    let bench = Bench::new(queued().max_in_flight(3));
    let mut held = vec![bench.enter(), bench.enter(), bench.enter()];
    let mut waiter = Waiter::patient(&bench);
    assert!(waiter.waits());
    bench.engine.set_limit(T, 1).unwrap();
    held.drain(..2).for_each(drop);
    assert!(waiter.waits());
    held.clear();
    waiter.answer().unwrap().success();
}

#[test]
fn permits_of_a_large_limit_reach_who_waits_from_every_thread() {
    // Stashes are in use at this limit; while somebody waits, they aren't.
    let bench = Bench::new(queued().max_in_flight(600).max_waiting(600));
    let mut held: Vec<_> = (0..600).map(|_| bench.enter()).collect();
    let mut waiters: Vec<_> = (0..50).map(|_| Waiter::patient(&bench)).collect();
    assert!(waiters.iter_mut().all(Waiter::waits));
    std::thread::scope(|scope| {
        for permit in held.drain(..50) {
            scope.spawn(|| permit.success());
        }
    });
    assert!(waiters.into_iter().all(|waiter| waiter.answer().is_ok()));
    assert_eq!(bench.snapshot().in_flight, 550);
}

#[test]
fn a_target_that_somebody_waits_at_is_never_forgotten() {
    let bench = Bench::with(queued().max_in_flight(2), |engine| {
        engine.max_targets(1).idle_after(secs(1)).forget_after(secs(1))
    });
    bench.engine.set_limit(T, 0).unwrap();
    let mut waiter = Waiter::patient(&bench);
    assert!(waiter.waits());
    for _ in 0..3 {
        bench.advance(secs(100));
        assert_eq!(bench.engine.sweep(), 0);
    }
    drop(waiter);
    let other = Bench::with(queued(), |engine| engine.max_targets(1).idle_after(secs(1)).forget_after(secs(1)));
    let permit = other.enter();
    let mut waiter = Waiter::patient(&other);
    assert!(waiter.waits());
    permit.success();
    for _ in 0..3 {
        other.advance(secs(10_000));
        assert_eq!(other.engine.sweep(), 0);
    }
    waiter.answer().unwrap().success();
    for forgotten in [0, 1] {
        other.advance(secs(10_000));
        assert_eq!(other.engine.sweep(), forgotten);
    }
    // The next tenant counts its own.
    other.enter().success();
    assert_eq!(other.snapshot().waited, 0);
}

#[test]
fn a_permit_that_was_waited_for_can_be_owned_and_counts_from_when_it_came() {
    let (clock, time) = portcullis::Clock::mock();
    let policy = queued().min_calls(1).window(portcullis::Window::calls(1)).build().unwrap();
    let engine = Arc::new(Engine::<String>::builder().policy(policy).clock(clock).build());
    let held = engine.admit(T).unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut waits = pin!(engine.admit_waiting_owned(T, Priority::Critical, |_| pending()));
    assert!(waits.as_mut().poll(&mut context).is_pending());
    time.increment(secs(10));
    held.success();
    let Poll::Ready(Ok(permit)) = waits.as_mut().poll(&mut context) else { panic!("not let in") };
    time.increment(ms(499));
    // Abandoned before 500 ms are over: no failure, however long it waited.
    drop(permit);
    let snapshot = engine.snapshot(T).unwrap();
    assert_eq!((snapshot.totals.abandoned, snapshot.state), (1, State::Closed));
}

#[test]
fn queues_that_can_t_work_are_refused() {
    let refused = |policy: PolicyBuilder| policy.build().unwrap_err().field();
    assert_eq!(refused(Policy::builder().max_waiting(65_536)), "max_waiting");
    assert_eq!(refused(Policy::builder().max_wait(ms(5))), "max_wait");
    assert_eq!(refused(Policy::builder().max_waiting(1).max_wait(Duration::ZERO)), "max_wait");
    assert_eq!(refused(Policy::builder().max_waiting(1).max_wait(secs(3_601))), "max_wait");
    let policy = queued().build().unwrap();
    assert_eq!((policy.max_waiting(), policy.max_wait()), (2, ms(100)));
    assert_eq!(policy.to_builder().max_waiting(0).build().unwrap().max_wait(), Duration::ZERO);
    let rounded = queued().max_wait(Duration::from_micros(1_001)).build().unwrap();
    assert_eq!(rounded.max_wait(), ms(2));
    assert_eq!(rounded.to_builder().build().unwrap(), rounded);
}
