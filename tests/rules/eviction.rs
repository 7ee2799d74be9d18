//! R19: who may be forgotten, and when.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use portcullis::{Engine, Outcome, Policy, PolicyBuilder, Rejection, Settled, State, Window};

use crate::common::{Bench, T, ms, race, secs, textbook};

/// An engine of few targets that forgets after a minute, and an hour.
fn small(policy: PolicyBuilder, max_targets: usize) -> Bench {
    let patience = |builder: portcullis::EngineBuilder| builder.idle_after(secs(60)).forget_after(secs(3_600));
    Bench::with(policy, |builder| patience(builder).max_targets(max_targets))
}

impl Bench {
    /// Two visits of the sweeper so far apart; how many went at the second.
    fn sweep_twice(&self, apart: Duration) -> usize {
        assert_eq!(self.engine.sweep(), 0, "a first visit only notes what it sees");
        self.advance(apart);
        self.engine.sweep()
    }

    fn is_known(&self) -> bool {
        self.engine.snapshot(T).is_some()
    }
}

#[test]
fn r19_idle_is_two_visits_so_far_apart_with_nothing_moved() {
    let bench = small(textbook(), 10);
    bench.succeed(1);
    bench.advance(secs(1_000));
    assert_eq!(bench.sweep_twice(secs(60) - Duration::from_nanos(1)), 0);
    bench.advance(Duration::from_nanos(1));
    assert_eq!((bench.engine.sweep(), bench.engine.len(), bench.is_known()), (1, 0, false));
    assert!(bench.engine.is_empty());
}

#[test]
fn r19_a_call_or_a_refusal_between_the_visits_starts_the_wait_again() {
    let touches: [fn(&Bench); 4] = [
        |bench| bench.succeed(1),
        |bench| drop(bench.enter()),
        |bench| assert_eq!(bench.enter().ignore(), Settled::Recorded),
        |bench| {
            let held = bench.enter();
            assert!(matches!(bench.refusal(), Rejection::Saturated { .. }));
            drop(held);
        },
    ];
    for touch in touches {
        let bench = small(textbook().max_in_flight(1), 10);
        bench.succeed(1);
        assert_eq!(bench.engine.sweep(), 0);
        bench.advance(secs(59));
        touch(&bench);
        assert_eq!(bench.sweep_twice(secs(59)), 0);
        bench.advance(secs(1));
        assert_eq!(bench.engine.sweep(), 1);
    }
}

#[test]
fn r19_refusals_alone_keep_a_target() {
    let bench = small(textbook(), 10);
    bench.fail(5);
    bench.advance(secs(10));
    for _ in 0..50 {
        let _refused_or_not = bench.admit().map(std::mem::forget);
        bench.advance(secs(1_000));
        assert_eq!(bench.engine.sweep(), 0);
    }
}

#[test]
fn r19_a_permit_in_flight_pins_its_target() {
    let bench = small(textbook(), 10);
    let permit = bench.enter();
    for _ in 0..5 {
        assert_eq!(bench.engine.sweep(), 0);
        bench.advance(secs(100_000));
    }
    let held = permit.record(Outcome::Success);
    for _ in 0..5 {
        assert_eq!(bench.engine.sweep(), 0, "a recorded call still runs");
        bench.advance(secs(100_000));
    }
    drop(held);
    assert_eq!(bench.sweep_twice(secs(60)), 1);
}

#[test]
fn r19_a_live_handle_pins_its_target() {
    let bench = small(textbook(), 10);
    let target = bench.engine.target(T).unwrap();
    let clone = target.clone();
    drop(target);
    assert_eq!(bench.sweep_twice(secs(100_000)), 0);
    clone.admit().unwrap().success();
    drop(clone);
    assert_eq!(bench.sweep_twice(secs(60)), 1);
}

thread_local!(static AT_THE_NEXT_LOOK: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) });

/// A key whose record can't be looked up without something else happening first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sought;

impl Hash for Sought {
    fn hash<H: Hasher>(&self, _: &mut H) {
        AT_THE_NEXT_LOOK.take().into_iter().for_each(|happens| happens());
    }
}

#[test]
fn r19_a_handle_taken_after_the_sweepers_look_pins_its_target() {
    let (clock, time) = portcullis::Clock::mock();
    let engine: &Engine<Sought> = Box::leak(Box::new(Engine::builder().clock(clock).idle_after(secs(60)).build()));
    engine.admit(&Sought).unwrap().success();
    assert_eq!(engine.sweep(), 0);
    time.increment(secs(60));
    let held = Rc::new(RefCell::new(None));
    let taken = Rc::clone(&held);
    AT_THE_NEXT_LOOK.set(Some(Box::new(move || *taken.borrow_mut() = engine.target(&Sought).ok())));
    assert_eq!((engine.sweep(), engine.len()), (0, 1));
    assert!(held.take().is_some());
    assert_eq!((engine.sweep(), engine.len()), (1, 0));
}

#[test]
fn r19_open_and_half_open_stay_until_forget_after() {
    let probed: fn(&Bench) = |bench| {
        bench.advance(secs(30));
        drop(bench.probe());
    };
    for go in [|_: &Bench| (), probed] {
        let bench = small(textbook(), 10);
        bench.fail(5);
        go(&bench);
        assert_eq!(bench.sweep_twice(secs(3_600) - Duration::from_nanos(1)), 0);
        bench.advance(Duration::from_nanos(1));
        assert_eq!(bench.engine.sweep(), 1);
    }
}

#[test]
fn r19_forget_after_is_at_least_the_longest_wait_and_window() {
    for (policy, memory) in [
        (textbook().open_wait_max(secs(9_000)), secs(9_000)),
        (textbook().window(Window::time(secs(8_000))), secs(8_000)),
        (textbook(), secs(3_600)),
    ] {
        let bench = small(policy, 10);
        bench.fail(5);
        assert_eq!(bench.sweep_twice(memory - Duration::from_nanos(1)), 0, "{memory:?}");
        bench.advance(Duration::from_nanos(1));
        assert_eq!(bench.engine.sweep(), 1, "{memory:?}");
    }
}

#[test]
fn r19_a_failure_is_kept_until_forget_after() {
    for policy in [textbook(), Policy::builder().no_window().consecutive_failures(9), textbook().slow_call(secs(1))] {
        let bench = small(policy.clone(), 10);
        let permit = bench.enter();
        bench.advance(secs(2));
        permit.failure();
        assert_eq!(bench.sweep_twice(secs(3_599)), 0);
        bench.advance(secs(1));
        assert_eq!(bench.engine.sweep(), 1);
    }
}

#[test]
fn r19_a_slow_call_is_kept_and_a_failure_that_time_forgave_is_not() {
    let bench = small(textbook().slow_call(secs(1)), 10);
    let permit = bench.enter();
    bench.advance(secs(2));
    permit.success();
    assert_eq!(bench.sweep_twice(secs(3_599)), 0);
    let bench = small(textbook().window(Window::time(secs(10))), 10);
    bench.fail(4);
    assert_eq!(bench.sweep_twice(secs(60)), 1, "the window is empty again");
}

#[test]
fn r19_forced_targets_are_never_forgotten() {
    let forces: [fn(&portcullis::Target<'_>) -> bool; 2] = [|target| target.force_open(), |target| target.disable()];
    for force in forces {
        let bench = small(textbook(), 10);
        force(&bench.engine.target(T).unwrap());
        assert_eq!(bench.sweep_twice(secs(100_000_000)), 0);
        bench.engine.release(T).unwrap();
        assert_eq!(bench.engine.sweep(), 1, "the notes of the last visit still hold");
    }
}

#[test]
fn r19_configured_targets_are_never_forgotten() {
    let configure: [fn(&Bench); 3] = [
        |bench| bench.engine.set_limit(T, 3).unwrap(),
        |bench| bench.engine.set_policy(T, Policy::default()).unwrap(),
        |bench| bench.engine.set_policy(T, textbook().build().unwrap()).unwrap(),
    ];
    for configure in configure {
        let bench = small(textbook(), 1);
        bench.succeed(1);
        configure(&bench);
        assert_eq!(bench.sweep_twice(secs(100_000_000)), 0);
        assert_eq!(bench.engine.admit("new").unwrap_err(), Rejection::Exhausted { max_targets: 1 });
    }
}

#[test]
fn r19_nothing_may_go_and_the_new_key_is_exhausted() {
    let bench = small(textbook(), 3);
    let keys = ["a", "b", "c"];
    let permits: Vec<_> = keys.iter().map(|key| bench.engine.admit(*key).unwrap()).collect();
    for _ in 0..10 {
        bench.advance(secs(10_000));
        assert_eq!(bench.engine.admit("d").unwrap_err(), Rejection::Exhausted { max_targets: 3 });
        assert_eq!(bench.engine.target("d").unwrap_err(), Rejection::Exhausted { max_targets: 3 });
        assert_eq!(bench.engine.len(), 3);
    }
    drop(permits);
    // Two visits by additions of keys are as good as two sweeps.
    assert!(bench.engine.admit("d").is_err());
    bench.advance(secs(60));
    bench.engine.admit("d").unwrap().success();
    assert!(bench.engine.len() <= 3);
}

#[test]
fn r19_room_for_no_target_at_all() {
    let bench = small(textbook(), 0);
    assert_eq!(bench.refusal(), Rejection::Exhausted { max_targets: 0 });
    assert_eq!((bench.engine.len(), bench.engine.sweep()), (0, 0));
}

#[test]
fn r19_ten_thousand_fresh_keys_do_not_evict_a_failing_one() {
    let bench = small(textbook(), 100);
    bench.fail(4);
    let mut refused = 0;
    for key in 0..10_000 {
        bench.advance(Duration::from_millis(300));
        match bench.engine.admit(format!("attacker {key}").as_str()) {
            Ok(permit) => assert_eq!(permit.success(), Settled::Recorded),
            Err(rejection) => {
                assert_eq!(rejection, Rejection::Exhausted { max_targets: 100 });
                refused += 1;
            }
        }
        assert!(bench.engine.len() <= 100);
        assert_eq!(bench.window(), (4, 4));
    }
    assert!(refused > 0 && refused < 10_000, "both happen: {refused}");
    bench.fail(1);
    assert_eq!(bench.state(), State::Open, "the fifth failure finds the four");
}

#[test]
fn r19_threads_never_make_more_than_max_targets() {
    let bench = small(textbook(), 20);
    race(8, |thread| {
        for key in 0..2_000 {
            if let Ok(permit) = bench.engine.admit(format!("{}", (key * 7 + thread * 31) % 97).as_str()) {
                permit.success();
            }
            if key % 50 == 0 {
                bench.advance(secs(30));
                bench.engine.sweep();
            }
            assert!(bench.engine.len() <= 20);
        }
    });
    assert!(bench.engine.exhausted() > 0);
    bench.engine.sweep();
    bench.advance(secs(60));
    bench.engine.sweep();
    assert_eq!((bench.engine.len(), bench.engine.snapshots().len()), (0, 0));
}

#[test]
fn r19_threads_never_hold_more_targets_than_max_targets() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let bench = small(textbook(), 5);
    let (held, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    race(8, |thread| {
        for key in 0..500 {
            // Each is another key, so each handle is another target.
            if let Ok(target) = bench.engine.target(format!("{thread} {key}").as_str()) {
                most.fetch_max(held.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                held.fetch_sub(1, Ordering::SeqCst);
                drop(target);
            }
            bench.advance(secs(100));
            bench.engine.sweep();
        }
    });
    let most = most.into_inner();
    assert!((2..=5).contains(&most), "{most} at once");
    assert!(bench.engine.exhausted() > 0);
}

#[test]
fn r19_keys_that_come_one_by_one_let_the_idle_go_before_the_bound_is_met() {
    // A key each 50 ms is idle after a minute: 1,200 are in use at a time, and a sweeping step comes with each key.
    let bench = Bench::with(textbook(), |builder| builder.max_targets(10_000));
    let mut most = 0;
    for key in 0..15_000 {
        bench.engine.admit(&format!("key-{key}")).unwrap().success();
        bench.advance(ms(50));
        most = most.max(bench.engine.len());
    }
    assert!((1_200..3_000).contains(&most), "{most} at most");
    assert_eq!(bench.engine.exhausted(), 0);
}
