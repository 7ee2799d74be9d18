//! What a window promises.
//!
//! - A window belongs to one generation of its target and is empty when that begins; each word carries its generation, and
//!   a word of an earlier one counts as empty.
//! - [`calls`] is exact over the last N outcomes. A [`ring`] of [`buckets`] covers the window's length less at most one bucket.
//! - An outcome of an earlier generation is never counted. Which of two is older can't be told from the tags alone, since
//!   they wrap: the gate, read after the word, decides (protocol K).

pub mod buckets;
pub mod calls;
pub mod clean;
pub mod lane;
pub mod marks;
pub mod ring;
pub mod streak;

use std::time::Duration;

use crate::gate;
use crate::policy::PolicyError;
use crate::time::Now;

/// The most calls that the exact window holds: what fits a 128-bit word beside its generation.
pub(crate) const MOST_CALLS: u32 = 100;
/// The most calls that one bucket counts before it stands still.
const MOST_IN_TIME: u32 = buckets::MOST_COUNTED;
const MOST_BUCKETS: u32 = buckets::MOST_BUCKETS;
const DEFAULT_BUCKETS: u32 = 10;
pub(crate) const LONGEST: Duration = Duration::from_hours(24);

/// The stretch of past calls that rates and counts are judged on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    kind: Kind,
    buckets: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Calls(u32),
    Time(Duration),
}

impl Window {
    /// The last `calls` calls, exactly; 1 to 100.
    #[must_use]
    pub fn calls(calls: u32) -> Self {
        Self { kind: Kind::Calls(calls), buckets: None }
    }

    /// The calls that ended in the last `length`, within one bucket; up to 24 h, in 10 buckets unless set.
    #[must_use]
    pub fn time(length: Duration) -> Self {
        Self { kind: Kind::Time(length), buckets: None }
    }

    /// Cuts a window of time into 1 to 64 buckets of whole milliseconds each.
    #[must_use]
    pub fn buckets(mut self, buckets: u32) -> Self {
        self.buckets = Some(buckets);
        self
    }

    pub(crate) fn geometry(&self) -> Result<Geometry, PolicyError> {
        match self.kind {
            Kind::Calls(calls) => self.calls_geometry(calls),
            Kind::Time(length) => self.time_geometry(length),
        }
    }

    fn calls_geometry(&self, calls: u32) -> Result<Geometry, PolicyError> {
        if let Some(buckets) = self.buckets {
            return Err(PolicyError::new("window.buckets", buckets, "left out: a window of calls has none"));
        }
        if (1..=MOST_CALLS).contains(&calls) {
            Ok(Geometry::Calls(calls))
        } else {
            let expected = format!("1 to {MOST_CALLS}; for more calls take a window of time");
            Err(PolicyError::new("window.calls", calls, expected))
        }
    }

    fn time_geometry(&self, length: Duration) -> Result<Geometry, PolicyError> {
        let buckets = self.buckets.unwrap_or(DEFAULT_BUCKETS);
        if !(1..=MOST_BUCKETS).contains(&buckets) {
            return Err(PolicyError::new("window.buckets", buckets, format!("1 to {MOST_BUCKETS}")));
        }
        let shown = format!("{length:?}");
        if length < Duration::from_millis(1) || length > LONGEST {
            return Err(PolicyError::new("window.time", shown, format!("1ms to {LONGEST:?}")));
        }
        // At most 24 hours of milliseconds.
        let millis = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        let width_ms = millis / u64::from(buckets);
        if width_ms == 0 || width_ms * u64::from(buckets) != millis || !length.subsec_nanos().is_multiple_of(1_000_000)
        {
            let expected = format!("a whole number of milliseconds in each of its {buckets} buckets");
            return Err(PolicyError::new("window.time", shown, expected));
        }
        Ok(Geometry::Time { width_ms, buckets })
    }
}

/// A window whose numbers are known to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Geometry {
    Calls(u32),
    Time { width_ms: u64, buckets: u32 },
}

impl Geometry {
    /// The most calls that the window can hold.
    pub(crate) fn most_calls(self) -> u32 {
        match self {
            Self::Calls(calls) => calls,
            Self::Time { .. } => MOST_IN_TIME,
        }
    }
}

impl Geometry {
    /// What a window of time shows in CLOSED; none if it isn't one.
    pub(crate) fn view(self, gate: gate::Word, now: impl FnOnce() -> Now) -> Option<buckets::View> {
        let Self::Time { width_ms, buckets } = self else { return None };
        Some(buckets::View::new(gate.generation(), gate.tick(), width_ms, buckets, now()))
    }
}

impl From<Geometry> for Window {
    fn from(geometry: Geometry) -> Self {
        match geometry {
            Geometry::Calls(calls) => Self::calls(calls),
            Geometry::Time { width_ms, buckets } => {
                Self::time(Duration::from_millis(width_ms * u64::from(buckets))).buckets(buckets)
            }
        }
    }
}

#[cfg(feature = "serde")]
pub(crate) enum Shape {
    Calls(u32),
    Time(Duration, Option<u32>),
}

#[cfg(feature = "serde")]
impl Window {
    pub(crate) fn shape(self) -> Shape {
        match self.kind {
            Kind::Calls(calls) => Shape::Calls(calls),
            Kind::Time(length) => Shape::Time(length, self.buckets),
        }
    }
}

/// What came of offering an outcome to a window word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Recorded<T> {
    /// Counted; the window as this outcome left it.
    Counted(T),
    /// Of an earlier generation than the gate's: nothing was written.
    Stale,
}

impl<T> Recorded<T> {
    pub(crate) fn map<U>(self, with: impl FnOnce(T) -> U) -> Recorded<U> {
        match self {
            Self::Counted(value) => Recorded::Counted(with(value)),
            Self::Stale => Recorded::Stale,
        }
    }
}

/// Whether the word of another generation, just loaded, may be reset: only if the outcome's own is still the gate's.
///
/// The gate must be read after the word. If it still shows the outcome's generation, the word was older when it was read,
/// and the CAS that resets it fails if it moved on since. Read before the word, a straggler could wipe a newer window.
pub(crate) fn is_current(gate: &crate::gate::Cell, generation: u32) -> bool {
    gate.load().generation() == generation
}

/// What a window holds, as one outcome saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub calls: u64,
    pub failures: u64,
    pub slow: u64,
}
