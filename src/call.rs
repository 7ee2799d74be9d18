//! The whole call, always composed as fallback( deadline( retry( admission( timeout( call ))))).
//!
//! Breaker and bulkhead alone don't protect a caller, and the order of what else does changes what the numbers mean: a retry inside the
//! breaker turns three failed attempts into one counted failure, and a threshold of five into fifteen. So a target has one declaration, a
//! [`CallPolicy`], and the order isn't to be chosen.
//!
//! | for | see |
//! | --- | --- |
//! | the settings, their defaults and ranges | [`CallPolicy`] |
//! | calls of any kind, async | [`Caller::call`], [`Caller::to`], [`Typed::run_or`] |
//! | HTTP and gRPC in a tower stack | [`CallLayer`] |
//! | calls that block their thread | [`Caller::call_blocking`], [`Typed::run_blocking`] |
//! | what comes of it | [`CallError`], [`Answer`], [`CallCounts`] |
//! | failures as HTTP and gRPC responses | [`respond`], [`respond_grpc`] |
//!
//! # What each piece does
//!
//! - **Timeout**: per attempt. An attempt that takes longer is dropped, which cancels it, and is a failure of the target (`E901`). A probe has its
//!   own, shorter one: every open period costs its callers one, and 42 targets that are down at 250 ms each cost a worker 84 % of its time
//!   at an open wait of 2 s (42 × 250 ms of 12.5 s), at 50 ms half: `targets × probe_timeout / (targets × probe_timeout + open_wait)`.
//! - **Admission**: each attempt is admitted and settled by itself. A refusal (`E904`, `E905`) is never tried again: it says when to come back.
//!   Calls below critical stop at their share of the limit ([`Typed::priority`], [`CallLayer::priority`]). A critical one waits for its permit where the
//!   engine's policy has `max_waiting`: for `max_wait`, but no longer than leaves its whole timeout before the deadline. So a declared deadline must hold the
//!   worst case and `max_wait`; a caller's own, that is shorter, shortens the wait.
//! - **Retry**: only what does no harm twice, after an exponential wait with full jitter, and not before the target's own `Retry-After`. All
//!   retries of a target together are a share of its calls (`retry_budget`), or a few per second where there are few calls
//!   (`retry_floor`), counted exactly over `retry_memory`. A business error is never tried again, nor any 4xx; nothing is tried that couldn't take its
//!   whole timeout before the deadline.
//! - **Deadline**: the caller's time, `x-request-deadline-ms` or `grpc-timeout` in, what is left out. Expired on arrival a call is refused (`E901`,
//!   reason `deadline`) without a word about the target. An attempt that the deadline cuts before its own timeout is abandoned, and judged by the
//!   policy's `on_abandon`: a caller in a hurry can't open a circuit by itself.
//! - **Fallback**: what callers get instead of a failure, if it is declared, marked in a header and counted. Its own failure isn't hidden:
//!   the error tells both, and a failed answer that is handed on says `failed` in the header.
//!
//! # What it costs
//!
//! A timer per attempt, a look at what the target's calls share, and for [`CallLayer`] a box per request. Where a policy allows a second attempt, each
//! admitted call also writes one word that all callers of the target share, the budget's; with `attempts` = 1, the default, none does.

mod backoff;
mod backup;
mod blocking;
mod builder;
mod caller;
mod check;
mod counters;
mod deadline;
mod error;
mod fallback;
#[cfg(feature = "serde")]
mod file;
mod http;
mod lane;
mod last_good;
mod order;
mod plan;
mod policy;
mod steps;
mod typed;
mod verdict;

use ::http::HeaderName;

pub use self::http::{
    AnyError, CallBody, CallLayer, CallService, Failure, JudgeError, ReplayBody, ReplayError, Scope, judge_response,
    respond, respond_grpc, retry_after,
};
pub use crate::tower::CODE_HEADER;
pub use backup::Backup;
pub use blocking::{Sleep, ThreadSleep};
pub use builder::CallPolicyBuilder;
pub use caller::{Caller, CallerBuilder};
pub use counters::CallCounts;
pub use deadline::{DEADLINE_HEADER, GRPC_TIMEOUT, remaining, write_remaining};
pub use error::{CallError, Cause, GaveUp};
pub use fallback::{BoxError, Fallback, FallbackKind, FallbackValue, NoFallback};
pub use last_good::LastGood;
pub use plan::Attempt;
pub use policy::CallPolicy;
pub use typed::{Answer, Typed};
pub use verdict::{Again, Verdict};

/// Marks an answer that isn't the target's own: `value`, `function`, or `stale; age=12`; and one that is, for want of a fallback that
/// worked: `failed`.
pub const FALLBACK_HEADER: HeaderName = HeaderName::from_static("x-portcullis-fallback");

/// Says of a request that it does no harm twice: whoever answers it remembers this key.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
