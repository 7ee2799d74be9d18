//! IN-15 and IN-16: the budget, as calls meet it.

use std::sync::{Arc, Barrier};

use portcullis::call::{Backup, CallPolicyBuilder, GaveUp, Sleep, Verdict};
use portcullis::internals::{Allowance, Budget};
use proptest::prelude::*;

use super::support::{World, patient, three};
use crate::common::{T, ms, secs};

fn fail(world: &World) -> GaveUp {
    let call = world.caller.to(T).idempotent(true);
    let result = call.run_blocking_or(Backup::refuse(), Verdict::of, &NoSleep, |_| Err::<(), _>("broken"));
    result.unwrap_err().gave_up()
}

/// What the call gave up for is another test's.
fn done(_: GaveUp) {}

struct NoSleep;

impl Sleep for NoSleep {
    fn sleep(&self, _: std::time::Duration) {}
}

fn twice() -> CallPolicyBuilder {
    three().attempts(2)
}

#[test]
fn in15_of_a_thousand_calls_exactly_the_share_is_retried() {
    for step in 0..=38_u32 {
        let milli = 100 + step * 50;
        let share = f64::from(milli) / 1_000.0;
        // Shares above one need more attempts than two.
        let world = World::standing(patient(), three().attempts(4).retry_budget(share).retry_floor(0));
        (0..1_000).for_each(|_| done(fail(&world)));
        assert_eq!(world.counts().retries, u64::from(milli), "at {share}");
    }
}

#[test]
fn in16_the_minimum_holds_for_few_calls_and_the_share_for_many() {
    let world = World::standing(patient(), twice().retry_budget(0.2).retry_floor(3).retry_memory(secs(1)));
    assert_eq!((fail(&world), world.counts().retries), (GaveUp::Attempts, 1));
    // An attempt is no call: 100 calls of which as many as may be are retried are still 100.
    (1..100).for_each(|_| done(fail(&world)));
    let counts = world.counts();
    assert_eq!((counts.calls, counts.retries, counts.budget_refused), (100, 20, 80));
    assert_eq!(fail(&world), GaveUp::Budget);
}

#[test]
fn retries_that_were_not_used_do_not_pile_up() {
    let world = World::standing(patient(), twice().retry_budget(0.1).retry_floor(0).retry_memory(secs(10)));
    for _ in 0..1_000 {
        world.caller.to(T).idempotent(true).run_blocking(|_| Ok::<_, ()>(())).unwrap();
    }
    // 100 retries are earned. An hour later none of them is left.
    world.time.increment(secs(3_600));
    (0..100).for_each(|_| done(fail(&world)));
    assert_eq!(world.counts().retries, 10);
}

#[test]
fn a_floor_is_a_rate() {
    let world = World::standing(patient(), twice().retry_budget(0.0).retry_floor(2).retry_memory(secs(10)));
    for _ in 0..600 {
        (0..5).for_each(|_| done(fail(&world)));
        world.time.increment(ms(100));
    }
    // A minute of 50 failures a second.
    let retries = world.counts().retries;
    assert!((100..=140).contains(&retries), "2 a second: {retries}");
}

/// Periods have other numbers then, and lower ones would be forgotten when the higher ones of before are reached.
#[test]
fn a_longer_memory_forgets_as_well() {
    let policy = |memory| twice().retry_budget(0.1).retry_floor(0).retry_memory(memory);
    let world = World::standing(patient(), policy(secs(1)));
    let succeed = || world.caller.to(T).run_blocking(|_| Ok::<_, ()>(())).unwrap().into_inner();
    world.time.increment(secs(3_600));
    succeed();
    // Calls count on where the memory is the same.
    world.caller.set_policy(T.to_owned(), policy(secs(1)).retry_budget(1.0).build().unwrap()).unwrap();
    assert_eq!((fail(&world), fail(&world)), (GaveUp::Attempts, GaveUp::Attempts));
    world.caller.set_policy(T.to_owned(), policy(secs(60)).build().unwrap()).unwrap();
    (0..100).for_each(|_| succeed());
    world.time.increment(secs(120));
    assert_eq!((fail(&world), world.counts().retries), (GaveUp::Budget, 2));
}

#[test]
fn a_refused_call_earns_no_retry() {
    let world = World::standing(patient().max_in_flight(1), twice().retry_budget(1.0).retry_floor(0));
    let held = world.engine.admit(T).unwrap();
    for _ in 0..100 {
        assert_eq!(fail(&world), GaveUp::Final);
    }
    held.success();
    (0..10).for_each(|_| done(fail(&world)));
    assert_eq!(world.counts().retries, 10);
}

#[test]
fn threads_that_ask_at_once_get_the_share_and_no_more() {
    let world = World::standing(patient(), twice().retry_budget(0.3).retry_floor(0));
    let gate = Arc::new(Barrier::new(4));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                gate.wait();
                (0..250).for_each(|_| done(fail(&world)));
            });
        }
    });
    // Whoever asks after the last call was counted finds all of them; who came before may have found one or two less.
    let _ = fail(&world);
    let counts = world.counts();
    assert_eq!(counts.calls, 1_001);
    assert!((299..=300).contains(&counts.retries), "{counts:?}");
}

/// What a walk through a budget asks.
#[derive(Clone, Copy, Debug)]
enum Op {
    Call,
    Retry,
    Later(u64),
    /// Asks with a reading from before.
    Lagging(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => Just(Op::Call),
        4 => Just(Op::Retry),
        1 => (1_u64..4).prop_map(Op::Later),
        1 => (1_u64..4).prop_map(Op::Lagging),
    ];
    proptest::collection::vec(op, 0..300)
}

proptest! {
    /// Beside a list of all that ever was, counted anew at each question.
    #[test]
    fn the_word_answers_as_a_list_would(ops in ops(), share_milli in 0_u32..2_500, floor in 0_u32..5) {
        let (budget, allowance) = (Budget::default(), Allowance { share_milli, floor });
        let (mut now, mut newest) = (0_u64, 0_u64);
        let (mut calls, mut retries) = (Vec::new(), Vec::new());
        for op in ops {
            let period = match op {
                Op::Later(periods) => {
                    now += periods;
                    continue;
                }
                Op::Lagging(periods) => now.saturating_sub(periods),
                Op::Call | Op::Retry => now,
            };
            if matches!(op, Op::Call) {
                budget.called(period);
                newest = newest.max(period);
                calls.push(newest);
                continue;
            }
            let at = newest.max(period);
            let counted = |list: &[u64]| list.iter().filter(|period| at - **period <= 1).count() as u64;
            let (called, retried) = (counted(&calls), counted(&retries) + 1);
            let expected = retried * 1_000 <= called * u64::from(share_milli) || retried <= u64::from(floor);
            prop_assert_eq!(budget.take(period, allowance), expected);
            if expected {
                newest = at;
                retries.push(at);
            }
        }
    }
}
