//! The builder: every setting optional, every combination checked at once in `build`.

use std::time::Duration;

use super::fallback::Fallback;
use super::policy::CallPolicy;
use crate::policy::PolicyError;

/// Collects the settings of a [`CallPolicy`]; see there for defaults and ranges.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
#[must_use]
pub struct CallPolicyBuilder {
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::timeout", serialize_with = "super::file::duration")
    )]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) timeout: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::probe_timeout", serialize_with = "super::file::duration")
    )]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) probe_timeout: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::deadline", serialize_with = "super::file::duration")
    )]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) deadline: Option<Duration>,
    #[cfg_attr(feature = "serde", serde(deserialize_with = "super::file::attempts"))]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) attempts: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::backoff", serialize_with = "super::file::duration")
    )]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) backoff: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::backoff_max", serialize_with = "super::file::duration")
    )]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) backoff_max: Option<Duration>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::retry_budget", serialize_with = "super::file::share")
    )]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) retry_budget: Option<Option<f64>>,
    #[cfg_attr(feature = "serde", serde(deserialize_with = "super::file::retry_floor"))]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) retry_floor: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::retry_memory", serialize_with = "super::file::duration")
    )]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) retry_memory: Option<Duration>,
    #[cfg_attr(feature = "serde", serde(deserialize_with = "super::file::replay_limit"))]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) replay_limit: Option<u32>,
    #[cfg_attr(
        feature = "serde",
        serde(deserialize_with = "super::file::fallback", serialize_with = "super::file::fallback_out")
    )]
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub(super) fallback: Option<Fallback>,
}

impl CallPolicyBuilder {
    /// Bounds each attempt. An attempt that takes longer is cancelled, and a failure of the target.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Bounds each attempt that is a probe: as short as a healthy target needs, since every open period costs its callers one.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_timeout = Some(timeout);
        self
    }

    /// Bounds the whole call, retries and backoffs included. A caller's own deadline can only shorten it.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the most attempts, the first one included. Only idempotent calls are made again.
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// Sets the longest wait before the first retry; it doubles with each. The wait is drawn evenly from zero up to that.
    pub fn backoff(mut self, longest: Duration) -> Self {
        self.backoff = Some(longest);
        self
    }

    /// Bounds the waits before retries.
    pub fn backoff_max(mut self, longest: Duration) -> Self {
        self.backoff_max = Some(longest);
        self
    }

    /// Allows so many retries per call, over the last calls: 0.1 is one retry for ten calls.
    pub fn retry_budget(mut self, share: f64) -> Self {
        self.retry_budget = Some(Some(share));
        self
    }

    /// Bounds retries by `attempts` only: in an outage each call then loads the target `attempts` times.
    pub fn no_retry_budget(mut self) -> Self {
        self.retry_budget = Some(None);
        self
    }

    /// Allows at least so many retries per second, where the share of calls is less.
    pub fn retry_floor(mut self, per_second: u32) -> Self {
        self.retry_floor = Some(per_second);
        self
    }

    /// Sets the span over which calls and retries are counted against each other: what wasn't used in it is gone.
    pub fn retry_memory(mut self, span: Duration) -> Self {
        self.retry_memory = Some(span);
        self
    }

    /// Keeps up to so many bytes of a request's body for a retry. Longer bodies are sent once.
    pub fn replay_limit(mut self, bytes: u32) -> Self {
        self.replay_limit = Some(bytes);
        self
    }

    /// Sets what callers get instead of a failure.
    pub fn fallback(mut self, fallback: Fallback) -> Self {
        self.fallback = Some(fallback);
        self
    }
}

impl From<CallPolicy> for CallPolicyBuilder {
    fn from(policy: CallPolicy) -> Self {
        Self {
            timeout: Some(policy.timeout),
            probe_timeout: policy.probe_timeout,
            deadline: policy.deadline,
            attempts: Some(policy.attempts),
            backoff: Some(policy.backoff),
            backoff_max: policy.backoff_max,
            retry_budget: Some(policy.retry_budget()),
            retry_floor: Some(policy.retry_floor),
            retry_memory: Some(policy.retry_memory),
            replay_limit: Some(policy.replay_limit),
            fallback: Some(policy.fallback),
        }
    }
}

impl TryFrom<CallPolicyBuilder> for CallPolicy {
    type Error = PolicyError;

    fn try_from(builder: CallPolicyBuilder) -> Result<Self, PolicyError> {
        builder.build()
    }
}
