use std::collections::VecDeque;

use portcullis::{Cause, Policy, PolicyBuilder, Rule, State, Window};

use super::kit::c0;
use crate::common::{Bench, T, secs};

fn over(calls: u32, min_calls: u32, rate: f64) -> PolicyBuilder {
    Policy::builder().window(Window::calls(calls)).min_calls(min_calls).failure_rate(rate).jitter(0.0)
}

#[test]
fn wm01_one_success_does_not_hide_nine_failures() {
    let bench = Bench::new(over(10, 10, 0.5));
    bench.succeed(1);
    bench.fail(8);
    assert_eq!(bench.state(), State::Closed);
    bench.fail(1);
    assert_eq!(bench.state(), State::Open);
}

/// Invariant 5: it trips if and only if `failures * 10_000 >= rate * calls`, through the engine.
#[test]
fn wm01_a_rate_trips_exactly_when_it_is_reached() {
    let mut tripped = [0, 0];
    for calls in 1..=24_u32 {
        for failures in 0..=calls {
            for rate_bp in [1, 333, 1_250, 3_333, 3_334, 5_000, 6_667, 9_999, 10_000_u32] {
                let bench = Bench::new(over(calls, calls, f64::from(rate_bp) / 10_000.0));
                bench.fail(failures as usize);
                bench.succeed((calls - failures) as usize);
                let trips = failures > 0 && failures * 10_000 >= rate_bp * calls;
                let state = if trips { State::Open } else { State::Closed };
                assert_eq!(bench.state(), state, "{failures} of {calls} at {rate_bp} bp");
                tripped[usize::from(trips)] += 1;
            }
        }
    }
    assert!(tripped.iter().all(|times| *times > 1_000), "{tripped:?}");
}

#[test]
fn wm03_rates_below_one_per_cent() {
    let rare = || over(1, 1, 0.0005).window(Window::time(secs(60))).min_calls(2_000);
    let bench = Bench::new(rare());
    bench.succeed(1_999);
    bench.fail(1);
    assert_eq!(bench.state(), State::Open, "1 of 2,000 is 0.05 %");
    let bench = Bench::new(rare());
    bench.succeed(2_000);
    assert_eq!(bench.state(), State::Closed);
    let bench = Bench::new(rare());
    bench.succeed(2_000);
    bench.fail(1);
    assert_eq!(bench.state(), State::Closed, "1 of 2,001 is less than 0.05 %");
    let bench = Bench::new(over(100, 10, 0.01));
    bench.succeed(9);
    bench.fail(1);
    assert_eq!(bench.state(), State::Open);
}

#[test]
fn wm04_the_success_that_completes_the_minimum_is_judged() {
    let bench = Bench::new(over(10, 3, 0.5));
    bench.fail(2);
    assert_eq!(bench.state(), State::Closed);
    bench.succeed(1);
    assert_eq!(bench.state(), State::Open);
    let bench = Bench::new(over(10, 10, 0.5));
    bench.fail(9);
    bench.succeed(1);
    assert_eq!(bench.state(), State::Open);
}

/// A model of every field: the last N calls in a queue.
#[test]
fn wm07_every_field_of_a_calls_window_is_recounted() {
    for size in [1_u32, 2, 3, 10, 64, 99, 100] {
        // Nothing may trip, so rates that the pattern never reaches once the window is full.
        let policy = over(size, size, 1.0).slow_call(secs(1)).slow_rate(1.0);
        let (bench, mut queue) = (Bench::new(policy), VecDeque::new());
        let mut seed = 1_u32;
        for call in 0..400_u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let is_quiet = call % size.min(3) == 0;
            let (failed, slow) = (!is_quiet && seed >> 31 == 0, !is_quiet && (seed >> 30) & 1 == 0);
            let permit = bench.engine.admit(T).unwrap();
            bench.advance(secs(u64::from(slow)));
            if failed {
                permit.failure()
            } else {
                permit.success()
            };
            queue.push_back((failed, slow));
            if queue.len() > size as usize {
                queue.pop_front();
            }
            let window = bench.snapshot().window.unwrap();
            let count = |part: fn(&(bool, bool)) -> bool| queue.iter().filter(|call| part(call)).count() as u64;
            let expected = (queue.len() as u64, count(|call| call.0), count(|call| call.1));
            assert_eq!((window.calls, window.failures, window.slow), expected, "window of {size}, call {call}");
        }
        bench.succeed(size as usize);
        let window = bench.snapshot().window.unwrap();
        assert_eq!((window.failures, window.slow), (0, 0));
    }
}

#[test]
fn wm12_a_window_trips_before_it_is_full() {
    let bench = Bench::new(over(100, 5, 0.5));
    bench.fail(4);
    assert_eq!(bench.state(), State::Closed);
    bench.fail(1);
    assert_eq!(bench.state(), State::Open);
}

#[test]
fn wm13_a_minimum_above_the_window_is_refused() {
    let error = over(5, 10, 0.5).build().unwrap_err();
    assert_eq!((error.field(), error.value(), error.expected()), ("min_calls", "10", "1 to 5"));
    assert!(over(5, 5, 0.5).build().is_ok());
}

#[test]
fn wm21_old_calls_leave_the_window() {
    // 500 calls are scaled to 100 (protocols.md).
    let bench = Bench::new(over(100, 100, 0.1));
    for _ in 0..5 {
        bench.succeed(200);
        bench.fail(2);
    }
    assert_eq!(bench.state(), State::Closed);
    assert_eq!(bench.snapshot().window.unwrap().failures, 2);
    bench.fail(8);
    assert_eq!(bench.state(), State::Open, "and 10 of the last 100 are enough");
}

#[test]
fn wm22_a_streak_has_no_time_limit() {
    let policy = || c0().window(Window::time(secs(30))).no_failure_rate().consecutive_failures(5);
    let bench = Bench::new(policy());
    for failure in 0..5 {
        assert_eq!(bench.engine.admit(T).unwrap().failure(), portcullis::Settled::Recorded, "failure {failure}");
        bench.advance(secs(60));
    }
    assert_eq!(bench.log()[0].cause, Cause::ConsecutiveFailures);
    let bench = Bench::new(policy());
    for failure in 0..5 {
        bench.fail(1);
        bench.advance(secs(60));
        if failure == 2 {
            bench.succeed(1);
        }
    }
    assert_eq!((bench.state(), bench.snapshot().streak), (State::Closed, 2));
}

/// The streak belongs to a generation as windows do.
#[test]
fn wm22_a_streak_begins_anew_when_the_breaker_closes() {
    let bench = Bench::new(c0().no_failure_rate().consecutive_failures(5));
    bench.fail(5);
    bench.advance(secs(30));
    bench.succeed(1);
    bench.fail(4);
    assert_eq!((bench.state(), bench.snapshot().streak), (State::Closed, 4));
}

#[test]
fn wm25_a_trip_carries_the_numbers_that_it_was_judged_on() {
    let bench = Bench::new(c0());
    let late: Vec<_> = (0..5).map(|_| bench.engine.admit(T).unwrap()).collect();
    bench.fail(5);
    for permit in late {
        permit.success();
    }
    let log = bench.log();
    let evidence = log[0].evidence.as_ref().unwrap();
    assert_eq!((evidence.calls, evidence.failures, evidence.rule()), (5, 5, Rule::FailureRate));
    assert_eq!((evidence.met[0].count, evidence.met[0].calls, evidence.met[0].threshold), (5, 5, 5_000));
    assert_eq!(bench.snapshot().window.unwrap().calls, 0, "cleared, so nothing contradicts it");
}

/// A rule that was off for a while must not judge what it remembers from before: the successes between broke the streak.
#[test]
fn wm22_a_streak_does_not_outlive_its_rule() {
    let policy = || c0().no_failure_rate();
    let bench = Bench::new(policy().consecutive_failures(5));
    bench.fail(4);
    bench.engine.set_policy(T, policy().build().unwrap()).unwrap();
    bench.succeed(100);
    bench.engine.set_policy(T, policy().consecutive_failures(5).build().unwrap()).unwrap();
    bench.fail(1);
    assert_eq!(bench.state(), State::Closed, "1 failure in a row after 100 successes: {:?}", bench.log());
}

/// The same for slow calls: the last 10 calls were all fast.
#[test]
fn wm07_slow_calls_do_not_outlive_their_rule() {
    let policy = || over(10, 10, 1.0);
    let timed = || policy().slow_call(secs(1)).slow_rate(0.5);
    let bench = Bench::new(timed());
    for call in 0..10 {
        let permit = bench.engine.admit(T).unwrap();
        bench.advance(secs(u64::from(call % 5 < 2)));
        permit.success();
    }
    assert_eq!(bench.snapshot().window.unwrap().slow, 4);
    bench.engine.set_policy(T, policy().build().unwrap()).unwrap();
    bench.succeed(100);
    bench.engine.set_policy(T, timed().build().unwrap()).unwrap();
    assert_eq!(bench.snapshot().window.unwrap().slow, 0, "of the last 10 calls none was slow");
}
