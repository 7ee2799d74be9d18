//! What is wrong with a configuration: all of it that can be told at once, each with its place.

use std::fmt;

/// One thing that is wrong with a configuration.
///
/// Shown as `line 12: target.core-banking.failure_rate: 1.5 is out of range: must be above 0 and at most 1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The line that it is on, from 1; none if the file as a whole is meant.
    pub line: Option<usize>,
    /// The key, with the tables that it is in.
    pub field: String,
    /// The value and what would be accepted.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// Everything that was found wrong with a configuration, in the order of its lines; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// Sorts them by line. The same twice is told once.
    #[must_use]
    pub fn new(mut errors: Vec<ConfigError>) -> Self {
        errors.sort_by_key(|error| error.line);
        errors.dedup();
        Self(errors)
    }

    /// One error about the file as a whole.
    #[must_use]
    pub fn whole(message: String) -> Self {
        Self(vec![ConfigError { line: None, field: String::new(), message }])
    }

    /// The errors, in the order of their lines.
    #[must_use]
    pub fn errors(&self) -> &[ConfigError] {
        &self.0
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.0.iter().enumerate() {
            if n > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
