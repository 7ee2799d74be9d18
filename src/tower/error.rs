//! What a guarded service fails with.

use std::fmt;

use crate::rejection::Rejection;

/// What a guarded service fails with: our refusal, or the inner service's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<E> {
    /// The call wasn't admitted; the inner service never saw it. Not to be retried at once.
    Rejected(Rejection),
    /// The inner service's own error.
    Inner(E),
}

impl<E> Error<E> {
    /// The refusal, if it is one.
    pub fn rejection(&self) -> Option<Rejection> {
        match self {
            Self::Rejected(rejection) => Some(*rejection),
            Self::Inner(_) => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejection) => write!(f, "{}: {rejection}", rejection.code()),
            Self::Inner(error) => error.fmt(f),
        }
    }
}

// No bound on `Error`: boxed errors, which tower's own layers have, aren't errors themselves.
impl<E: fmt::Debug + fmt::Display> std::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Rejected(rejection) => Some(rejection),
            // Shown as itself, so it isn't its own source.
            Self::Inner(_) => None,
        }
    }
}
