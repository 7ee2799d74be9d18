//! What a log says about each target, in memory that doesn't grow with the log.
//!
//! Calls come in order of their start and are judged in order of their end, as an engine would see them. What they say is kept as counts and
//! as spreads of bounded precision (1 %): latency, calls per second, and calls in flight by the time that they were so many. A target takes
//! some tens of kilobytes once it has a few hundred calls, and 32 bytes for each call in flight.
//!
//! # Outages
//!
//! What a target does in an outage says nothing about its normal ways, so the two are kept apart. An outage begins where its failures became
//! likelier to be those of a target that fails every second call than those of one that fails as usual, and ends where the contrary did. That is
//! Page's cumulative sum (E. S. Page, "Continuous Inspection Schemes", Biometrika 41, 1954) over single calls, so it works at any rate: each call
//! adds the logarithm of the ratio of the two likelihoods, the sum never falls below zero, and once it reaches ln 10⁹ the outage began when it was
//! last zero. Failures that are independent and as frequent as before are taken for an outage less than once in 10⁹ calls. The usual share is
//! that of the calls before, outages left out; at first it is that of the quietest quarter of the first 512 calls. What lasted less than a second
//! is a blip: over before anything could be done about it, counted apart, and neither an outage nor normal.

mod noise;
mod outages;
mod spread;
mod target;

use std::time::Duration;

pub use noise::{LONGEST_STRETCH, Noise, STRETCHES};
pub use outages::Outages;
pub use spread::Spread;

use crate::logs::{Call, Names};
use target::Watch;

/// Watches the calls of a log.
#[derive(Debug, Default)]
pub struct Observer {
    targets: Vec<Watch>,
}

impl Observer {
    /// Watches nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a call in; its start must not be before that of the one before.
    pub fn call(&mut self, call: &Call) {
        let index = call.target.0 as usize;
        if index >= self.targets.len() {
            self.targets.resize_with(index + 1, Watch::default);
        }
        self.targets[index].call(call);
    }

    /// Ends the calls that run, and tells what was seen of each target, by name. Targets without a call are left out, and so is what
    /// stands for all targets past a bound: many targets together behave like none of them.
    #[must_use]
    pub fn finish(self, names: &Names) -> Vec<Observed> {
        let id = |index| crate::logs::TargetId(u32::try_from(index).unwrap_or(u32::MAX));
        let mut observed: Vec<Observed> = self
            .targets
            .into_iter()
            .enumerate()
            .filter(|(index, _)| !names.is_rest(id(*index)))
            .filter_map(|(index, watch)| watch.finish(names.name(id(index)).to_owned()))
            .collect();
        observed.sort_by(|a, b| a.name.cmp(&b.name));
        observed
    }
}

/// What was seen of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The target.
    pub name: String,
    /// From the second of the first start to that of the last, both included.
    pub span: Duration,
    /// Calls that ended.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// Those whose caller went away: they say nothing about the target's health.
    pub abandoned: u64,
    /// The most that ran at once, outages included.
    pub peak: u64,
    /// The target's normal ways: what it did outside outages and blips.
    pub calm: Calm,
    /// The rest.
    pub outages: Outages,
}

/// What a target does outside outages.
#[derive(Clone, Debug, PartialEq)]
pub struct Calm {
    /// Calls that say something about its health.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// How failures cling together.
    pub noise: Noise,
    /// How long good calls took, in microseconds.
    pub latency: Spread,
    /// How long all calls took together, and how many these were: good, failed and abandoned.
    pub busy: (Duration, u64),
    /// Calls started per second; seconds without any count.
    pub seconds: Spread,
    /// Calls in flight, weighted by the nanoseconds for which they were so many.
    pub in_flight: Spread,
}

impl Observed {
    /// Calls per second over the whole span.
    #[must_use]
    pub fn rate(&self) -> f64 {
        (self.calls + self.abandoned) as f64 / self.span.as_secs_f64().max(1.0)
    }
}

impl Calm {
    /// The mean time that a call takes, in seconds; zero if there was none.
    #[must_use]
    pub fn mean_latency(&self) -> f64 {
        let (sum, calls) = self.busy;
        if calls == 0 { 0.0 } else { sum.as_secs_f64() / calls as f64 }
    }

    /// The share of good calls that take longer than `limit`.
    #[must_use]
    pub fn cut(&self, limit: Duration) -> f64 {
        self.latency.share_above(spread::micros(limit))
    }

    /// The latency that the share `quantile` of good calls doesn't exceed.
    #[must_use]
    pub fn latency_at(&self, quantile: f64) -> Duration {
        Duration::from_micros(self.latency.at(quantile))
    }
}
