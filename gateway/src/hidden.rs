//! What `Debug` shows of a secret: debug output ends up in logs.

use std::fmt;

/// Stands for a secret.
#[derive(Clone, Copy)]
pub(crate) struct Hidden;

impl Hidden {
    /// Shows whether there is one, and nothing else.
    pub(crate) fn of(secret: Option<&str>) -> Option<Self> {
        secret.map(|_| Self)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<hidden>")
    }
}
