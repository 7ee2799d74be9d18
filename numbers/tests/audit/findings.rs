//! One finding after the other.

use std::time::Duration;

use portcullis::Outcome;
use portcullis_numbers::audit::Auditor;
use portcullis_numbers::audit::Severity::{Error, Note, Warning};
use portcullis_numbers::derive::Aims;

use crate::made::Made;
use crate::{OUTAGES, audit_with, found, severity};

#[test]
fn a_timeout_far_beyond_p99_is_told_with_a_better_one() {
    // p99 is 141 ms: 8 times that is 1.13 s.
    let finding = found("timeout = '2s'", Made::default(), "timeout").unwrap();
    assert_eq!((finding.severity, finding.value.as_str()), (Warning, "\"2s\""));
    assert!(finding.evidence.starts_with("14."), "{}", finding.evidence);
    assert_eq!(finding.better.len(), 1);
    assert!(finding.better[0].value.starts_with("\"2") && finding.better[0].why.contains("p99"), "{finding:?}");
    assert_eq!(severity("timeout = '1100ms'", Made::default(), "timeout"), None);
}

#[test]
fn a_timeout_that_cuts_good_calls_is_told() {
    // Lognormal: 5 % take longer than 100 ms, 1 % than 141 ms.
    assert_eq!(severity("timeout = '95ms'", Made::default(), "timeout"), Some(Error));
    assert_eq!(severity("timeout = '120ms'", Made::default(), "timeout"), Some(Warning));
    assert_eq!(severity("timeout = '150ms'", Made::default(), "timeout"), None);
}

#[test]
fn a_timeout_that_the_budget_makes_short_is_only_noted() {
    let aims = Aims { budget: Some(Duration::from_millis(95)), ..Aims::default() };
    let findings = audit_with("[target.core]\ntimeout = '95ms'", &[Made::default()], &aims);
    let finding = findings.iter().find(|finding| finding.field == "timeout").unwrap();
    assert_eq!(finding.severity, Note);
}

#[test]
fn a_log_too_short_to_tell_finds_nothing() {
    let short = Made { rate: 4.0, seconds: 5, ..Made::default() };
    assert_eq!(audit_with("[target.core]\ntimeout = '20s'\nmax_in_flight = 5000", &[short], &Aims::default()), []);
}

#[test]
fn a_limit_that_is_full_is_told() {
    // Mean in flight 5: the share of the time with 9 or more is 6.8 %, with 13 or more 0.2 %, with 6 or more 38 %.
    assert_eq!(severity("max_in_flight = 6", Made::default(), "max_in_flight"), Some(Error));
    let finding = found("max_in_flight = 9", Made::default(), "max_in_flight").unwrap();
    assert_eq!(finding.severity, Warning);
    assert!(finding.evidence.starts_with("so many were in flight for 6."), "{}", finding.evidence);
    assert_eq!(severity("max_in_flight = 13", Made::default(), "max_in_flight"), None);
}

#[test]
fn a_limit_that_nothing_touches_is_told() {
    let peak = Made::default().seen(1).peak;
    let limit = |limit| severity(&format!("max_in_flight = {limit}"), Made::default(), "max_in_flight");
    assert_eq!(limit(peak * 8), Some(Warning));
    assert_eq!(limit(peak * 8 - 1), None);
    assert_eq!(severity("", Made::default(), "max_in_flight"), Some(Note));
}

#[test]
fn five_in_a_row_trip_on_normal_noise_and_ten_dont() {
    // 1,000/s of which 10 % fail: 32 times an hour, and three times a year.
    let made = Made { rate: 1_000.0, failing: 0.1, latency: 0.01, seconds: 300, ..Made::default() };
    let finding = found("consecutive_failures = 5\nfailure_rate = 'none'", made, "consecutive_failures").unwrap();
    assert_eq!(finding.severity, Error);
    assert!(finding.evidence.contains("3") && finding.evidence.contains(" times an hour"), "{}", finding.evidence);
    assert!(finding.better.iter().any(|better| better.field == "min_calls"), "{finding:?}");
    assert_eq!(severity("consecutive_failures = 11\nfailure_rate = 'none'", made, "consecutive_failures"), None);
}

#[test]
fn a_window_that_trips_on_normal_noise_is_told() {
    let made = Made { failing: 0.1, ..Made::default() };
    // 3 of 10 by chance every second; 20 of 100 every hour; 50 of 100 never.
    assert_eq!(severity("window = { calls = 10 }\nfailure_rate = 0.3", made, "failure_rate"), Some(Error));
    assert_eq!(severity("min_calls = 100\nfailure_rate = 0.2", made, "failure_rate"), Some(Error));
    assert_eq!(severity("failure_rate = 0.05", made, "failure_rate"), Some(Error));
    assert_eq!(
        severity("window = { time = '2s' }\nmin_calls = 10\nfailure_rate = 0.2", made, "failure_rate"),
        Some(Error)
    );
    assert_eq!(severity("window = { time = '2s' }\nmin_calls = 100\nfailure_rate = 0.5", made, "failure_rate"), None);
    assert_eq!(severity("min_calls = 50\nfailure_rate = 0.5", made, "failure_rate"), None);
}

#[test]
fn the_cut_of_a_short_timeout_counts_as_failures() {
    let rule = "min_calls = 100\nfailure_rate = 0.2";
    assert_eq!(severity(&format!("timeout = '1s'\n{rule}"), Made::default(), "failure_rate"), None);
    let finding = found(&format!("timeout = '80ms'\n{rule}"), Made::default(), "failure_rate").unwrap();
    assert!(finding.evidence.contains("the timeout cuts 1"), "{}", finding.evidence);
}

#[test]
fn slow_calls_that_are_usual_are_told() {
    let slow = |slow: &str| severity(&format!("slow_call = '{slow}'\nslow_rate = 0.5"), Made::default(), "slow_call");
    assert_eq!((slow("50ms"), slow("100ms")), (Some(Error), None));
}

#[test]
fn min_calls_that_never_come_together_are_told() {
    // 2 calls/s: 20 in 10 s, where 30 hardly ever are (2 %), 40 never, 20 usually.
    let made = Made { rate: 2.0, ..Made::default() };
    let min_calls =
        |calls: u32| severity(&format!("window = {{ time = '10s' }}\nmin_calls = {calls}"), made, "min_calls");
    assert_eq!([40, 28, 18].map(min_calls), [Some(Error), Some(Warning), None]);
}

#[test]
fn a_breaker_that_never_acted_is_told() {
    let made = Made { outages: OUTAGES, ..Made::default() };
    let finding = found("consecutive_failures = 1000000\nfailure_rate = 'none'", made, "consecutive_failures").unwrap();
    assert_eq!(finding.severity, Warning);
    assert!(finding.evidence.starts_with("replayed, it never opens in 3 outages of 6."), "{}", finding.evidence);
    let finding = found("failure_rate = 'none'", made, "failure_rate").unwrap();
    assert!(finding.evidence.starts_with("nothing opens it in 3 outages"), "{}", finding.evidence);
    assert_eq!(severity("failure_rate = 0.5", made, "failure_rate"), None);
}

#[test]
fn a_breaker_that_is_better_left_out_is_noted() {
    let quiet = Made { rate: 0.01, failing: 0.0, seconds: 345 * 86_400, ..Made::default() };
    assert_eq!(severity("failure_rate = 0.5", quiet, "failure_rate"), Some(Note));
    assert_eq!(severity("failure_rate = 'none'", quiet, "failure_rate"), None);
}

#[test]
fn clumps_that_trip_without_an_outage_are_told() {
    // 2 % fail, and once five in a row: by chance that comes in weeks, for an outage it's too little.
    let mut calls = Made { failing: 0.02, ..Made::default() }.calls(0, 1);
    let mut by_end: Vec<usize> = (0..calls.len()).collect();
    by_end.sort_by_key(|n| calls[*n].start + calls[*n].latency);
    let is_good = |n: &usize| calls[*n].outcome == Outcome::Success;
    let begin = by_end.windows(200).position(|window| window.iter().all(is_good)).unwrap();
    for n in &by_end[begin + 100..begin + 105] {
        calls[*n].outcome = Outcome::Failure;
    }
    let found = |failures: u32| {
        let policy =
            format!("[target.core]\nconsecutive_failures = {failures}\nfailure_rate = 'none'").parse().unwrap();
        let names = ["core"].into_iter().collect();
        let mut auditor = Auditor::new(policy);
        calls.iter().for_each(|call| auditor.call(call, &names));
        let findings = auditor.finish(&names, &Aims::default());
        findings.into_iter().find(|finding| finding.field == "consecutive_failures")
    };
    let finding = found(5).unwrap();
    assert_eq!(finding.severity, Warning);
    assert!(finding.evidence.starts_with("replayed, it opens once, though there was no outage"), "{finding:?}");
    assert_eq!(found(6), None);
}

#[test]
fn a_wait_that_oversleeps_is_told() {
    // The median outage is 120 s.
    let made = Made { outages: OUTAGES, ..Made::default() };
    let wait = |wait: &str| severity(&format!("open_wait = '{wait}'\nopen_wait_max = '5m'"), made, "open_wait");
    assert_eq!((wait("70s"), wait("50s")), (Some(Warning), None));
    let probes = severity("open_wait = '100ms'\nopen_wait_max = '500ms'", made, "open_wait_max");
    assert_eq!(probes, Some(Note));
}

#[test]
fn attempts_beyond_the_budget_are_told_with_the_sum() {
    let policy = "[target.core]\ntimeout = '300ms'\nattempts = 3\nretry_backoff = '100ms'\nretry_backoff_max = '200ms'";
    let of = |budget| {
        let aims = Aims { budget: Some(Duration::from_millis(budget)), ..Aims::default() };
        audit_with(policy, &[Made::default()], &aims).into_iter().find(|finding| finding.field == "attempts")
    };
    let finding = of(1_199).unwrap();
    assert_eq!(finding.severity, Error);
    assert_eq!(finding.evidence, "3 x 300 ms and backoffs of 300 ms are 1.2 s, and a call may take 1.2 s");
    assert_eq!(of(1_200), None);
}

#[test]
fn a_retry_budget_that_normal_failures_use_up_is_told() {
    let made = Made { failing: 0.05, ..Made::default() };
    let budget = |budget: &str| severity(&format!("attempts = 2\nretry_budget = {budget}"), made, "retry_budget");
    assert_eq!((budget("0.04"), budget("0.06")), (Some(Warning), None));
}

#[test]
fn targets_without_policies_and_policies_without_traffic_are_told() {
    let findings = audit_with("[target.other]\nmax_in_flight = 3", &[Made::default()], &Aims::default());
    assert!(
        findings.iter().any(|finding| (finding.target.as_str(), finding.severity) == ("other", Note)),
        "{findings:?}"
    );
    assert!(findings.iter().any(|finding| finding.target == "core" && finding.field == "target"), "{findings:?}");
}

#[test]
fn the_worst_comes_first() {
    let policy =
        "[target.core]\ntimeout = '95ms'\nmax_in_flight = 5000\n[target.claims]\ntimeout = '9s'\n[target.rates]\n";
    let made = [Made::default(), Made { name: "claims", ..Made::default() }];
    let findings = audit_with(policy, &made, &Aims::default());
    let order: Vec<_> = findings.iter().map(|finding| finding.severity).collect();
    assert!(order.is_sorted_by(|a, b| a >= b) && order.len() >= 4, "{findings:?}");
}
