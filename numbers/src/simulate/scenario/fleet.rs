//! A fleet of gateways, too large to be run.

use super::numbers::{needed, number, seconds, within};
use crate::policies::reader::{Field, Report};

const KEYS: &[&str] = &["gateways", "targets", "calls_per_second", "latency", "failure", "down"];

/// Gateways that each have an engine of their own, and targets that all of them call equally often.
#[derive(Clone, Debug, PartialEq)]
pub struct Fleet {
    /// Gateways.
    pub gateways: u32,
    /// Targets.
    pub targets: u32,
    /// Calls of all gateways to all targets.
    pub calls_per_second: f64,
    /// The mean time of a call, in seconds.
    pub latency: f64,
    /// The share of calls that fail as they always do.
    pub failure: f64,
    /// Targets that are down at the same time.
    pub down: u32,
}

impl Fleet {
    /// The name by which a variant's own table speaks of the targets: they are all alike.
    pub const TARGET: &'static str = "target";
}

/// Reads it; none, and something reported, if it can't be used.
pub(super) fn read(report: &mut Report<'_>, whole: &Field<'_>) -> Option<Fleet> {
    let get = within(report, whole, KEYS)?;
    let gateways = needed(report, whole, &get, "gateways", "a whole number, such as 1000");
    let targets = needed(report, whole, &get, "targets", "a whole number, such as 10000");
    let calls =
        needed(report, whole, &get, "calls_per_second", "the calls of all gateways to all targets, such as 1000000");
    let latency = needed(report, whole, &get, "latency", "a duration, such as \"20ms\"");
    Some(Fleet {
        gateways: gateways?.whole(report, 1..=10_000_000)?,
        targets: targets?.whole(report, 1..=1_000_000_000)?,
        calls_per_second: number(report, &calls?, 0.0..=1e15)?,
        latency: seconds(report, &latency?)?,
        failure: get("failure").map_or(Some(0.001), |field| number(report, &field, 0.0..=1.0))?,
        down: get("down").map_or(Some(1), |field| field.whole(report, 1..=1_000_000_000))?,
    })
}
