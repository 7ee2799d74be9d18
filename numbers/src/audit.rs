//! Tells which values of a policy no longer fit the logs.
//!
//! Each value in force is held against what was seen of its target, against what [`derive`](crate::derive) makes of that, and against what the
//! engine did with it in a [replay](crate::replay) of the same log. A finding has evidence and, where there is one, a better value with its
//! reason. What the log is too short to tell isn't found.
//!
//! | finding | warning | error |
//! | --- | --- | --- |
//! | `timeout` waits for nothing | more than 8 x p99 | |
//! | `timeout` cuts good calls | 1 % of them | 5 % |
//! | `max_in_flight` is full | for 1 % of the time | 10 % |
//! | `max_in_flight` is never touched | 8 x the peak | |
//! | a rule trips on normal failures or slow calls | more often than `--false-trips`, or it did in the replay | once a day |
//! | `min_calls` are never together in the window | in half of the windows | in 99 % |
//! | a breaker that never acted, or none, though there were outages | yes | |
//! | `open_wait` oversleeps the end of an outage | by half of the median | |
//! | attempts don't fit the budget, or the deadline | | yes |
//! | normal failures take more retries than `retry_budget` has | yes | |
//! | a target without a policy | yes | |
//!
//! Notes never fail a run: no limit at all, a breaker that is better left out, a policy without traffic, a name that no
//! target can have, probes by the hundred in an outage.

mod calls;
mod finding;
mod in_force;
mod limit;
mod print;
mod rule;
mod wait;

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

pub use finding::{Better, Finding, Severity};
use in_force::InForce;

use crate::derive::{Aims, Derived, derive, say};
use crate::logs::{self, Call, Input, Names};
use crate::observe::{Observed, Observer};
use crate::output::{self, refuse};
use crate::policies::{Policies, is_name};
use crate::replay::Replay;
use crate::replay::report::Sums;

/// Tells which values of a policy no longer fit the logs; exit code 0 if all do, 1 if not, 2 if it can't be told.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    /// The policy: by `portcullis plan`, or a gateway's configuration.
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    #[command(flatten)]
    aims: Aims,
    /// The least severity that makes the exit code 1.
    #[arg(long, value_enum, default_value_t = FailOn::Warn)]
    fail_on: FailOn,
    /// Print one JSON object and nothing else to standard output.
    #[arg(long)]
    json: bool,
}

/// What makes a run fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FailOn {
    /// Warnings and errors.
    Warn,
    /// Errors only.
    Error,
}

impl FailOn {
    fn least(self) -> Severity {
        match self {
            Self::Warn => Severity::Warning,
            Self::Error => Severity::Error,
        }
    }
}

/// Takes a log in and holds a policy against it.
#[derive(Debug)]
pub struct Auditor {
    policies: Policies,
    observer: Observer,
    replay: Replay,
}

impl Auditor {
    /// Audits a policy.
    #[must_use]
    pub fn new(policies: Policies) -> Self {
        let replay = Replay::new(vec![(String::new(), policies.clone())]);
        Self { policies, observer: Observer::new(), replay }
    }

    /// Takes the next call of a log in, in order of their start.
    pub fn call(&mut self, call: &Call, names: &Names) {
        self.observer.call(call);
        self.replay.take(call, names);
    }

    /// Tells what doesn't fit: the worst first, then by target and field.
    #[must_use]
    pub fn finish(self, names: &Names, aims: &Aims) -> Vec<Finding> {
        let played = self.replay.finish(0).targets.into_iter();
        let played: HashMap<String, Sums> =
            played.filter_map(|target| Some((target.name, target.under.into_iter().next()??.sums))).collect();
        let seen = self.observer.finish(names);
        let mut findings: Vec<Finding> =
            seen.iter().flat_map(|seen| of_target(&self.policies, seen, played.get(&seen.name), aims)).collect();
        let is_seen = |name: &str| seen.binary_search_by(|seen| seen.name.as_str().cmp(name)).is_ok();
        for (name, _) in self.policies.targets().filter(|(name, _)| !is_seen(name)) {
            let evidence = "there is no call to it in the log".to_owned();
            findings.push(Finding::new(Severity::Note, name, "target", String::new(), evidence));
        }
        findings.sort_by(|a, b| (b.severity, &a.target, a.field).cmp(&(a.severity, &b.target, b.field)));
        findings
    }
}

/// A target with all that its values are judged by.
struct Subject<'s> {
    seen: &'s Observed,
    force: InForce,
    derived: Derived,
    aims: Aims,
    /// What the engine did with the policy.
    played: Sums,
}

impl Subject<'_> {
    fn finding(&self, severity: Severity, field: &'static str, value: impl Into<String>, evidence: String) -> Finding {
        Finding::new(severity, &self.seen.name, field, value.into(), evidence)
    }

    /// A finding with the fields that would be better, as far as they can be told.
    fn better(
        &self,
        severity: Severity,
        field: &'static str,
        value: impl Into<String>,
        evidence: String,
        fields: &[&str],
    ) -> Finding {
        let mut finding = self.finding(severity, field, value, evidence);
        let entries = self.derived.entries.iter().filter(|entry| fields.contains(&entry.field));
        finding.better = entries.filter_map(Better::of).collect();
        finding
    }
}

fn of_target(policies: &Policies, seen: &Observed, played: Option<&Sums>, aims: &Aims) -> Vec<Finding> {
    if !is_name(&seen.name) {
        let evidence =
            format!("{} calls in the log, and no target can have this name", say::count(seen.calls + seen.abandoned));
        return vec![Finding::new(Severity::Note, &seen.name, "target", String::new(), evidence)];
    }
    let (Some(terms), Some(played)) = (policies.of(&seen.name), played) else {
        let evidence = format!("{} calls in the log, and no policy", say::count(seen.calls + seen.abandoned));
        return vec![Finding::new(Severity::Warning, &seen.name, "target", String::new(), evidence)];
    };
    let force = InForce::of(terms);
    let aims = Aims { budget: aims.budget.or(force.deadline), retries: force.attempts - 1, ..aims.clone() };
    let subject = Subject { seen, force, derived: derive(seen, &aims), aims, played: played.clone() };
    let mut findings = calls::check(&subject);
    if !policies.has(&seen.name) && subject.derived.entries.iter().any(|entry| entry.value.is_some()) {
        let evidence = format!("{} calls in the log, and only the defaults for them", say::count(seen.calls));
        findings.push(subject.finding(Severity::Warning, "target", "", evidence));
    }
    findings.extend(limit::check(&subject));
    findings.extend(rule::check(&subject));
    findings.extend(wait::check(&subject));
    findings
}

/// Runs the tool.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    let mut auditor = match Policies::load(&args.policy) {
        Ok(policies) => Auditor::new(policies),
        Err(error) => return refuse(error),
    };
    let summary = match logs::read(&args.input, |call, names| auditor.call(call, names)) {
        Ok(summary) => summary,
        Err(error) => return refuse(error),
    };
    output::aside(&summary);
    if summary.names.is_empty() {
        return refuse("there is no call in the log");
    }
    let findings = auditor.finish(&summary.names, &args.aims);
    let text = if args.json { print::json(&findings) } else { print::text(&findings, summary.names.len()) };
    if let Err(error) = output::print(&text) {
        return refuse(error);
    }
    let fails = findings.iter().any(|finding| finding.severity >= args.fail_on.least());
    if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
