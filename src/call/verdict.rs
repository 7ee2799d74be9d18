//! What one attempt's result says: about the target, and about trying again.

use std::time::Duration;

use crate::outcome::Outcome;

/// Whether another attempt might do better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// No: another attempt would end the same way, or do harm.
    No,
    /// After a backoff.
    Yes,
    /// Not before this time has passed: the target said so. Of a failure the engine is told as well, see
    /// [`Permit::failure_retry_after`](crate::Permit::failure_retry_after).
    After(Duration),
}

/// What one attempt's result says: the outcome for the target, and whether another attempt might do better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub(super) outcome: Outcome,
    pub(super) again: Again,
    pub(super) status: Option<u16>,
    pub(super) code: &'static str,
}

impl Verdict {
    const fn new(outcome: Outcome, again: Again) -> Self {
        Self { outcome, again, status: None, code: "E500" }
    }

    /// An answer, be it a business refusal: never tried again.
    #[must_use]
    pub const fn success() -> Self {
        Self::new(Outcome::Success, Again::No)
    }

    /// A failure of the target, worth another attempt.
    #[must_use]
    pub const fn failure() -> Self {
        Self::new(Outcome::Failure, Again::Yes)
    }

    /// No evidence about the target: never tried again.
    #[must_use]
    pub const fn ignored() -> Self {
        Self::new(Outcome::Ignored, Again::No)
    }

    /// Sets whether another attempt might do better.
    #[must_use]
    pub const fn again(mut self, again: Again) -> Self {
        self.again = again;
        self
    }

    /// Sets the wire code of an error with this verdict: `E500` unless set, `E902` for no connection, `E901` for a timeout of the client's own.
    #[must_use]
    pub const fn code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }

    /// Sets the HTTP status of the answer.
    #[must_use]
    pub const fn status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    /// The verdict unless somebody knows better: a value is a success, an error a failure.
    #[must_use]
    pub fn of<T, E>(result: &Result<T, E>) -> Self {
        if result.is_ok() { Self::success() } else { Self::failure() }
    }

    /// When a failed target said to come back, which the engine is to know, too.
    pub(super) fn come_back(&self) -> Option<Duration> {
        match (self.outcome, self.again) {
            (Outcome::Failure, Again::After(wait)) => Some(wait),
            _ => None,
        }
    }

    /// Whether a value with this verdict is the call's good answer.
    pub(super) fn is_good(&self) -> bool {
        self.outcome != Outcome::Failure && self.again == Again::No
    }

    /// What it says about the target.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}
