//! Audits: each finding has a log and a policy that bring it about, and a policy that just doesn't.
#![allow(clippy::unwrap_used, reason = "clippy doesn't take helpers of tests for tests")]

#[path = "audit/findings.rs"]
mod findings;
#[path = "audit/fresh.rs"]
mod fresh;
#[path = "made/mod.rs"]
mod made;

use made::{Made, log};
use portcullis_numbers::audit::{Auditor, Finding, Severity};
use portcullis_numbers::derive::Aims;
use portcullis_numbers::policies::Policies;

const OUTAGES: &[(u64, u64)] = &[(200, 260), (500, 620), (900, 1_100)];

fn audit_with(policy: &str, made: &[Made], aims: &Aims) -> Vec<Finding> {
    let policies: Policies = policy.parse().unwrap_or_else(|error| panic!("{error}\n{policy}"));
    let (calls, names) = log(made, 1);
    let mut auditor = Auditor::new(policies);
    calls.iter().for_each(|call| auditor.call(call, &names));
    auditor.finish(&names, aims)
}

/// What is found about a field of the target `core`, with these settings.
fn found(settings: &str, made: Made, field: &str) -> Option<Finding> {
    let findings = audit_with(&format!("[target.core]\n{settings}"), &[made], &Aims::default());
    findings.into_iter().find(|finding| finding.field == field)
}

fn severity(settings: &str, made: Made, field: &str) -> Option<Severity> {
    found(settings, made, field).map(|finding| finding.severity)
}
