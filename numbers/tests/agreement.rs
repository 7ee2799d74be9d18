//! The real engine on simulated traffic, beside the closed forms: what a formula says lies within the interval of what was counted. Seeds are fixed,
//! so each run is the same. Where another formula could be meant, it lies outside of the interval: so the interval says something.
#![allow(clippy::unwrap_used, reason = "clippy doesn't take helpers of tests for tests")]

#[path = "agreement/crowd.rs"]
mod crowd;
#[path = "agreement/lone.rs"]
mod lone;

use std::sync::Arc;
use std::time::Duration;

use crowd::Crowd;
use lone::Lone;
use portcullis::call::{CallPolicy, Caller};
use portcullis::{Engine, Policy, PolicyBuilder, Window};
use portcullis_numbers::formulas::{
    CallsWindow, Interval, Rules, TimeWindow, attempts_per_call, budgeted_attempts_per_call, erlang_b, erlang_c,
    in_flight_quantile, little, normal_quantile, poisson_at_least, poisson_interval, streak_trips_per_call,
    streak_trips_per_call_usual, waits_longer, wilson,
};
use portcullis_numbers::simulate::draws::{Draws, Times};

const CONFIDENCE: f64 = 0.999;

/// Nothing trips.
fn never() -> PolicyBuilder {
    Policy::builder().no_window()
}

/// Closes with the first call after the shortest wait.
fn at_once() -> PolicyBuilder {
    Policy::builder().open_wait(Duration::from_millis(1)).backoff(1.0).jitter(0.0).successes_to_close(1)
}

/// The rates that a count in so much of something speaks for.
fn rate(count: u64, of: f64) -> Interval {
    let counts = poisson_interval(count, CONFIDENCE);
    Interval { low: counts.low / of, high: counts.high / of }
}

fn share(count: u64, of: u64) -> Interval {
    wilson(count, of, CONFIDENCE)
}

#[test]
fn failures_in_a_row_trip_as_often_as_runs_are_counted_not_as_is_usually_said() {
    for (failure, threshold, calls) in [(0.3, 4, 100_000), (0.1, 2, 200_000), (0.5, 6, 50_000)] {
        let policy = at_once().no_window().consecutive_failures(threshold).build().unwrap();
        let noise = Lone::new(policy).noise(calls, 1_000.0, failure, (0, 0.0), Draws::new(11, threshold.into()));
        let seen = rate(noise.trips, noise.calls as f64);
        let (exact, usual) =
            (streak_trips_per_call(failure, threshold), streak_trips_per_call_usual(failure, threshold));
        assert!(seen.contains(exact), "{} trips: {seen:?} without {exact}", noise.trips);
        assert!(!seen.contains(usual), "{} trips can't tell {exact} from {usual}", noise.trips);
    }
}

#[test]
fn a_window_of_calls_trips_while_it_fills_as_often_as_the_chain_says() {
    for (calls, min_calls, failure_rate, failure) in [(100, 10, 0.5, 0.2), (20, 5, 0.4, 0.1), (50, 25, 0.36, 0.25)] {
        let policy = at_once().window(Window::calls(calls)).min_calls(min_calls).failure_rate(failure_rate);
        let windows = 5_000;
        let draws = Draws::new(12, calls.into());
        let trips = Lone::new(policy.build().unwrap()).trips_while_filling(windows, calls, failure, draws);
        let window =
            CallsWindow { calls, rules: Rules { min_calls, failure_rate: Some(failure_rate), failures: None } };
        let (seen, exact) = (share(trips, windows), window.trips_while_filling(failure));
        assert!(seen.contains(exact), "{trips} trips: {seen:?} without {exact}");
        // The tail of a single window says another thing.
        assert!(!seen.contains(window.is_met(failure)));
    }
}

#[test]
fn a_full_window_of_calls_trips_at_most_as_often_as_it_would_cross_its_threshold_and_not_much_less() {
    for (calls, failure_rate, failure) in [(20, 0.5, 0.2), (100, 0.3, 0.2), (10, 0.5, 0.1)] {
        let policy = at_once().window(Window::calls(calls)).min_calls(calls).failure_rate(failure_rate);
        let lone = Lone::new(policy.build().unwrap());
        let noise = lone.noise(200_000, 1_000.0, failure, (calls.into(), 0.0), Draws::new(13, calls.into()));
        let rules = Rules { min_calls: calls, failure_rate: Some(failure_rate), failures: None };
        let bound = CallsWindow { calls, rules }.trips_per_call(failure);
        let seen = rate(noise.trips, noise.calls as f64);
        let least = bound * (1.0 - f64::from(calls) * failure / rules.fewest(calls.into()).unwrap() as f64);
        assert!(noise.trips > 50 && seen.low <= bound && seen.high >= least, "{seen:?} beside {least} to {bound}");
    }
}

#[test]
fn a_window_of_time_trips_at_most_as_often_as_its_bound_and_within_a_third_of_it() {
    let by_number = Rules { min_calls: 1, failure_rate: None, failures: Some(10) };
    let by_rate = Rules { min_calls: 10, failure_rate: Some(0.4), failures: None };
    for (rules, calls_per_second, failure, stream) in [(by_number, 20.0, 0.2, 0), (by_rate, 30.0, 0.17, 1)] {
        let window = at_once().window(Window::time(Duration::from_secs(1)).buckets(10)).min_calls(rules.min_calls);
        let window = match rules.failures {
            Some(failures) => window.no_failure_rate().failures(failures),
            None => window.failure_rate(rules.failure_rate.unwrap()),
        };
        let lone = Lone::new(window.build().unwrap());
        let noise = lone.noise(150_000, calls_per_second, failure, (0, 1.0), Draws::new(14, stream));
        let bound = TimeWindow { seconds: 1.0, buckets: 10, rules }.trips_per_second(calls_per_second, failure);
        let seen = rate(noise.trips, noise.seconds);
        assert!(noise.trips > 50 && seen.low <= bound && seen.high >= bound / 3.0, "{seen:?} beside {bound}");
    }
}

#[test]
fn a_window_of_time_trips_while_it_fills_at_most_as_often_as_its_bound_and_within_half_of_it() {
    let by_number = Rules { min_calls: 1, failure_rate: None, failures: Some(8) };
    let by_rate = Rules { min_calls: 10, failure_rate: Some(0.5), failures: None };
    for (rules, calls_per_second, failure, stream) in [(by_number, 20.0, 0.2, 0), (by_rate, 30.0, 0.15, 1)] {
        let window = at_once().window(Window::time(Duration::from_secs(1)).buckets(10)).min_calls(rules.min_calls);
        let window = match rules.failures {
            Some(failures) => window.no_failure_rate().failures(failures),
            None => window.failure_rate(rules.failure_rate.unwrap()),
        };
        let (windows, draws) = (3_000, Draws::new(19, stream));
        let trips = Lone::new(window.build().unwrap()).trips_in_time(windows, 1.0, calls_per_second, failure, draws);
        let bound = TimeWindow { seconds: 1.0, buckets: 10, rules }.trips_while_filling(calls_per_second, failure);
        let seen = share(trips, windows);
        assert!(trips > 20 && seen.low <= bound && seen.high >= bound / 2.0, "{trips}: {seen:?} beside {bound}");
    }
}

#[test]
fn calls_in_flight_are_as_many_as_little_says_and_spread_as_poisson_says() {
    for (times, stream) in [(Times::Exponential(0.2), 0), (Times::Pareto { least: 0.05, most: 2.0, shape: 1.5 }, 1)] {
        let (rate_of, mean) = (50.0, times.mean());
        let quantile = in_flight_quantile(rate_of, mean, 0.9).unwrap();
        let spacing = 6 * (rate_of * mean) as u64;
        let crowd = Crowd::new(never().build().unwrap(), rate_of, times, Draws::new(15, stream));
        let seen = crowd.run(1_500, spacing, quantile, 0.0);
        let in_flight = rate(seen.in_flight, seen.samples as f64);
        assert!(in_flight.contains(little(rate_of, mean)), "{in_flight:?} without {}", little(rate_of, mean));
        let below = 1.0 - poisson_at_least(quantile + 1, little(rate_of, mean));
        assert!(share(seen.at_most, seen.samples).contains(below) && below >= 0.9, "{seen:?} for {below}");
    }
}

#[test]
fn a_limit_without_a_queue_refuses_as_often_as_erlang_b_says_whatever_the_times() {
    let kinds = [Times::Exponential(0.1), Times::Constant(0.1), Times::Lognormal { median: 0.06, p99: 0.5 }];
    for (stream, times) in (0..).zip(kinds) {
        let (rate_of, limit) = (30.0, 5);
        let erlangs = little(rate_of, times.mean());
        let policy = never().max_in_flight(limit).build().unwrap();
        let seen = Crowd::new(policy, rate_of, times, Draws::new(16, stream)).run(3_000, 30, 0, 0.0);
        let refused = share(seen.refused, seen.samples);
        let (b, c) = (erlang_b(erlangs, limit), erlang_c(erlangs, limit));
        assert!(refused.contains(b) && !refused.contains(c), "{refused:?} without {b}, or with {c}");
    }
}

#[test]
fn a_limit_with_a_queue_makes_as_many_wait_as_erlang_c_says_and_as_long() {
    let (rate_of, service, limit, longer) = (40.0, 0.1, 5, 0.1);
    let policy = never().max_in_flight(limit).max_waiting(65_535).max_wait(Duration::from_hours(1)).build().unwrap();
    let seen = Crowd::new(policy, rate_of, Times::Exponential(service), Draws::new(17, 0)).run(2_500, 80, 0, longer);
    let erlangs = little(rate_of, service);
    let (waited, waited_longer) = (share(seen.waited, seen.samples), share(seen.waited_longer, seen.samples));
    assert_eq!(seen.refused, 0);
    assert!(waited.contains(erlang_c(erlangs, limit)), "{waited:?} without {}", erlang_c(erlangs, limit));
    assert!(!waited.contains(erlang_b(erlangs, limit)));
    let tail = waits_longer(erlangs, limit, service, longer);
    assert!(waited_longer.contains(tail), "{waited_longer:?} without {tail}");
}

/// The attempts that so many calls make, by the real caller.
async fn attempts(calls: u64, failure: f64, policy: CallPolicy, seed: u64) -> u64 {
    let (clock, time) = portcullis::Clock::mock();
    let engine: Arc<Engine> = Arc::new(Engine::builder().policy(never().build().unwrap()).clock(clock).build());
    let caller = Caller::builder(engine).target("target".to_owned(), policy).build().unwrap();
    let draws = std::sync::Mutex::new(Draws::new(18, seed));
    let made = std::sync::atomic::AtomicU64::new(0);
    for _ in 0..calls {
        time.increment(Duration::from_millis(1));
        let attempt = |_| {
            made.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let is_failure = draws.lock().unwrap().chance(failure);
            async move { if is_failure { Err("failed") } else { Ok(()) } }
        };
        let _ = caller.to("target").idempotent(true).run(attempt).await;
    }
    made.into_inner()
}

fn retries(attempts: u32) -> portcullis::call::CallPolicyBuilder {
    CallPolicy::builder().attempts(attempts).backoff(Duration::ZERO).backoff_max(Duration::ZERO)
}

#[tokio::test(start_paused = true)]
async fn retries_add_as_many_attempts_as_the_sum_says() {
    for (failure, most) in [(0.3, 3), (0.8, 5)] {
        let calls = 10_000;
        let made = attempts(calls, failure, retries(most).no_retry_budget().build().unwrap(), most.into()).await;
        let mean = made as f64 / calls as f64;
        let expected = attempts_per_call(failure, most);
        // The attempts of one call are at most `most`: their deviation is at most half of that range.
        let margin = normal_quantile(0.5 + CONFIDENCE / 2.0) * f64::from(most - 1) / 2.0 / (calls as f64).sqrt();
        assert!((mean - expected).abs() < margin, "{mean} for {expected}, give or take {margin}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_holds_retries_to_its_share_of_the_calls() {
    let calls = 20_000;
    let policy = retries(3).retry_budget(0.1).retry_floor(0).build().unwrap();
    let made = attempts(calls, 1.0, policy, 0).await;
    let bound = budgeted_attempts_per_call(1.0, 3, 0.1);
    let seen = made as f64 / calls as f64;
    assert!(seen <= bound && seen > bound - 0.002, "{seen} for {bound}");
}
