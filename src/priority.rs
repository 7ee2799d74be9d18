//! How a call asks to be admitted: how much it matters, and what dropping its permit means.

use std::fmt;

/// How much a call matters, and so how much of the limit it may use.
///
/// Calls below critical stop at their share of the limit, [`normal_share`](crate::PolicyBuilder::normal_share) and
/// [`sheddable_share`](crate::PolicyBuilder::sheddable_share), so that the rest is left to more important ones. All calls in flight count against
/// it, of whatever priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Priority {
    /// May be dropped first: prefetches, refreshes, batch work.
    Sheddable,
    /// May be dropped before what is critical.
    Normal,
    /// May use the whole limit, and may wait: what a caller of the plain `admit` is.
    #[default]
    Critical,
}

impl Priority {
    /// The priority as it stands in headers, configuration and logs: `critical`, `normal` or `sheddable`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sheddable => "sheddable",
            Self::Normal => "normal",
            Self::Critical => "critical",
        }
    }

    /// Finds a priority by its name, in any case; none if it is no name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Critical, Self::Normal, Self::Sheddable]
            .into_iter()
            .find(|known| known.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How a call asks to be admitted.
///
/// ```
/// use portcullis::{Admit, Engine, Priority, Rejection};
///
/// let engine: Engine = Engine::builder().build();
/// engine.admit_with("core-banking", Priority::Normal)?.success();
/// engine.admit_with("core-banking", Admit::new().priority(Priority::Sheddable).may_be_dropped())?.success();
/// # Ok::<(), Rejection>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Admit {
    pub(crate) priority: Priority,
    pub(crate) is_async: bool,
}

impl Admit {
    /// As the plain `admit` does: critical, and a permit that is dropped says nothing.
    pub const fn new() -> Self {
        Self { priority: Priority::Critical, is_async: false }
    }

    /// Sets how much the call matters.
    pub const fn priority(self, priority: Priority) -> Self {
        Self { priority, ..self }
    }

    /// Says that the call is a future that may be dropped: abandoned, it counts as a failure once it ran for 500 ms, unless the policy says
    /// otherwise; see [`Engine::admit_async`](crate::Engine::admit_async).
    pub const fn may_be_dropped(self) -> Self {
        Self { is_async: true, ..self }
    }
}

impl From<Priority> for Admit {
    fn from(priority: Priority) -> Self {
        Self::new().priority(priority)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_known_by_their_names_and_ordered_by_what_they_matter() {
        for priority in [Priority::Sheddable, Priority::Normal, Priority::Critical] {
            assert_eq!(Priority::from_name(priority.name()), Some(priority));
            assert_eq!(Priority::from_name(&priority.to_string().to_uppercase()), Some(priority));
        }
        assert_eq!((Priority::from_name("crit"), Priority::from_name("")), (None, None));
        assert!(Priority::Sheddable < Priority::Normal && Priority::Normal < Priority::Critical);
        assert_eq!(Admit::default(), Admit::from(Priority::default()));
    }
}
