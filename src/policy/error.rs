//! Why a policy doesn't build.

use std::fmt;

/// A policy field whose value can't work.
///
/// Shown as `failure_rate: 1.5 is out of range: must be above 0 and at most 1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    field: &'static str,
    value: String,
    expected: String,
}

impl PolicyError {
    pub(crate) fn new(field: &'static str, value: impl fmt::Display, expected: impl Into<String>) -> Self {
        Self { field, value: value.to_string(), expected: expected.into() }
    }

    /// The builder method, and the key in a policy file, that set the value.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// The value that was refused.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What would have been accepted.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} is out of range: must be {}", self.field, self.value, self.expected)
    }
}

impl std::error::Error for PolicyError {}
