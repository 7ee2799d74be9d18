use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

use portcullis::{Clock, Engine, Outcome, Permit, Rejection, State, Transition};

use super::kit::{Overlap, c0, done, race};
use crate::common::{Bench, T};

fn small(max_targets: usize) -> Engine {
    let (clock, _time) = Clock::mock();
    Engine::builder().policy(c0().build().unwrap()).clock(clock).max_targets(max_targets).build()
}

#[test]
fn km01_user_code_may_ask_for_any_other_key() {
    let bench = Bench::new(c0());
    let inner = || {
        for key in 0..5_000 {
            bench.engine.admit(format!("k{key}").as_str()).unwrap().success();
        }
    };
    bench.engine.call(T, |(): &()| Outcome::Success, inner).unwrap();
    for (key, snapshot) in bench.engine.snapshots() {
        assert_eq!(snapshot.state, State::Closed);
        drop((bench.engine.admit(key.as_str()).unwrap(), bench.engine.snapshot(key.as_str())));
    }
    (0..10).for_each(|_| assert_eq!(bench.engine.sweep(), 0));
    let permits: Vec<_> = (0..100).map(|key| bench.engine.admit(format!("k{key}").as_str()).unwrap()).collect();
    let handles: Vec<_> = (0..100).map(|key| bench.engine.target(format!("k{key}").as_str()).unwrap()).collect();
    assert!(handles.iter().all(|handle| handle.admit().is_ok()));
    drop((permits, handles));
}

#[test]
fn km06_a_key_is_made_once_whoever_comes_first() {
    let overlap = Overlap::default();
    for _ in 0..50 {
        let bench = Bench::new(c0().no_failure_rate().consecutive_failures(64));
        let made = race(64, |_| {
            overlap.during(|| bench.engine.admit(T).unwrap().failure());
            bench.snapshot().incarnation
        });
        assert!(made.iter().all(|incarnation| *incarnation == 1), "{made:?}");
        assert_eq!((bench.engine.len(), bench.state()), (1, State::Open), "64 failures met in one target");
    }
    overlap.assert_met();
    let bench = Bench::new(c0());
    bench.succeed(100_000);
    assert_eq!((bench.engine.len(), bench.snapshot().incarnation, bench.engine.exhausted()), (1, 1, 0));
}

/// The same where there is room for this one key only: nobody who asks for it is told that there is none.
#[test]
fn km06_racers_for_the_last_place_under_one_key_all_get_it() {
    let overlap = Overlap::default();
    for round in 0..3_000 {
        let engine = small(1);
        let answers = race(4, |_| overlap.during(|| engine.admit(T).map(Permit::success)));
        let refused = answers.iter().filter(|answer| answer.is_err()).count();
        assert_eq!((refused, engine.exhausted(), engine.len()), (0, 0, 1), "round {round}: {answers:?}");
    }
    overlap.assert_met();
}

thread_local! {
    static CLONES_PANIC: Cell<bool> = const { Cell::new(false) };
    static COMPARISONS_PANIC: Cell<bool> = const { Cell::new(false) };
}

/// A key whose user code can be made to panic.
#[derive(Debug)]
struct Prickly(u32);

impl Clone for Prickly {
    fn clone(&self) -> Self {
        assert!(!CLONES_PANIC.get(), "no clone");
        Self(self.0)
    }
}

impl Hash for Prickly {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // One bucket for all, so that every look compares.
        0_u32.hash(state);
    }
}

impl PartialEq for Prickly {
    fn eq(&self, other: &Self) -> bool {
        assert!(!COMPARISONS_PANIC.get(), "no comparison");
        self.0 == other.0
    }
}

impl Eq for Prickly {}

#[test]
fn km15_a_panic_in_a_keys_code_hurts_no_other_key() {
    let (clock, _time) = Clock::mock();
    let engine: Engine<Prickly> = Engine::builder().clock(clock).max_targets(101).build();
    engine.admit(&Prickly(0)).unwrap().success();
    for _ in 0..1_000 {
        CLONES_PANIC.set(true);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(engine.admit(&Prickly(1))))).is_err());
        CLONES_PANIC.set(false);
        COMPARISONS_PANIC.set(true);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(engine.admit(&Prickly(1))))).is_err());
        COMPARISONS_PANIC.set(false);
    }
    for key in 0..101 {
        assert!(engine.admit(&Prickly(key)).is_ok(), "key {key}: the places reserved by panics are free again");
    }
    assert_eq!(engine.len(), 101);
}

#[test]
fn km12_nothing_of_a_dropped_engine_lives_on() {
    let witness = std::sync::Arc::new(());
    for _ in 0..2_000 {
        let engine = small(10);
        let seen = std::sync::Arc::clone(&witness);
        engine.observe(move |_: &Transition| drop(std::sync::Arc::clone(&seen))).forever();
        let subscription = engine.subscribe(4);
        (0..5).for_each(|_| done(engine.admit(T).unwrap().failure()));
        drop(engine);
        assert!(subscription.try_recv().is_ok(), "what was sent is still there");
        assert!(matches!(subscription.try_recv(), Err(std::sync::mpsc::TryRecvError::Disconnected)));
    }
    assert_eq!(std::sync::Arc::strong_count(&witness), 1);
}

#[test]
fn km13_the_bound_holds_however_keys_come_and_go() {
    let (clock, time) = Clock::mock();
    let engine: Engine = Engine::builder().clock(clock).max_targets(8).build();
    let pinned: Vec<_> = (0..4).map(|key| engine.admit(format!("p{key}").as_str()).unwrap()).collect();
    let mut admitted = 0;
    for tick in 0..1_000 {
        time.increment(std::time::Duration::from_secs(61));
        for key in 0..4 {
            // The old ones stay active.
            engine.admit(format!("p{key}").as_str()).unwrap().success();
        }
        admitted += usize::from(engine.admit(format!("n{tick}").as_str()).is_ok());
        assert!(engine.len() <= 8, "{} targets at tick {tick}", engine.len());
    }
    assert!(admitted > 100, "{admitted} new keys found a place");
    assert_eq!(engine.snapshots().iter().map(|(_, snapshot)| snapshot.in_flight).sum::<u32>(), 4);
    drop(pinned);
}

/// In threads: keys that come and go under a small bound, each call settled where it was admitted.
#[test]
fn km13_the_bound_holds_in_a_race() {
    let overlap = Overlap::default();
    let (clock, time) = Clock::mock();
    let zero = std::time::Duration::ZERO;
    let engine: Engine = Engine::builder().clock(clock).max_targets(4).idle_after(zero).build();
    let counts = race(3, |number| {
        let (mut admitted, mut refused, mut held) = (0_u32, 0_u32, Vec::new());
        for step in 0..3_000_u32 {
            let key = format!("k{}", step.wrapping_mul(2_654_435_761).wrapping_add(number as u32 * 7) % 9);
            match overlap.during(|| engine.admit(key.as_str())) {
                Ok(permit) => {
                    admitted += 1;
                    held.push(permit);
                }
                Err(refusal) => {
                    refused += 1;
                    assert_eq!(refusal, Rejection::Exhausted { max_targets: 4 });
                }
            }
            assert!(engine.len() <= 4);
            // Two at a time for each of three: more than there is room for.
            if held.len() > 2 || step % 5 == 0 {
                held.drain(..).for_each(|permit| assert_eq!(permit.success(), portcullis::Settled::Recorded));
            }
            if step % 16 == 0 {
                time.increment(1_000_u64);
                engine.sweep();
            }
        }
        (admitted, refused)
    });
    overlap.assert_met();
    let (admitted, refused) = counts.iter().fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1));
    assert!(admitted > 0 && refused > 0, "{admitted} and {refused}");
    assert!(engine.snapshots().iter().all(|(_, snapshot)| snapshot.in_flight == 0 && snapshot.state == State::Closed));
}
