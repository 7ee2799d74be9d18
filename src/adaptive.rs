//! A limit that follows measured latency.
//!
//! - [`samples`]: what calls write, one addition each on a stripe of their own.
//! - [`control`]: what becomes of the samples once a window of them is over, in which order; whoever settles then does it, under
//!   the target's lock, which nobody waits for.
//! - [`gradient`] and [`aimd`]: the laws by which the limit moves, without time or atomics.

pub(crate) mod aimd;
pub mod control;
pub(crate) mod gradient;
pub mod samples;

use std::time::Duration;

use crate::policy::{PolicyError, UNLIMITED};
use crate::time::saturating_nanos;

/// Where the limit begins unless the policy says otherwise, as in Netflix' concurrency-limits.
const DEFAULT_START: u32 = 20;
const DEFAULT_TOLERANCE: f64 = 1.15;
const SHORTEST: Duration = Duration::from_micros(1);
/// What a sample can show.
const LONGEST: Duration = Duration::from_secs(16);

/// A limit that follows measured latency, between `min` and the policy's `max_in_flight`.
///
/// Off unless set. What it is for, which of the two to take and what it can't do: [`docs::adaptive`](crate::docs::adaptive).
///
/// ```
/// use portcullis::{Adaptive, Policy};
///
/// let policy = Policy::builder().max_in_flight(500).adaptive(Adaptive::gradient().min(4)).build()?;
/// # Ok::<(), portcullis::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Adaptive {
    pub(crate) algorithm: Algorithm,
    pub(crate) tolerance: Option<f64>,
    pub(crate) min: Option<u32>,
    pub(crate) start: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Algorithm {
    Gradient,
    Aimd(Duration),
}

impl Adaptive {
    /// Follows the ratio of the latency without a queue to the latency now.
    ///
    /// The law is the gradient of Netflix' concurrency-limits (`Gradient2Limit`), with the latency without a queue measured as Envoy's adaptive
    /// concurrency filter and BBR do it: now and then, at half the limit.
    pub fn gradient() -> Self {
        Self::of(Algorithm::Gradient)
    }

    /// Raises the limit by one call at a time, and lowers it by a tenth when calls take longer than `latency` on average, or a tenth of
    /// them fail; 1 µs to 16 s.
    ///
    /// Additive increase, multiplicative decrease (Chiu and Jain, 1989), with the factor of `AIMDLimit` in Netflix' concurrency-limits.
    pub fn aimd(latency: Duration) -> Self {
        Self::of(Algorithm::Aimd(latency))
    }

    fn of(algorithm: Algorithm) -> Self {
        Self { algorithm, tolerance: None, min: None, start: None }
    }

    /// Sets how many times the latency without a queue is still as good, for the gradient; 1.01 to 4, 1.15 unless set. The limit settles a
    /// little below so many times the calls that the target can work on at once.
    pub fn tolerance(mut self, factor: f64) -> Self {
        self.tolerance = Some(factor);
        self
    }

    /// Bounds the limit from below; 1 call to `max_in_flight`, 1 unless set.
    pub fn min(mut self, calls: u32) -> Self {
        self.min = Some(calls);
        self
    }

    /// Sets the limit that a target begins with; `min` to `max_in_flight`, 20 or the nearest to it unless set.
    pub fn start(mut self, calls: u32) -> Self {
        self.start = Some(calls);
        self
    }

    /// The settings checked, for a policy of that `max_in_flight`.
    pub(crate) fn rules(self, max: u32) -> Result<Rules, PolicyError> {
        let shown = if max == UNLIMITED { UNLIMITED - 1 } else { max };
        let within = |field, value: Option<u32>, least: u32| match value {
            Some(calls) if !(least..=shown).contains(&calls) => {
                Err(PolicyError::new(field, calls, format!("{least} to {shown}")))
            }
            other => Ok(other),
        };
        let min = within("adaptive.min", self.min, 1)?.unwrap_or(1);
        let start = within("adaptive.start", self.start, min)?.unwrap_or(DEFAULT_START.clamp(min, max));
        let law = match (self.algorithm, self.tolerance) {
            (Algorithm::Gradient, tolerance) => {
                let tolerance = tolerance.unwrap_or(DEFAULT_TOLERANCE);
                if !(1.01..=4.0).contains(&tolerance) {
                    return Err(PolicyError::new("adaptive.tolerance", tolerance, "1.01 to 4"));
                }
                Law::Gradient { tolerance_milli: (tolerance * 1_000.0).round() as u32 }
            }
            (Algorithm::Aimd(latency), None) => {
                if !(SHORTEST..=LONGEST).contains(&latency) {
                    let expected = format!("{SHORTEST:?} to {LONGEST:?}");
                    return Err(PolicyError::new("adaptive.latency", format!("{latency:?}"), expected));
                }
                Law::Aimd { latency: saturating_nanos(latency) }
            }
            (Algorithm::Aimd(_), Some(tolerance)) => {
                return Err(PolicyError::new("adaptive.tolerance", tolerance, "left out: aimd has none"));
            }
        };
        Ok(Rules { law, min, start, max })
    }
}

/// Settings that are known to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    pub law: Law,
    pub min: u32,
    pub start: u32,
    pub max: u32,
}

/// How the limit moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Law {
    Gradient {
        tolerance_milli: u32,
    },
    /// In nanoseconds.
    Aimd {
        latency: u64,
    },
}

impl From<Rules> for Adaptive {
    fn from(rules: Rules) -> Self {
        let adaptive = match rules.law {
            Law::Gradient { tolerance_milli } => Self::gradient().tolerance(f64::from(tolerance_milli) / 1_000.0),
            Law::Aimd { latency } => Self::aimd(Duration::from_nanos(latency)),
        };
        adaptive.min(rules.min).start(rules.start)
    }
}
