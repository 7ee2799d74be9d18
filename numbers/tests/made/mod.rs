//! Logs made to order: arrivals, latencies and failures whose right values are known in closed form.

use std::f64::consts::TAU;

use portcullis::Outcome;
use portcullis_numbers::logs::{Call, Names, TargetId};
use portcullis_numbers::observe::{Observed, Observer};

pub(crate) const SECOND: u64 = 1_000_000_000;
/// When logs begin.
pub(crate) const EPOCH: u64 = 1_700_000_000 * SECOND;

/// The same numbers for the same seed: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Above 0, below 1.
    pub(crate) fn share(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.share().ln()).sqrt() * (TAU * self.share()).cos()
    }
}

/// A target, as its log shows it.
#[derive(Clone, Copy)]
pub(crate) struct Made {
    pub(crate) name: &'static str,
    /// Calls per second, evenly or by chance (Poisson).
    pub(crate) rate: f64,
    pub(crate) is_even: bool,
    /// Mean latency in seconds, and the deviation of its logarithm; 0 for a constant.
    pub(crate) latency: f64,
    pub(crate) sigma: f64,
    /// The share of failures.
    pub(crate) failing: f64,
    pub(crate) seconds: u64,
    /// Outages: from which second to which all calls fail.
    pub(crate) outages: &'static [(u64, u64)],
}

impl Default for Made {
    fn default() -> Self {
        Self {
            name: "core",
            rate: 100.0,
            is_even: false,
            latency: 0.05,
            sigma: 0.5,
            failing: 0.01,
            seconds: 1_200,
            outages: &[],
        }
    }
}

impl Made {
    /// The calls, in order of their start.
    pub(crate) fn calls(&self, target: u32, seed: u64) -> Vec<Call> {
        let mut random = Random(seed);
        let (mut at, mut calls) = (0.0, Vec::new());
        let location = self.latency.ln() - self.sigma * self.sigma / 2.0;
        loop {
            if at >= self.seconds as f64 {
                return calls;
            }
            let is_out = self.outages.iter().any(|(from, to)| (*from as f64..*to as f64).contains(&at));
            let failed = is_out || random.share() < self.failing;
            let latency = if self.sigma > 0.0 { (location + self.sigma * random.normal()).exp() } else { self.latency };
            calls.push(Call {
                start: EPOCH + (at * 1e9) as u64,
                latency: (latency * 1e9) as u64,
                target: TargetId(target),
                status: if failed { 503 } else { 200 },
                outcome: if failed { Outcome::Failure } else { Outcome::Success },
            });
            at = if self.is_even { calls.len() as f64 / self.rate } else { at - random.share().ln() / self.rate };
        }
    }

    /// What a log of nothing else shows.
    pub(crate) fn seen(&self, seed: u64) -> Observed {
        observe(&self.calls(0, seed), &[self.name]).remove(0)
    }
}

/// The log of several targets.
pub(crate) fn log(made: &[Made], seed: u64) -> (Vec<Call>, Names) {
    let mut calls: Vec<Call> =
        (0..).zip(made).flat_map(|(target, made)| made.calls(target, seed + u64::from(target))).collect();
    calls.sort_by_key(|call| call.start);
    (calls, made.iter().map(|made| made.name).collect())
}

pub(crate) fn observe(calls: &[Call], names: &[&str]) -> Vec<Observed> {
    let mut observer = Observer::new();
    calls.iter().for_each(|call| observer.call(call));
    observer.finish(&names.iter().copied().collect())
}
