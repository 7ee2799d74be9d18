//! The settings of a target: immutable, checked when built, compared and shared by value.

pub(crate) mod brief;
mod builder;
mod check;
mod convert;
mod error;
#[cfg(feature = "serde")]
pub(crate) mod file;

use std::time::Duration;

pub use builder::PolicyBuilder;
pub use error::PolicyError;

use crate::adaptive::Rules;
use crate::bulkhead::share::Share;
use crate::priority::Priority;
use crate::window::Geometry;

/// The limit that stands for "no limit": the count is kept, and 16,777,215 calls at once are out of reach.
pub const UNLIMITED: u32 = (1 << 24) - 1;

/// Ten thousand parts of one: the unit that rates are compared in, so that no rule needs a float.
pub(crate) const BASIS_POINTS: u64 = 10_000;

/// The immutable settings of a target: bulkhead, trip rules, waits and probes.
///
/// | setting | default | range |
/// | --- | --- | --- |
/// | `max_in_flight` | unlimited | 1 to 16,777,214 calls, or unlimited |
/// | `normal_share` | 1 | above 0 to 1, in steps of 0.0001 |
/// | `sheddable_share` | `normal_share` | above 0 to `normal_share`, in steps of 0.0001 |
/// | `max_waiting` | 0 | 0 to 65,535 calls |
/// | `max_wait` | 100 ms, once `max_waiting` is set | 1 ms to 1 h |
/// | `consecutive_failures` | none | 1 to 4,294,967,295 failures |
/// | `window` | 100 calls | 1 to 100 calls; 1 ms to 24 h in 1 to 64 buckets; or none |
/// | `min_calls` | 10, or the whole window if that is less | 1 to the window's calls |
/// | `failure_rate` | 0.5 | above 0 to 1, in steps of 0.0001; or none |
/// | `failures` | none | 1 to the window's calls |
/// | `slow_call` | none | above 0 |
/// | `slow_rate` | 1, once `slow_call` is set | above 0 to 1, in steps of 0.0001 |
/// | `stall_after` | none | 50 ms to 24 h |
/// | `stalled_calls` | none | 1 to `max_in_flight` calls |
/// | `stalled_share` | none | above 0 to 1, in steps of 0.0001; with a `max_in_flight` |
/// | `open_wait` | 5 s | 1 ms to 365 d |
/// | `backoff` | 2 | 1 to 1,000, in steps of 0.001 |
/// | `open_wait_max` | 60 s, or `open_wait` and its jitter if that is more | `open_wait` to 365 d |
/// | `jitter` | 0.1 | 0 to 1, in steps of 0.0001 |
/// | `max_probes` | 1 | 1 to 31 probes |
/// | `successes_to_close` | 3 | 1 to 31 successes |
/// | `probe_lease` | 10 s, or `open_wait` if that is more | 1 s to 365 d |
/// | `on_abandon` | ignore; `failure_after` 500 ms for async calls | ignore, failure, failure after a time |
/// | `ignored_probes` | 10 | 1 to 1,000,000 probes |
/// | `adaptive` | none | a limit that follows latency, see [`Adaptive`](crate::Adaptive); or none |
/// | `ramp` | none | 1 ms to 24 h, with a limit in `max_in_flight` |
/// | `ramp_failures` | 3, once `ramp` is set | 1 to 1,000 failures |
///
/// `stall_after` needs `stalled_calls` or `stalled_share`, or both, and both need it. It is rounded up to eight ticks of whole nanoseconds.
///
/// Waits are rounded up to whole milliseconds, `probe_lease` to whole seconds. With a `backoff` so small that 31
/// reopenings can't reach 60 s, the default of `open_wait_max` is what they do reach.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "PolicyBuilder", into = "PolicyBuilder"))]
pub struct Policy {
    pub(crate) limit: u32,
    pub(crate) normal_share_bp: u16,
    pub(crate) sheddable_share_bp: u16,
    /// Zero where nobody may wait.
    pub(crate) max_wait_ms: u32,
    pub(crate) max_waiting: u16,
    pub(crate) consecutive_failures: Option<u32>,
    pub(crate) geometry: Option<Geometry>,
    pub(crate) min_calls: u32,
    pub(crate) failure_rate_bp: Option<u32>,
    pub(crate) failures: Option<u32>,
    pub(crate) slow_call_nanos: Option<u64>,
    pub(crate) slow_rate_bp: Option<u32>,
    pub(crate) stall: Option<Stall>,
    pub(crate) open_wait_ms: u64,
    pub(crate) backoff_milli: u32,
    pub(crate) open_wait_max_ms: u64,
    pub(crate) jitter_bp: u32,
    pub(crate) max_probes: u32,
    pub(crate) successes_to_close: u32,
    pub(crate) probe_lease_s: u64,
    pub(crate) on_abandon: Option<OnAbandon>,
    pub(crate) ignored_probes: u32,
    /// Boxed, since few have it and targets look a policy's other settings up.
    pub(crate) adaptive: Option<Box<Rules>>,
    pub(crate) ramp_ms: Option<u64>,
    pub(crate) ramp_failures: u32,
}

/// What is made of calls that are still running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stall {
    pub(crate) after_nanos: u64,
    /// One of the two at least.
    pub(crate) calls: Option<u32>,
    pub(crate) share_bp: Option<u32>,
}

/// What a permit that is dropped unsettled says about the target.
///
/// A permit dropped while its thread panics is a failure whatever this says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnAbandon {
    /// Nothing: the caller went away for reasons of its own.
    Ignore,
    /// The target never answered.
    Failure,
    /// A failure if the target had been silent for at least this long, else nothing: a hung target under an outer timeout
    /// must trip, a client that hangs up at once must not.
    FailureAfter(Duration),
}

impl OnAbandon {
    /// What async calls do unless the policy says otherwise.
    pub(crate) const ASYNC: Self = Self::FailureAfter(Duration::from_millis(500));
}

impl Default for Policy {
    fn default() -> Self {
        // The defaults are the empty builder's, and a test builds it; the fallback can't be met.
        PolicyBuilder::default().build().unwrap_or_else(|error| unreachable!("the default policy is refused: {error}"))
    }
}

impl Policy {
    /// Starts from the defaults.
    pub fn builder() -> PolicyBuilder {
        PolicyBuilder::default()
    }

    /// Starts from these settings; what follows from others by default, goes on to follow from them.
    pub fn to_builder(&self) -> PolicyBuilder {
        PolicyBuilder::from(self.clone()).without_defaults_of(self)
    }

    /// The most calls in flight at once; [`UNLIMITED`] if they are only counted. An adaptive limit moves below it.
    #[must_use]
    pub fn max_in_flight(&self) -> u32 {
        self.limit
    }

    /// The limit that a target begins with.
    pub(crate) fn first_limit(&self) -> u32 {
        self.adaptive.as_ref().map_or(self.limit, |rules| rules.start)
    }

    /// The most calls in flight at which one of `priority` may start, itself among them, while the limit is `limit`: its share, rounded down,
    /// but 1 where the limit allows any; [`UNLIMITED`] has no shares.
    #[must_use]
    pub fn share_of(&self, priority: Priority, limit: u32) -> u32 {
        self.share(priority).map_or(limit, |share| u32::try_from(share.of(limit.into())).unwrap_or(limit))
    }

    /// None if it is the whole limit.
    pub(crate) fn share(&self, priority: Priority) -> Option<Share> {
        match priority {
            Priority::Critical => None,
            Priority::Normal => Share::new(self.normal_share_bp),
            Priority::Sheddable => Share::new(self.sheddable_share_bp),
        }
    }

    /// The most calls that may wait for a permit; 0 if none may.
    #[must_use]
    pub fn max_waiting(&self) -> u32 {
        self.max_waiting.into()
    }

    /// The longest that a call may wait for a permit.
    #[must_use]
    pub fn max_wait(&self) -> Duration {
        Duration::from_millis(self.max_wait_ms.into())
    }

    /// The longest that a probe may hold its slot without a word.
    #[must_use]
    pub fn probe_lease(&self) -> Duration {
        Duration::from_secs(self.probe_lease_s)
    }

    /// The wait before the first probe after `reopens` failed probes in a row.
    ///
    /// `open_wait` × `backoff`^`reopens`, at most `open_wait_max`, then moved by up to ±`jitter` of itself: `draw` picks the
    /// place in that range, evenly; `open_wait_max` cuts the range, so waits don't meet there. Never under 1 ms, never wrapping.
    #[must_use]
    pub fn wait(&self, reopens: u32, draw: u64) -> Duration {
        Duration::from_millis(self.wait_ms(reopens, draw))
    }

    pub(crate) fn wait_ms(&self, reopens: u32, draw: u64) -> u64 {
        let max = u128::from(self.open_wait_max_ms);
        // In thousandths of a millisecond, so that small waits grow by small factors too.
        let mut wait = u128::from(self.open_wait_ms) * 1_000;
        for _ in 0..reopens {
            wait = wait * u128::from(self.backoff_milli) / 1_000;
            if wait >= max * 1_000 {
                break;
            }
        }
        let wait = wait.div_ceil(1_000).min(max);
        let span = wait * u128::from(self.jitter_bp) / u128::from(BASIS_POINTS);
        let (least, most) = (wait - span, (wait + span).min(max));
        let drawn = least + ((u128::from(draw) * (most - least + 1)) >> 64);
        // At most 365 days of milliseconds.
        u64::try_from(drawn.max(1)).unwrap_or(u64::MAX)
    }

    /// As [`Self::wait`], but no less than what the target asked for, within `open_wait_max`.
    pub(crate) fn wait_at_least_ms(&self, asked_ms: u64, reopens: u32, draw: u64) -> u64 {
        self.wait_ms(reopens, draw).max(asked_ms.min(self.open_wait_max_ms))
    }

    /// Whether failures in a row are counted, because a rule or a ramp judges them.
    pub(crate) fn counts_streaks(&self) -> bool {
        self.consecutive_failures.is_some() || self.ramp_ms.is_some()
    }

    /// The longest time for which anything that the target remembers can matter.
    pub(crate) fn memory(&self) -> Duration {
        let window_ms = match self.geometry {
            Some(Geometry::Time { width_ms, buckets }) => width_ms * u64::from(buckets),
            Some(Geometry::Calls(_)) | None => 0,
        };
        Duration::from_millis(window_ms.max(self.open_wait_max_ms).max(self.ramp_ms.unwrap_or(0)))
    }

    /// Whether a call's start must be stamped, because something is judged by how long it ran.
    pub(crate) fn times_calls(&self) -> bool {
        let judges_abandoned = matches!(self.on_abandon, Some(OnAbandon::FailureAfter(_)));
        self.slow_call_nanos.is_some() || self.stall.is_some() || self.adaptive.is_some() || judges_abandoned
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(wait: u64, max: u64, backoff: f64) -> Policy {
        let ms = Duration::from_millis;
        Policy::builder().open_wait(ms(wait)).open_wait_max(ms(max)).backoff(backoff).jitter(0.0).build().unwrap()
    }

    #[test]
    fn r07_the_wait_doubles_up_to_its_maximum() {
        let policy = steady(30_000, 300_000, 2.0);
        let waits: Vec<u64> = (0..6).map(|n| policy.wait(n, 0).as_secs()).collect();
        assert_eq!(waits, [30, 60, 120, 240, 300, 300]);
        assert_eq!(policy.wait(u32::MAX, u64::MAX).as_secs(), 300);
    }

    #[test]
    fn r07_a_small_wait_grows_by_a_small_factor() {
        let policy = steady(1, 10, 1.1);
        assert!(policy.wait(1, 0) > policy.wait(0, 0));
        assert_eq!(policy.wait(31, 0).as_millis(), 10);
    }

    #[test]
    fn r07_jitter_stays_in_its_range_and_under_the_maximum() {
        let policy = Policy::builder().open_wait(Duration::from_secs(10)).jitter(0.1).build().unwrap();
        assert_eq!(policy.wait(0, 0), Duration::from_secs(9));
        assert_eq!(policy.wait(0, u64::MAX), Duration::from_secs(11));
        assert_eq!(policy.wait(20, 0), Duration::from_secs(54));
        assert_eq!(policy.wait(20, u64::MAX), Duration::from_secs(60));
        let all = Policy::builder().open_wait(Duration::from_millis(1)).jitter(1.0).build().unwrap();
        assert_eq!(all.wait(0, 0), Duration::from_millis(1));
    }
}
