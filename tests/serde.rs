//! Policies as text, snapshots and transitions as JSON.
#![cfg(feature = "serde")]
#![allow(clippy::unwrap_used, reason = "clippy doesn't take helpers of tests for tests")]

mod common;

use std::time::Duration;

use portcullis::{Adaptive, OnAbandon, Policy, PolicyBuilder, Window};
use proptest::prelude::*;
use serde_json::{Value, json};

use common::{Bench, T, ms, secs, textbook};

/// A policy with every setting.
fn full() -> PolicyBuilder {
    let rules = Policy::builder().max_in_flight(64).consecutive_failures(5).window(Window::time(secs(10)).buckets(20));
    let rules = rules.normal_share(0.8).sheddable_share(0.5).max_waiting(9).max_wait(ms(50));
    let rules = rules.min_calls(20).failure_rate(0.25).failures(50).slow_call(ms(1_500)).slow_rate(0.8);
    let rules = rules.stall_after(ms(2_000)).stalled_calls(20).stalled_share(0.5);
    let waits = rules.open_wait(ms(2_500)).backoff(1.5).open_wait_max(secs(90)).jitter(0.2);
    waits
        .max_probes(2)
        .successes_to_close(4)
        .probe_lease(secs(30))
        .on_abandon(OnAbandon::FailureAfter(ms(750)))
        .ignored_probes(7)
        .adaptive(Adaptive::gradient().tolerance(1.5).min(2).start(16))
        .ramp(secs(20))
        .ramp_failures(6)
}

fn toml_error(text: &str) -> String {
    toml::from_str::<Policy>(text).expect_err(text).to_string()
}

fn json_error(text: &str) -> String {
    serde_json::from_str::<Policy>(text).expect_err(text).to_string()
}

#[track_caller]
fn round_trips(policy: &Policy) {
    let text = toml::to_string(policy).unwrap();
    assert_eq!(toml::from_str::<Policy>(&text).as_ref(), Ok(policy), "{text}");
    let text = serde_json::to_string(policy).unwrap();
    assert_eq!(&serde_json::from_str::<Policy>(&text).unwrap(), policy, "{text}");
}

#[test]
fn the_default_and_a_full_policy_round_trip() {
    round_trips(&Policy::default());
    round_trips(&full().build().unwrap());
    for policy in [
        Policy::builder().no_window(),
        Policy::builder().no_failure_rate(),
        Policy::builder().adaptive(Adaptive::gradient()),
        Policy::builder().max_in_flight(64).adaptive(Adaptive::aimd(ms(200)).min(4).start(8)),
        Policy::builder().no_window().consecutive_failures(1).slow_call(secs(1)),
        Policy::builder().backoff(1.0),
        Policy::builder().backoff(1.001),
        Policy::builder().open_wait(secs(90)),
        Policy::builder().sheddable_share(0.333_3),
        Policy::builder().max_waiting(1),
        Policy::builder().on_abandon(OnAbandon::Ignore),
        Policy::builder().on_abandon(OnAbandon::Failure),
        Policy::builder().on_abandon(OnAbandon::FailureAfter(Duration::ZERO)),
        Policy::builder().slow_call(Duration::from_nanos(1)),
        Policy::builder().open_wait(Duration::from_hours(365 * 24)),
    ] {
        round_trips(&policy.build().unwrap());
    }
}

#[test]
fn the_longest_durations_round_trip() {
    round_trips(&Policy::builder().slow_call(Duration::MAX).build().unwrap());
    round_trips(&Policy::builder().on_abandon(OnAbandon::FailureAfter(Duration::MAX)).build().unwrap());
}

#[test]
fn nothing_is_the_default() {
    assert_eq!(toml::from_str::<Policy>("").unwrap(), Policy::default());
    assert_eq!(serde_json::from_str::<Policy>("{}").unwrap(), Policy::default());
}

#[test]
fn a_file_as_people_write_it() {
    let text = r#"
        max_in_flight = 64
        normal_share = 0.8
        sheddable_share = 0.5
        max_waiting = 9
        max_wait = "50ms"
        consecutive_failures = 5
        window = { time = "10s", buckets = 20 }
        min_calls = 20
        failure_rate = 0.25
        failures = 50
        slow_call = "1s 500ms"
        slow_rate = 0.8
        stall_after = "2s"
        stalled_calls = 20
        stalled_share = 0.5
        open_wait = "2s 500ms"
        backoff = 1.5
        open_wait_max = "1m 30s"
        jitter = 0.2
        max_probes = 2
        successes_to_close = 4
        probe_lease = "30s"
        on_abandon = { failure_after = "750ms" }
        ignored_probes = 7
        adaptive = { algorithm = "gradient", tolerance = 1.5, min = 2, start = 16 }
        ramp = "20s"
        ramp_failures = 6
    "#;
    assert_eq!(toml::from_str::<Policy>(text).unwrap(), full().build().unwrap());
    let shown: Value = serde_json::to_value(full().build().unwrap()).unwrap();
    let expected = json!({
        "max_in_flight": 64, "normal_share": 0.8, "sheddable_share": 0.5, "max_waiting": 9, "max_wait": "50ms",
        "consecutive_failures": 5, "window": { "time": "10s", "buckets": 20 }, "min_calls": 20,
        "failure_rate": 0.25, "failures": 50, "slow_call": "1s 500ms", "slow_rate": 0.8, "stall_after": "2s",
        "stalled_calls": 20, "stalled_share": 0.5, "open_wait": "2s 500ms",
        "backoff": 1.5, "open_wait_max": "1m 30s", "jitter": 0.2, "max_probes": 2, "successes_to_close": 4,
        "probe_lease": "30s", "on_abandon": { "failure_after": "750ms" }, "ignored_probes": 7,
        "adaptive": { "algorithm": "gradient", "tolerance": 1.5, "min": 2, "start": 16 },
        "ramp": "20s", "ramp_failures": 6
    });
    assert_eq!(shown, expected);
}

#[test]
fn durations_are_humane_in_and_out() {
    for (text, duration) in [
        ("3s", secs(3)),
        ("250ms", ms(250)),
        ("1h 30m", secs(5_400)),
        ("1h30m", secs(5_400)),
        ("1day", secs(86_400)),
        ("1500ms", ms(1_500)),
    ] {
        let policy = toml::from_str::<Policy>(&format!("slow_call = {text:?}"));
        assert_eq!(policy.unwrap(), Policy::builder().slow_call(duration).build().unwrap(), "{text}");
    }
}

#[test]
fn words_for_having_none() {
    let equal = |text: &str, policy: PolicyBuilder| {
        assert_eq!(toml::from_str::<Policy>(text).unwrap(), policy.build().unwrap(), "{text}");
    };
    equal("max_in_flight = \"unlimited\"", Policy::builder().unlimited());
    equal("window = \"none\"", Policy::builder().no_window());
    equal("failure_rate = \"none\"", Policy::builder().no_failure_rate());
    equal("failure_rate = 1", Policy::builder().failure_rate(1.0));
    equal("on_abandon = \"ignore\"", Policy::builder().on_abandon(OnAbandon::Ignore));
    equal("on_abandon = \"failure\"", Policy::builder().on_abandon(OnAbandon::Failure));
    equal("window = { calls = 7 }", Policy::builder().window(Window::calls(7)));
    equal("window = { time = \"1m\" }", Policy::builder().window(Window::time(secs(60))));
    let shown = serde_json::to_value(Policy::builder().no_window().build().unwrap()).unwrap();
    assert_eq!((&shown["max_in_flight"], &shown["window"]), (&json!("unlimited"), &json!("none")));
    assert_eq!((&shown["failure_rate"], &shown["open_wait"]), (&json!("none"), &json!("5s")));
}

#[test]
fn unknown_fields_are_refused_by_name() {
    for text in ["max_inflight = 3", "window = { calls = 3, size = 4 }", "on_abandon = { failure_afer = \"1s\" }"] {
        let error = toml_error(text);
        let name = if text.contains("inflight") {
            "max_inflight"
        } else if text.contains("size") {
            "size"
        } else {
            "failure_afer"
        };
        assert!(error.contains(name), "{error}");
    }
    assert!(json_error(r#"{"max_inflight": 3}"#).contains("max_inflight"));
}

#[test]
fn errors_name_the_field_the_value_and_the_range() {
    for (text, parts) in [
        ("max_in_flight = 0", ["max_in_flight", "0", "1 to 16777214"]),
        ("max_in_flight = 16777215", ["max_in_flight", "16777215", "1 to 16777214"]),
        ("max_in_flight = -1", ["max_in_flight", "-1", "1 to 16777214"]),
        ("max_in_flight = \"lots\"", ["max_in_flight", "lots", "\"unlimited\""]),
        ("normal_share = 0.0", ["normal_share", "0", "above 0 and at most 1"]),
        ("normal_share = 0.5\nsheddable_share = 0.6", ["sheddable_share", "0.6", "at most normal_share, which is 0.5"]),
        ("max_waiting = 65536", ["max_waiting", "65536", "0 to 65535"]),
        ("max_wait = \"1s\"", ["max_wait", "1s", "together with max_waiting"]),
        ("max_waiting = 1\nmax_wait = \"2h\"", ["max_wait", "7200s", "1ms to 3600s"]),
        ("consecutive_failures = 0", ["consecutive_failures", "0", "1 to 4294967295"]),
        ("window = { calls = 101 }", ["window.calls", "101", "1 to 100"]),
        ("window = { time = \"10s\", buckets = 65 }", ["window.buckets", "65", "1 to 64"]),
        ("window = { time = \"25h\" }", ["window.time", "90000s", "86400s"]),
        ("window = \"all\"", ["window", "all", "\"none\""]),
        ("min_calls = 0", ["min_calls", "0", "1 to 100"]),
        ("min_calls = 101", ["min_calls", "101", "1 to 100"]),
        ("failure_rate = 1.5", ["failure_rate", "1.5", "above 0 and at most 1"]),
        ("failure_rate = nan", ["failure_rate", "NaN", "above 0 and at most 1"]),
        ("failure_rate = \"half\"", ["failure_rate", "half", "\"none\""]),
        ("failures = 101", ["failures", "101", "1 to 100"]),
        ("slow_call = \"0s\"", ["slow_call", "0s", "above 0"]),
        ("slow_call = \"1s\"\nslow_rate = 2.0", ["slow_rate", "2", "above 0 and at most 1"]),
        ("open_wait = \"0s\"", ["open_wait", "0", "1ms to 31536000s"]),
        ("open_wait = \"2years\"", ["open_wait", "63115200s", "1ms to 31536000s"]),
        ("open_wait = \"soon\"", ["open_wait", "soon", "a duration such as"]),
        ("backoff = 0.5", ["backoff", "0.5", "1 to 1000"]),
        ("backoff = inf", ["backoff", "inf", "1 to 1000"]),
        ("open_wait_max = \"1s\"", ["open_wait_max", "1s", "5s to 31536000s"]),
        ("jitter = 1.5", ["jitter", "1.5", "0 to 1"]),
        ("max_probes = 32", ["max_probes", "32", "1 to 31"]),
        ("successes_to_close = 0", ["successes_to_close", "0", "1 to 31"]),
        ("probe_lease = \"500ms\"", ["probe_lease", "500ms", "1s to 31536000s"]),
        ("ignored_probes = 0", ["ignored_probes", "0", "1 to 1000000"]),
        ("adaptive = \"all\"", ["adaptive", "all", "\"none\""]),
        ("adaptive = { algorithm = \"vegas\" }", ["adaptive", "vegas", "gradient"]),
        ("adaptive = { algorithm = \"aimd\" }", ["adaptive", "needs a latency", "200ms"]),
        ("adaptive = { algorithm = \"gradient\", latency = \"1s\" }", ["adaptive", "latency", "only aimd"]),
        ("adaptive = { algorithm = \"aimd\", latency = \"17s\" }", ["adaptive.latency", "17s", "16s"]),
        ("adaptive = { algorithm = \"gradient\", max = 7 }", ["adaptive", "max", "start"]),
        ("on_abandon = \"shrug\"", ["on_abandon", "shrug", "ignore"]),
        ("ramp = \"5s\"", ["ramp", "5s", "max_in_flight"]),
        ("ramp = \"0s\"\nmax_in_flight = 9", ["ramp", "0", "1ms to 86400s"]),
        ("ramp = \"5s\"\nmax_in_flight = 9\nramp_failures = 0", ["ramp_failures", "0", "1 to 1000"]),
    ] {
        let error = toml_error(text);
        for part in parts {
            assert!(error.contains(part), "{part:?} is missing for {text}:\n{error}");
        }
    }
}

#[test]
fn json_errors_name_the_field_the_value_and_the_range_too() {
    for (text, parts) in [
        (r#"{"max_in_flight": 0}"#, ["max_in_flight", "0", "1 to 16777214"]),
        (r#"{"max_in_flight": 1.5}"#, ["max_in_flight", "1.5", "whole number"]),
        (r#"{"open_wait": "soon"}"#, ["open_wait", "soon", "a duration such as"]),
        (r#"{"failure_rate": "half"}"#, ["failure_rate", "half", "none"]),
        (r#"{"window": "all"}"#, ["window", "all", "none"]),
    ] {
        let error = json_error(text);
        for part in parts {
            assert!(error.contains(part), "{part:?} is missing for {text}:\n{error}");
        }
    }
}

#[test]
fn a_window_is_of_calls_or_of_time() {
    for text in ["window = {}", "window = { buckets = 3 }", "window = { calls = 3, time = \"1s\" }", "window = 100"] {
        let error = toml_error(text);
        assert!(error.contains("window") && error.contains("calls = 100"), "{text}: {error}");
    }
    assert!(toml_error("window = { calls = 10, buckets = 2 }").contains("window.buckets"));
}

#[test]
fn a_snapshot_as_json() {
    let bench = Bench::new(textbook().max_in_flight(3).slow_call(secs(1)));
    bench.fail(4);
    let _permit = bench.enter();
    let shown = serde_json::to_value(bench.snapshot()).unwrap();
    assert_eq!(
        (&shown["state"], &shown["generation"], &shown["incarnation"]),
        (&json!("CLOSED"), &json!(0), &json!(1))
    );
    assert_eq!((&shown["waiting"], &shown["waited"]), (&json!(0), &json!(0)));
    assert_eq!((&shown["probes_granted"], &shown["transitions"]), (&json!(0), &json!(0)));
    assert_eq!((&shown["in_flight"], &shown["limit"], &shown["policy_version"]), (&json!(1), &json!(3), &json!(0)));
    assert_eq!(shown["window"], json!({ "calls": 4, "failures": 4, "slow": 0 }));
    let totals = json!({
        "admitted": 5, "success": 0, "failure": 4, "ignored": 0, "abandoned": 0, "slow": 0, "stale": 0
    });
    assert_eq!(shown["totals"], totals);
    assert_eq!(shown["refusals"], json!({ "open": 0, "probing": 0, "saturated": 0, "shed": 0, "forced": 0 }));
    assert_eq!(shown["policy"], serde_json::to_value(bench.snapshot().policy).unwrap());
    assert!(shown.get("reopen_in").is_none(), "only of an open target");
    bench.fail(1);
    bench.advance(ms(1_500));
    let shown = serde_json::to_value(bench.snapshot()).unwrap();
    assert_eq!((&shown["state"], &shown["reopen_in"]), (&json!("OPEN"), &json!("28s 500ms")));
    bench.advance(secs(40));
    let shown = serde_json::to_value(bench.snapshot()).unwrap();
    assert_eq!((&shown["state"], &shown["reopen_in"]), (&json!("HALF_OPEN"), &json!("0s")));
}

#[test]
fn a_transition_as_json() {
    let bench = Bench::new(textbook());
    bench.advance(ms(1_234));
    bench.fail(5);
    bench.engine.force_open(T).unwrap();
    let log = bench.log();
    let trip = serde_json::to_value(&*log[0]).unwrap();
    let wall = trip["wall_ms"].as_u64().unwrap();
    let expected = json!({
        "target": T, "from": "CLOSED", "to": "OPEN", "cause": "failure_rate", "sequence": 1, "generation": 1,
        "incarnation": 1, "at_ms": 1_234, "wall_ms": wall,
        "evidence": {
            "met": [{ "rule": "failure_rate", "count": 5, "calls": 5, "threshold": 5_000 }],
            "streak": 0, "calls": 5, "failures": 5, "slow": 0, "stalled": 0, "policy_version": 0
        },
        "wait_ms": 30_000, "retry_after_ms": null
    });
    assert_eq!(trip, expected);
    assert!(wall > 1_600_000_000_000, "milliseconds since 1970");
    let forced = serde_json::to_value(&*log[1]).unwrap();
    assert_eq!(
        (&forced["from"], &forced["to"], &forced["evidence"]),
        (&json!("OPEN"), &json!("FORCED_OPEN"), &Value::Null)
    );
}

#[test]
fn keys_that_are_no_strings_are_shown_as_debug_does() {
    let engine: portcullis::Engine<(u8, &'static str)> = portcullis::Engine::builder().build();
    engine.force_open(&(7, "eu")).unwrap();
    let shown = serde_json::to_value(&*engine.transitions()[0]).unwrap();
    assert_eq!(shown["target"], "(7, \"eu\")");
    let engine: portcullis::Engine<&'static str> = portcullis::Engine::builder().build();
    engine.disable(&"bare").unwrap();
    assert_eq!(serde_json::to_value(&*engine.transitions()[0]).unwrap()["target"], "bare");
}

fn settings() -> impl Strategy<Value = PolicyBuilder> {
    let window = prop_oneof![
        (1_u32..=100).prop_map(Window::calls),
        (1_u64..=1_000, 1_u32..=64)
            .prop_map(|(width, buckets)| Window::time(ms(width * u64::from(buckets))).buckets(buckets)),
    ];
    let share = || (1_u32..=10_000).prop_map(|bp| f64::from(bp) / 10_000.0);
    let judged = (window, share(), prop::option::of(share()), prop::option::of(1_u32..=1), 1_u64..10_000_000_000_000);
    let waits = (1_u64..100_000_000, 0_u64..100_000_000, 2_000_u32..=1_000_000, 0_u32..=10_000);
    let probes = (1_u32..=31, 1_u32..=31, 1_u64..31_536_000, 1_u32..=1_000_000, 0_u8..5, any::<u64>());
    let queue = (1_u32..=10_000, 1_u32..=10_000, 0_u32..=65_535, 1_u64..=3_600_000);
    let bulkhead = (prop::option::of(1_u32..16_777_215), prop::option::of(1_u32..), any::<bool>(), queue);
    (judged, waits, probes, bulkhead).prop_map(|(judged, waits, probes, bulkhead)| {
        let mut policy = Policy::builder();
        if let Some(limit) = bulkhead.0 {
            policy = policy.max_in_flight(limit);
        }
        let (one, other, waiting, wait) = bulkhead.3;
        let share = |bp| f64::from(bp) / 10_000.0;
        policy = policy.normal_share(share(one.max(other))).sheddable_share(share(one.min(other))).max_waiting(waiting);
        if waiting > 0 {
            policy = policy.max_wait(ms(wait));
        }
        if let Some(streak) = bulkhead.1 {
            policy = policy.consecutive_failures(streak);
        }
        if bulkhead.2 {
            let (window, rate, slow, count, slow_nanos) = judged;
            policy = policy.window(window).failure_rate(rate);
            if let Some(count) = count {
                policy = policy.failures(count).min_calls(1);
            }
            if let Some(slow) = slow {
                policy = policy.slow_call(Duration::from_nanos(slow_nanos)).slow_rate(slow);
            }
        } else {
            policy = policy.no_window();
        }
        let (wait, more, backoff, jitter) = waits;
        policy = policy.open_wait(ms(wait)).backoff(f64::from(backoff) / 1_000.0).open_wait_max(ms(wait + more));
        policy = policy.jitter(f64::from(jitter) / 10_000.0);
        let (max, successes, lease, ignored, abandon, nanos) = probes;
        policy = policy.max_probes(max).successes_to_close(successes).probe_lease(secs(lease)).ignored_probes(ignored);
        if bulkhead.0.is_some_and(|limit| limit != portcullis::UNLIMITED) {
            policy = policy.ramp(ms(wait.clamp(1, 86_400_000))).ramp_failures(max);
        }
        match abandon {
            0 => policy.on_abandon(OnAbandon::Ignore),
            1 => policy.on_abandon(OnAbandon::Failure),
            2 | 3 => policy.on_abandon(OnAbandon::FailureAfter(Duration::from_nanos(nanos))),
            _ => policy,
        }
    })
}

proptest! {
    #[test]
    fn every_policy_round_trips(settings in settings()) {
        let policy = settings.clone().build().unwrap();
        round_trips(&policy);
        // The builder's text, with what was left out left out, says the same.
        let text = toml::to_string(&settings).unwrap();
        prop_assert_eq!(toml::from_str::<PolicyBuilder>(&text).unwrap(), settings);
        prop_assert_eq!(toml::from_str::<Policy>(&text).unwrap(), policy);
    }

    #[test]
    fn no_text_panics(text in "[a-z_]{0,12} ?= ?[-0-9a-z.\"{} =]{0,20}") {
        let _ = toml::from_str::<Policy>(&text);
    }
}
