//! What the log says of the calls, whatever a policy would have done.

use portcullis::Outcome;

use super::lane::Asked;
use super::latencies::Latencies;
use super::series::{Merge, Scale, Series};

/// What the log says of one target.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) name: String,
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) abandoned: u64,
    pub(super) latencies: Latencies,
    pub(super) slowest: u64,
    pub(super) series: Series<Point>,
}

/// A bucket of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Point {
    pub(super) calls: u32,
    pub(super) failures: u32,
    pub(super) latencies: Latencies,
}

impl Merge for Point {
    fn merge(&mut self, later: &Self) {
        self.calls += later.calls;
        self.failures += later.failures;
        self.latencies.merge(&later.latencies);
    }
}

impl Facts {
    pub(super) fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    pub(super) fn add(&mut self, call: Asked, scale: Scale) {
        let failed = call.outcome == Outcome::Failure;
        self.calls += 1;
        self.failures += u64::from(failed);
        self.abandoned += u64::from(call.outcome == Outcome::Ignored);
        self.latencies.add(call.latency);
        self.slowest = self.slowest.max(call.latency);
        let point = self.series.at(scale.bucket(call.at), Point::default);
        point.calls += 1;
        point.failures += u32::from(failed);
        point.latencies.add(call.latency);
    }
}
