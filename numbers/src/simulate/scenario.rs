//! What a scenario file says: callers, a gateway, upstreams, and the variants that are compared.

mod callers;
mod file;
mod fleet;
mod numbers;
mod upstream;

use std::path::Path;

pub use fleet::Fleet;

use super::draws::Times;
use crate::policies::{ConfigErrors, Terms};

/// Nanoseconds of virtual time.
pub(super) type Nanos = u64;

/// A scenario: what is simulated, and how each variant decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub title: String,
    /// What it shows, in a sentence or two.
    pub shows: String,
    /// What is compared, each with the terms of every upstream.
    pub variants: Vec<Variant>,
    /// What is run, or computed.
    pub world: World,
}

/// What the variants are put into.
#[derive(Clone, Debug, PartialEq)]
pub enum World {
    /// Events are simulated one by one.
    Model(Model),
    /// Too large to be run: arithmetic.
    Fleet(Fleet),
}

/// One way to decide, beside others.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// Its name in tables and plots.
    pub name: String,
    /// Whether the engine decides; else every call is let through.
    pub isolation: bool,
    /// What is in force for each upstream, in their order.
    pub terms: Vec<Terms>,
}

/// Callers, a gateway and upstreams, for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// How long callers come.
    pub(super) duration: Nanos,
    /// The step of the plots.
    pub(super) bucket: Nanos,
    /// Where random numbers start.
    pub seed: u64,
    /// Requests that the gateway holds at once, for all upstreams together.
    pub(super) max_concurrent: Option<u32>,
    /// Requests that wait for one of these places.
    pub(super) backlog: u32,
    pub(super) upstreams: Vec<Upstream>,
    pub(super) callers: Vec<Callers>,
}

/// A destination: servers with a queue in front, and what goes wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Upstream {
    pub(super) name: String,
    pub(super) servers: u32,
    /// Calls that wait for a server; more are refused.
    pub(super) queue: u32,
    pub(super) service: Times,
    /// The share of calls that fail as they always do.
    pub(super) errors: f64,
    /// Whether it notices that nobody waits for an answer any more.
    pub(super) cancels: bool,
    pub(super) knee: Option<Knee>,
    pub(super) cold: Option<Cold>,
    /// In order, without overlap.
    pub(super) outages: Vec<Outage>,
}

/// From so many calls at once each makes all slower: service times × (1 + slope × calls above it).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Knee {
    pub(super) at: u32,
    pub(super) slope: f64,
}

/// After each outage it is slow at first: times × factor, falling evenly to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cold {
    pub(super) lasts: Nanos,
    pub(super) factor: f64,
}

/// A stretch in which something is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Outage {
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    pub(super) kind: OutageKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum OutageKind {
    /// No connection: calls fail at once.
    Refuse,
    /// Connections, but no answers.
    Hang,
    /// Service times × this.
    Slow(f64),
    /// This share of the answers are errors.
    Errors(f64),
}

/// A crowd that sends requests to one upstream through the gateway.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Callers {
    pub(super) name: String,
    /// Its place among the upstreams.
    pub(super) upstream: usize,
    pub(super) arrivals: Arrivals,
    /// How long a caller waits for each try.
    pub(super) patience: Nanos,
    /// How often a caller tries.
    pub(super) attempts: u32,
    pub(super) backoff: Nanos,
    pub(super) backoff_max: Nanos,
}

/// When requests come, in requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Arrivals {
    /// At equal distances.
    Constant(f64),
    /// Independent of one another.
    Poisson(f64),
    /// A Poisson process whose rate switches between two, after exponential times: a Markov-modulated one, in seconds.
    Bursts { high: f64, low: f64, on: f64, off: f64 },
}

impl Arrivals {
    /// Requests per second over a long time.
    pub(super) fn mean(self) -> f64 {
        match self {
            Self::Constant(rate) | Self::Poisson(rate) => rate,
            Self::Bursts { high, low, on, off } => (high * on + low * off) / (on + off),
        }
    }
}

impl Callers {
    /// The most tries that are expected, and changes of their rate.
    pub(super) fn tries(&self, duration: Nanos) -> f64 {
        let changes = if let Arrivals::Bursts { on, off, .. } = self.arrivals { 2.0 / (on + off) } else { 0.0 };
        (self.arrivals.mean() * f64::from(self.attempts) + changes) * duration as f64 / 1e9
    }
}

impl Model {
    /// How many steps the plots have.
    pub(super) fn steps(&self) -> u64 {
        self.duration.div_ceil(self.bucket)
    }

    /// Stretches in which anything is in an outage, in order, without overlap.
    pub(super) fn outages(&self) -> Vec<(Nanos, Nanos)> {
        let of_all = self.upstreams.iter().flat_map(|upstream| &upstream.outages);
        let mut stretches: Vec<(Nanos, Nanos)> = of_all.map(|outage| (outage.from, outage.to)).collect();
        stretches.sort_unstable();
        stretches.dedup_by(|next, before| {
            let touches = next.0 <= before.1;
            if touches {
                before.1 = before.1.max(next.1);
            }
            touches
        });
        stretches
    }
}

impl Scenario {
    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// All that is wrong with it: field, line, and what would be right; or that it can't be read.
    pub fn load(path: &Path) -> Result<Self, ConfigErrors> {
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigErrors::whole(format!("can't be read: {error}")))?;
        text.parse()
    }
}

impl std::str::FromStr for Scenario {
    type Err = ConfigErrors;

    fn from_str(text: &str) -> Result<Self, ConfigErrors> {
        crate::policies::read_toml(text, file::read)?
            .ok_or_else(|| ConfigErrors::whole("says nothing that can be simulated".to_owned()))
    }
}
