//! What was just planned fits.

use std::time::Duration;

use portcullis_numbers::audit::{Finding, Severity};
use portcullis_numbers::derive::Aims;
use portcullis_numbers::plan;

use crate::made::{Made, log, observe};
use crate::{OUTAGES, audit_with};

fn finds_nothing(made: &[Made], aims: &Aims) {
    let (calls, _) = log(made, 1);
    let names: Vec<&str> = made.iter().map(|made| made.name).collect();
    let text = plan::write(observe(&calls, &names), aims);
    let findings = audit_with(&text, made, aims);
    // Where the log is too short for a limit there is none, and a budget that is too short is noted.
    let is_expected =
        |finding: &&Finding| finding.severity == Severity::Note && matches!(finding.field, "max_in_flight" | "timeout");
    assert_eq!(findings.iter().filter(is_expected).count(), findings.len(), "{findings:#?}\n{text}");
}

#[test]
fn a_plan_of_one_target_fits_its_log() {
    for failing in [0.0, 0.01, 0.1, 0.3] {
        for rate in [0.05, 2.0, 30.0] {
            for outages in [OUTAGES, &[]] {
                finds_nothing(&[Made { rate, failing, outages, ..Made::default() }], &Aims::default());
            }
        }
    }
}

#[test]
fn a_plan_with_retries_in_a_budget_fits_its_log() {
    for budget in [50, 333, 2_000] {
        let aims = Aims { budget: Some(Duration::from_millis(budget)), retries: 2, ..Aims::default() };
        finds_nothing(&[Made { failing: 0.05, ..Made::default() }], &aims);
    }
}

#[test]
fn a_shared_plan_fits_its_log() {
    let made = [
        Made { outages: OUTAGES, ..Made::default() },
        Made {
            name: "claims",
            rate: 20.0,
            latency: 0.1,
            failing: 0.05,
            outages: &[(300, 900), (1_000, 1_400), (1_500, 1_700)],
            ..Made::default()
        },
        Made { name: "rates", rate: 0.05, ..Made::default() },
        Made { name: "mail", rate: 0.1, latency: 2.0, ..Made::default() },
        Made { name: "tail", rate: 10.0, sigma: 0.9, latency: 0.03, failing: 0.3, ..Made::default() },
    ];
    finds_nothing(&made, &Aims::default());
    finds_nothing(&made, &Aims { budget: Some(Duration::from_secs(2)), retries: 1, ..Aims::default() });
}
