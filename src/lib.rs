//! Admission decisions for latency-critical gateways: circuit breaker, sliding failure window and bulkhead per target, in packed atomic
//! words.
#![warn(missing_docs, clippy::disallowed_methods, clippy::disallowed_types)]

// Where `missing_docs` is allowed, items are public for `internals` only, and named by what they are.
mod bits;
#[allow(missing_docs)]
mod bulkhead;
#[allow(missing_docs)]
mod counters;
mod engine;
mod event;
#[allow(missing_docs)]
mod gate;
mod handle;
mod outcome;
mod permit;
mod policy;
mod registry;
mod rejection;
mod slot;
mod snapshot;
mod standalone;
mod sync;
#[allow(missing_docs)]
mod target;
#[allow(missing_docs)]
mod time;
#[cfg(feature = "tower")]
pub mod tower;
mod trip;
#[allow(missing_docs)]
mod window;

pub use engine::{Engine, EngineBuilder, Key};
pub use event::{Cause, Observer, ObserverGuard, Subscription, Transition};
pub use gate::State;
pub use handle::Target;
pub use outcome::{Outcome, Settled};
pub use permit::{Held, OwnedHeld, OwnedPermit, Permit};
pub use policy::{OnAbandon, Policy, PolicyBuilder, PolicyError, UNLIMITED};
pub use rejection::Rejection;
pub use snapshot::{Refusals, Snapshot, Totals, WindowSnapshot};
pub use standalone::Standalone;
pub use time::{Clock, ClockError};
pub use trip::{Evidence, Met, Rule};
pub use window::Window;

/// The words and their protocols, for model checking and fuzzing. No stability is promised.
#[doc(hidden)]
pub mod internals {
    pub use crate::bulkhead::{Bulkhead, Usage, magazine, pool};
    pub use crate::counters::{Counter, Counters};
    pub use crate::gate::{Admission, Applied, Cell as Gate, Moved, ProbeRules, Refusal, Step, Word as GateWord};
    pub use crate::target::{Change, Ending, Refused, Terms, Token, Words};
    pub use crate::time::{Now, Reading};
    pub use crate::window::{Counts, Geometry, Recorded, buckets, calls, streak};
}
