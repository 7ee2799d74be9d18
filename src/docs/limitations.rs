//! What it doesn't do, and where it is inexact.
//!
//! # Not this
//!
//! It is no queue (nobody waits), no rate limiter, no load balancer, no distributed lock: each process learns for itself.
//!
//! # Inexact, by how much, and why
//!
//! - A slow call is timed to its answer's headers in the `tower` module: how long a body takes is as much its reader's doing. A `HEAD`
//!   answer with a `content-length` whose body type doesn't know that it is empty counts as abandoned, not as a success.
//! - A window of time is read bucket by bucket. It covers its length less at most one bucket, and may miss or hold outcomes that are being
//!   recorded while it is summed. Each stripe counts 16,777,215 calls in a bucket and then stands still there, failures with it.
//! - `Saturated` is exact for a caller that is alone. In a race it may be said while another thread is between two steps of giving a
//!   permit back. The limit itself is always exact: never more than that in flight.
//! - A thread that remembers a slot which is handed to another key just then holds a permit of that one for a moment, before it sees whose the
//!   slot is: with a limit of 1 the other key's caller may be told `Saturated` meanwhile.
//! - A refusal by a slot that is handed to another key just then may be counted for that one. The answer itself is never another key's.
//! - A permit held across exactly 1,048,576 transitions of its target (or 16 of a window of time) counts one outcome in a foreign window.
//! - A limit that ramps rises in whole calls on whole milliseconds of the clock, rounded down, so it is never more than the line allows. In a race
//!   `Saturated` may be said while another thread is just raising it. `Saturated` gives no time to come back: a call that ends usually
//!   comes before the next step of the ramp.
//! - A ramp ends with the first admission after its time: until one comes, failures are judged as of a relapse. A new window that another
//!   policy began in it puts that off by as much as it began later.
//! - The lease of a probe ends on a whole second, so up to one second late. Waits end on a whole millisecond.
//! - Ticks last 2.18 years from the engine's start. After that waits and leases are over at once and windows of time stand still: rebuild the
//!   engine once a year.
//! - A snapshot is consistent in each word, not between them; see [`Snapshot`](crate::Snapshot).
//!
//! # Where it isn't linearizable
//!
//! `linearizability/run` checks histories of real threads against a sequential specification. In it each step is atomic, not each call:
//!
//! | what | instead |
//! | --- | --- |
//! | an admission, of gate and bulkhead together; a settlement, of window, trip and permit together | each step is; all are over when the call returns |
//! | a call while the clock moves or the policy changes | one reading of each, taken inside the call |
//! | lowering a limit from 128 or more | calls meet the old or the new one until `set_limit` returns, then the new one |
//! | windows of time, slow calls beside failures | each bucket and word is exact; a sum may miss or hold what is being recorded. The last to settle sees all that settled before |
//! | snapshots, `len`, totals, the count of a sweep | consistent in each word; totals of ended calls never go back |
//! | observers and log | one report per transition, ordered by its number, after the fact |
//!
//! # Bounded, not free
//!
//! - An adaptive limit is found, not known: what it can't do is in [its chapter](crate::docs::adaptive#what-it-cant-do).
//! - A leaked permit ([`std::mem::forget`]) holds its bulkhead slot for the engine's life. Its probe slot comes back with the lease.
//! - A new policy is kept until the engine goes, about 300 bytes each, equal ones once. Don't make one per request.
//! - An observer runs on the thread whose call made the transition. A slow one makes that call slow; a
//!   [`Subscription`](crate::Subscription) doesn't.
//! - `Hash` and `Eq` of a key run under the lock of a map shard. They mustn't call the engine.
//!
//! # What is lock-free
//!
//! Asking through a [`Target`](crate::Target) and settling: no lock. A healthy target with a window of calls, or none, allocates nothing.
//! The first failure, slow-call rule or window of time of a target allocates a block once, each stripe's calls and each 8 buckets of failures
//! once, and threads that meet on a target its stripes once. A keyed [`admit`](crate::Engine::admit) of a key that the thread remembers takes no lock and writes no line that
//! threads share; of another it takes the read lock of a map shard, and may copy the key. Transitions, changes by hand, snapshots, sweeps and new keys
//! take locks of their own, never while user code runs.
