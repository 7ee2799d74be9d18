//! The demonstration, run as the real binary: the shape of its output, and what it claims.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::Value;
use tokio::sync::Mutex;

/// One run at a time: each is played in real time, and none is to be held up by another.
static ALONE: Mutex<()> = Mutex::const_new(());

const PHASES: [&str; 3] = ["healthy", "outage", "recovery"];
const TARGETS: [&str; 2] = ["core-banking", "claims"];

fn demo() -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis")).args(["demo", "--json", "--seconds", "6"]).output();
    let output = output.unwrap();
    let (out, log) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr).into_owned());
    assert_eq!(out.lines().count(), 1, "one object and nothing else: {out}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert!(output.status.success(), "{log}\n{json}");
    assert!(log.contains("outage"), "the timeline goes to the other stream");
    json
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn of<'a>(run: &'a Value, phase: &str, target: &str) -> &'a Value {
    let phases = run["phases"].as_array().unwrap();
    &phases.iter().find(|entry| entry["name"] == phase).unwrap()["targets"][target]
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no count: {value}"))
}

fn shape(demo: &Value) {
    assert_eq!(keys(demo), ["with", "without"]);
    for run in [&demo["with"], &demo["without"]] {
        assert_eq!(keys(run), ["phases", "transitions"]);
        let phases = run["phases"].as_array().unwrap();
        assert_eq!(phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect::<Vec<_>>(), PHASES);
        for phase in phases {
            assert_eq!(keys(phase), ["name", "targets"]);
            assert_eq!(keys(&phase["targets"]).len(), 2);
            for target in TARGETS {
                let seen = &phase["targets"][target];
                let wanted = ["sent", "ok", "codes", "p50_ms", "p99_ms", "upstream_calls", "upstream_max_concurrent"];
                assert_eq!(keys(seen), wanted);
                assert!(seen["p50_ms"].as_f64().unwrap() <= seen["p99_ms"].as_f64().unwrap());
                let codes: u64 = seen["codes"].as_object().unwrap().values().map(count).sum();
                assert_eq!(count(&seen["sent"]), count(&seen["ok"]) + codes, "each request has one end: {seen}");
                assert!(count(&seen["sent"]) > 100);
            }
        }
        for change in run["transitions"].as_array().unwrap() {
            assert_eq!(keys(change), ["at_ms", "target", "from", "to", "cause"]);
            count(&change["at_ms"]);
        }
    }
}

fn with(run: &Value) {
    for phase in PHASES {
        let claims = of(run, phase, "claims");
        assert_eq!(claims["sent"], claims["ok"], "claims loses nothing: {phase} {claims}");
        let core = of(run, phase, "core-banking");
        assert!(count(&core["upstream_max_concurrent"]) <= 8, "{phase} {core}");
    }
    // In the outage, only the calls before the trip and the probes reach the upstream.
    let core = of(run, "outage", "core-banking");
    assert!(count(&core["upstream_calls"]) * 10 < count(&core["sent"]), "{core}");
    assert!(count(&core["codes"]["E904"]) > 0, "{core}");
    assert!(count(&of(run, "recovery", "core-banking")["ok"]) > 0);

    let log = run["transitions"].as_array().unwrap();
    let steps: Vec<(&str, &str)> = log
        .iter()
        .filter(|change| change["target"] == "core-banking")
        .map(|change| (change["from"].as_str().unwrap(), change["to"].as_str().unwrap()))
        .collect();
    assert_eq!((steps[0], steps[1]), (("CLOSED", "OPEN"), ("OPEN", "HALF_OPEN")), "{steps:?}");
    assert_eq!(steps.last(), Some(&("HALF_OPEN", "CLOSED")));
    assert!(steps.windows(2).all(|pair| pair[0].1 == pair[1].0), "each begins where the last one ended: {steps:?}");
    assert_eq!(steps.iter().filter(|step| step.1 == "CLOSED").count(), 1);
    assert!(!log.iter().any(|change| change["target"] == "claims"), "claims never trips");
}

/// The retries of both runs are the same; what comes of them isn't.
fn storm(demo: &Value) {
    let calls = |run: &Value| count(&of(run, "outage", "core-banking")["upstream_calls"]);
    let (with, without) = (calls(&demo["with"]), calls(&demo["without"]));
    assert!(with * 5 < without, "{with} calls reach a sick upstream with portcullis, {without} without");
}

fn without(run: &Value) {
    assert_eq!(run["transitions"].as_array().unwrap().len(), 0);
    let claims = of(run, "outage", "claims");
    let lost = count(&claims["sent"]) - count(&claims["ok"]);
    assert!(lost * 10 > count(&claims["sent"]), "claims suffers: {claims}");
    assert_eq!(claims["codes"]["E905"], lost, "because the process is full: {claims}");
    let core = of(run, "outage", "core-banking");
    assert!(count(&core["codes"]["E901"]) > 0 && count(&core["codes"]["E902"]) > 0, "it hangs and refuses: {core}");
    assert!(count(&core["upstream_max_concurrent"]) > 32, "nothing bounds it but the process: {core}");
}

#[test]
fn one_outage_twice() {
    let _alone = ALONE.blocking_lock();
    let mut margins = Vec::new();
    for _ in 0..3 {
        let demo = demo();
        shape(&demo);
        with(&demo["with"]);
        without(&demo["without"]);
        storm(&demo);
        let p99 = |phase| of(&demo["with"], phase, "claims")["p99_ms"].as_f64().unwrap();
        margins.push(p99("outage") - (2.0 * p99("healthy") + 5.0));
    }
    margins.sort_by(f64::total_cmp);
    assert!(margins[1] <= 0.0, "twice the healthy p99 and 5 ms is exceeded by {margins:?} ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_probe_at_a_time() {
    use portcullis_gateway::demo::{Kind, play_one};
    let _alone = ALONE.lock().await;
    let run = play_one(Kind::With, std::time::Duration::from_secs(6)).await.unwrap();
    assert_eq!(run.max_probes, 1);
    assert!(run.recovered());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_multiply_without_a_budget_and_do_not_with_one() {
    use portcullis_gateway::demo::{Kind, play_one};
    let _alone = ALONE.lock().await;
    let length = std::time::Duration::from_secs(6);
    let storm = play_one(Kind::Without, length).await.unwrap().storm;
    assert!(storm.attempts > 2 * storm.requests && storm.retries > storm.requests, "{storm:?}");
    let storm = play_one(Kind::With, length).await.unwrap().storm;
    assert!(storm.attempts * 5 < storm.requests && storm.retries * 10 <= storm.requests, "{storm:?}");
}

#[test]
fn a_length_that_is_none_is_refused() {
    for wrong in ["0", "-1", "601", "x", "1.5", ""] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_portcullis")).args(["demo", "--seconds", wrong]).output().unwrap();
        assert!(!output.status.success() && output.stdout.is_empty(), "{wrong}");
    }
}
