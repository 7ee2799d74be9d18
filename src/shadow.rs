//! Shadows: candidates for a target's next policy, which are told of each of its calls and decide nothing.

pub(crate) mod candidate;
pub(crate) mod desk;

use std::fmt;
use std::time::Duration;

use crate::event::Cause;
use crate::rejection::Rejection;
use crate::snapshot::Snapshot;
use crate::trip::Evidence;

/// Shadows that one target has at most: each costs its calls about what a decision does.
pub(crate) const MOST: usize = 4;
/// The bytes of a shadow's name.
pub(crate) const NAME: std::ops::RangeInclusive<usize> = 1..=64;

/// A shadow as it was at a moment: what its policy would have done with the calls that the target let start since the shadow came.
///
/// A call that the shadow would have refused was made nevertheless, so what came of it is known, and none of its words heard of it. Then
/// `refused` is the sum of `refused_but_succeeded`, `failures_avoided`, `refused_without_verdict` and those that still run.
/// See [`docs::shadows`](crate::docs::shadows) for what the figures say, and what they can't.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct ShadowSnapshot {
    /// Its name.
    pub name: String,
    /// When it came, on the engine's clock, since the engine was built.
    #[cfg_attr(feature = "serde", serde(rename = "since_ms", serialize_with = "millis"))]
    pub since: Duration,
    /// Calls that it was asked about: those that the target let start. It never goes back, and may be off as [`Totals::admitted`](crate::Totals) is.
    pub asked: u64,
    /// Calls that the target itself refused meanwhile: it wasn't asked about them, since nobody knows what would have come of them.
    pub not_asked: u64,
    /// Calls that it would have refused; by reason in `would_be.refusals`.
    pub refused: u64,
    /// Calls among them that succeeded: the price.
    pub refused_but_succeeded: u64,
    /// Calls among them that failed: the gain. A call that was dropped counts by the shadow's own `on_abandon`.
    pub failures_avoided: u64,
    /// Calls among them that ended without evidence about the target.
    pub refused_without_verdict: u64,
    /// Times that a rule of its policy was met and it opened; a failed probe is none.
    pub trips: u64,
    /// The last of these.
    pub last_trip: Option<Trip>,
    /// The target as it would be under this policy: its state, window, calls in flight, counts and refusals.
    pub would_be: Snapshot,
}

/// A trip of a shadow. It is in no log, and no observer hears of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Trip {
    /// When, on the engine's clock, since the engine was built.
    #[cfg_attr(feature = "serde", serde(rename = "at_ms", serialize_with = "millis"))]
    pub at: Duration,
    /// What brought it about.
    pub cause: Cause,
    /// The wait until it would have been probed.
    #[cfg_attr(feature = "serde", serde(rename = "wait_ms", serialize_with = "millis"))]
    pub wait: Duration,
    /// Each rule that was met, with its counts.
    pub evidence: Box<Evidence>,
}

#[cfg(feature = "serde")]
fn millis<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// Why a shadow can't be had, or promoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShadowError {
    /// The target is new, and the engine has no room for it.
    Rejected(Rejection),
    /// The target has as many shadows as it may.
    TooMany {
        /// The bound: 4.
        most: usize,
    },
    /// The name is empty, longer than 64 bytes or has control characters.
    Name,
    /// The target has no shadow of this name.
    Unknown,
}

impl fmt::Display for ShadowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::TooMany { most } => {
                write!(f, "the target has {most} shadows, as many as it may: take one away first")
            }
            Self::Name => {
                let (least, most) = (NAME.start(), NAME.end());
                write!(
                    f,
                    "the shadow's name is out of range: must be {least} to {most} bytes without control characters"
                )
            }
            Self::Unknown => f.write_str("the target has no shadow of this name"),
        }
    }
}

impl std::error::Error for ShadowError {}

impl From<Rejection> for ShadowError {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}
