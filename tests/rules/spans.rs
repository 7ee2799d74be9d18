//! R9: windows of time and slow calls, and both kinds of window against a model.

use portcullis::{Cause, Policy, PolicyBuilder, State, Window};
use proptest::prelude::*;

use crate::common::{Bench, T, ms, secs, textbook};

fn calls(size: u32, min: u32, rate: f64) -> PolicyBuilder {
    Policy::builder().window(Window::calls(size)).min_calls(min).failure_rate(rate).open_wait(secs(30)).jitter(0.0)
}

fn settle(bench: &Bench, failed: bool) {
    let permit = bench.enter();
    if failed {
        permit.failure()
    } else {
        permit.success()
    };
}

#[test]
fn r09_a_window_of_time_covers_its_length_less_at_most_a_bucket() {
    let policy = Policy::builder().window(Window::time(secs(10)).buckets(10)).no_failure_rate();
    let bench = Bench::new(policy);
    bench.advance(ms(500));
    bench.fail(1);
    for (passed, holds) in [(0, 1), (8_500, 1), (999, 1), (1, 0)] {
        bench.advance(ms(passed));
        assert_eq!(bench.window(), (holds, holds), "at {:?}", bench.engine.now());
    }
}

#[test]
fn r09_a_window_of_time_is_cut_from_the_moment_it_began() {
    let bench = Bench::tripped(textbook().window(Window::time(secs(10)).buckets(10)));
    bench.advance(ms(30_700));
    bench.probe().success();
    bench.advance(ms(900));
    bench.fail(1);
    // The bucket of its first second, and the last moment of that in the window.
    for (passed, holds) in [(9_099, 1), (1, 0)] {
        bench.advance(ms(passed));
        assert_eq!(bench.window(), (holds, holds), "at {:?}", bench.engine.now());
    }
}

#[test]
fn r09_any_gap_empties_a_window_of_time() {
    let bench = Bench::new(textbook().window(Window::time(secs(10)).buckets(10)));
    for gap in [10, 11, 20, 35, 100, 1_000_000, 30_000_000] {
        bench.fail(4);
        assert_eq!(bench.window(), (4, 4));
        bench.advance(secs(gap));
        assert_eq!(bench.window(), (0, 0), "after {gap} s");
    }
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn r09_slow_calls_are_judged_over_both_kinds_of_window() {
    for window in [Window::calls(10), Window::time(secs(100))] {
        let bench = Bench::new(calls(10, 5, 1.0).window(window).slow_call(secs(1)).slow_rate(0.6));
        for took in [0, 1_000, 999, 1_000, 1_001] {
            assert_eq!(bench.last_state(), State::Closed);
            let permit = bench.enter();
            bench.advance(ms(took));
            permit.success();
        }
        assert_eq!((bench.state(), bench.log()[0].cause), (State::Open, Cause::SlowRate));
        assert_eq!(bench.snapshot().totals.slow, 3);
    }
}

#[test]
fn r09_a_slow_failure_is_both() {
    let bench = Bench::new(calls(10, 10, 0.5).slow_call(secs(1)));
    let permit = bench.enter();
    bench.advance(secs(1));
    permit.failure();
    let window = bench.snapshot().window.unwrap();
    assert_eq!((window.calls, window.failures, window.slow), (1, 1, 1));
}

proptest! {
    /// The window of calls against a queue and a comparison in whole numbers, outcome by outcome.
    #[test]
    fn r09_the_first_outcome_that_meets_the_rule_trips(
        size in 1_u32..=100,
        min in 1_u32..=100,
        rate_bp in 1_u32..=10_000,
        outcomes in prop::collection::vec(prop::bool::weighted(0.3), 0..300),
    ) {
        let min = min.min(size);
        let bench = Bench::new(calls(size, min, f64::from(rate_bp) / 10_000.0));
        assert_eq!(bench.engine.target(T).unwrap().state(), State::Closed);
        let mut queue = std::collections::VecDeque::new();
        for failed in outcomes {
            settle(&bench, failed);
            queue.push_back(failed);
            if queue.len() > size as usize {
                queue.pop_front();
            }
            let (total, failures) = (queue.len() as u64, queue.iter().filter(|failed| **failed).count() as u64);
            let trips = total >= u64::from(min) && failures > 0 && failures * 10_000 >= u64::from(rate_bp) * total;
            prop_assert_eq!(bench.state() == State::Open, trips);
            if trips {
                let evidence = bench.log()[0].evidence.clone().unwrap();
                prop_assert_eq!((evidence.calls, evidence.failures), (total, failures));
                break;
            }
            prop_assert_eq!(bench.window(), (total, failures));
        }
    }

    /// The window of time against a list of moments.
    #[test]
    fn r09_the_window_of_time_counts_what_its_buckets_cover(
        buckets in 1_u32..=64,
        width in 1_u64..500,
        begun in 0_u64..1_000_000,
        calls in prop::collection::vec((0_u64..2_000, any::<bool>()), 1..80),
    ) {
        let length = ms(width * u64::from(buckets));
        let bench = Bench::new(Policy::builder().window(Window::time(length).buckets(buckets)).no_failure_rate());
        bench.advance(ms(begun));
        let mut heard = Vec::new();
        for (gap, failed) in calls {
            bench.advance(ms(gap));
            settle(&bench, failed);
            let now = u64::try_from(bench.engine.now().as_millis()).unwrap();
            heard.push((now / width, failed));
            let covered = heard.iter().filter(|(bucket, _)| bucket + u64::from(buckets) > now / width);
            let expected = covered.fold((0, 0), |(calls, failures), (_, failed)| (calls + 1, failures + u64::from(*failed)));
            // Buckets are cut from the window's beginning, which is the engine's here.
            prop_assert_eq!(bench.window(), expected);
        }
    }
}
