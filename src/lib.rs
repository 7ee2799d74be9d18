//! Decides in nanoseconds whether a call to a target may start, and learns from how it ended.
//!
//! One decision holds a circuit breaker, a sliding failure window and a bulkhead, per target, in atomic words moved by CAS.
//!
//! ```
//! use portcullis::{Engine, Policy, Rejection};
//!
//! let engine: Engine = Engine::builder().policy(Policy::builder().max_in_flight(64).build()?).build();
//! match engine.admit("core-banking") {
//!     Ok(permit) => {
//!         // ... call the target ...
//!         permit.success();
//!     }
//!     Err(rejection) => eprintln!("{}: {rejection}", rejection.code()),
//! }
//! # Ok::<(), portcullis::PolicyError>(())
//! ```
//!
//! # Where to look
//!
//! | for | see |
//! | --- | --- |
//! | asking and settling | [`Engine::admit`], [`Target::admit`], [`Permit`], [`Engine::call`] |
//! | calls that matter more or less, and calls that wait | [`Engine::admit_with`], [`Priority`], [`Engine::admit_waiting`], [`Engine::admit_blocking`] |
//! | settings, their defaults and ranges | [`Policy`] |
//! | one destination only | [`Standalone`] |
//! | trying another policy on live calls | [`Engine::shadow`], [`Engine::promote`], [`docs::shadows`] |
//! | what happened | [`Engine::snapshot`], [`Transition`], [`Engine::observe`], [`Engine::subscribe`] |
//! | doing it by hand | [`Engine::force_open`], [`Engine::disable`], [`Engine::release`], [`Engine::set_limit`] |
//! | HTTP and gRPC stacks | the `tower` module, with feature `tower` |
//! | the whole call: deadline, retries, timeout, fallback | the `call` module, with feature `call` |
//! | the meaning of the words | [`docs::words`] |
//! | what the pieces of a call are for, their order, where numbers come from | [`docs::calls`] |
//! | whether to use a breaker; fail open or closed | [`docs::whether`] |
//! | common mistakes, in numbers | [`docs::mistakes`] |
//! | what an operator sees and does | [`docs::operations`] |
//! | metrics: what to alert on, how to read each series | [`docs::metrics`], and the `metrics` module with feature `metrics` |
//! | why it is correct: each ordering | [`docs::orderings`] |
//! | a limit that follows latency | [`Adaptive`], [`docs::adaptive`] |
//! | what it doesn't do, and where it is inexact | [`docs::limitations`] |
//!
//! # Features
//!
//! - `serde`: policies from and to TOML and JSON, snapshots and transitions to JSON.
//! - `tower`: Layer, Service and Future, with classifiers for HTTP and gRPC.
//! - `call`: the whole call around the admission, for async callers, tower stacks and blocking clients; implies `tower`.
//! - `tracing`: one event per transition.
//! - `metrics`: series of every target for the `metrics` facade, or for an exporter of your own.
#![warn(missing_docs, clippy::disallowed_methods, clippy::disallowed_types)]

// Where `missing_docs` is allowed, items are public for `internals` only, and named by what they are.
#[allow(missing_docs)]
mod adaptive;
mod bits;
#[cfg(any(feature = "call", portcullis_loom))]
#[allow(missing_docs)]
mod budget;
#[allow(missing_docs)]
mod bulkhead;
mod cache;
#[cfg(feature = "call")]
pub mod call;
#[allow(missing_docs)]
mod counters;
pub mod docs;
mod engine;
mod event;
#[allow(missing_docs)]
mod gate;
mod handle;
#[cfg(feature = "metrics")]
pub mod metrics;
mod outcome;
mod permit;
mod policy;
mod priority;
mod registry;
mod rejection;
mod shadow;
mod slot;
mod snapshot;
#[allow(missing_docs)]
mod stall;
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

pub use adaptive::Adaptive;
pub use engine::{Engine, EngineBuilder, Key};
pub use event::{Cause, Observer, ObserverGuard, Subscription, Transition};
pub use gate::State;
pub use handle::Target;
pub use outcome::{Outcome, Settled};
pub use permit::{Held, OwnedHeld, OwnedPermit, Permit};
pub use policy::{OnAbandon, Policy, PolicyBuilder, PolicyError, UNLIMITED};
pub use priority::{Admit, Priority};
pub use rejection::Rejection;
pub use shadow::{ShadowError, ShadowSnapshot, Trip};
pub use snapshot::{AdaptiveSnapshot, Refusals, Snapshot, Totals, WindowSnapshot};
pub use standalone::Standalone;
pub use time::{Clock, ClockError};
pub use trip::{Evidence, Met, Rule};
pub use window::Window;

#[cfg(all(doctest, feature = "call"))]
#[doc = include_str!("../README.md")]
struct Readme;

/// The words and their protocols, for model checking and fuzzing. No stability is promised.
#[doc(hidden)]
pub mod internals {
    #[cfg(portcullis_trace)]
    pub use crate::sync::traced as trace;

    pub use crate::adaptive::{Law, Rules as AdaptiveRules, control, samples};
    #[cfg(any(feature = "call", portcullis_loom))]
    pub use crate::budget::{Allowance, Asked, Cell as Budget, Word as BudgetWord};
    pub use crate::bulkhead::{Bulkhead, Refused as NoPermit, Usage, magazine, pool, share, stripe, waiting};
    pub use crate::bulkhead::{Ticket, Told, Waits};
    pub use crate::counters::{Counter, Counters};
    pub use crate::gate::{Admission, Applied, Cell as Gate, Moved, ProbeRules, Refusal, Step, Word as GateWord};
    pub use crate::stall::{Ticks, bucket, lane as running, older};
    pub use crate::target::{Change, Ending, Glance, Refused, Signs, Terms, Token, Words};
    pub use crate::time::{Now, Reading};
    pub use crate::window::{Counts, Geometry, Recorded, buckets, calls, clean, lane, marks, ring, streak};
}
