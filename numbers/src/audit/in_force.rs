//! The values in force for a target, as numbers.

use std::time::Duration;

use portcullis::UNLIMITED;
use toml::{Table, Value};

use crate::formulas::Rules;
use crate::policies::Terms;

/// The buckets that a window of time has unless set.
const BUCKETS: u32 = 10;

pub(super) struct InForce {
    pub(super) timeout: Option<Duration>,
    pub(super) attempts: u32,
    pub(super) worst_case: Duration,
    /// None unless the file sets one.
    pub(super) deadline: Option<Duration>,
    pub(super) retry_budget: Option<f64>,
    pub(super) limit: Option<u32>,
    pub(super) streak: Option<u32>,
    pub(super) window: Option<Window>,
    pub(super) rules: Rules,
    pub(super) slow: Option<(Duration, f64)>,
    has_stall: bool,
    pub(super) open_wait: Duration,
    pub(super) open_wait_max: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Window {
    Calls(u32),
    Time { seconds: f64, buckets: u32 },
}

impl InForce {
    pub(super) fn of(terms: &Terms) -> Self {
        let policy = &terms.policy;
        // A policy tells its settings by the names of the file.
        let fields = Table::try_from(policy).unwrap_or_default();
        let set = Table::try_from(&terms.call).unwrap_or_default();
        let wait = |field| time(&fields, field).unwrap_or_else(|| policy.wait(0, 0));
        Self {
            timeout: terms.timeout,
            attempts: terms.call.attempts(),
            worst_case: terms.call.worst_case(),
            deadline: set.contains_key("deadline").then(|| terms.call.deadline()),
            retry_budget: terms.call.retry_budget(),
            limit: Some(policy.max_in_flight()).filter(|limit| *limit != UNLIMITED),
            streak: count(&fields, "consecutive_failures"),
            window: fields.get("window").and_then(window),
            rules: Rules {
                min_calls: count(&fields, "min_calls").unwrap_or(1),
                failure_rate: fields.get("failure_rate").and_then(Value::as_float),
                failures: count(&fields, "failures"),
            },
            slow: time(&fields, "slow_call").zip(fields.get("slow_rate").and_then(Value::as_float)),
            has_stall: fields.contains_key("stall_after"),
            open_wait: wait("open_wait"),
            open_wait_max: wait("open_wait_max"),
        }
    }

    /// Whether anything can open it.
    pub(super) fn has_rule(&self) -> bool {
        let judges = self.rules.failure_rate.is_some() || self.rules.failures.is_some() || self.slow.is_some();
        self.streak.is_some() || self.has_stall || (self.window.is_some() && judges)
    }
}

fn count(fields: &Table, field: &str) -> Option<u32> {
    fields.get(field)?.as_integer().and_then(|count| u32::try_from(count).ok())
}

fn time(fields: &Table, field: &str) -> Option<Duration> {
    humantime::parse_duration(fields.get(field)?.as_str()?).ok()
}

fn window(value: &Value) -> Option<Window> {
    let fields = value.as_table()?;
    if let Some(calls) = count(fields, "calls") {
        return Some(Window::Calls(calls));
    }
    let seconds = time(fields, "time")?.as_secs_f64();
    Some(Window::Time { seconds, buckets: count(fields, "buckets").unwrap_or(BUCKETS) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::Policies;

    fn force(fields: &str) -> InForce {
        let policies: Policies = format!("[target.core]\n{fields}").parse().unwrap();
        InForce::of(policies.of("core").unwrap())
    }

    #[test]
    fn what_a_file_sets_is_in_force() {
        let force = force(
            "timeout = '2s'\nattempts = 2\ndeadline = '5s'\nmax_in_flight = 7\nwindow = { time = '30s' }\nmin_calls = 20\nfailure_rate = 0.4
             failures = 30\nslow_call = '1s'\nopen_wait = '3s'\nconsecutive_failures = 9",
        );
        assert_eq!((force.timeout, force.deadline), (Some(Duration::from_secs(2)), Some(Duration::from_secs(5))));
        assert_eq!((force.attempts, force.limit, force.streak), (2, Some(7), Some(9)));
        assert_eq!(force.window, Some(Window::Time { seconds: 30.0, buckets: 10 }));
        assert_eq!(force.rules, Rules { min_calls: 20, failure_rate: Some(0.4), failures: Some(30) });
        assert_eq!(force.slow, Some((Duration::from_secs(1), 1.0)));
        assert_eq!((force.open_wait.as_secs(), force.open_wait_max.as_secs()), (3, 60));
    }

    #[test]
    fn defaults_are_in_force_too() {
        let force = force("");
        assert_eq!((force.limit, force.streak, force.deadline, force.timeout), (None, None, None, None));
        assert_eq!(force.window, Some(Window::Calls(100)));
        assert_eq!(force.rules, Rules { min_calls: 10, failure_rate: Some(0.5), failures: None });
        assert!(force.has_rule());
        assert!(!self::force("failure_rate = 'none'").has_rule());
        assert!(!self::force("window = 'none'").has_rule());
    }
}
