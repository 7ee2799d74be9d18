//! Logs that nobody would plan from: what is missing is said, and nothing breaks.

use std::time::Duration;

use portcullis::Outcome;
use portcullis_numbers::derive::{Aims, derive};
use portcullis_numbers::logs::{Call, TargetId};
use portcullis_numbers::observe::Observer;
use portcullis_numbers::plan;
use portcullis_numbers::policies::Policies;

use crate::made::{EPOCH, Made, SECOND, observe};

fn call(start: u64, latency: u64, outcome: Outcome) -> Call {
    Call { start, latency, target: TargetId(0), status: 200, outcome }
}

fn planned(calls: &[Call]) -> String {
    let text = plan::write(
        observe(calls, &["core"]),
        &Aims { budget: Some(Duration::from_secs(1)), retries: 1, ..Aims::default() },
    );
    text.parse::<Policies>().unwrap_or_else(|error| panic!("{error}\n{text}"));
    text
}

#[test]
fn one_call_is_too_little_for_everything() {
    let text = planned(&[call(EPOCH, SECOND, Outcome::Success)]);
    for said in [
        "1 good calls outside outages: a timeout needs 30",
        "Little's law needs 1,000 over 60 s",
        "the share of failures needs 100",
    ] {
        assert!(text.replace("\n# ", " ").contains(said), "{said}: {text}");
    }
    assert!(!text.lines().any(|line| line.contains(" = ") && !line.starts_with('#')), "{text}");
}

#[test]
fn nothing_but_failures_is_one_outage() {
    let calls: Vec<Call> = (0..10_000).map(|n| call(EPOCH + n * SECOND / 10, SECOND / 50, Outcome::Failure)).collect();
    let text = planned(&calls);
    assert!(text.contains("the last still on") || text.replace("\n# ", " ").contains("the last still on"), "{text}");
    assert!(!text.contains("\ntimeout"), "{text}");
}

#[test]
fn latencies_of_zero_give_no_timeout_and_no_limit() {
    let calls: Vec<Call> = (0..10_000).map(|n| call(EPOCH + n * SECOND / 10, 0, Outcome::Success)).collect();
    let text = planned(&calls).replace("\n# ", " ");
    assert!(text.contains("timeout: no value: the log has no latencies but zero"), "{text}");
    assert!(text.contains("max_in_flight: no value: the log has no latencies but zero"), "{text}");
}

#[test]
fn calls_all_at_one_instant_have_no_rate_to_speak_of() {
    let calls: Vec<Call> = (0..5_000).map(|_| call(EPOCH, SECOND / 10, Outcome::Success)).collect();
    let text = planned(&calls).replace("\n# ", " ");
    assert!(text.contains("5,000 calls outside outages in 1 s: Little's law needs 1,000 over 60 s"), "{text}");
}

#[test]
fn abandoned_calls_say_nothing_about_health() {
    let calls: Vec<Call> = (0..5_000).map(|n| call(EPOCH + n * SECOND / 10, SECOND / 10, Outcome::Ignored)).collect();
    let seen = observe(&calls, &["core"]).remove(0);
    assert_eq!((seen.calls, seen.failures, seen.abandoned), (0, 0, 5_000));
    assert_eq!(derive(&seen, &Aims::default()).value("timeout"), None);
}

#[test]
fn ten_thousand_targets_of_three_calls_make_a_short_plan() {
    let mut observer = Observer::new();
    for n in 0..30_000_u32 {
        observer.call(&Call {
            target: TargetId(n % 10_000),
            ..call(EPOCH + u64::from(n) * SECOND, SECOND, Outcome::Success)
        });
    }
    let names = (0..10_000).map(|n| format!("tenant-{n}")).collect();
    let text = plan::write(observer.finish(&names), &Aims::default());
    assert!(text.len() < 20_000, "{} bytes", text.len());
    assert!(text.replace("\n# ", " ").contains("And 9,980 more targets with 29,940 calls in all"), "{text}");
    assert!(text.parse::<Policies>().is_ok());
}

#[test]
fn two_years_of_log_with_silence_for_days_take_no_time() {
    let day = 86_400 * SECOND;
    let calls: Vec<Call> = (0..730 * 4).map(|n| call(EPOCH + n * day / 4, SECOND / 10, Outcome::Success)).collect();
    let seen = observe(&calls, &["core"]).remove(0);
    assert_eq!(seen.span.as_secs(), 86_400 * 729 + 64_800 + 1);
    assert_eq!(seen.calm.seconds.weight(), seen.span.as_secs());
    assert_eq!(seen.calm.seconds.at(0.99), 0);
}

#[test]
fn times_at_the_end_of_what_can_be_told_dont_overflow() {
    let calls = [call(0, u64::MAX, Outcome::Success), call(u64::MAX - 1, u64::MAX, Outcome::Failure)];
    let seen = observe(&calls, &["core"]).remove(0);
    assert_eq!((seen.calls, seen.failures, seen.peak), (2, 1, 2));
    planned(&calls);
}

#[test]
fn names_that_are_no_bare_keys_are_quoted_and_names_that_cant_be_are_told() {
    let calls = Made::default().calls(0, 1);
    for name in ["a.b", "a \"b\" \\ c", "häuser", "x = 1]"] {
        let text = plan::write(observe(&calls, &[name]), &Aims::default());
        let policies: Policies = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert!(policies.has(name), "{text}");
    }
    for name in ["", "a\nb = 1", &"x".repeat(201)] {
        let text = plan::write(observe(&calls, &[name]), &Aims::default());
        assert!(text.contains("no target can have this name"), "{text}");
        let policies: Policies = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(policies.targets().count(), 0);
    }
}
