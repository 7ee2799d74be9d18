//! R8 and R9: windows of a generation, and rules that are judged exactly.

use portcullis::{Cause, Policy, PolicyBuilder, Settled, State, Window};

use crate::common::{Bench, ms, secs, take, textbook};

fn calls(size: u32, min: u32, rate: f64) -> PolicyBuilder {
    Policy::builder().window(Window::calls(size)).min_calls(min).failure_rate(rate).open_wait(secs(30)).jitter(0.0)
}

#[test]
fn r08_closing_starts_an_empty_window() {
    for window in [Window::calls(10), Window::time(secs(100))] {
        let bench = Bench::tripped(textbook().window(window));
        bench.advance(secs(30));
        bench.probe().success();
        assert_eq!(bench.window(), (0, 0));
        bench.fail(4);
        assert_eq!((bench.state(), bench.window()), (State::Closed, (4, 4)), "min_calls counts from the closing");
        bench.fail(1);
        assert_eq!(bench.state(), State::Open);
    }
}

#[test]
fn r08_whoever_probes_has_no_window_however_often_it_reopens() {
    let policy = textbook().window(Window::time(secs(3_600)).buckets(60)).open_wait(ms(1)).open_wait_max(ms(1));
    let bench = Bench::new(policy);
    bench.advance(secs(1_000));
    bench.fail(5);
    for _ in 0..20 {
        bench.advance(ms(1));
        drop(bench.probe());
        assert_eq!((bench.last_state(), bench.window()), (State::HalfOpen, (0, 0)));
        bench.probe().failure();
        assert_eq!((bench.last_state(), bench.window()), (State::Open, (0, 0)));
    }
}

#[test]
fn r08_a_streak_starts_again_with_the_generation() {
    let bench = Bench::new(
        Policy::builder().no_window().consecutive_failures(5).open_wait(secs(30)).jitter(0.0).successes_to_close(1),
    );
    bench.fail(5);
    bench.advance(secs(30));
    bench.probe().success();
    bench.fail(4);
    assert_eq!((bench.state(), bench.snapshot().streak), (State::Closed, 4));
    bench.fail(1);
    assert_eq!(bench.state(), State::Open);
}

/// The success is counted by itself, and judged since there is a failure.
#[test]
fn r09_the_success_that_completes_min_calls_of_a_window_of_time_trips() {
    let window = Window::time(secs(10));
    let bench = Bench::new(Policy::builder().window(window).min_calls(4).failure_rate(0.25).open_wait(secs(30)));
    bench.fail(1);
    bench.succeed(2);
    assert_eq!((bench.state(), bench.window()), (State::Closed, (3, 1)));
    bench.succeed(1);
    assert_eq!(bench.state(), State::Open);
}

#[test]
fn r08_outcomes_of_an_old_window_never_trip_a_new_one() {
    let bench = Bench::new(textbook());
    let old = take(&bench, 20);
    bench.fail(5);
    bench.advance(secs(30));
    bench.probe().success();
    bench.succeed(1);
    old.into_iter().for_each(|permit| assert_eq!(permit.failure(), Settled::Stale));
    assert_eq!((bench.state(), bench.window()), (State::Closed, (1, 0)));
}

#[test]
fn r09_the_success_that_completes_min_calls_trips() {
    let bench = Bench::new(calls(10, 5, 0.4));
    bench.fail(2);
    bench.succeed(2);
    assert_eq!(bench.state(), State::Closed);
    bench.succeed(1);
    assert_eq!((bench.state(), bench.log()[0].cause), (State::Open, Cause::FailureRate));
}

#[test]
fn r09_a_success_that_pushes_a_success_out_trips_nothing_new() {
    let bench = Bench::new(calls(4, 4, 0.5));
    bench.succeed(3);
    bench.fail(1);
    bench.succeed(50);
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn r09_the_threshold_itself_trips_and_a_hair_under_it_does_not() {
    for (failures, total, rate, trips) in [
        (1, 2, 0.5, true),
        (1, 3, 0.3333, true),
        (1, 3, 0.3334, false),
        (2, 3, 0.6667, false),
        (2, 3, 0.6666, true),
        (7, 100, 0.07, true),
        (6, 100, 0.07, false),
        (29, 100, 0.29, true),
        (57, 100, 0.57, true),
        (99, 100, 1.0, false),
        (100, 100, 1.0, true),
        (1, 100, 0.0001, true),
    ] {
        let bench = Bench::new(calls(total, total, rate));
        bench.succeed((total - failures) as usize);
        bench.fail(failures as usize);
        assert_eq!(bench.state() == State::Open, trips, "{failures} of {total} at {rate}");
    }
}

#[test]
fn r09_a_rate_of_a_twentieth_of_a_per_cent_is_exact() {
    // 0.05 % = 5 basis points: one failure in 2,000 calls is enough, one in 2,001 isn't.
    for (successes, trips) in [(1_999, true), (2_000, false)] {
        let policy = Policy::builder().window(Window::time(secs(10))).min_calls(2_000).failure_rate(0.000_5);
        let bench = Bench::new(policy);
        bench.succeed(successes);
        bench.fail(1);
        assert_eq!(bench.state() == State::Open, trips, "{successes} successes");
    }
    // At one more than min_calls the same failure is too little.
    let policy = Policy::builder().window(Window::time(secs(10))).min_calls(2_001).failure_rate(0.000_5);
    let bench = Bench::new(policy);
    bench.fail(1);
    bench.succeed(3_000);
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn r09_rates_are_rounded_to_basis_points_when_built() {
    let bench = Bench::new(calls(3, 3, 0.333_349));
    bench.succeed(2);
    bench.fail(1);
    assert_eq!(bench.state(), State::Open, "0.3333");
    assert_eq!(bench.log()[0].evidence.as_ref().unwrap().met[0].threshold, 3_333);
}

#[test]
fn r09_no_rate_is_judged_before_min_calls() {
    let bench = Bench::new(calls(100, 100, 0.01));
    bench.fail(99);
    assert_eq!(bench.state(), State::Closed);
    bench.fail(1);
    assert_eq!(bench.state(), State::Open);
}

#[test]
fn r09_an_absolute_count_trips_whatever_min_calls_says() {
    let bench = Bench::new(calls(100, 100, 1.0).failures(3));
    bench.succeed(50);
    bench.fail(2);
    bench.succeed(40);
    assert_eq!(bench.state(), State::Closed);
    bench.fail(1);
    assert_eq!((bench.state(), bench.log()[0].cause), (State::Open, Cause::Failures));
}

#[test]
fn r09_a_streak_is_broken_by_a_success_only() {
    let bench = Bench::new(Policy::builder().no_window().consecutive_failures(3).jitter(0.0));
    bench.fail(2);
    bench.succeed(1);
    bench.fail(2);
    bench.enter().ignore();
    drop(bench.enter());
    bench.advance(secs(1_000_000));
    assert_eq!(bench.snapshot().streak, 2);
    bench.fail(1);
    assert_eq!((bench.state(), bench.log()[0].cause), (State::Open, Cause::ConsecutiveFailures));
}

#[test]
fn r09_a_streak_and_a_window_work_side_by_side() {
    let bench = Bench::new(calls(100, 10, 0.5).consecutive_failures(3));
    bench.fail(2);
    bench.succeed(1);
    bench.fail(3);
    assert_eq!(bench.log()[0].cause, Cause::ConsecutiveFailures);
    let bench = Bench::new(calls(100, 10, 0.5).consecutive_failures(3));
    (0..5).for_each(|_| {
        bench.fail(1);
        bench.succeed(1);
    });
    assert_eq!(bench.log()[0].cause, Cause::FailureRate);
}

#[test]
fn r09_a_policy_without_rules_never_trips() {
    let bench = Bench::new(Policy::builder().no_window());
    bench.fail(10_000);
    let bench = Bench::new(Policy::builder().no_failure_rate());
    bench.fail(10_000);
    assert_eq!((bench.state(), bench.window()), (State::Closed, (100, 100)));
}

#[test]
fn r09_a_window_of_one_call_trips_on_the_first_failure() {
    let bench = Bench::new(calls(1, 1, 1.0));
    bench.succeed(5);
    bench.fail(1);
    assert_eq!(bench.state(), State::Open);
}

#[test]
fn r09_the_window_of_calls_forgets_the_oldest_call() {
    let bench = Bench::new(calls(10, 10, 0.5));
    bench.fail(4);
    bench.succeed(6);
    assert_eq!(bench.window(), (10, 4));
    bench.succeed(1);
    assert_eq!(bench.window(), (10, 3));
    bench.fail(1);
    assert_eq!(bench.window(), (10, 3), "one failure left, one came");
    bench.succeed(10);
    assert_eq!(bench.window(), (10, 0));
}
