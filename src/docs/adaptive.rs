//! The adaptive limit: what it is for, how to choose, what it can't do.
//!
//! A limit on calls in flight protects a target only if it is near the target's knee: the number of calls that it can work on at once. Below the
//! knee the target idles while callers are refused; above it calls queue in the target, and take longer without getting more done. The knee
//! moves with deployments, noisy neighbours and failed replicas, so a number in a file is right on the day on which it was measured.
//! [`Adaptive`](crate::Adaptive) measures it instead, from how long calls take.
//!
//! ```
//! use std::time::Duration;
//! use portcullis::{Adaptive, Policy};
//!
//! // Between 4 and 500 calls at once, from 20.
//! let policy = Policy::builder().max_in_flight(500).adaptive(Adaptive::gradient().min(4)).build()?;
//! // As many as the target answers within 80 ms on average.
//! let policy = Policy::builder().max_in_flight(500).adaptive(Adaptive::aimd(Duration::from_millis(80))).build()?;
//! # Ok::<(), portcullis::PolicyError>(())
//! ```
//!
//! In a file: `adaptive = { algorithm = "gradient", min = 4 }`, or `{ algorithm = "aimd", latency = "80ms" }`, or `"none"`.
//!
//! # How it works
//!
//! Each call that ends adds its latency to a word of its thread's stripe: one addition, the only write more than without. Whoever finds a window of
//! samples over, which lasts twice the latency but at least 100 ms and 200 calls, moves the limit, under the target's lock, for which nobody waits.
//! A limit that falls admits nobody until fewer calls than that are in flight, and blocks nobody (R17).
//!
//! | algorithm | rises | falls | needs to know |
//! | --- | --- | --- | --- |
//! | [`gradient`](crate::Adaptive::gradient) | by a part of `tolerance` while latency is within `tolerance` of the baseline | halfway to `limit × baseline / latency` beyond that | nothing: it measures the baseline |
//! | [`aimd`](crate::Adaptive::aimd) | by 1 call while the mean latency is within its bound | by a tenth beyond that | a latency that is too long |
//!
//! Both fall by a tenth when a tenth of the calls failed, and neither moves up while less than half of the limit is used.
//!
//! Sources: concurrency-limits by Netflix (`Gradient2Limit`, `AIMDLimit`: the gradient, its cut at one half, the factor of a tenth, the guard of unused
//! limits, the start at 20); Envoy's adaptive concurrency filter and BBR (Cardwell et al., 2016) for a baseline that is measured at a lower limit;
//! Chiu and Jain (1989) and Jacobson (1988) for increase and decrease. `Gradient2Limit` itself takes a long-term average for the baseline. Under a load that
//! stays above the capacity that average becomes the latency with the queue, and the limit drifts upwards: here the baseline is
//! measured at half of the limit instead, every 10 s or twenty times what measuring took, whatever is longer. That costs up to a fortieth of the capacity.
//! A limit that has fallen to a half is a reason to measure at once: if the target is slower without a queue, too, it gets its limit back.
//!
//! # How well
//!
//! Simulated: a target of `n` workers, service times exponential with a mean of 20 ms, an unbounded queue, callers in a Poisson process of 1.5 times the
//! capacity who don't come back, a limit of 20 at the start. The knee is a limit of `n`. 30 runs with the gradient, ten seeds each for 20, 40 and 100
//! workers, one change after the other, 40 s each. Mean limits in parts of the knee: from 20 s to 40 s after a change and how many were above 1.2, then in the
//! first 5 s after it; last the share of the capacity that was used. The model is `tests/rules/adaptive_sim.rs`; `cargo test --test rules thirty_runs -- --nocapture`
//! prints this table:
//!
//! | what happens | limit after 20 s | above 1.2 | at first | capacity |
//! | --- | --- | --- | --- | --- |
//! | the start | 1.00 to 1.18 | 0 of 30 | 0.48 to 1.01 | 0.89 to 0.99 |
//! | half of the workers go | 1.03 to 1.17 | 0 of 30 | 1.09 to 1.34 | 0.93 to 1.00 |
//! | they come back | 1.05 to 1.22 | 1 of 30 | 0.64 to 1.00 | 0.94 to 0.99 |
//! | four times as slow | 1.04 to 1.26 | 3 of 30 | 0.51 to 0.88 | 0.94 to 1.01 |
//!
//! The last leaves the knee where it is.
//!
//! # Choosing
//!
//! | question | answer |
//! | --- | --- |
//! | gradient or aimd | the gradient, unless you have a latency that must not be exceeded: `aimd` holds that whatever causes it, and where the target gets slower without a queue it falls to `min` |
//! | `tolerance` | 1.15. More for targets whose latency swings by itself: it must be more than the swing, and is how far above the knee the limit may stand |
//! | `min` | what the target can surely take, and what you would rather send than be wrong. It is 1 unless set |
//! | `max_in_flight` | the number that you would have set without: it is never exceeded |
//! | `start` | 20, or what was right yesterday. A target that is forgotten and comes back begins there again |
//!
//! [`set_limit`](crate::Engine::set_limit) overrides it, 0 among others, and stops it until [`release_limit`](crate::Engine::release_limit).
//! [`set_policy`](crate::Engine::set_policy) with other bounds moves it into them; with another algorithm, or other settings of it, it begins anew.
//! [`Snapshot`](crate::Snapshot) has the limit in force, the latency of the last window and the baseline. A limit that moves is no transition: no
//! event tells of it.
//!
//! # What it can't do
//!
//! - See demand that isn't there: while less than half of the limit is used, it stays where it is.
//! - Find the knee of a target with few calls. Below some hundred calls a minute a window lasts for minutes; leave it off there.
//! - Tell a queue from work that takes longer at once. It notices when the limit has halved, and restores it.
//! - Share: each process finds a limit for itself. If several load one target, each measures a baseline that has the others' queue in it. Their limits
//!   add up to more than the knee then, the sooner the more of them there are.
//! - Mix: calls of very different length to one target make a mean that swings with the mix. Give each kind a target of its own.
//! - Time streams: latency is to the first byte (the `tower` module notes it), a permit is held to the last. The limit is of calls that are held,
//!   the queue that it sees is before the first byte.
//! - Replace the breaker. A target that fails trips; probes, stale outcomes and ignored ones are no samples. Calls that hang say nothing until
//!   they end.
