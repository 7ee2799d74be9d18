//! The gate of a target: its state, and everything that an admission must know about it, in one word.
//!
//! ```text
//!             trip rule met                       wait elapsed, first caller wins by CAS
//!   CLOSED ------------------------> OPEN --------------------------------------> HALF_OPEN --+
//!     ^                               ^                                              |  |  ^  | lease ended
//!     |                               +-------------- a probe fails or is slow ------+  |  +--+
//!     +------------------------------- enough probes succeeded ------------------------+
//!   FORCED_OPEN (refuse) and DISABLED (breaker off, bulkhead still holds, still counts) are entered and left by hand only.
//! ```
//!
//! Every arrow begins a new generation and is one transition. Slots taken and given back within HALF_OPEN change the word, not the
//! generation. What a call may do to the word:
//!
//! | | CLOSED | OPEN | HALF_OPEN | FORCED_OPEN, DISABLED |
//! | --- | --- | --- | --- | --- |
//! | asks | enters | probes once the wait is over (HALF_OPEN) | probes if a slot is free or the lease over | refused, enters |
//! | succeeds | - | - | +1 success; enough of them: CLOSED | - |
//! | fails | OPEN if a rule is met | - | OPEN, longer | - |
//! | is ignored | - | - | gives its slot back | - |
//!
//! With a ramp, what closes is CLOSED and ramping until an admission finds the ramp over: that changes the word, not the generation. A trip
//! out of it counts as one reopening more.
//!
//! An outcome granted in another generation than the word's is stale and changes nothing, in any column.
//!
//! `word.rs` has the transitions as pure functions, `cell.rs` the one loop that applies them.

mod cell;
mod word;

pub use cell::{Applied, Cell, Moved};
pub use word::{Admission, ProbeRules, Refusal, Step, Word};

pub(crate) use word::{GENERATION_BITS, TICK_BITS};

use std::fmt;

/// The state of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// Calls enter; their outcomes are judged.
    Closed,
    /// Calls are refused until the wait is over.
    Open,
    /// Probes enter, a few at a time.
    HalfOpen,
    /// Calls are refused until somebody releases the target by hand.
    ForcedOpen,
    /// Calls enter and nothing trips, until somebody releases the target by hand.
    Disabled,
}

impl State {
    /// The name in logs, metrics and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Open => "OPEN",
            Self::HalfOpen => "HALF_OPEN",
            Self::ForcedOpen => "FORCED_OPEN",
            Self::Disabled => "DISABLED",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for State {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
