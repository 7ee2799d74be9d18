//! Timeouts, attempts and what they sum up to.

use std::time::Duration;

use super::{Finding, Severity, Subject};
use crate::derive::timeout::{CALLS, CUT};
use crate::derive::{Value, say};
use crate::formulas::wilson;

/// So many times p99 and more waits for nothing, if it's also so many times what would be derived.
const LONG: (u32, u32) = (8, 3);
/// The share of good calls whose loss is an error.
const CUT_MUCH: f64 = 0.05;

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    let timeout = subject.force.timeout.and_then(|timeout| timeout_fits(subject, timeout));
    [timeout, sum_fits(subject), retries_fit(subject)].into_iter().flatten().collect()
}

fn shown(time: Duration) -> String {
    Value::Time(time).to_string()
}

fn timeout_fits(subject: &Subject<'_>, timeout: Duration) -> Option<Finding> {
    const FIELD: &str = "timeout";
    let calm = &subject.seen.calm;
    // None if the log is too short to tell.
    let derived = subject.derived.time(FIELD)?;
    let good = say::count(calm.latency.weight());
    let p99 = calm.latency_at(0.99).max(Duration::from_micros(1));
    if timeout > p99 * LONG.0 && timeout > derived * LONG.1 {
        let times = say::number(timeout.as_secs_f64() / p99.as_secs_f64());
        let evidence =
            format!("{times} x p99, which is {} for {good} good calls: what takes longer hardly comes", say::time(p99));
        return Some(subject.better(Severity::Warning, FIELD, shown(timeout), evidence, &[FIELD]));
    }
    let cut = calm.cut(timeout);
    let calls = calm.latency.weight();
    // Of few calls one more or less is nothing yet.
    if wilson((cut * calls as f64).round() as u64, calls, 0.95).low < CUT {
        return None;
    }
    let evidence = format!("it cuts {} of {good} good calls", say::share(cut));
    if derived <= timeout {
        // The budget is what leaves no more.
        let evidence = format!("{evidence}, and the budget holds no longer one");
        return Some(subject.finding(Severity::Note, FIELD, shown(timeout), evidence));
    }
    let severity = if cut >= CUT_MUCH { Severity::Error } else { Severity::Warning };
    Some(subject.better(severity, FIELD, shown(timeout), evidence, &[FIELD]))
}

fn sum_fits(subject: &Subject<'_>) -> Option<Finding> {
    let force = &subject.force;
    let budget = subject.aims.budget.filter(|budget| force.worst_case > *budget)?;
    let timeout = force.timeout?;
    let backoffs = force.worst_case.saturating_sub(timeout * force.attempts);
    let evidence = format!(
        "{} x {} and backoffs of {} are {}, and a call may take {}",
        force.attempts,
        say::time(timeout),
        say::time(backoffs),
        say::time(force.worst_case),
        say::time(budget),
    );
    let better = &["timeout", "attempts", "retry_backoff", "deadline"];
    Some(subject.better(Severity::Error, "attempts", force.attempts.to_string(), evidence, better))
}

/// Whether normal failures leave anything of the retry budget.
fn retries_fit(subject: &Subject<'_>) -> Option<Finding> {
    let (force, calm) = (&subject.force, &subject.seen.calm);
    let budget = force.retry_budget.filter(|_| force.attempts > 1 && calm.calls >= CALLS)?;
    let usual = calm.failures as f64 / calm.calls as f64;
    let is_best = matches!(subject.derived.value("retry_budget"), Some(Value::Share(best)) if best <= budget);
    if usual <= budget || is_best {
        return None;
    }
    let evidence = format!(
        "{} of {} calls fail as they always do, and only {} may be retried",
        say::share(usual),
        say::count(calm.calls),
        say::share(budget)
    );
    Some(subject.better(Severity::Warning, "retry_budget", budget.to_string(), evidence, &["retry_budget"]))
}
