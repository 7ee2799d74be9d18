//! R17: a policy replaced while calls run.

use portcullis::{Cause, Policy, PolicyBuilder, Rejection, Settled, State, Window};

use crate::common::{Bench, T, secs, take, textbook};

impl Bench {
    fn adopt(&self, policy: PolicyBuilder) {
        self.engine.set_policy(T, policy.build().expect("the policy of a test builds")).expect("there is room");
    }
}

#[test]
fn r17_permits_in_flight_stay_counted_and_the_state_stays() {
    let bench = Bench::new(textbook().max_in_flight(10));
    let permits = take(&bench, 6);
    bench.adopt(textbook().max_in_flight(4).min_calls(1));
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.limit, snapshot.state), (6, 4, State::Closed));
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 4 });
    drop(permits);
    assert_eq!(take(&bench, 4).len(), 4);
}

#[test]
fn r17_a_changed_geometry_in_closed_is_an_empty_window_of_a_new_generation() {
    for window in [Window::calls(20), Window::time(secs(10)), Window::time(secs(10)).buckets(5)] {
        let bench = Bench::new(textbook().consecutive_failures(9));
        bench.fail(4);
        let (old, before) = (bench.enter(), bench.snapshot());
        bench.adopt(textbook().window(window).consecutive_failures(9));
        let after = bench.snapshot();
        assert_eq!((after.state, after.generation, bench.window()), (State::Closed, before.generation + 1, (0, 0)));
        assert_eq!((after.streak, after.policy_version), (0, 1));
        let last = bench.log().last().cloned().unwrap();
        assert_eq!((last.from, last.to, last.cause), (State::Closed, State::Closed, Cause::PolicyChanged));
        assert_eq!(old.failure(), Settled::Stale);
        assert_eq!(bench.window(), (0, 0));
    }
}

#[test]
fn r17_a_changed_geometry_elsewhere_is_no_transition() {
    let other = || textbook().window(Window::time(secs(10)));
    // OPEN
    let bench = Bench::tripped(textbook());
    let before = bench.snapshot();
    bench.adopt(other());
    let after = bench.snapshot();
    assert_eq!((after.state, after.generation), (State::Open, before.generation));
    assert_eq!(after.reopen_in, before.reopen_in, "the deadline is fixed when it trips");
    // HALF_OPEN: the probe in flight keeps its say.
    bench.advance(secs(30));
    let probe = bench.probe();
    bench.adopt(textbook().window(Window::calls(50)));
    assert_eq!(probe.success(), Settled::Recorded);
    assert_eq!((bench.state(), bench.window(), bench.log().len()), (State::Closed, (0, 0), 3));
    // By hand.
    let forces: [fn(&portcullis::Target<'_>) -> bool; 2] = [|target| target.force_open(), |target| target.disable()];
    for force in forces {
        let bench = Bench::new(textbook());
        let target = bench.engine.target(T).unwrap();
        force(&target);
        bench.adopt(other());
        assert_eq!(bench.log().len(), 1);
        target.release();
        bench.fail(4);
        assert_eq!((bench.window(), bench.state()), ((4, 4), State::Closed));
    }
}

#[test]
fn r17_other_settings_keep_the_window_and_the_calls_in_flight() {
    let bench = Bench::new(textbook());
    bench.fail(3);
    let old = bench.enter();
    let generation = bench.snapshot().generation;
    bench.adopt(textbook().failures(5).open_wait(secs(7)).successes_to_close(2));
    assert_eq!((bench.snapshot().generation, bench.window(), bench.log().len()), (generation, (3, 3), 0));
    assert_eq!(old.failure(), Settled::Recorded);
    bench.fail(1);
    assert_eq!(bench.snapshot().reopen_in, Some(secs(7)), "the new wait");
    let evidence = bench.log()[0].evidence.clone().unwrap();
    assert_eq!((evidence.policy_version, evidence.met.len()), (1, 2));
}

#[test]
fn r17_a_stricter_rule_trips_with_the_next_outcome_not_by_itself() {
    let bench = Bench::new(textbook().min_calls(10));
    bench.fail(4);
    bench.adopt(textbook().min_calls(2));
    assert_eq!(bench.state(), State::Closed);
    bench.succeed(1);
    assert_eq!(bench.state(), State::Open);
}

#[test]
fn r17_an_equal_policy_is_a_no_op() {
    let bench = Bench::new(textbook());
    bench.fail(4);
    let before = bench.snapshot();
    for _ in 0..3 {
        bench.adopt(textbook());
    }
    let after = bench.snapshot();
    assert_eq!((after.generation, after.policy_version, bench.window()), (before.generation, 0, (4, 4)));
    assert_eq!(bench.log().len(), 0);
}

#[test]
fn r17_a_limit_set_by_hand_survives_a_policy_with_the_old_limit() {
    let bench = Bench::new(textbook().max_in_flight(10));
    bench.engine.set_limit(T, 2).unwrap();
    bench.adopt(textbook().max_in_flight(10).failures(3));
    assert_eq!(bench.snapshot().limit, 2);
    bench.adopt(textbook().max_in_flight(10).failures(3));
    assert_eq!(bench.snapshot().limit, 2);
    bench.adopt(textbook().max_in_flight(9).failures(3));
    assert_eq!(bench.snapshot().limit, 9, "the new policy's differs from the old one's");
}

#[test]
fn r17_fewer_probes_than_in_flight_admit_nobody_and_block_nobody() {
    let bench = Bench::tripped(textbook().max_probes(5).successes_to_close(4));
    bench.advance(secs(30));
    let mut probes: Vec<_> = (0..5).map(|_| bench.probe()).collect();
    bench.adopt(textbook().max_probes(2).successes_to_close(4));
    while probes.len() >= 2 {
        assert!(matches!(bench.refusal(), Rejection::Probing { .. }));
        assert_eq!(probes.pop().unwrap().ignore(), Settled::Recorded);
    }
    bench.probe().success();
}

#[test]
fn r17_successes_that_are_enough_now_close_with_the_next_one() {
    let bench = Bench::tripped(textbook().successes_to_close(31));
    bench.advance(secs(30));
    (0..20).for_each(|_| assert_eq!(bench.probe().success(), Settled::Recorded));
    bench.adopt(textbook().successes_to_close(3));
    bench.probe().success();
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn r17_calls_that_started_untimed_are_never_slow() {
    let bench = Bench::new(textbook());
    let old = bench.enter();
    bench.adopt(textbook().slow_call(secs(1)).slow_rate(0.1).min_calls(1));
    bench.advance(secs(60));
    old.success();
    assert_eq!((bench.state(), bench.snapshot().totals.slow), (State::Closed, 0));
}

#[test]
fn r17_a_rule_that_was_off_starts_on_an_empty_word() {
    // Off and on again: what the streak's word last said is of another time.
    let with_streak = || textbook().consecutive_failures(3);
    let bench = Bench::new(with_streak());
    bench.fail(2);
    bench.adopt(textbook());
    bench.succeed(7);
    bench.adopt(with_streak());
    bench.fail(1);
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.state, snapshot.streak, bench.window()), (State::Closed, 1, (10, 3)));
    assert!(bench.log().is_empty());
}

#[test]
fn r17_slow_calls_are_remembered_as_long_as_a_rule_asks_for_them() {
    let slow = |rate| textbook().slow_call(secs(1)).slow_rate(rate);
    let bench = Bench::new(slow(1.0));
    let seen = || bench.snapshot().window.unwrap().slow;
    let permit = bench.enter();
    bench.advance(secs(1));
    permit.success();
    bench.adopt(slow(0.9));
    assert_eq!(seen(), 1);
    bench.adopt(textbook());
    bench.adopt(slow(0.9));
    assert_eq!((seen(), bench.window()), (0, (1, 0)));
}

#[test]
fn r17_a_longer_window_finds_no_call_that_time_forgave() {
    for begins in [0, 5] {
        let window = |seconds| textbook().window(Window::time(secs(seconds)));
        let bench = Bench::new(window(10));
        bench.advance(secs(begins));
        bench.fail(1);
        bench.advance(secs(20));
        bench.adopt(window(3_600));
        assert_eq!(bench.window(), (0, 0), "of a call {begins} s after the beginning");
    }
}

#[test]
fn r17_the_policy_of_one_target_is_not_the_others() {
    let bench = Bench::new(textbook());
    bench.succeed(1);
    bench.engine.admit("claims").unwrap().success();
    bench.adopt(Policy::builder().max_in_flight(1));
    assert_eq!(bench.engine.snapshot("claims").unwrap().policy, textbook().build().unwrap());
    assert_eq!(bench.snapshot().policy.max_in_flight(), 1);
}

#[test]
fn r17_policies_that_flip_under_load_leave_a_target_that_works() {
    let policies = [
        textbook().max_in_flight(50),
        textbook().window(Window::time(secs(10))).max_in_flight(3),
        textbook().window(Window::calls(100)).consecutive_failures(3),
        Policy::builder().no_window().consecutive_failures(2).open_wait(secs(1)).max_in_flight(2),
    ];
    let policies = policies.map(|policy| policy.build().unwrap());
    let bench = Bench::new(textbook());
    crate::common::race(6, |thread| {
        let mut draw = crate::common::Draw(thread as u64 + 99);
        for step in 0..600 {
            if thread == 0 {
                bench.engine.set_policy(T, policies[draw.below(4) as usize].clone()).unwrap();
                bench.advance(secs(1));
            } else if let Ok(permit) = bench.admit() {
                if step % 3 == 0 {
                    permit.failure()
                } else {
                    permit.success()
                };
            }
        }
    });
    bench.adopt(textbook());
    bench.advance(secs(1_000));
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.probes_in_flight), (0, 0));
    (0..10).filter(|_| bench.last_state() != State::Closed).for_each(|_| _ = bench.enter().success());
    bench.succeed(10);
    assert_eq!(bench.window(), (10, 0));
}

#[test]
fn r17_a_new_target_takes_its_policy_without_a_transition() {
    let bench = Bench::new(textbook());
    bench.engine.set_policy("new", textbook().window(Window::time(secs(10))).build().unwrap()).unwrap();
    assert!(bench.log().is_empty());
    assert_eq!(bench.engine.snapshot("new").unwrap().generation, 0);
}
