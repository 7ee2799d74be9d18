//! What the words mean, here and in metrics, logs and configuration.
//!
//! | word | meaning |
//! | --- | --- |
//! | engine | the keyed registry of targets, with clock, default policy and observers |
//! | target | one protected destination (an upstream, a tenant at an upstream): breaker, window and bulkhead |
//! | policy | the immutable settings of a target |
//! | permit | the right to run one call; settled once, by value; dropping it releases everything it holds |
//! | outcome | success, failure, ignored (no evidence about health) or abandoned (dropped unsettled) |
//! | rejection | a small value: why not, and when to come back |
//! | probe | a permit granted in HALF_OPEN |
//! | generation | a number that every state change advances; a permit carries the one it was granted in |
//! | stale | settled in another generation than it was granted in: releases its permit, changes nothing else |
//! | stalled | still running, `stall_after` after its permit was granted |
//! | transition | one state change; each has a gapless number among those of its target |
//! | priority | how much a call matters: critical, normal or sheddable |
//! | share | the part of the limit at which calls of a priority stop; those beyond are shed |
//! | ramp | the time after HALF_OPEN closed in which the limit rises to the full one; a relapse is a trip in it |
//! | magazine | a stash of bulkhead permits beside the pool that they come from |
//!
//! # States
//!
//! ```text
//!            trip rule met                       wait elapsed, first caller wins
//!  CLOSED ------------------------> OPEN --------------------------------------> HALF_OPEN
//!    ^                               ^                                              |  |
//!    |                               +-------------- a probe fails or is slow ------+  |
//!    +------------------------------- enough probes succeeded ------------------------+
//!  FORCED_OPEN (refuse) and DISABLED (breaker off, bulkhead still holds, still counts) are entered and left by hand only.
//! ```
//!
//! What counts: only the target's own failures do, that is no answer, no connection, a system error. A business refusal is a healthy
//! answer. A refusal by the engine is no outcome at all.
//!
//! # Codes
//!
//! | code | meaning | counts against the target |
//! | --- | --- | --- |
//! | `E500` | the target answered with a system error | yes |
//! | `E901` | no answer in time | yes |
//! | `E902` | no connection, or no answer that can be read | yes |
//! | `E904` | refused: the circuit isn't closed | no |
//! | `E905` | refused: no room | no |
//!
//! `E904` and `E905` are never retried at once: they say when to come back, or that there is no room now.
