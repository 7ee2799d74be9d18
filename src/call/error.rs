//! What a whole call fails with.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::fallback::BoxError;
use crate::rejection::Rejection;

/// What became of an attempt, or why there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause<E> {
    /// Not admitted.
    Rejected(Rejection),
    /// No answer within the attempt's timeout: a failure of the target.
    TimedOut {
        /// The timeout.
        after: Duration,
    },
    /// The call's deadline has passed.
    Deadline {
        /// Whether it had when the call came: nothing was tried then, and no fallback asked.
        on_arrival: bool,
    },
    /// The call's own error.
    Failed(E),
    /// An answer that is a failure.
    Answered {
        /// Its HTTP status, if it has one.
        status: Option<u16>,
    },
}

impl<E> Cause<E> {
    /// The reason as it stands in metrics, logs and JSON.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Rejected(rejection) => rejection.reason(),
            Self::TimedOut { .. } => "timeout",
            Self::Deadline { .. } => "deadline",
            Self::Failed(_) => "failed",
            Self::Answered { .. } => "answered",
        }
    }
}

impl<E: fmt::Display> fmt::Display for Cause<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::TimedOut { after } => write!(f, "no answer within {} ms", after.as_millis()),
            Self::Deadline { on_arrival: true } => f.write_str("the deadline had passed on arrival"),
            Self::Deadline { on_arrival: false } => f.write_str("no answer before the deadline"),
            Self::Failed(error) => error.fmt(f),
            Self::Answered { status: Some(status) } => write!(f, "the target answered {status}"),
            Self::Answered { status: None } => f.write_str("the target answered with a failure"),
        }
    }
}

/// Why there was no further attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GaveUp {
    /// All attempts are made.
    Attempts,
    /// The retry budget is spent.
    Budget,
    /// A further attempt couldn't end before the deadline.
    Deadline,
    /// The call isn't idempotent.
    NotIdempotent,
    /// The request's body is longer than what is kept.
    NotReplayable,
    /// Another attempt would not help: refused, a business error, or the caller's own scope has ended.
    Final,
}

/// What a whole call fails with: the last cause, the attempts made, and why there was no further one.
#[derive(Debug)]
pub struct CallError<E> {
    pub(super) cause: Cause<E>,
    pub(super) attempts: u32,
    pub(super) gave_up: GaveUp,
    /// What came of the attempt before, if this cause isn't an attempt's.
    pub(super) previous: Option<Box<Cause<E>>>,
    pub(super) fallback: Option<BoxError>,
    pub(super) failed_code: &'static str,
    /// Whether it is the caller's own doing.
    pub(super) is_callers: bool,
}

impl<E> CallError<E> {
    pub(super) fn new(cause: Cause<E>, attempts: u32, gave_up: GaveUp) -> Self {
        Self { cause, attempts, gave_up, previous: None, fallback: None, failed_code: "E500", is_callers: false }
    }

    /// Whether no fallback is asked to answer: it is the caller's own doing, or the caller is gone.
    pub(super) fn is_for_nobody(&self) -> bool {
        self.is_callers || matches!(self.cause, Cause::Deadline { on_arrival: true })
    }

    /// What the call failed with in the end.
    #[must_use]
    pub fn cause(&self) -> &Cause<E> {
        &self.cause
    }

    /// What the call failed with, by value.
    #[must_use]
    pub fn into_cause(self) -> Cause<E> {
        self.cause
    }

    /// What the last attempt that ran failed with, if a later one was refused.
    #[must_use]
    pub fn previous(&self) -> Option<&Cause<E>> {
        self.previous.as_deref()
    }

    /// Attempts that were admitted.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Why there was no further attempt.
    #[must_use]
    pub fn gave_up(&self) -> GaveUp {
        self.gave_up
    }

    /// What the fallback failed with, if there was one and it failed, too.
    #[must_use]
    pub fn fallback_error(&self) -> Option<&BoxError> {
        self.fallback.as_ref()
    }

    /// The refusal, if it is one.
    #[must_use]
    pub fn rejection(&self) -> Option<Rejection> {
        match &self.cause {
            Cause::Rejected(rejection) => Some(*rejection),
            _ => None,
        }
    }

    /// The stable wire code: `E904` and `E905` of refusals, `E901` for no answer in time, `E902` for no connection, `E500` for a system error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match &self.cause {
            Cause::Rejected(rejection) => rejection.code(),
            Cause::TimedOut { .. } | Cause::Deadline { .. } => "E901",
            Cause::Failed(_) => self.failed_code,
            Cause::Answered { .. } => "E500",
        }
    }

    /// The reason as it stands in metrics, logs and JSON.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        self.cause.reason()
    }

    /// When to come back, if that is known.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.rejection().and_then(|rejection| rejection.retry_after())
    }
}

impl<E: fmt::Display> fmt::Display for CallError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code(), self.cause)?;
        if self.attempts > 1 {
            write!(f, ", after {} attempts", self.attempts)?;
        }
        match &self.fallback {
            Some(error) => write!(f, "; the fallback failed: {error}"),
            None => Ok(()),
        }
    }
}

// No bound on `Error`: boxed errors, which tower's own layers have, aren't errors themselves.
impl<E: fmt::Debug + fmt::Display> Error for CallError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.cause {
            Cause::Rejected(rejection) => Some(rejection),
            _ => None,
        }
    }
}
