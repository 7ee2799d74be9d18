//! The scenarios in `numbers/scenarios`, by the shape of what they show: none of the numbers is exact, all of them follow.

use serde_json::Value;

use crate::{figure, mean, report, upstream};

macro_rules! shipped {
    ($name:literal) => {
        report(include_str!(concat!("../../scenarios/", $name, ".toml")), 1).json
    };
}

#[test]
fn cascade_a_dead_target_takes_the_healthy_one_with_it_unless_they_are_isolated() {
    let json = shipped!("cascade");
    let healthy = |variant| figure(&json, variant, "rates", "good_percent_in_outages");
    assert!(healthy("none") < 50.0);
    assert!(healthy("circuit") > 98.0);
    assert_eq!(healthy("circuit and limit"), 100.0);
    assert_eq!(figure(&json, "circuit and limit", "core", "most_in_flight"), 20.0);
    // Once it is over, all is well under each.
    for variant in ["none", "circuit", "circuit and limit"] {
        assert!(mean(&json, variant, "core", "good_per_second", 50..60) > 90.0, "{variant}");
        assert!(mean(&json, variant, "rates", "good_per_second", 50..60) > 90.0, "{variant}");
    }
    let reasons = &upstream(&json, "none", "rates")["refused_by_reason"][0];
    assert!(reasons["process"].as_u64().unwrap() > 1_000, "{reasons}");
}

#[test]
fn the_readmes_table_is_what_cascade_prints() {
    let readme = include_str!("../../README.md");
    let shown = readme.split("```text\nvariant").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let text = report(include_str!("../../scenarios/cascade.toml"), 1).text;
    let rows: Vec<&str> = shown.lines().skip(1).collect();
    assert_eq!(rows.len(), 6);
    for row in rows {
        assert!(text.lines().any(|line| line.starts_with(row)), "{row} isn't in\n{text}");
    }
}

#[test]
fn retry_storm_retries_keep_a_target_down_that_a_budget_lets_recover() {
    let json = shipped!("retry-storm");
    // Long after the fault is over.
    let later = |variant| mean(&json, variant, "core", "good_per_second", 40..60);
    assert!(later("3 attempts") < 15.0);
    for variant in ["no retries", "3 attempts, budget", "budget and circuit"] {
        assert!(later(variant) > 140.0, "{variant}: {}", later(variant));
    }
    let attempts = |variant| figure(&json, variant, "core", "attempts_per_request");
    assert_eq!(attempts("no retries"), 1.0);
    assert!(attempts("3 attempts") > 2.5);
    assert!(attempts("3 attempts, budget") < 1.1);
    assert!(attempts("budget and circuit") < 1.0);
    // The load in the fault: three times, and a tenth more.
    let load = |variant| mean(&json, variant, "core", "attempts_per_second", 11..15);
    assert!(load("3 attempts") > 2.0 * load("no retries") && load("3 attempts, budget") < 1.2 * load("no retries"));
}

#[test]
fn flapping_long_waits_sleep_through_the_good_times_and_short_ones_cost_little() {
    let json = shipped!("flapping");
    let good = |variant| figure(&json, variant, "core", "good_percent");
    assert!(good("wait 500 ms") > good("none") - 3.0);
    assert!(good("wait 5 s, doubling") < good("wait 500 ms") - 20.0);
    // One trip for each of the twelve outages, however many probes it takes to close.
    for variant in ["wait 500 ms", "wait 500 ms, 3 probes"] {
        assert_eq!(figure(&json, variant, "core", "trips"), 12.0, "{variant}");
        assert!(figure(&json, variant, "core", "failed_tries") < 0.1 * figure(&json, "none", "core", "failed_tries"));
    }
}

#[test]
fn thundering_recovery_whoever_lets_all_in_at_once_trips_again_and_a_ramp_does_not() {
    let json = shipped!("thundering-recovery");
    let (good, trips) =
        (|variant| figure(&json, variant, "core", "good_percent"), |variant| figure(&json, variant, "core", "trips"));
    assert!(good("none") < 25.0 && good("circuit") > 55.0);
    assert!(trips("circuit") > 1.0 && trips("limit 100") > 1.0);
    assert_eq!((trips("limit 100 that ramps"), trips("limit 30")), (1.0, 1.0));
    assert!(good("limit 100 that ramps") > good("limit 100") && good("limit 30") > good("circuit"));
    assert!(figure(&json, "none", "core", "most_in_flight") > 300.0);
}

#[test]
fn slow_target_only_a_limit_or_a_rule_on_slow_calls_spares_the_others() {
    let json = shipped!("slow-target");
    let healthy = |variant, key| figure(&json, variant, "rates", key);
    assert!(healthy("none", "good_percent_in_outages") < 90.0 && healthy("none", "p99_ms") > 1_000.0);
    assert!(healthy("failures only", "p99_ms") > 1_000.0);
    for variant in ["slow calls", "limit", "both"] {
        assert_eq!(healthy(variant, "good_percent"), 100.0, "{variant}");
        assert!(healthy(variant, "p99_ms") < 250.0, "{variant}");
    }
    assert_eq!(figure(&json, "limit", "core", "most_in_flight"), 20.0);
}

#[test]
fn fleet_the_numbers_follow_from_the_formulas_beside_them() {
    let json = shipped!("fleet");
    assert_eq!(json["arithmetic"], true);
    let value = |what: &str, variant: &str| -> Value {
        let line = json["lines"].as_array().unwrap().iter().find(|line| line["what"] == what);
        line.unwrap_or_else(|| panic!("no line {what}"))["values"][variant].clone()
    };
    let number = |what, variant| value(what, variant).as_f64().unwrap();
    let probes = "calls/s that reach a target which is down";
    assert_eq!(number(probes, "none"), 1_000.0);
    // 1,000 gateways, each once in 60 s of waiting, 1 s until a caller comes, and 1 s of timeout.
    assert!((number(probes, "defaults") - 1_000.0 / 62.0).abs() < 1e-9);
    assert_eq!(number("failed calls per target until all are open", "streak of 3, 5 s"), 3_000.0);
    // Ten calls in the window, of the twenty that it asks for.
    assert_eq!(value("failed calls until one gateway opens", "time window"), "never");
    assert_eq!(value("calls at once at a target, at most", "defaults"), Value::Null);
    // 10 million calls/s, three failures of a thousandth in a row.
    let trips = number("false trips per day, all gateways", "streak of 3, 5 s");
    assert!((trips - 86_400.0 * 1e7 * 1e-9 * 0.999).abs() < 1.0, "{trips}");
}
