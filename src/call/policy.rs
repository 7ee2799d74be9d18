//! One target's declaration: every time and bound of a whole call, checked together.

use std::time::Duration;

use super::builder::CallPolicyBuilder;
use super::fallback::Fallback;

/// How a target is called: one declaration, always in the order
/// fallback( deadline( retry( admission( timeout( call ))))).
///
/// | setting | default | range |
/// | --- | --- | --- |
/// | `timeout` | 1 s | 1 ms to 24 h, and shorter than the engine's `probe_lease` |
/// | `probe_timeout` | `timeout` | 1 ms to `timeout` |
/// | `deadline` | as long as the worst case takes | the worst case, and the engine's `max_wait` where calls may wait, to 24 h |
/// | `attempts` | 1 | 1 to 10 attempts |
/// | `backoff` | 50 ms | 0 to `backoff_max` |
/// | `backoff_max` | 1 s, or `backoff` if that is more | `backoff` to 1 h |
/// | `retry_budget` | 0.1 | 0 to 10 retries per call, in steps of 0.001; or none |
/// | `retry_floor` | 1 | 0 to 1,000 retries per second |
/// | `retry_memory` | 10 s | 1 s to 60 s |
/// | `replay_limit` | 64 KiB | 0 to 16 MiB |
/// | `fallback` | refuse | refuse, a value, a function, the last good answer within 1 ms to 30 d |
///
/// The worst case is `attempts` × `timeout` and every backoff at its longest. Times are rounded up to whole milliseconds.
///
/// ```
/// use std::time::Duration;
/// use portcullis::call::CallPolicy;
///
/// let ms = Duration::from_millis;
/// let error = CallPolicy::builder()
///     .timeout(ms(300)).attempts(3).backoff(ms(100)).backoff_max(ms(200)).deadline(ms(1_000))
///     .build().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "deadline: 1s is out of range: must be at least the worst case, 3 x 300ms + 2 backoffs of at most 100ms + 200ms = 1.2s",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "CallPolicyBuilder", into = "CallPolicyBuilder"))]
pub struct CallPolicy {
    pub(super) timeout: Duration,
    pub(super) probe_timeout: Option<Duration>,
    pub(super) deadline: Option<Duration>,
    pub(super) attempts: u32,
    pub(super) backoff: Duration,
    pub(super) backoff_max: Option<Duration>,
    /// In thousandths of a retry per call; none if retries are bounded by `attempts` only.
    pub(super) retry_budget_milli: Option<u32>,
    pub(super) retry_floor: u32,
    pub(super) retry_memory: Duration,
    pub(super) replay_limit: u32,
    pub(super) fallback: Fallback,
}

impl Default for CallPolicy {
    fn default() -> Self {
        // The defaults are the empty builder's, and a test builds it; the fallback can't be met.
        CallPolicyBuilder::default().build().unwrap_or_else(|error| unreachable!("the default is refused: {error}"))
    }
}

impl CallPolicy {
    /// Starts from the defaults.
    pub fn builder() -> CallPolicyBuilder {
        CallPolicyBuilder::default()
    }

    /// Starts from these settings; what was left to its default goes on to follow from the others.
    pub fn to_builder(&self) -> CallPolicyBuilder {
        CallPolicyBuilder::from(self.clone())
    }

    /// How long an attempt may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How long an attempt may take that is a probe: what it holds is the whole target's recovery.
    #[must_use]
    pub fn probe_timeout(&self) -> Duration {
        self.probe_timeout.unwrap_or(self.timeout)
    }

    /// How long the whole call may take, retries and backoffs included.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline.unwrap_or_else(|| self.worst_case())
    }

    /// The most attempts, the first one included.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The longest backoff before retry `number`, counted from 1: `backoff` × 2^(`number` - 1), at most `backoff_max`.
    #[must_use]
    pub fn longest_backoff(&self, number: u32) -> Duration {
        let factor = 1_u32.checked_shl(number.saturating_sub(1)).unwrap_or(u32::MAX);
        self.backoff.saturating_mul(factor).min(self.backoff_max())
    }

    /// The longest that any backoff takes.
    #[must_use]
    pub fn backoff_max(&self) -> Duration {
        self.backoff_max.unwrap_or(super::check::DEFAULT_BACKOFF_MAX.max(self.backoff))
    }

    /// What all attempts and backoffs take at their longest.
    #[must_use]
    pub fn worst_case(&self) -> Duration {
        let backoffs: Duration = (1..self.attempts).map(|number| self.longest_backoff(number)).sum();
        self.timeout.saturating_mul(self.attempts) + backoffs
    }

    /// The share of calls that may be retried, in retries per call; none if nothing but `attempts` bounds them.
    #[must_use]
    pub fn retry_budget(&self) -> Option<f64> {
        self.retry_budget_milli.map(|milli| f64::from(milli) / 1_000.0)
    }

    /// The retries per second that are allowed in any case.
    #[must_use]
    pub fn retry_floor(&self) -> u32 {
        self.retry_floor
    }

    /// How long the budget remembers calls and retries.
    #[must_use]
    pub fn retry_memory(&self) -> Duration {
        self.retry_memory
    }

    /// The bytes of a request's body that are kept for a retry.
    #[must_use]
    pub fn replay_limit(&self) -> usize {
        self.replay_limit as usize
    }

    /// What callers get instead of a failure.
    #[must_use]
    pub fn fallback(&self) -> &Fallback {
        &self.fallback
    }
}
