//! A value that doesn't fit.

use serde::Serialize;

use crate::derive::Entry;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know; never fails a run.
    Note,
    /// It should be changed.
    Warning,
    /// It does harm, or can't do what it is for.
    Error,
}

impl Severity {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A value that doesn't fit what was seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// Whose value.
    pub target: String,
    /// The field in the policy file; `target` if it is about the target as a whole.
    pub field: &'static str,
    /// The value in force, as in a policy file; empty if there is none.
    pub value: String,
    /// What was seen.
    pub evidence: String,
    /// What would fit.
    pub better: Vec<Better>,
}

impl Finding {
    pub(super) fn new(severity: Severity, target: &str, field: &'static str, value: String, evidence: String) -> Self {
        Self { severity, target: target.to_owned(), field, value, evidence, better: Vec::new() }
    }
}

/// A field that would fit, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Better {
    /// The field.
    pub field: &'static str,
    /// Its value, as in a policy file.
    pub value: String,
    /// Where it comes from.
    pub why: String,
}

impl Better {
    pub(super) fn of(entry: &Entry) -> Option<Self> {
        Some(Self { field: entry.field, value: entry.value?.to_string(), why: entry.why.clone() })
    }
}
