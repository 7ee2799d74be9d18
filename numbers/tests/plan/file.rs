//! The file as a whole: what is shared, who reads it, and that it holds what it promises.

use std::time::Duration;

use portcullis::Outcome;
use portcullis_numbers::derive::Aims;
use portcullis_numbers::logs::Call;
use portcullis_numbers::plan;
use portcullis_numbers::policies::Policies;

use crate::made::{Made, log, observe};

const OUTAGES: &[(u64, u64)] = &[(200, 260), (500, 620), (900, 1_100)];

fn aims() -> Aims {
    Aims { budget: Some(Duration::from_secs(2)), retries: 1, ..Aims::default() }
}

fn plan_of(made: &[Made], seed: u64) -> String {
    let (calls, _) = log(made, seed);
    let names: Vec<&str> = made.iter().map(|made| made.name).collect();
    plan::write(observe(&calls, &names), &aims())
}

fn trio() -> [Made; 3] {
    [
        Made { outages: OUTAGES, ..Made::default() },
        Made { name: "claims", rate: 20.0, latency: 0.1, failing: 0.05, ..Made::default() },
        Made { name: "rates", rate: 0.05, ..Made::default() },
    ]
}

#[test]
fn every_value_has_its_reason_above_it() {
    let text = plan_of(&trio(), 1);
    let lines: Vec<&str> = text.lines().collect();
    let values = lines.windows(2).filter(|pair| !pair[1].starts_with('#') && pair[1].contains(" = "));
    let with_reason = values.clone().filter(|pair| pair[0].starts_with("# ")).count();
    assert!(with_reason >= 12, "{text}");
    assert_eq!(with_reason, values.count(), "{text}");
}

#[test]
fn the_same_log_gives_the_same_bytes() {
    assert_eq!(plan_of(&trio(), 1), plan_of(&trio(), 1));
    assert_ne!(plan_of(&trio(), 1), plan_of(&trio(), 2));
}

#[test]
fn targets_within_three_times_share_a_policy() {
    let alike = plan_of(&[Made::default(), Made { name: "claims", latency: 0.1, ..Made::default() }], 1);
    assert!(alike.contains("\n[defaults]\n") && alike.matches("\ntimeout = ").count() == 1, "{alike}");
    assert!(alike.matches("\nmax_in_flight = ").count() == 2, "{alike}");
    let apart = plan_of(&[Made::default(), Made { name: "claims", latency: 0.2, ..Made::default() }], 1);
    assert!(!apart.contains("[defaults]") && apart.matches("\ntimeout = ").count() == 2, "{apart}");
}

#[test]
fn a_target_with_few_calls_doesnt_inherit_a_timeout_that_cuts_them() {
    let mail = Made { name: "mail", rate: 0.05, latency: 2.0, ..Made::default() };
    let (calls, _) = log(&[Made::default(), Made { name: "claims", ..Made::default() }, mail], 1);
    let seen = observe(&calls, &["core", "claims", "mail"]);
    let slowest = Duration::from_micros(seen[2].calm.latency.largest());
    let text = plan::write(seen, &Aims::default());
    let policies: Policies = text.parse().unwrap();
    let timeout = |target| policies.of(target).unwrap().timeout.unwrap();
    assert!(text.contains("[defaults]") && timeout("core") < Duration::from_secs(1), "{text}");
    assert!(timeout("mail") >= slowest * 2 && text.contains("are too few for p99"), "{text}");
}

#[test]
fn what_is_shared_is_what_the_most_demanding_needs() {
    let text = plan_of(&trio(), 1);
    let policies: Policies = text.parse().unwrap();
    let alone = |made: Made| plan_of(&[made], 1).parse::<Policies>().unwrap().of(made.name).unwrap().clone();
    let [core, claims, _] = trio();
    let timeout = |terms: &portcullis_numbers::policies::Terms| terms.timeout.unwrap();
    let slower = timeout(&alone(core)).max(timeout(&alone(Made { name: "claims", ..claims })));
    assert!(timeout(policies.of("core").unwrap()).abs_diff(slower) < Duration::from_millis(50), "{text}");
    assert_eq!(policies.of("core").unwrap().timeout, policies.of("claims").unwrap().timeout);
}

/// Every call that isn't within a minute of an outage.
fn healthy(made: &Made, calls: &[Call]) -> Vec<Call> {
    let begin = calls[0].start;
    let is_near = |call: &&Call| {
        let second = (call.start - begin) / 1_000_000_000;
        made.outages.iter().any(|(from, to)| (from.saturating_sub(60)..to + 60).contains(&second))
    };
    calls.iter().filter(|call| !is_near(call)).copied().collect()
}

#[test]
fn a_plan_never_trips_on_the_healthy_part_of_its_log() {
    for (seed, failing) in (1..).zip([0.0, 0.001, 0.01, 0.1, 0.3, 0.4]) {
        for rate in [0.5, 5.0, 100.0] {
            let made = Made { rate, failing, outages: OUTAGES, latency: 0.02, ..Made::default() };
            let calls = made.calls(0, seed);
            let text = plan::write(observe(&calls, &["core"]), &aims());
            let policies: Policies = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
            let (trips, settled) = trips(&policies, &healthy(&made, &calls));
            assert_eq!(trips, 0, "{rate}/s, {failing} failing:\n{text}");
            assert!(settled > 100, "{settled} calls at {rate}/s");
        }
    }
}

#[test]
fn a_plan_trips_in_the_outages_of_its_log() {
    for (failing, rate) in [(0.01, 50.0), (0.1, 100.0), (0.3, 100.0)] {
        let made = Made { rate, failing, outages: OUTAGES, latency: 0.02, ..Made::default() };
        let calls = made.calls(0, 3);
        let text = plan::write(observe(&calls, &["core"]), &aims());
        let policies: Policies = text.parse().unwrap();
        assert!(trips(&policies, &calls).0 >= 3, "{rate}/s, {failing} failing:\n{text}");
    }
}

/// Runs the engine over the calls and tells how often it opened, and how many calls it let through.
fn trips(policies: &Policies, calls: &[Call]) -> (usize, usize) {
    let terms = policies.of("core").unwrap();
    let (clock, time) = portcullis::Clock::mock();
    let engine = portcullis::Engine::<String>::builder().clock(clock).policy(terms.policy.clone()).build();
    let timeout = terms.timeout.map_or(u64::MAX, |timeout| timeout.as_nanos() as u64);
    let mut running = std::collections::BinaryHeap::new();
    let (mut now, mut settled) = (calls[0].start, 0);
    let mut permits = std::collections::HashMap::new();
    let mut advance = |to: u64| {
        time.increment(Duration::from_nanos(to.saturating_sub(now)));
        now = now.max(to);
    };
    for (n, call) in calls.iter().enumerate() {
        while let Some(&std::cmp::Reverse((end, ended))) = running.peek()
            && end <= call.start
        {
            running.pop();
            advance(end);
            let permit: portcullis::Permit<'_> = permits.remove(&ended).unwrap();
            let of: &Call = &calls[ended];
            let failed = of.outcome == Outcome::Failure || of.latency > timeout;
            if failed {
                permit.failure()
            } else {
                permit.success()
            };
            settled += 1;
        }
        advance(call.start);
        if let Ok(permit) = engine.admit("core") {
            running.push(std::cmp::Reverse((call.start + call.latency.min(timeout), n)));
            permits.insert(n, permit);
        }
    }
    drop(permits);
    let transitions = engine.snapshot("core").unwrap().generation;
    (transitions as usize, settled)
}
