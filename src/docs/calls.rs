//! Whole calls: what each piece is for, the order and why, and which number follows from which measurement.
//!
//! With feature `call` a target has one declaration, a `CallPolicy` beside its [`Policy`](crate::Policy), and the order isn't to be chosen:
//!
//! ```text
//! fallback( deadline( retry( admission( timeout( call )))))
//! ```
//!
//! # What each piece is for
//!
//! | piece | settings | bounds | without it |
//! | --- | --- | --- | --- |
//! | timeout | `timeout`, `probe_timeout` | how long one attempt holds anything | a hung target is held for ever, and is never evidence |
//! | breaker | `consecutive_failures`, `failure_rate`, `open_wait` and what belongs to them | how long a dead target is called | every caller waits its timeout, to learn what the one before learned |
//! | limit | `max_in_flight` | what one target holds at once | a slow target that answers takes the whole process |
//! | adaptive limit | `adaptive` | the same, where the right limit moves | a number that was right on the day of the load test; see [`adaptive`](super::adaptive) |
//! | shedding | `normal_share`, `sheddable_share` | what less important calls may use of the limit | a batch job takes the last place from a customer |
//! | waiting | `max_waiting`, `max_wait` | how long an essential call may wait for a place | a burst of a few milliseconds is refused |
//! | stall | `stall_after` with `stalled_calls` or `stalled_share` | how long a hang goes unnoticed | the first sign comes with the first timeout, when the limit is full |
//! | ramp | `ramp`, `ramp_failures` | what a target gets that has just come back | one good probe, and then the full load on cold caches |
//! | retry | `attempts`, `backoff`, `backoff_max` | nothing: it adds load | one lost packet is a failed call |
//! | budget | `retry_budget`, `retry_floor` | the load that retries add, over all callers | an outage multiplies the load by `attempts` |
//! | deadline | `deadline`, and what the caller sends | the caller's time over all attempts | work for callers who have left |
//! | fallback | `fallback` | what callers see of a failure | every failure is everybody's |
//!
//! Timeout, breaker, limit and deadline protect the caller; limit, shedding, ramp and budget the target. Retry alone protects neither: it trades
//! load for a better chance, and so it has a budget and stands inside all that bounds it.
//!
//! # Why this order
//!
//! Each layer's numbers mean what they say only where it stands. What other orders make of them, with `timeout` = 1 s, `attempts` = 3,
//! `consecutive_failures` = 5 and a target that hangs:
//!
//! | order | what becomes of the numbers |
//! | --- | --- |
//! | admission( retry( … )) | three attempts are one failure: it opens after 3 × 5 = 15 attempts and 15 s instead of 5 and 5 s. A permit is held for 3 s and two backoffs, so that a limit of 10 lets through 3 calls a second instead of 10 |
//! | timeout( admission( … )) | the permit is dropped before anything is settled: 5 means never, or, as far as `on_abandon` judges who leaves, 5 for timeouts of 500 ms and more only |
//! | timeout( retry( … )), none inside | the first attempt that hangs takes it all: `attempts` = 3 means 1 |
//! | retry( deadline( … )) | a deadline of 3 s for each attempt is 9 s and two backoffs for the caller, who left after 3 s |
//! | admission( deadline( … )) | who has no time left takes a permit, in HALF_OPEN the probe |
//! | admission( fallback( … )) | every failure is answered and so a success: 5 means never, and all callers wait their 1 s for ever |
//! | retry( fallback( … )) | there is nothing left to try again: `attempts` = 3 means 1 |
//! | retry( … ) with no look at refusals | an open target is asked 3 times a call, and the attempts are gone when it is back |
//! | retry( retry( retry( … ))), one a layer | 3 × 3 × 3 = 27 attempts for a call; with budgets of 10 % 1.1 × 1.1 × 1.1 = 1.33 |
//!
//! Those with a retry or a fallback inside of the admission, a timeout outside of it, refusals tried again and retries at three layers are run in
//! [`mistakes`](super::mistakes), and come to these numbers.
//!
//! # Which number follows from which measurement
//!
//! No number here is a matter of taste. Where nothing is measured yet, begin with the defaults and a `max_in_flight`, and measure.
//!
//! | number | measure | then |
//! | --- | --- | --- |
//! | `timeout` | how long good answers take at the day's peak | the quantile that you can spare: at the 99.9th percentile one healthy call of a thousand becomes a failure, each of them and each day. At most what the caller can wait |
//! | `probe_timeout` | the same for a healthy target | the 99th percentile: 42 dead targets of 250 ms each cost a worker 84 % of its time at an `open_wait` of 2 s, of 50 ms half |
//! | `stall_after` | the longest good answer of a day | above it, below `timeout`: what it gains is the difference |
//! | `consecutive_failures`, `failure_rate`, `min_calls` | the share of calls that fail on a good day | so that it opens by chance less than once a year, see below |
//! | `window` | calls a second | the time in which it shall notice: 100 calls are 10 s at 10 a second, 0.1 s at 1,000 |
//! | `max_in_flight` | calls a second × seconds each, at the peak | twice that (Little's law: 50 a second of 0.1 s are 5 at once), below what the target bore in its load test |
//! | `normal_share`, `sheddable_share` | critical calls in flight at the peak | what is left of the limit above them |
//! | `max_waiting`, `max_wait` | calls that end in a second, at the limit | what ends within `max_wait`; and that well under `timeout` |
//! | `open_wait`, `open_wait_max` | how long its restarts take | about the shortest; up to the delay that you can bear after the longest. A target that says itself when to come back (`Retry-After`) is believed, up to `open_wait_max` |
//! | `ramp` | the time from its restart until latency is as usual | that, rounded up |
//! | `attempts` | calls that a further attempt saved: answers with `attempts` above 1, beside `retries` in `CallCounts` | 2 if most retries save their call, 1 if few do. 3 is for what 2 leave, if it is much |
//! | `retry_budget` | what the target bears, in parts of its peak | what is over: bears 1.2 times its peak, a budget below 0.2 |
//! | `backoff` | how long its hiccups last (a failover, a collection of garbage) | about that: all attempts within one hiccup are one attempt |
//! | `deadline` | how long callers wait before they leave | that; the policy is refused if `attempts` × `timeout` and the backoffs are more, and `max_wait` where calls may wait |
//! | `max_age` of the last good answer | how old an answer may be before it does harm | that, and not how long outages are |
//!
//! # How rarely is rare
//!
//! A healthy target fails, too: with probability p each call. A run of n failures comes about once in (p⁻ⁿ − 1) / (1 − p) calls (Feller, *An
//! Introduction to Probability Theory and Its Applications*, vol. 1, XIII.7):
//!
//! ```
//! fn calls_between_runs(failing: f64, run: i32) -> f64 {
//!     (failing.powi(-run) - 1.0) / (1.0 - failing)
//! }
//!
//! let days = |failing, run, per_second: f64| calls_between_runs(failing, run) / per_second / 86_400.0;
//! // 100 calls a second, of which 1 % fail: five in a row by chance every three years.
//! assert_eq!(days(0.01, 5, 100.0).round(), 1_169.0);
//! // Of which 10 % fail: every 19 minutes. Such a target wants a run of 10, or better a rate.
//! assert_eq!((days(0.1, 5, 100.0) * 1_440.0).round(), 19.0);
//! assert_eq!(days(0.1, 10, 100.0).round(), 1_286.0);
//! ```
//!
//! For a rate it is the chance of that many failures among the fewest calls that are judged, `min_calls`, since the window is empty after each
//! closing. With half of 10 calls:
//!
//! ```
//! fn chance(failing: f64, calls: u32, least: u32) -> f64 {
//!     let ways = |k| (0..k).map(|i| f64::from(calls - i) / f64::from(i + 1)).product::<f64>();
//!     (least..=calls).map(|k| ways(k) * failing.powi(k as i32) * (1.0 - failing).powi((calls - k) as i32)).sum()
//! }
//!
//! let one_of = |failing, calls, least| 1.0 / chance(failing, calls, least);
//! // 1 % fail: after one of 41 million closings it opens again by chance.
//! assert_eq!((one_of(0.01, 10, 5) / 1e6).round(), 41.0);
//! // 10 % fail: after one of 612. With min_calls = 30 after one of 28 million.
//! assert_eq!(one_of(0.1, 10, 5).round(), 612.0);
//! assert_eq!((one_of(0.1, 30, 15) / 1e6).round(), 28.0);
//! ```
//!
//! Both suppose that failures are independent. They aren't quite: measure longest runs, and take what is longer than any of a good month.
//!
//! # Calls that block their thread
//!
//! Blocking clients have the same policy (`Caller::call_blocking`, `Typed::run_blocking`): admission, retries, budget, deadline, fallback, without a
//! runtime. Only the timeout is the client's own, for a thread that is in a blocking read can't be taken out of it:
//!
//! - A future that is dropped is over: its socket is closed, its permit comes back, and both are true at once. That is why the async timeout may
//!   settle by itself.
//! - A thread has no such moment. A helper thread that waits for the answer in its place, and is left behind at the timeout, still has the
//!   socket and the connection at the target. The permit would say that nothing is in flight: with a limit of 10, a timeout of 1 s and a target
//!   that hangs for a minute, 10 new threads a second would be left, 600 in all.
//! - The client can: it has the socket, and sets what the operating system keeps (`SO_RCVTIMEO`, a connect with a timeout). So give it
//!   `Attempt::timeout`, which is the policy's timeout or what is left of the deadline, and hand its error on as the failure that it is.
//!
//! ```
//! # #[cfg(not(feature = "call"))]
//! # fn main() {}
//! # #[cfg(feature = "call")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//! use std::time::Duration;
//! use portcullis::call::{Backup, CallPolicy, Caller, ThreadSleep, Verdict};
//! use portcullis::{Engine, Policy};
//!
//! let ms = Duration::from_millis;
//! let engine: Arc<Engine> = Arc::new(Engine::builder().policy(Policy::builder().max_in_flight(16).build()?).build());
//! let policy = CallPolicy::builder().timeout(ms(300)).attempts(2).backoff(ms(10)).deadline(ms(610)).build()?;
//! let caller = Caller::builder(engine).target("search".to_owned(), policy).build()?;
//!
//! let search = caller.to("search").idempotent(true);
//! let found = search.run_blocking_or(Backup::value("nothing"), Verdict::of, &ThreadSleep, |attempt| {
//!     assert_eq!(attempt.timeout, ms(300)); // for the client to keep
//!     Err("no connection")
//! })?;
//! assert_eq!((*found, found.attempts()), ("nothing", 2));
//! # Ok(())
//! # }
//! ```
//!
//! Mind what your client calls a timeout. Many bound each read, not the whole answer: a target that sends a byte a second is never late then, and only
//! `max_in_flight` bounds what it holds. A client without any timeout must not be used for calls that can hang.
