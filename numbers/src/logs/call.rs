//! What a line of a log comes to.

use portcullis::Outcome;

use super::TargetId;

/// One call that has ended, as a log tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it started, in nanoseconds since the Unix epoch.
    pub start: u64,
    /// How long it took, in nanoseconds.
    pub latency: u64,
    /// Whom it went to.
    pub target: TargetId,
    /// The HTTP status; 0 if there was no answer.
    pub status: u16,
    /// What an engine would have been told: 5xx, 429 and no answer are failures, a client that went away (499) is abandoned and so
    /// [`Outcome::Ignored`], anything else is an answer.
    pub outcome: Outcome,
}

/// What a call with this status is to an engine.
pub(super) fn outcome(status: u16) -> Outcome {
    match status {
        499 => Outcome::Ignored,
        0 | 429 | 500.. => Outcome::Failure,
        _ => Outcome::Success,
    }
}
