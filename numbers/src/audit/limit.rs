//! Limits that are always full, or that nobody ever meets.

use super::{Finding, Severity, Subject};
use crate::derive::{Value, say};

/// The shares of the time for which a limit may be full.
const FULL: [(f64, Severity); 2] = [(0.1, Severity::Error), (0.01, Severity::Warning)];
/// A limit so many times the peak bounds nothing.
const LOOSE: u64 = 8;

pub(super) fn check(subject: &Subject<'_>) -> Option<Finding> {
    const FIELD: &str = "max_in_flight";
    let seen = subject.seen;
    // None if the log is too short to tell.
    let Some(Value::Count(derived)) = subject.derived.value(FIELD) else { return None };
    let Some(limit) = subject.force.limit else {
        let evidence = format!("nothing bounds what hangs; at most {} were in flight at once", say::count(seen.peak));
        return Some(subject.better(Severity::Note, FIELD, "\"unlimited\"", evidence, &[FIELD]));
    };
    let full = seen.calm.in_flight.share_above(u64::from(limit) - 1);
    if let Some((_, severity)) = FULL.iter().find(|(share, _)| full >= *share)
        && derived > limit
    {
        let evidence = format!(
            "so many were in flight for {} of the time outside outages; it refuses {} calls of the log",
            say::share(full),
            say::count(subject.played.refused_saturated),
        );
        return Some(subject.better(*severity, FIELD, limit.to_string(), evidence, &[FIELD]));
    }
    if u64::from(limit) >= seen.peak.saturating_mul(LOOSE) && limit > derived.saturating_mul(2) {
        let evidence =
            format!("never touched: at most {} were in flight at once, outages included", say::count(seen.peak));
        return Some(subject.better(Severity::Warning, FIELD, limit.to_string(), evidence, &[FIELD]));
    }
    None
}
