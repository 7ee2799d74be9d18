//! How a call ended, and what came of saying so.

/// How a call ended.
///
/// Only the target's own failures count: no answer, no connection, a system error. A business refusal is a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The target answered, be it with a refusal.
    Success,
    /// The target failed.
    Failure,
    /// No evidence about the target's health, such as a call that the caller itself cancelled. Meant to be rare.
    Ignored,
}

/// What came of settling a permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Settled {
    /// The outcome was recorded.
    Recorded,
    /// The target has changed its state since the permit was granted: the outcome describes another time and was only
    /// counted as stale.
    Stale,
}
