use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use portcullis::{Cause, Engine, Outcome, Rejection, Rule, Settled, State, Transition, Window};

use super::kit::{c0, done, elapsed, race};
use crate::common::{Bench, T, secs};

static REENTERED: OnceLock<Engine> = OnceLock::new();

#[test]
fn ev01_an_observer_may_do_anything_with_the_engine() {
    let engine = REENTERED.get_or_init(|| Engine::builder().policy(c0().build().unwrap()).build());
    let (depth, deepest, calls) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (seen_depth, seen_calls) = (Arc::clone(&deepest), Arc::clone(&calls));
    let guards = Mutex::new(Vec::new());
    let observer = move |transition: &Transition| {
        seen_depth.fetch_max(depth.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        seen_calls.fetch_add(1, Ordering::SeqCst);
        let key = transition.target.as_str();
        assert_eq!(engine.snapshot(key).map(|snapshot| snapshot.in_flight), Some(0), "the permit is back");
        drop((engine.target(key).unwrap().state(), engine.transitions(), engine.snapshots(), engine.sweep()));
        if transition.cause == Cause::FailureRate {
            // A reset inside the handler: two more events, each after this one has returned.
            assert!(engine.force_open(key).unwrap() && engine.release(key).unwrap());
            engine.admit(key).unwrap().success();
            engine.set_policy(key, c0().jitter(0.3).build().unwrap()).unwrap();
            guards.lock().unwrap().push(engine.observe(|_: &Transition| {}));
            guards.lock().unwrap().clear();
        }
        depth.fetch_sub(1, Ordering::SeqCst);
    };
    engine.observe(observer).forever();
    (0..5).for_each(|_| done(engine.admit(T).unwrap().failure()));
    assert_eq!((deepest.load(Ordering::SeqCst), calls.load(Ordering::SeqCst)), (1, 3));
    assert_eq!((engine.observer_panics(), engine.snapshot(T).unwrap().state), (0, State::Closed));
    let causes: Vec<_> = engine.transitions().iter().map(|it| it.cause).collect();
    assert_eq!(causes, [Cause::FailureRate, Cause::ForcedOpen, Cause::Released]);
}

#[test]
fn ev06_two_rules_met_at_once_are_one_event() {
    let bench = Bench::new(c0().slow_call(secs(1)).slow_rate(0.5));
    for _ in 0..5 {
        let permit = bench.engine.admit(T).unwrap();
        bench.advance(secs(1));
        permit.failure();
    }
    let log = bench.log();
    assert_eq!(log.len(), 1);
    let evidence = log[0].evidence.as_ref().unwrap();
    let rules: Vec<_> = evidence.met.iter().map(|met| met.rule).collect();
    assert_eq!((rules, log[0].cause), (vec![Rule::FailureRate, Rule::SlowRate], Cause::FailureRate));
    assert_eq!((evidence.failures, evidence.slow, evidence.calls), (5, 5, 5));
}

#[test]
fn ev07_a_panicking_observer_changes_no_outcome() {
    let bench = elapsed(c0());
    let heard = Arc::new(AtomicUsize::new(0));
    let count = |heard: &Arc<AtomicUsize>| {
        let heard = Arc::clone(heard);
        move |_: &Transition| done(heard.fetch_add(1, Ordering::SeqCst))
    };
    let _first = bench.engine.observe(count(&heard));
    let _second = bench.engine.observe(|_: &Transition| panic!("a hook's"));
    let _third = bench.engine.observe(count(&heard));
    assert_eq!(bench.engine.call(T, |(): &()| Outcome::Success, || ()), Ok(()));
    assert_eq!((bench.state(), bench.snapshot().in_flight), (State::Closed, 0));
    // HALF_OPEN and CLOSED, for the two that work and the one that doesn't.
    assert_eq!((heard.load(Ordering::SeqCst), bench.engine.observer_panics()), (4, 2));
}

/// The hook panics while the call itself unwinds: neither aborts, and both are counted.
#[test]
fn ev07_an_observer_may_panic_while_the_call_panics() {
    let bench = Bench::new(c0().consecutive_failures(1));
    let _guard = bench.engine.observe(|_: &Transition| panic!("a hook's"));
    let call = || bench.engine.call(T, |(): &()| Outcome::Success, || panic!("the call's"));
    assert!(catch_unwind(AssertUnwindSafe(call)).is_err());
    assert_eq!((bench.state(), bench.snapshot().totals.failure, bench.engine.observer_panics()), (State::Open, 1, 1));
}

#[test]
fn ev09_a_panic_anywhere_leaves_later_calls_alone() {
    let bench = Bench::new(c0().min_calls(10));
    let _guard = bench.engine.observe(|_: &Transition| panic!("a hook's"));
    let in_call = || bench.engine.call(T, |(): &()| Outcome::Success, || panic!("the call's"));
    let in_classifier = || bench.engine.call(T, |(): &()| panic!("the classifier's"), || ());
    assert!(catch_unwind(AssertUnwindSafe(in_call)).is_err());
    assert!(catch_unwind(AssertUnwindSafe(in_classifier)).is_err());
    bench.engine.force_open(T).unwrap();
    bench.engine.release(T).unwrap();
    bench.succeed(100);
    assert_eq!((bench.engine.observer_panics(), bench.snapshot().totals.failure), (2, 2));
}

#[test]
fn ev12_a_replaced_policy_keeps_the_state_and_reports_what_it_empties() {
    let bench = Bench::new(c0());
    bench.fail(5);
    bench.engine.set_policy(T, c0().failure_rate(0.9).build().unwrap()).unwrap();
    bench.engine.set_policy(T, c0().window(Window::calls(50)).build().unwrap()).unwrap();
    assert_eq!((bench.state(), bench.path()), (State::Open, vec![(State::Closed, State::Open)]));
    // In CLOSED another geometry empties the window, and says so.
    bench.advance(secs(30));
    bench.succeed(1);
    bench.fail(1);
    bench.engine.set_policy(T, c0().window(Window::calls(60)).build().unwrap()).unwrap();
    let log = bench.log();
    let last = log.last().unwrap();
    assert_eq!((last.from, last.to, last.cause), (State::Closed, State::Closed, Cause::PolicyChanged));
    assert_eq!(bench.snapshot().window.unwrap().calls, 0);
}

#[test]
fn ev13_each_refusal_has_its_own_reason() {
    let bench = Bench::new(c0().max_in_flight(2));
    let held = bench.engine.admit(T).unwrap();
    let full = bench.engine.admit(T).unwrap();
    assert_eq!(bench.engine.admit(T).unwrap_err().reason(), "saturated");
    drop((held, full));
    bench.fail(5);
    assert_eq!(bench.engine.admit(T).unwrap_err().reason(), "open");
    bench.advance(secs(30));
    let probe = bench.engine.admit(T).unwrap();
    assert_eq!(bench.engine.admit(T).unwrap_err().reason(), "probing");
    drop(probe);
    bench.engine.force_open(T).unwrap();
    assert_eq!(bench.engine.admit(T).unwrap_err().reason(), "forced");
    let refusals = bench.snapshot().refusals;
    assert_eq!((refusals.saturated, refusals.open, refusals.probing, refusals.forced), (1, 1, 1, 1));
    assert_eq!((refusals.shed, refusals.total()), (0, 4));
    // A registry that is full is the engine's refusal: queues and queue timeouts are of a later part.
    let engine: Engine = Engine::builder().max_targets(0).build();
    assert_eq!(engine.admit(T).unwrap_err().reason(), "exhausted");
    assert_eq!(engine.exhausted(), 1);
}

#[test]
fn ev15_totals_only_rise_and_refusals_are_no_calls() {
    let bench = Bench::new(c0().slow_call(secs(1)));
    bench.fail(5);
    let ended = bench.snapshot().totals;
    (0..100).for_each(|_| drop(bench.engine.admit(T)));
    assert_eq!((bench.snapshot().totals, bench.snapshot().refusals.open), (ended, 100));
    bench.engine.disable(T).unwrap();
    let reports = race(3, |number| {
        let mut before = bench.snapshot().totals;
        for call in 0..2_000 {
            if number > 0 {
                let permit = bench.engine.admit(T).unwrap();
                done(if call % 2 == 0 { permit.success() } else { permit.failure() });
            }
            let now = bench.snapshot().totals;
            // `admitted` is a sum of two words that calls move between, and said to be off by those: at rest it is exact.
            let rises = [(before.success, now.success), (before.failure, now.failure), (before.slow, now.slow)];
            assert!(rises.iter().all(|(before, now)| before <= now), "{before:?} then {now:?}");
            assert!(now.success <= 2_000 && now.failure <= 2_005);
            before = now;
        }
        before
    });
    assert_eq!(reports.len(), 3);
    let totals = bench.snapshot().totals;
    assert_eq!((totals.admitted, totals.success, totals.failure), (4_005, 2_000, 2_005));
}

/// A call whose outcome is recorded and whose slot is held counts once: as what it was. Others keep their own.
#[test]
fn ev15_a_recorded_call_takes_nothing_from_the_successes() {
    for (outcome, expected) in
        [(Outcome::Success, (6, 0, 0)), (Outcome::Failure, (5, 1, 0)), (Outcome::Ignored, (5, 0, 1))]
    {
        let bench = Bench::new(c0());
        bench.succeed(5);
        let held = bench.engine.admit(T).unwrap().record(outcome);
        let totals = bench.snapshot().totals;
        assert_eq!((totals.failure, totals.ignored), (expected.1, expected.2));
        // A held success may be counted now or when its slot is given back.
        assert!((5..=expected.0).contains(&totals.success), "while {outcome:?} is held: {totals:?}");
        assert_eq!((held.settled(), totals.admitted), (Settled::Recorded, 6));
        drop(held);
        let totals = bench.snapshot().totals;
        assert_eq!((totals.success, totals.failure, totals.ignored), expected);
    }
}

#[test]
fn ev18_a_refusal_holds_nothing_of_the_call_that_tripped() {
    fn is_small<T: Copy + 'static>() -> bool {
        size_of::<T>() <= 24
    }
    assert!(is_small::<Rejection>());
    let bench = Bench::new(c0());
    let witness = Arc::new(vec![0_u8; 10_000_000]);
    for _ in 0..5 {
        let error = Err::<(), _>(Arc::clone(&witness));
        drop(bench.engine.call(T, |_| Outcome::Failure, || error));
    }
    assert_eq!((Arc::strong_count(&witness), bench.state()), (1, State::Open));
}

#[test]
fn ev19_a_slow_observer_holds_up_only_the_call_that_it_hears_of() {
    let bench = Bench::new(c0());
    let (inside, entered) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let _guard = bench.engine.observe(move |transition: &Transition| {
        if transition.target.as_str() == T {
            inside.send(()).unwrap();
            wait.lock().unwrap().recv().unwrap();
        }
    });
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| bench.fail(5));
        entered.recv().unwrap();
        // It is inside, and everything goes on: the same target, another, transitions of others, the log.
        assert!(matches!(bench.engine.admit(T), Err(Rejection::Open { .. })));
        for key in ["a", "b", "c"] {
            (0..5).for_each(|_| done(bench.engine.admit(key).unwrap().failure()));
            assert_eq!(bench.engine.snapshot(key).unwrap().state, State::Open);
        }
        assert_eq!(bench.log().len(), 4);
        go.send(()).unwrap();
        slow.join().unwrap();
    });
}

#[test]
fn ev19_a_subscriber_that_does_not_read_loses_and_knows_how_many() {
    let bench = Bench::new(c0());
    let subscription = bench.engine.subscribe(3);
    for _ in 0..5 {
        bench.engine.force_open(T).unwrap();
        bench.engine.release(T).unwrap();
    }
    let received: Vec<_> = std::iter::from_fn(|| subscription.try_recv().ok()).map(|it| it.sequence).collect();
    assert_eq!((received, subscription.dropped()), (vec![1, 2, 3], 7));
    // `sequence` shows the gap to the next one.
    bench.engine.force_open(T).unwrap();
    assert_eq!(subscription.try_recv().unwrap().sequence, 11);
}
