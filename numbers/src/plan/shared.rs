//! Which values are the same for all targets.

use std::time::Duration;

use super::Planned;
use crate::derive::rule::Rule;
use crate::derive::{Entry, Value, say};

/// Targets are alike whose p99 are within this factor.
const ALIKE: u32 = 3;

/// What can be shared: each field, and whether the largest value is right for all, or else the smallest.
const FIELDS: &[(&str, bool)] = &[
    ("timeout", true),
    ("attempts", false),
    ("retry_backoff", false),
    ("retry_budget", true),
    ("deadline", false),
    ("window", true),
    ("min_calls", true),
    ("failure_rate", true),
    ("slow_call", true),
    ("slow_rate", true),
    ("open_wait", false),
    ("open_wait_max", false),
];

/// The defaults and why there are any, or why there are none.
pub(super) struct Shared {
    pub(super) entries: Vec<Entry>,
    pub(super) why: String,
}

impl Shared {
    pub(super) fn of(planned: &[Planned]) -> Self {
        let timed: Vec<(&str, Duration)> = planned
            .iter()
            .filter(|target| target.derived.value("timeout").is_some())
            .map(|target| (target.seen.name.as_str(), target.seen.calm.latency_at(0.99)))
            .collect();
        let none = |why| Self { entries: Vec::new(), why };
        let (Some(quickest), Some(slowest)) =
            (timed.iter().min_by_key(|(_, p99)| *p99), timed.iter().max_by_key(|(_, p99)| *p99))
        else {
            return none("No target has enough calls for a timeout, so nothing is shared.".to_owned());
        };
        if timed.len() < 2 {
            return none("One target has enough calls for a timeout, so nothing is shared.".to_owned());
        }
        let range = format!(
            "p99 goes from {} ({}) to {} ({})",
            say::time(quickest.1),
            quickest.0,
            say::time(slowest.1),
            slowest.0
        );
        if slowest.1 > quickest.1 * ALIKE {
            return none(format!("{range}, more than {ALIKE} times: each target has a policy of its own."));
        }
        // A rule on slow calls, once inherited, can't be switched off.
        let is_fit = |field: &str| !field.starts_with("slow_") || !planned.iter().any(has_no_window);
        let fields = FIELDS.iter().filter(|(field, _)| is_fit(field));
        let entries = fields.filter_map(|(field, largest)| merged(planned, field, *largest)).collect();
        Self {
            entries,
            why: format!("{range}, within {ALIKE} times: they share a policy. Limits are each target's own."),
        }
    }

    /// Whether a target's own value is left out, because the defaults hold.
    pub(super) fn has(&self, field: &str, target: &Planned) -> bool {
        self.entries.iter().any(|entry| entry.field == field) && !(field == "failure_rate" && has_no_window(target))
    }
}

/// Those say `failure_rate = "none"` themselves, whatever window they inherit.
fn has_no_window(target: &Planned) -> bool {
    matches!(target.derived.rule, Some(Rule::Streak(_) | Rule::None))
}

/// The value that is right for all targets that have one; none unless all do that are in question.
fn merged(planned: &[Planned], field: &'static str, largest: bool) -> Option<Entry> {
    let of_rules = matches!(field, "window" | "min_calls" | "failure_rate" | "slow_call" | "slow_rate");
    let of_waits = matches!(field, "open_wait" | "open_wait_max");
    let in_question = |target: &&Planned| {
        target.derived.value("timeout").is_some()
            && !(of_rules && has_no_window(target))
            && !(of_waits && target.derived.rule == Some(Rule::None))
    };
    let mut best: Option<(&Planned, &Entry)> = None;
    let mut targets = 0;
    for target in planned.iter().filter(in_question) {
        let entry = target.derived.entry(field)?;
        let size = size(entry.value?);
        targets += 1;
        let is_better = best.and_then(|(_, best)| best.value).is_none_or(|best| {
            let best = self::size(best);
            if largest { size > best } else { size < best }
        });
        if is_better {
            best = Some((target, entry));
        }
    }
    let (target, entry) = best?;
    let which = if largest { "largest" } else { "smallest" };
    let why = if targets == 1 {
        format!("{}: {}", target.seen.name, entry.why)
    } else {
        format!("the {which} of {targets} targets, {}: {}", target.seen.name, entry.why)
    };
    Some(Entry { field, value: entry.value, why })
}

fn size(value: Value) -> f64 {
    match value {
        Value::Count(count) | Value::Calls(count) => count.into(),
        Value::Share(share) => share,
        Value::Time(time) => time.as_secs_f64(),
        Value::Off => 0.0,
    }
}
