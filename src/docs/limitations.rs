//! What it doesn't do, and where it is inexact.
//!
//! # Not this
//!
//! It is no rate limiter, no load balancer, no distributed lock: each process learns for itself. It is a queue only where a policy has
//! `max_waiting`: for a permit, in the order of coming, bounded in number and time.
//!
//! # Inexact, by how much, and why
//!
//! - A thread that remembers a slot which is handed to another key just then may show that one's shadows a call that isn't made: it counts as one
//!   that each granted and took back, or refused without a verdict.
//! - A slow call is timed to its answer's headers in the `tower` module: how long a body takes is as much its reader's doing. A `HEAD`
//!   answer with a `content-length` whose body type doesn't know that it is empty counts as abandoned, not as a success.
//! - A window of time is read bucket by bucket. It covers its length less at most one bucket, and may miss or hold outcomes that are being
//!   recorded while it is summed. Each stripe counts 16,777,215 calls in a bucket and then stands still there, failures with it.
//! - A call counts as stalled up to an eighth of `stall_after` late, never early. While a stripe needs a bucket for another tick, what is
//!   left in it may be missed by whoever looks just then, and is never counted twice. A clock that steps back by more than
//!   `stall_after` leaves calls uncounted until it has caught up.
//! - With a stall rule, the first decision of a stripe in each eighth of `stall_after` may read the clock up to four times, not once.
//! - A ramp counts what is still out from before the outage, such as calls that hang: with 80 of 100 held, nobody enters for four fifths of it.
//! - A probe below critical needs room in its share. A target that only such calls go to, and whose hung calls fill the share, isn't probed until
//!   they end.
//! - `Saturated` is exact for a caller that is alone. In a race it may be said while another thread is between two steps of giving a
//!   permit back. The limit itself is always exact: never more than that in flight.
//! - A critical call that doesn't wait is told `Saturated` while others do, also where a permit has just been given back: it is theirs.
//! - A call that is let in from the queue holds its permit from then on, not from when its future is polled. A task that isn't polled keeps a
//!   permit idle until it is polled or dropped.
//! - A call below critical is told `Shed` where the share is reached and `Saturated` where the limit is; in a race that has room, as above.
//! - A thread that remembers a slot which is handed to another key just then holds a permit of that one for a moment, before it sees whose the
//!   slot is: with a limit of 1 the other key's caller may be told `Saturated` meanwhile.
//! - A refusal by a slot that is handed to another key just then may be counted for that one. The answer itself is never another key's.
//! - A permit held across exactly 1,048,576 transitions of its target (or 16 of a window of time) counts one outcome in a foreign window.
//! - A limit that ramps rises in whole calls on whole milliseconds of the clock, rounded down, so it is never more than the line allows. In a race
//!   `Saturated` may be said while another thread is just raising it. `Saturated` gives no time to come back: a call that ends usually
//!   comes before the next step of the ramp.
//! - While the limit ramps nobody waits for a permit: whoever finds none is told `Saturated` at once, also where the policy has `max_waiting`. A
//!   raise that time alone brings wakes nobody.
//! - A ramp ends with the first admission after its time: until one comes, failures are judged as of a relapse. A new window that another
//!   policy began in it puts that off by as much as it began later.
//! - The lease of a probe ends on a whole second, so up to one second late. Waits end on a whole millisecond.
//! - Ticks last 2.18 years from the engine's start. After that waits and leases are over at once, windows of time stand still and nothing stalls: rebuild the
//!   engine once a year.
//! - A snapshot is consistent in each word, not between them; see [`Snapshot`](crate::Snapshot).
//!
//! - The retry budget remembers this half of `retry_memory` and the one before, so between half of it and all; a retry is judged on the calls
//!   and retries in both. A retry that is then refused or whose caller leaves is spent. Above 16,777,215 calls in a half, fewer retries are
//!   allowed than the share.
//! - A target without a call policy of its own is forgotten with its budget and counters when 10,000 others were called since.
//! - An attempt's timeout ends at the response's headers. `CallLayer` bounds no body; who reads it does.
//! - Deadlines and timeouts are of tokio's clock, budgets and the ages of kept answers of the engine's.
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
//! | a call that waited | its permit was granted when another gave it back, and the gate decides as it is when the call comes for it |
//! | windows of time, slow calls beside failures | each bucket and word is exact; a sum may miss or hold what is being recorded. The last to settle sees all that settled before |
//! | snapshots, `len`, totals, the count of a sweep | consistent in each word; totals of ended calls never go back |
//! | observers and log | one report per transition, ordered by its number, after the fact |
//!
//! # Bounded, not free
//!
//! - An adaptive limit is found, not known: what it can't do is in [its chapter](crate::docs::adaptive#what-it-cant-do).
//! - A leaked permit ([`std::mem::forget`]) holds its bulkhead slot for the engine's life, and where [shadows](crate::docs::shadows) follow it
//!   112 bytes and those shadows. Its probe slot comes back with the lease.
//! - A new policy is kept until the engine goes, about 400 bytes each, equal ones once. Don't make one per request.
//! - An observer runs on the thread whose call made the transition. A slow one makes that call slow; a
//!   [`Subscription`](crate::Subscription) doesn't.
//! - A waker runs on the thread that gives a permit back, raises a limit or trips a target, outside of every lock of the engine.
//! - `Hash` and `Eq` of a key run under the lock of a map shard. They mustn't call the engine.
//!
//! # What is lock-free
//!
//! Asking through a [`Target`](crate::Target) and settling: no lock, but where calls wait: whoever joins or leaves the queue, and whoever gives a permit
//! back meanwhile, take its lock for a few instructions, and an entry of it is allocated. A healthy target with a window of calls, or none, allocates nothing.
//! The first failure, slow-call rule, stall rule or window of time of a target allocates a block once, each stripe's calls and each 8 buckets of failures
//! once, and threads that meet on a target its stripes once. A keyed [`admit`](crate::Engine::admit) of a key that the thread remembers takes no lock and writes no line that
//! threads share; of another it takes the read lock of a map shard, and may copy the key; with a stall rule
//! one call in each eighth of `stall_after` does. Transitions, changes by hand, limits that move, snapshots, sweeps and new keys
//! take locks of their own, never while user code runs.
