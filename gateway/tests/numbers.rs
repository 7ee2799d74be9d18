//! `plan` and `audit` as commands: what they print, what they end with, and that the gateway takes what was planned.
#![allow(clippy::unwrap_used, reason = "clippy doesn't take helpers of tests for tests")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use portcullis_gateway::Config;

fn portcullis(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_portcullis")).args(arguments).current_dir(directory).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Two targets at 20 calls/s each for five minutes: latencies of 10 to 49 ms, each 50th call fails; one is down for a minute, three times.
fn log(directory: &Path) {
    let mut log = "time,target,latency_ms,status\n".to_owned();
    for n in 0..6_000 {
        let (second, latency) = (n / 20, 10 + n * 7 % 40);
        let is_down = [40..70, 120..150, 200..230].iter().any(|outage| outage.contains(&second));
        for (target, status) in [("core", if is_down || n % 50 == 7 { 503 } else { 200 }), ("claims", 200)] {
            writeln!(log, "{}.{:03},{target},{latency},{status}", 1_700_000_000 + second, n % 20 * 50).unwrap();
        }
    }
    std::fs::write(directory.join("calls.csv"), log).unwrap();
}

#[test]
fn a_plan_goes_into_a_gateway_and_fits_its_own_log() {
    let directory = tempfile::tempdir().unwrap();
    log(directory.path());
    let run = |arguments: &[&str]| portcullis(directory.path(), arguments);

    let planned = run(&["plan", "calls.csv", "--budget", "1s", "--retries", "1"]);
    assert_eq!((planned.status.code(), text(&planned.stderr)), (Some(0), ""));
    let plan = text(&planned.stdout).to_owned();
    assert_eq!(
        run(&["plan", "calls.csv", "--budget", "1s", "--retries", "1", "--out", "plan.toml"]).status.code(),
        Some(0)
    );
    assert_eq!(std::fs::read_to_string(directory.path().join("plan.toml")).unwrap(), plan);

    let mut config = plan.clone();
    for target in ["core", "claims"] {
        let table = format!("[target.{target}]\n");
        assert!(config.contains(&table), "{plan}");
        config = config.replace(&table, &format!("{table}upstream = [\"http://127.0.0.1:8110\"]\n"));
        write!(config, "\n[[route]]\npath = \"/{target}/\"\ntarget = \"{target}\"\n").unwrap();
    }
    let config: Config = config.parse().unwrap_or_else(|error| panic!("{error}\n{config}"));
    assert_eq!(config.targets.len(), 2);
    assert!(config.targets.iter().all(|target| target.call.attempts() == 2 && target.policy.max_in_flight() < 20));

    let audited = run(&["audit", "--policy", "plan.toml", "calls.csv"]);
    assert_eq!(audited.status.code(), Some(0), "{}{plan}", text(&audited.stdout));
    assert_eq!(text(&audited.stdout), "every value fits; 2 targets in the log\n");
    let replayed = run(&["replay", "--policy", "plan.toml", "calls.csv", "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&replayed.stdout).unwrap();
    assert_eq!(report["policies"][0]["trips"], 3, "{report}");
}

#[test]
fn an_audit_ends_as_its_findings_are() {
    let directory = tempfile::tempdir().unwrap();
    log(directory.path());
    let file = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    let run = |arguments: &[&str]| portcullis(directory.path(), arguments);

    file("long.toml", "[target.core]\ntimeout = '9s'\nmax_in_flight = 10\n[target.claims]\nmax_in_flight = 10\n");
    let audit = ["audit", "--policy", "long.toml", "calls.csv"];
    let warned = run(&audit);
    assert_eq!(warned.status.code(), Some(1));
    assert!(text(&warned.stdout).starts_with("warning: core: timeout = \"9s\": "), "{}", text(&warned.stdout));
    assert_eq!(run(&[&audit[..], &["--fail-on", "error"]].concat()).status.code(), Some(0));

    file("short.toml", "[target.core]\ntimeout = '20ms'\n[target.claims]\n");
    let audit = ["audit", "--policy", "short.toml", "calls.csv", "--json", "--fail-on", "error"];
    let failed = run(&audit);
    assert_eq!(failed.status.code(), Some(1));
    let object: serde_json::Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!(
        (&object["findings"][0]["field"], &object["findings"][0]["severity"]),
        (&"failure_rate".into(), &"error".into())
    );
    assert!(object["errors"].as_u64() >= Some(2), "{object}");
}

#[test]
fn what_cant_be_told_ends_with_2_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    log(directory.path());
    let file = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    file("empty.csv", "time,target,latency_ms,status\n");
    file("wrong.toml", "[target.core]\nfailure_rate = 1.5\n");
    let cases: [(&[&str], &str); 6] = [
        (&["plan", "absent.csv"], "absent.csv"),
        (&["plan", "empty.csv"], "there is no call in the log"),
        (&["plan", "calls.csv", "--out", "absent/plan.toml"], "absent/plan.toml can't be written"),
        (&["plan", "calls.csv", "--false-trips", "often"], "such as 1/week"),
        (&["audit", "--policy", "wrong.toml", "calls.csv"], "target.core.failure_rate: 1.5 is out of range"),
        (&["audit", "--policy", "absent.toml", "calls.csv"], "absent.toml"),
    ];
    for (arguments, why) in cases {
        let output = portcullis(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(why), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}
