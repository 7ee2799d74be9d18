//! Which values are the same for all targets.

use std::time::Duration;

use super::Planned;
use crate::derive::rule::Rule;
use crate::derive::{Entry, Value, say};

/// Targets are alike whose p99 are within this factor.
const ALIKE: u32 = 3;

/// What is shared of a call: each field, and whether the largest value is right for all, or else the smallest.
const CALL: &[(&str, bool)] =
    &[("timeout", true), ("attempts", false), ("retry_backoff", false), ("retry_budget", true), ("deadline", false)];
/// What is shared of the rule: all of it, or none.
const RULE: &[(&str, bool)] = &[("window", true), ("min_calls", true), ("failure_rate", true)];
/// And on slow calls.
const SLOW: &[(&str, bool)] = &[("slow_call", true), ("slow_rate", true)];

/// The defaults and why there are any, or why there are none.
pub(super) struct Shared {
    pub(super) entries: Vec<Entry>,
    pub(super) why: String,
}

impl Shared {
    pub(super) fn of(planned: &[Planned]) -> Self {
        let timed: Vec<(&str, Duration)> = planned
            .iter()
            .filter(|target| target.is_known())
            .map(|target| (target.seen.name.as_str(), target.seen.calm.latency_at(0.99)))
            .collect();
        let none = |why| Self { entries: Vec::new(), why };
        let (Some(quickest), Some(slowest)) =
            (timed.iter().min_by_key(|(_, p99)| *p99), timed.iter().max_by_key(|(_, p99)| *p99))
        else {
            return none("No target has enough calls for p99, so nothing is shared.".to_owned());
        };
        if timed.len() < 2 {
            return none("One target has enough calls for p99, so nothing is shared.".to_owned());
        }
        let range = format!(
            "p99 goes from {} ({}) to {} ({})",
            say::time(quickest.1),
            quickest.0,
            say::time(slowest.1),
            slowest.0
        );
        if slowest.1 > quickest.1 * ALIKE || !are_alike(planned, "timeout") {
            return none(format!(
                "{range}, the timeouts more than {ALIKE} times: each target has a policy of its own."
            ));
        }
        let mut fields = CALL.to_vec();
        let ruled = || planned.iter().filter(|target| matches!(target.derived.rule, Some(Rule::Window { .. })));
        if ruled().filter(|target| target.is_known()).count() > 1
            && are_alike(planned, "window")
            && are_alike(planned, "min_calls")
        {
            fields.extend(RULE);
            // A rule on slow calls, once inherited, can't be switched off.
            let all_have_it = ruled().all(|target| target.derived.value("slow_call").is_some());
            if all_have_it && !planned.iter().any(has_no_window) {
                fields.extend(SLOW);
            }
        }
        let entries = fields.into_iter().filter_map(|(field, largest)| merged(planned, field, largest)).collect();
        let why = format!("{range}, within {ALIKE} times: they share what is in [defaults].");
        Self { entries, why }
    }

    /// Whether a target's own value is left out, because the defaults hold.
    pub(super) fn has(&self, entry: &Entry, target: &Planned) -> bool {
        // "none" is no number: it stays where it is.
        target.is_known()
            && entry.value != Some(Value::Off)
            && self.entries.iter().any(|shared| shared.field == entry.field)
    }
}

/// Those say `failure_rate = "none"` themselves, whatever window they inherit.
fn has_no_window(target: &Planned) -> bool {
    matches!(target.derived.rule, Some(Rule::Streak(_) | Rule::None))
}

/// The well-known targets that have a number for a field, by its size.
fn sizes<'p>(planned: &'p [Planned], field: &str) -> Vec<(f64, &'p Planned, &'p Entry)> {
    let sized = planned.iter().filter(|target| target.is_known()).filter_map(|target| {
        let entry = target.derived.entry(field)?;
        let size = size(entry.value?)?;
        Some((size, target, entry))
    });
    let mut sizes: Vec<_> = sized.collect();
    // Stable, so that the first by name is named among equals.
    sizes.sort_by(|(a, ..), (b, ..)| a.total_cmp(b));
    sizes
}

fn are_alike(planned: &[Planned], field: &str) -> bool {
    match sizes(planned, field).as_slice() {
        [(smallest, ..), .., (largest, ..)] => *largest <= smallest * f64::from(ALIKE),
        _ => true,
    }
}

/// The value that is right for all targets.
fn merged(planned: &[Planned], field: &'static str, largest: bool) -> Option<Entry> {
    let sizes = sizes(planned, field);
    let (_, target, entry) = if largest { sizes.last() } else { sizes.first() }?;
    let name = &target.seen.name;
    let why = match (sizes.len(), largest) {
        (1, _) => format!("{name}: {}", entry.why),
        (targets, true) => format!("the largest of {targets} targets, {name}: {}", entry.why),
        (targets, false) => format!("the smallest of {targets} targets, {name}: {}", entry.why),
    };
    Some(Entry { field, value: entry.value, why })
}

fn size(value: Value) -> Option<f64> {
    match value {
        Value::Count(count) | Value::Calls(count) => Some(count.into()),
        Value::Share(share) => Some(share),
        Value::Time(time) => Some(time.as_secs_f64()),
        Value::Off => None,
    }
}
