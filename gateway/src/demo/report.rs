//! What was measured, in the shape of the JSON output.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::load::Results;
use super::meter::Counts;
use super::{SICK, WELL};

/// Both runs.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// With portcullis.
    pub with: Run,
    /// With only the cap on the process.
    pub without: Run,
}

/// One run.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// Healthy, outage, recovery.
    pub phases: Vec<Phase>,
    /// The state changes, in order.
    pub transitions: Vec<Change>,
    /// The most probes that were at the failing upstream at once while its circuit wasn't closed.
    #[serde(skip)]
    pub max_probes: u64,
    /// What the failing upstream's requests became in the outage.
    #[serde(skip)]
    pub storm: Storm,
}

/// What requests became on their way to an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Storm {
    /// Requests that the process let in.
    pub requests: u64,
    /// Attempts that they made.
    pub attempts: u64,
    /// Those among them that weren't the first.
    pub retries: u64,
}

/// A part of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// `healthy`, `outage` or `recovery`.
    pub name: &'static str,
    /// By target.
    pub targets: BTreeMap<&'static str, Measured>,
}

/// What one target's callers and its upstream saw in a phase.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Requests sent.
    pub sent: u64,
    /// Good answers.
    pub ok: u64,
    /// Other answers, by wire code.
    pub codes: BTreeMap<String, u64>,
    /// The wait that half of all answers took at most, refusals included.
    pub p50_ms: f64,
    /// The wait that 99 of 100 answers took at most.
    pub p99_ms: f64,
    /// Calls that reached the upstream.
    pub upstream_calls: u64,
    /// The most that it held at once.
    pub upstream_max_concurrent: u64,
}

/// A state change.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Since the load began.
    pub at_ms: u64,
    /// The target.
    pub target: String,
    /// The state that was left.
    pub from: &'static str,
    /// The state that was entered.
    pub to: &'static str,
    /// Why.
    pub cause: &'static str,
}

impl Measured {
    pub(super) fn new(results: Results, counts: Counts) -> Self {
        let mut latencies = results.latencies;
        latencies.sort_unstable();
        Self {
            sent: results.sent,
            ok: results.ok,
            codes: results.codes,
            p50_ms: percentile(&latencies, 50),
            p99_ms: percentile(&latencies, 99),
            upstream_calls: counts.calls,
            upstream_max_concurrent: counts.max_concurrent,
        }
    }

    /// Requests without a good answer.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sent - self.ok
    }
}

impl Run {
    /// A phase by its name.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }

    /// The requests of the healthy upstream that got no good answer.
    #[must_use]
    pub fn bystanders_lost(&self) -> u64 {
        self.phases.iter().filter_map(|phase| phase.targets.get(WELL)).map(Measured::lost).sum()
    }

    /// Whether the failing upstream's circuit opened, was probed and closed.
    #[must_use]
    pub fn recovered(&self) -> bool {
        let mut own = self.transitions.iter().filter(|change| change.target == SICK);
        let steps = [("CLOSED", "OPEN"), ("OPEN", "HALF_OPEN"), ("HALF_OPEN", "CLOSED")];
        steps.iter().all(|step| own.any(|change| (change.from, change.to) == *step))
    }
}

/// The nearest rank, in milliseconds with three decimals; zero if there was nothing.
fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    let micros = sorted.get(rank - 1).map_or(0, Duration::as_micros);
    u32::try_from(micros).map_or(f64::MAX, f64::from) / 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_measured_value() {
        let sorted: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!((percentile(&sorted, 50), percentile(&sorted, 99)), (100.0, 198.0));
        assert_eq!((percentile(&sorted[..1], 50), percentile(&sorted[..1], 99)), (1.0, 1.0));
        assert!(percentile(&[], 50).abs() < f64::EPSILON);
    }
}
