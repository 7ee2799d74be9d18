//! Transitions: what is reported of a state change, to whom, and in which order.
//!
//! Each change of generation is one [`Transition`]. Its target's sequence number is gapless and wide, though the generation in
//! the gate is narrow. Observers are called by the thread that made the transition, after the word has changed and the permit
//! is back, with nothing locked; a transition that an observer causes waits in a queue of its thread until the observer has
//! returned. The log and the subscriptions get the transitions of a target in the order of their numbers ([`order`]).

pub(crate) mod channel;
pub(crate) mod hub;
pub(crate) mod observer;
pub(crate) mod order;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use channel::Subscription;
pub use observer::{Observer, ObserverGuard};

use crate::gate::State;
use crate::trip::{Evidence, Rule};

/// One state change of one target.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Transition<K = String> {
    /// The target's key.
    pub target: Arc<K>,
    /// The state before, as the gate had it.
    pub from: State,
    /// The state after.
    pub to: State,
    /// What brought it about.
    pub cause: Cause,
    /// Number among the target's transitions: 1, 2, 3, ... without a gap.
    pub sequence: u64,
    /// The generation that it began; wraps at 1,048,576.
    pub generation: u32,
    /// Number of the target among all that the engine ever made: a key that was forgotten and came back has another.
    pub incarnation: u64,
    /// When it was decided, on the engine's clock, since the engine was built.
    pub at: Duration,
    /// The same in wall time, for people only.
    pub wall: SystemTime,
    /// Why it opened; only for trips of a CLOSED target.
    pub evidence: Option<Box<Evidence>>,
    /// The wait until it may be probed, where it opened; none in other states.
    pub wait: Option<Duration>,
    /// The wait that the target asked for with the failure that opened it, if it did: `wait` is no shorter, but for `open_wait_max`.
    pub retry_after: Option<Duration>,
}

/// What brought a transition about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// [`Rule::ConsecutiveFailures`] was met.
    ConsecutiveFailures,
    /// [`Rule::FailureRate`] was met.
    FailureRate,
    /// [`Rule::Failures`] was met.
    Failures,
    /// [`Rule::SlowRate`] was met.
    SlowRate,
    /// [`Rule::StalledCalls`] was met.
    StalledCalls,
    /// [`Rule::StalledShare`] was met.
    StalledShare,
    /// [`Rule::Relapse`] was met.
    Relapse,
    /// A probe failed.
    ProbeFailed,
    /// A probe answered, but too slowly.
    ProbeSlow,
    /// Enough probes succeeded.
    ProbesSucceeded,
    /// The wait was over and a caller came.
    WaitElapsed,
    /// The probes gave no sign within their lease, and a caller took their place.
    LeaseExpired,
    /// Closed to calls by hand.
    ForcedOpen,
    /// The breaker was turned off by hand.
    Disabled,
    /// Released by hand.
    Released,
    /// A new policy changed the window, or `stall_after`: what was counted under the old one is forgotten.
    PolicyChanged,
    /// The target was idle for long and is no longer held.
    Forgotten,
}

impl Cause {
    /// The name in logs, metrics and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConsecutiveFailures => "consecutive_failures",
            Self::FailureRate => "failure_rate",
            Self::Failures => "failures",
            Self::SlowRate => "slow_rate",
            Self::StalledCalls => "stalled_calls",
            Self::StalledShare => "stalled_share",
            Self::Relapse => "relapse",
            Self::ProbeFailed => "probe_failed",
            Self::ProbeSlow => "probe_slow",
            Self::ProbesSucceeded => "probes_succeeded",
            Self::WaitElapsed => "wait_elapsed",
            Self::LeaseExpired => "lease_expired",
            Self::ForcedOpen => "forced_open",
            Self::Disabled => "disabled",
            Self::Released => "released",
            Self::PolicyChanged => "policy_changed",
            Self::Forgotten => "forgotten",
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<Rule> for Cause {
    fn from(rule: Rule) -> Self {
        match rule {
            Rule::ConsecutiveFailures => Self::ConsecutiveFailures,
            Rule::FailureRate => Self::FailureRate,
            Rule::Failures => Self::Failures,
            Rule::SlowRate => Self::SlowRate,
            Rule::StalledCalls => Self::StalledCalls,
            Rule::StalledShare => Self::StalledShare,
            Rule::Relapse => Self::Relapse,
        }
    }
}

/// A key as people write it: strings bare, anything else as `Debug` shows it.
#[cfg(any(feature = "tracing", feature = "serde", feature = "metrics"))]
pub(crate) fn name<K: std::fmt::Debug + 'static>(key: &K) -> String {
    let any: &dyn std::any::Any = key;
    match (any.downcast_ref::<String>(), any.downcast_ref::<&'static str>()) {
        (Some(string), _) => string.clone(),
        (_, Some(string)) => (*string).to_owned(),
        _ => format!("{key:?}"),
    }
}

#[cfg(feature = "serde")]
mod json {
    use std::fmt::Debug;
    use std::time::UNIX_EPOCH;

    use serde::ser::SerializeStruct;
    use serde::{Serialize, Serializer};

    use super::{Cause, Transition};

    impl Serialize for Cause {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(self.as_str())
        }
    }

    /// `at_ms` since the engine was built, `wall_ms` since 1970.
    impl<K: Debug + 'static> Serialize for Transition<K> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let wall = self.wall.duration_since(UNIX_EPOCH).unwrap_or_default();
            let mut fields = serializer.serialize_struct("Transition", 12)?;
            fields.serialize_field("target", &super::name(&*self.target))?;
            fields.serialize_field("from", &self.from)?;
            fields.serialize_field("to", &self.to)?;
            fields.serialize_field("cause", &self.cause)?;
            fields.serialize_field("sequence", &self.sequence)?;
            fields.serialize_field("generation", &self.generation)?;
            fields.serialize_field("incarnation", &self.incarnation)?;
            fields.serialize_field("at_ms", &u64::try_from(self.at.as_millis()).unwrap_or(u64::MAX))?;
            fields.serialize_field("wall_ms", &u64::try_from(wall.as_millis()).unwrap_or(u64::MAX))?;
            fields.serialize_field("evidence", &self.evidence)?;
            let millis = |wait: Option<std::time::Duration>| {
                wait.map(|wait| u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
            };
            fields.serialize_field("wait_ms", &millis(self.wait))?;
            fields.serialize_field("retry_after_ms", &millis(self.retry_after))?;
            fields.end()
        }
    }
}
