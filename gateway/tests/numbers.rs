//! `plan` and `audit` as commands: what they print, what they end with, and that the gateway takes what was planned.
#![allow(clippy::unwrap_used, reason = "clippy doesn't take helpers of tests for tests")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

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
    file("plan.toml", "");
    file("wrong.toml", "[target.core]\nfailure_rate = 1.5\n");
    let cases: [(&[&str], &str); 11] = [
        (&["plan", "absent.csv"], "absent.csv"),
        (&["plan", "empty.csv"], "there is no call in the log"),
        (&["plan", "calls.csv", "--out", "absent/plan.toml"], "absent/plan.toml: can't be written"),
        (&["plan", "calls.csv", "--false-trips", "often"], "such as 1/week"),
        (&["audit", "--policy", "wrong.toml", "calls.csv"], "target.core.failure_rate: 1.5 is out of range"),
        (&["audit", "--policy", "absent.toml", "calls.csv"], "absent.toml"),
        (&["plan", "-", "-"], "must be named once"),
        (&["plan", "calls.csv", "--max-targets", "1"], "--max-targets"),
        (&["replay", "--policy", "plan.toml", "empty.csv"], "there is no call in the log"),
        (&["simulate", "absent.toml"], "absent.toml: can't be read"),
        (&["simulate", "wrong.toml"], "wrong.toml: "),
    ];
    for (arguments, why) in cases {
        let output = portcullis(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(why), "{arguments:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

/// Each tool with what it needs.
const TOOLS: [&[&str]; 4] = [
    &["plan", "calls.csv"],
    &["audit", "--policy", "plan.toml", "calls.csv"],
    &["replay", "--policy", "plan.toml", "calls.csv"],
    &["simulate", concat!(env!("CARGO_MANIFEST_DIR"), "/../numbers/scenarios/fleet.toml")],
];

/// A log with a bad line and the plan made of it.
fn planned() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    log(directory.path());
    let path = directory.path().join("calls.csv");
    let bad = std::fs::read_to_string(&path).unwrap() + "soon,core,1,200\n";
    std::fs::write(path, bad).unwrap();
    assert_eq!(portcullis(directory.path(), &["plan", "calls.csv", "--out", "plan.toml"]).status.code(), Some(0));
    directory
}

#[test]
fn a_log_comes_by_standard_input_as_well() {
    let directory = planned();
    let calls = || std::fs::File::open(directory.path().join("calls.csv")).unwrap();
    for tool in &TOOLS[..3] {
        let by_name = portcullis(directory.path(), tool);
        let piped: Vec<&str> = tool.iter().map(|word| if *word == "calls.csv" { "-" } else { word }).collect();
        let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
        let piped = command.args(piped).current_dir(directory.path()).stdin(calls()).output().unwrap();
        assert_eq!((piped.status, text(&piped.stdout)), (by_name.status, text(&by_name.stdout)), "{tool:?}");
        assert!(text(&piped.stderr).contains("-:12002: soon,core,1,200"), "{}", text(&piped.stderr));
    }
}

#[test]
fn names_that_no_target_can_have_are_told_and_ask_for_nothing() {
    let directory = tempfile::tempdir().unwrap();
    log(directory.path());
    let path = directory.path().join("calls.csv");
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap().replace(",claims,", ",\"clai\nms\",")).unwrap();
    assert_eq!(portcullis(directory.path(), &["plan", "calls.csv", "--out", "plan.toml"]).status.code(), Some(0));
    let audited = portcullis(directory.path(), &["audit", "--policy", "plan.toml", "calls.csv"]);
    assert_eq!(audited.status.code(), Some(0), "{}", text(&audited.stdout));
    assert!(
        text(&audited.stdout)
            .starts_with("note: clai?ms: target: 6,000 calls in the log, and no target can have this name")
    );
}

#[test]
fn what_stands_for_many_targets_is_neither_planned_nor_audited() {
    let directory = tempfile::tempdir().unwrap();
    log(directory.path());
    let few = ["--max-targets", "2"];
    let mut lines = std::fs::read_to_string(directory.path().join("calls.csv")).unwrap();
    (0..3_000)
        .for_each(|n| writeln!(lines, "{}.{:03},t{},10,200", 1_700_000_300 + n / 20, n % 20 * 50, n % 7).unwrap());
    std::fs::write(directory.path().join("calls.csv"), lines).unwrap();
    let planned = portcullis(directory.path(), &[&["plan", "calls.csv", "--out", "plan.toml"], &few[..]].concat());
    assert!(text(&planned.stderr).contains("are in \"other\""), "{}", text(&planned.stderr));
    let plan = std::fs::read_to_string(directory.path().join("plan.toml")).unwrap();
    assert!(plan.contains("[target.core]") && !plan.contains("other"), "{plan}");
    let audited = portcullis(directory.path(), &[&["audit", "--policy", "plan.toml", "calls.csv"], &few[..]].concat());
    assert_eq!(
        (audited.status.code(), text(&audited.stdout).contains("other")),
        (Some(0), false),
        "{}",
        text(&audited.stdout)
    );
}

#[test]
fn whoever_reads_no_further_is_no_error_and_a_full_disk_is() {
    let directory = planned();
    for tool in TOOLS {
        let run = |out: Stdio, errors: Stdio| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
            command.args(tool).current_dir(directory.path()).stdout(out).stderr(errors).status().unwrap().code()
        };
        let gone = || std::io::pipe().unwrap().1;
        assert_eq!(run(gone().into(), gone().into()), Some(0), "{tool:?}");
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert_eq!(run(full.into(), Stdio::null()), Some(2), "{tool:?}");
    }
}
