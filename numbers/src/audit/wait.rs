//! Waits beside the lengths of outages.

use std::time::Duration;

use super::{Finding, Severity, Subject};
use crate::derive::wait::OUTAGES;
use crate::derive::{Value, say};

/// The share of the median outage that may be overslept.
const OVERSLEPT: f64 = 0.5;
/// More probes than these in a median outage are a load of their own.
const PROBES: f64 = 200.0;

pub(super) fn check(subject: &Subject<'_>) -> Option<Finding> {
    let (seen, force) = (subject.seen, &subject.force);
    let median = seen.outages.median().filter(|_| seen.outages.lengths.len() >= OUTAGES && force.has_rule())?;
    let of_outage = |wait: Duration| wait.as_secs_f64() / median.as_secs_f64();
    let typical =
        format!("the median of {} outages is {}", say::count(seen.outages.lengths.len() as u64), say::time(median));
    let better = &["open_wait", "open_wait_max"];
    // Waits that double are half of the outage when it ends, whatever their bound: only the first can be too long by itself.
    let overslept = of_outage(force.open_wait);
    if overslept > OVERSLEPT {
        let evidence = format!("{typical}: its end is overslept by up to {}", say::share(overslept));
        let value = Value::Time(force.open_wait).to_string();
        return Some(subject.better(Severity::Warning, "open_wait", value, evidence, better));
    }
    let probes = 1.0 / of_outage(force.open_wait_max);
    if probes > PROBES {
        let evidence = format!("{typical}: {} probes in it", say::number(probes));
        let value = Value::Time(force.open_wait_max).to_string();
        return Some(subject.better(Severity::Note, "open_wait_max", value, evidence, better));
    }
    None
}
