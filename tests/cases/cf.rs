use portcullis::{Engine, OnAbandon, Policy, PolicyBuilder, Rejection, Settled, State, Window};

use super::kit::{c0, done, t0};
use crate::common::{Bench, T, ms, secs};

fn refused(policy: PolicyBuilder) -> (&'static str, String) {
    let error = policy.build().unwrap_err();
    assert!(!error.expected().is_empty());
    (error.field(), error.value().to_owned())
}

#[test]
fn cf01_a_new_threshold_keeps_state_deadline_steps_and_permits() {
    let bench = Bench::new(c0().backoff(2.0));
    let old: Vec<_> = (0..2).map(|_| bench.engine.admit(T).unwrap()).collect();
    bench.fail(5);
    for wait in [30, 60] {
        bench.advance(secs(wait));
        bench.fail(1);
    }
    bench.advance(secs(5));
    let generation = bench.snapshot().generation;
    bench.engine.set_policy(T, c0().backoff(2.0).failure_rate(0.6).build().unwrap()).unwrap();
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.generation, snapshot.reopens, snapshot.policy_version), (generation, 2, 1));
    // 120 s would pass the default maximum of 60 s.
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Open { retry_after: secs(55) });
    bench.advance(secs(55));
    let probe = bench.engine.admit(T).unwrap();
    bench.engine.set_policy(T, c0().failure_rate(0.7).build().unwrap()).unwrap();
    assert_eq!(probe.success(), Settled::Recorded);
    assert_eq!((bench.state(), bench.snapshot().in_flight), (State::Closed, 2));
    drop(old);
    assert_eq!(bench.snapshot().in_flight, 0);
}

#[test]
fn cf01_in_closed_a_new_threshold_keeps_window_and_generation() {
    let bench = Bench::new(c0());
    let flying = bench.engine.admit(T).unwrap();
    bench.fail(4);
    bench.engine.set_policy(T, c0().failure_rate(0.6).build().unwrap()).unwrap();
    assert_eq!((bench.snapshot().generation, bench.snapshot().window.unwrap().failures), (0, 4));
    assert_eq!(flying.failure(), Settled::Recorded);
    assert_eq!(bench.state(), State::Open);
    assert_eq!(bench.log()[0].evidence.as_ref().unwrap().policy_version, 1);
    // An equal policy is a no-op.
    bench.engine.set_policy(T, c0().failure_rate(0.6).build().unwrap()).unwrap();
    assert_eq!((bench.snapshot().policy_version, bench.log().len()), (1, 1));
}

#[test]
fn cf03_calls_in_flight_count_under_the_new_limit() {
    let bench = Bench::new(c0().max_in_flight(200));
    let mut held: Vec<_> = (0..105).map(|_| bench.engine.admit(T).unwrap()).collect();
    bench.engine.set_policy(T, c0().max_in_flight(100).build().unwrap()).unwrap();
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 100 });
    held.truncate(99);
    held.push(bench.engine.admit(T).unwrap());
    assert_eq!((bench.snapshot().in_flight, bench.engine.admit(T).is_err()), (100, true));
}

#[test]
fn cf04_zero_is_refused_where_it_can_not_work() {
    let zero = secs(0);
    let field = |policy| refused(policy).0;
    assert_eq!(field(c0().min_calls(0)), "min_calls");
    assert_eq!(field(c0().window(Window::calls(0))), "window.calls");
    assert_eq!(field(c0().window(Window::time(zero))), "window.time");
    assert_eq!(field(c0().window(Window::time(secs(1)).buckets(0))), "window.buckets");
    assert_eq!(field(c0().failure_rate(0.0)), "failure_rate");
    assert_eq!(field(c0().failures(0)), "failures");
    assert_eq!(field(c0().consecutive_failures(0)), "consecutive_failures");
    assert_eq!(field(c0().slow_call(zero)), "slow_call");
    assert_eq!(field(c0().slow_call(ms(1)).slow_rate(0.0)), "slow_rate");
    // Amended R18: no wait and no lease are refused, not "at once" and "none".
    assert_eq!(field(c0().open_wait(zero)), "open_wait");
    assert_eq!(field(c0().probe_lease(zero)), "probe_lease");
    assert_eq!(field(c0().backoff(0.0)), "backoff");
    assert_eq!(field(c0().open_wait_max(zero)), "open_wait_max");
    assert_eq!(field(c0().max_probes(0)), "max_probes");
    assert_eq!(field(c0().successes_to_close(0)), "successes_to_close");
    assert_eq!(field(c0().ignored_probes(0)), "ignored_probes");
    assert_eq!(field(c0().max_in_flight(0)), "max_in_flight");
    // Where it is legal it means what it says.
    let bench = Bench::new(c0().jitter(0.0).on_abandon(OnAbandon::FailureAfter(zero)));
    (0..5).for_each(|_| drop(bench.engine.admit(T).unwrap()));
    assert_eq!(bench.state(), State::Open);
    let engine: Engine = Engine::builder().max_targets(0).build();
    assert_eq!(engine.admit(T).unwrap_err(), Rejection::Exhausted { max_targets: 0 });
    let engine: Engine = Engine::builder().log_capacity(0).build();
    engine.force_open(T).unwrap();
    assert_eq!((engine.transitions().len(), engine.transitions_dropped()), (0, 1));
    let subscription = engine.subscribe(0);
    engine.release(T).unwrap();
    assert!(subscription.try_recv().is_ok(), "a channel holds one at least");
}

#[test]
fn cf04_values_that_are_no_numbers_are_refused() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.5, -1.0] {
        assert_eq!(refused(c0().failure_rate(odd)).0, "failure_rate");
        assert_eq!(refused(c0().slow_call(ms(1)).slow_rate(odd)).0, "slow_rate");
        assert_eq!(refused(c0().jitter(odd)).0, "jitter");
        assert_eq!(refused(c0().backoff(odd)).0, "backoff");
    }
    assert_eq!(refused(c0().failure_rate(1.1)), ("failure_rate", "1.1".to_owned()));
    assert_eq!(refused(c0().failure_rate(0.000_04)).0, "failure_rate", "nothing is left of it after rounding");
    assert_eq!(refused(c0().max_probes(32)), ("max_probes", "32".to_owned()));
    assert_eq!(refused(c0().successes_to_close(32)).0, "successes_to_close");
    assert_eq!(refused(c0().backoff(1.0).open_wait_max(secs(31))).0, "backoff", "it can't get there");
}

/// WM-20's geometry, too.
#[test]
fn cf06_buckets_that_do_not_divide_the_window_are_refused() {
    for (length, buckets) in
        [(secs(10), 3), (ms(1), 2), (ms(64), 63), (ms(63), 64), (std::time::Duration::from_nanos(1), 64)]
    {
        assert_eq!(refused(c0().window(Window::time(length).buckets(buckets))).0, "window.time");
    }
    assert_eq!(refused(c0().window(Window::time(secs(65)).buckets(65))).0, "window.buckets");
    assert_eq!(refused(c0().window(Window::time(secs(86_401)))).0, "window.time");
    assert_eq!(refused(c0().window(Window::time(std::time::Duration::from_micros(1_500)).buckets(1))).0, "window.time");
    assert_eq!(refused(c0().window(Window::calls(10).buckets(2))).0, "window.buckets");
    assert_eq!(refused(c0().window(Window::calls(101))).0, "window.calls");
    for (length, buckets) in [(ms(1), 1), (ms(64), 64), (secs(86_400), 64), (secs(86_400), 1)] {
        assert!(t0().window(Window::time(length).buckets(buckets)).build().is_ok(), "{length:?} in {buckets}");
    }
}

/// The documented defaults, written out: the same policy.
#[test]
fn cf07_the_documented_defaults_are_the_defaults() {
    let documented = Policy::builder()
        .unlimited()
        .window(Window::calls(100))
        .min_calls(10)
        .failure_rate(0.5)
        .open_wait(secs(5))
        .backoff(2.0)
        .open_wait_max(secs(60))
        .jitter(0.1)
        .max_probes(1)
        .successes_to_close(3)
        .probe_lease(secs(10))
        .ignored_probes(10);
    assert_eq!(documented.clone().build().unwrap(), Policy::default());
    assert_ne!(documented.min_calls(100).build().unwrap(), Policy::default());
    assert_eq!(Policy::default().to_builder().build().unwrap(), Policy::default());
}

/// Two equal breakers around one service: neither takes the other's probe for good.
#[test]
fn cf09_two_breakers_in_series_both_close_again() {
    let (outer, inner) = (Bench::new(c0()), Bench::new(c0()));
    let (mut down, mut calls) = (true, 0_u32);
    for second in 0..600_u64 {
        if second == 60 {
            down = false;
        }
        if second > 60 + 2 * 30 {
            assert_eq!((outer.state(), inner.state()), (State::Closed, State::Closed), "at {second} s");
        }
        if let Ok(permit) = outer.engine.admit(T) {
            // The inner refusal is a failure to the outer breaker, as any error of what it wraps would be.
            let answer = inner.engine.admit(T).map(|permit| {
                calls += 1;
                done(if down { permit.failure() } else { permit.success() });
                !down
            });
            done(if answer == Ok(true) { permit.success() } else { permit.failure() });
        }
        outer.advance(secs(1));
        inner.advance(secs(1));
    }
    assert!(calls > 400);
}
