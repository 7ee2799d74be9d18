//! Why a call may not start.

use std::fmt;
use std::time::Duration;

use crate::priority::Priority;

/// Why a call may not start, and when to come back.
///
/// A refusal isn't an outcome: it says nothing about the target's health and is counted by reason only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rejection {
    /// The circuit is open. After `retry_after` a lone caller probes.
    Open {
        /// Time until the wait is over, on the engine's clock; never zero.
        retry_after: Duration,
    },
    /// Recovery is being felt out and all probes are taken.
    Probing {
        /// Time until the probes' lease ends: an upper bound, since a probe usually settles sooner.
        retry_after: Duration,
    },
    /// The target has as many calls in flight as it may, or others wait for those to end.
    Saturated {
        /// The limit in force.
        limit: u32,
    },
    /// As many calls are in flight as the share of the limit that calls of this priority may use; more important ones may still start.
    Shed {
        /// The priority of the call that was refused.
        priority: Priority,
    },
    /// Somebody closed the target to calls by hand.
    ForcedOpen,
    /// The engine holds as many targets as it may, none of them idle.
    Exhausted {
        /// The engine's bound.
        max_targets: usize,
    },
}

impl Rejection {
    /// The stable wire code: `E904` if the circuit isn't closed, `E905` if there is no room.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open { .. } | Self::Probing { .. } | Self::ForcedOpen => "E904",
            Self::Saturated { .. } | Self::Shed { .. } | Self::Exhausted { .. } => "E905",
        }
    }

    /// The reason as it stands in metrics, logs and JSON.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Open { .. } => "open",
            Self::Probing { .. } => "probing",
            Self::Saturated { .. } => "saturated",
            Self::Shed { .. } => "shed",
            Self::ForcedOpen => "forced",
            Self::Exhausted { .. } => "exhausted",
        }
    }

    /// When to come back, if that is known. For [`Rejection::Open`] it is exact, for [`Rejection::Probing`] an upper bound.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Open { retry_after } | Self::Probing { retry_after } => Some(*retry_after),
            _ => None,
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { retry_after } => write!(f, "circuit open, retry after {} ms", millis(*retry_after)),
            Self::Probing { retry_after } => {
                write!(f, "recovery is being probed, retry within {} ms", millis(*retry_after))
            }
            Self::Saturated { limit } => write!(f, "all {limit} calls that the target may hold are in flight"),
            Self::Shed { priority } => write!(f, "calls of priority {priority} are being shed"),
            Self::ForcedOpen => f.write_str("target closed to calls by hand"),
            Self::Exhausted { max_targets } => write!(f, "all {max_targets} targets are in use"),
        }
    }
}

/// Whole milliseconds, rounded up.
fn millis(duration: Duration) -> u128 {
    duration.as_nanos().div_ceil(1_000_000)
}

impl std::error::Error for Rejection {}
