//! R18: a policy that can't work doesn't build, and says why.

use std::error::Error;
use std::time::Duration;

use portcullis::{OnAbandon, Policy, PolicyBuilder, UNLIMITED, Window};

use crate::common::{ms, secs};

const YEAR: Duration = Duration::from_hours(365 * 24);
const NANO: Duration = Duration::from_nanos(1);

fn p() -> PolicyBuilder {
    Policy::builder()
}

/// The field, value and range of a refusal, and that its text holds all three.
#[track_caller]
fn refused(policy: &PolicyBuilder) -> (&'static str, String, String) {
    let error = policy.clone().build().expect_err(&format!("{policy:?} can't work"));
    let parts = (error.field(), error.value().to_owned(), error.expected().to_owned());
    let text = error.to_string();
    assert_eq!(text, format!("{}: {} is out of range: must be {}", parts.0, parts.1, parts.2));
    assert!((&error as &dyn Error).source().is_none());
    parts
}

#[track_caller]
fn refuses(policy: impl Into<PolicyBuilder>, field: &str, value: &str, expected: &str) {
    let (at, found, range) = refused(&policy.into());
    assert_eq!((at, found.as_str(), range.as_str()), (field, value, expected));
}

#[track_caller]
fn builds(policy: PolicyBuilder) -> Policy {
    let built = policy.build().expect("in range");
    assert_eq!(built.to_builder().build().as_ref(), Ok(&built), "a policy can be built from itself");
    built
}

#[test]
fn r18_limits() {
    refuses(p().max_in_flight(0), "max_in_flight", "0", "1 to 16777214");
    refuses(p().max_in_flight(UNLIMITED + 1), "max_in_flight", "16777216", "1 to 16777214");
    refuses(p().max_in_flight(u32::MAX), "max_in_flight", "4294967295", "1 to 16777214");
    assert_eq!(builds(p().max_in_flight(1)).max_in_flight(), 1);
    assert_eq!(builds(p().max_in_flight(UNLIMITED - 1)).max_in_flight(), UNLIMITED - 1);
    assert_eq!(builds(p().max_in_flight(3).unlimited()).max_in_flight(), UNLIMITED);
}

#[test]
fn r18_streaks() {
    refuses(p().consecutive_failures(0), "consecutive_failures", "0", "1 to 4294967295");
    builds(p().consecutive_failures(1));
    builds(p().consecutive_failures(u32::MAX));
}

#[test]
fn r18_windows_of_calls() {
    for (calls, value) in [(0, "0"), (101, "101"), (u32::MAX, "4294967295")] {
        let range = "1 to 100; for more calls take a window of time";
        refuses(p().window(Window::calls(calls)), "window.calls", value, range);
    }
    refuses(p().window(Window::calls(10).buckets(2)), "window.buckets", "2", "left out: a window of calls has none");
    builds(p().window(Window::calls(1)));
    builds(p().window(Window::calls(100)));
}

#[test]
fn r18_windows_of_time() {
    let day = Duration::from_hours(24);
    for (time, value) in [
        (Duration::ZERO, "0ns"),
        (ms(1) - NANO, "999.999µs"),
        (day + NANO, "86400.000000001s"),
        (Duration::MAX, "18446744073709551615.999999999s"),
    ] {
        refuses(p().window(Window::time(time).buckets(1)), "window.time", value, "1ms to 86400s");
    }
    for (buckets, value) in [(0, "0"), (65, "65"), (u32::MAX, "4294967295")] {
        refuses(p().window(Window::time(secs(64)).buckets(buckets)), "window.buckets", value, "1 to 64");
    }
    for (time, buckets) in
        [(secs(10), 3), (ms(1), 2), (ms(63), 64), (ms(1_000) + NANO, 1), (Duration::from_micros(1_500), 1)]
    {
        let expected = format!("a whole number of milliseconds in each of its {buckets} buckets");
        refuses(p().window(Window::time(time).buckets(buckets)), "window.time", &format!("{time:?}"), &expected);
    }
    for (time, buckets) in [(ms(1), 1), (ms(64), 64), (day, 64), (secs(9), 3)] {
        builds(p().window(Window::time(time).buckets(buckets)));
    }
    assert_eq!(builds(p().window(Window::time(secs(10)))), builds(p().window(Window::time(secs(10)).buckets(10))));
}

#[test]
fn r18_min_calls_fits_the_window() {
    refuses(p().min_calls(0), "min_calls", "0", "1 to 100");
    refuses(p().min_calls(101), "min_calls", "101", "1 to 100");
    refuses(p().window(Window::calls(5)).min_calls(6), "min_calls", "6", "1 to 5");
    refuses(p().window(Window::time(secs(10))).min_calls(UNLIMITED + 1), "min_calls", "16777216", "1 to 16777215");
    builds(p().window(Window::calls(5)).min_calls(5));
    builds(p().window(Window::time(secs(10))).min_calls(UNLIMITED));
    // The default gives way to a smaller window.
    builds(p().window(Window::calls(3)));
}

#[test]
fn r18_rates() {
    type Set = fn(PolicyBuilder, f64) -> PolicyBuilder;
    let slow: Set = |policy, rate| policy.slow_call(secs(1)).slow_rate(rate);
    for (field, set) in [("failure_rate", PolicyBuilder::failure_rate as Set), ("slow_rate", slow)] {
        for (rate, value) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (-0.5, "-0.5"),
            (1.000_1, "1.0001"),
            (1.0 + f64::EPSILON, "1.0000000000000002"),
            (50.0, "50"),
            (0.000_049, "0.000049"),
            (f64::MIN_POSITIVE, &f64::MIN_POSITIVE.to_string()),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            refuses(set(p(), rate), field, value, "above 0 and at most 1, in steps of 0.0001");
        }
        for rate in [0.000_05, 0.000_1, 0.5, 0.999_999, 1.0] {
            builds(set(p(), rate));
        }
    }
}

#[test]
fn r18_counts() {
    refuses(p().failures(0), "failures", "0", "1 to 100");
    refuses(p().failures(101), "failures", "101", "1 to 100");
    refuses(p().window(Window::calls(7)).failures(8), "failures", "8", "1 to 7");
    builds(p().failures(1));
    builds(p().window(Window::time(secs(10))).failures(5_000));
}

#[test]
fn r18_rules_on_a_window_need_one() {
    let none = "left out: there is no window";
    refuses(p().no_window().min_calls(5), "min_calls", "5", none);
    refuses(p().no_window().failure_rate(0.5), "failure_rate", "0.5", none);
    refuses(p().no_window().failures(5), "failures", "5", none);
    refuses(p().no_window().slow_call(secs(1)).slow_rate(0.5), "slow_rate", "0.5", none);
    builds(p().no_window());
    builds(p().no_window().no_failure_rate());
    builds(p().no_window().slow_call(secs(1)));
    builds(p().failure_rate(0.5).no_failure_rate().min_calls(3));
}

#[test]
fn r18_slow_calls() {
    refuses(p().slow_call(Duration::ZERO), "slow_call", "0s", "above 0");
    refuses(p().slow_rate(0.5), "slow_rate", "0.5", "left out, or set together with slow_call");
    builds(p().slow_call(NANO));
    assert_eq!(builds(p().slow_call(secs(1))), builds(p().slow_call(secs(1)).slow_rate(1.0)));
    builds(p().slow_call(Duration::MAX));
}

#[test]
fn r18_stalls() {
    let after = |policy: PolicyBuilder| policy.stall_after(secs(1));
    let range = "50ms to 86400s";
    let calls = |duration| p().stall_after(duration).stalled_calls(1);
    refuses(calls(Duration::from_millis(50) - NANO), "stall_after", "49.999999ms", range);
    refuses(calls(secs(86_400) + NANO), "stall_after", "86400.000000001s", range);
    builds(calls(Duration::from_millis(50)));
    builds(calls(secs(86_400)));
    refuses(after(p()), "stall_after", "1s", "left out, or set together with stalled_calls or stalled_share");
    let with = "left out, or set together with stall_after";
    refuses(p().stalled_calls(3), "stalled_calls", "3", with);
    refuses(p().max_in_flight(9).stalled_share(0.5), "stalled_share", "0.5", with);
    refuses(after(p()).stalled_calls(0), "stalled_calls", "0", "1 to 16777214");
    refuses(after(p()).max_in_flight(9).stalled_calls(10), "stalled_calls", "10", "1 to 9");
    builds(after(p()).max_in_flight(9).stalled_calls(9));
    let limited = "left out, or set together with max_in_flight";
    refuses(after(p()).stalled_share(0.5), "stalled_share", "0.5", limited);
    for share in [0.0, 1.1, f64::NAN] {
        let policy = after(p()).max_in_flight(9).stalled_share(share);
        refuses(policy, "stalled_share", &share.to_string(), "above 0 and at most 1, in steps of 0.0001");
    }
    let both = builds(after(p()).max_in_flight(9).stalled_share(0.5).stalled_calls(2));
    assert_eq!(builds(both.to_builder()), both);
    // It needs no window.
    builds(after(p()).no_window().stalled_calls(1));
}

#[test]
fn r18_waits_are_finite_and_not_zero() {
    for (wait, value) in [
        (Duration::ZERO, "0ns"),
        (ms(1) - NANO, "999.999µs"),
        (YEAR + NANO, "31536000.000000001s"),
        (Duration::MAX, "18446744073709551615.999999999s"),
    ] {
        refuses(p().open_wait(wait), "open_wait", value, "1ms to 31536000s");
    }
    builds(p().open_wait(ms(1)));
    builds(p().open_wait(YEAR));
    refuses(p().open_wait_max(ms(4_999)), "open_wait_max", "4.999s", "5s to 31536000s");
    refuses(p().open_wait_max(Duration::MAX), "open_wait_max", "18446744073709551615.999999999s", "5s to 31536000s");
    builds(p().open_wait_max(secs(5)));
    builds(p().open_wait_max(YEAR));
}

#[test]
fn r18_backoffs_that_shrink_or_never_get_there() {
    for (backoff, value) in [
        (0.0, "0"),
        (0.999_9, "0.9999"),
        (-2.0, "-2"),
        (1_000.001, "1000.001"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::MAX, &f64::MAX.to_string()),
    ] {
        refuses(p().backoff(backoff), "backoff", value, "1 to 1000");
    }
    let (field, value, expected) = refused(&p().backoff(1.0).open_wait_max(secs(6)));
    assert_eq!((field, value.as_str()), ("backoff", "1 with open_wait_max 6s"));
    assert_eq!(expected, "large enough to reach it in 31 reopenings, or open_wait_max at most 5.5s");
    assert_eq!(refused(&p().open_wait(ms(1)).backoff(1.01).open_wait_max(secs(60))).0, "backoff");
    builds(p().backoff(1.0));
    builds(p().backoff(1.0).open_wait_max(secs(5)));
    builds(p().backoff(1_000.0));
    // What 31 doublings reach, and not a millisecond more: 2^31 ms, and jitter beside it.
    let steady = || p().open_wait(ms(1)).jitter(0.0);
    builds(steady().open_wait_max(ms(1 << 31)));
    assert_eq!(refused(&steady().open_wait_max(ms((1 << 31) + 1))).0, "backoff");
}

#[test]
fn r18_jitter() {
    for (jitter, value) in [
        (-0.000_1, "-0.0001"),
        (1.000_1, "1.0001"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        refuses(p().jitter(jitter), "jitter", value, "0 to 1");
    }
    builds(p().jitter(0.0));
    builds(p().jitter(1.0));
}

#[test]
fn r18_probes() {
    for (count, value) in [(0, "0"), (32, "32"), (u32::MAX, "4294967295")] {
        refuses(p().max_probes(count), "max_probes", value, "1 to 31");
        refuses(p().successes_to_close(count), "successes_to_close", value, "1 to 31");
    }
    for count in [1, 31] {
        builds(p().max_probes(count).successes_to_close(count));
    }
    refuses(p().ignored_probes(0), "ignored_probes", "0", "1 to 1000000");
    refuses(p().ignored_probes(1_000_001), "ignored_probes", "1000001", "1 to 1000000");
    builds(p().ignored_probes(1));
    builds(p().ignored_probes(1_000_000));
}

#[test]
fn r18_a_lease_is_never_missing() {
    for (lease, value) in [
        (Duration::ZERO, "0ns"),
        (secs(1) - NANO, "999.999999ms"),
        (YEAR + NANO, "31536000.000000001s"),
        (Duration::MAX, "18446744073709551615.999999999s"),
    ] {
        refuses(p().probe_lease(lease), "probe_lease", value, "1s to 31536000s");
    }
    builds(p().probe_lease(secs(1)));
    builds(p().probe_lease(YEAR));
    assert_eq!(builds(p().probe_lease(ms(1_001))), builds(p().probe_lease(secs(2))));
}

#[test]
fn r18_any_meaning_of_abandoned_calls_works() {
    for meaning in [
        OnAbandon::Ignore,
        OnAbandon::Failure,
        OnAbandon::FailureAfter(Duration::ZERO),
        OnAbandon::FailureAfter(Duration::MAX),
    ] {
        builds(p().on_abandon(meaning));
    }
}

#[test]
fn r18_settings_may_come_in_any_order() {
    let one = p().window(Window::calls(5)).min_calls(5).open_wait(secs(90)).open_wait_max(secs(100));
    let other = p().open_wait_max(secs(100)).min_calls(5).open_wait(secs(90)).window(Window::calls(5));
    assert_eq!(builds(one), builds(other));
}

#[test]
fn r18_a_policy_builds_itself_again_and_lets_what_follows_go_on_to_follow() {
    for policy in [p(), p().backoff(1.0), p().backoff(1.001), p().no_window().consecutive_failures(3), p().jitter(1.0)]
    {
        let built = policy.build().unwrap();
        assert_eq!(built.to_builder().build().as_ref(), Ok(&built));
    }
    let defaults = p().build().unwrap();
    builds(defaults.to_builder().window(Window::calls(5)));
    builds(defaults.to_builder().no_window());
    builds(defaults.to_builder().open_wait(secs(90)));
}
