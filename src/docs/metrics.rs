//! What to alert on and why, how to read each series, and what it costs.
//!
//! With feature `metrics` an engine's numbers come out as series, into the recorder of the `metrics` facade by
//! `metrics::Publisher`, or into an exporter of your own by `metrics::Collector`. The gateway serves the same series, and some of its
//! own, to Prometheus at `/metrics` of its admin listener. Alert rules, a dashboard and a runbook are in `gateway/`.
//!
//! ```
//! # #[cfg(feature = "metrics")] {
//! use portcullis::Engine;
//! use portcullis::metrics::Publisher;
//!
//! let engine: Engine = Engine::builder().build();
//! let mut publisher = Publisher::new(&engine);
//! // Then, in a task or thread of yours, every few seconds:
//! publisher.publish(&engine);
//! # }
//! ```
//!
//! # What to alert on
//!
//! Wake somebody for what callers feel and a person can mend. An open circuit is not that by itself: it is what keeps one target's outage from
//! being everybody's, and it closes without help. What matters is who goes without, for how long, and whether the numbers in the policy are still right.
//!
//! | alert on | because | how urgent |
//! | --- | --- | --- |
//! | a circuit that stays open, or whose probes fail for long | its callers go without, and it won't mend itself | page |
//! | refusals `saturated` as a share of what is asked, for minutes | the limit is too low or the target too slow; health shows nothing of that | page if much, ticket if little |
//! | the process at its own bound, or the engine out of room for targets | healthy targets lose calls, too | page |
//! | a circuit that opens again and again | a threshold that trips on noise, or a target that fails under full load only: give it a `ramp` | ticket |
//! | fallbacks in use | callers get less than they came for and nobody complains | ticket |
//! | a state forced by hand for longer than a change takes | it was forgotten: nothing ends it | ticket |
//! | stale outcomes that rise | calls outlast the state that admitted them: the timeout is too long for the policy's waits | ticket |
//! | a breaker that never acted in months | nobody knows that it works. Try it on purpose: `portcullis drill` | ticket, quarterly |
//! | a target that is no longer scraped | no news is no good news | page |
//!
//! Don't alert on single refusals or single failures, or on one transition: those are the breaker at work.
//!
//! # How to read each series
//!
//! Every series has the label `target`. Counters only rise while the process lives: ask for their rate. What `other` has in it is the sum over all targets
//! without series of their own; in `portcullis_target_state` that is how many are in a state.
//!
//! | series | labels | read it as |
//! | --- | --- | --- |
//! | `portcullis_target_state` | `state` | as a caller would meet it: an OPEN whose wait is over shows as HALF_OPEN |
//! | `portcullis_admitted_total` | | the rate of calls that began |
//! | `portcullis_calls_total` | `outcome` | how they ended. `ignored` and `abandoned` say nothing of health by default; many `abandoned` beside few `success` are a target that hangs; `stale` was overtaken by a transition |
//! | `portcullis_slow_calls_total` | | counted beside, only with `slow_call` in the policy |
//! | `portcullis_refusals_total` | `reason` | `open` and `probing` speak of health, `saturated` of the limit, `shed` of what it is kept free for, `forced` of a person |
//! | `portcullis_in_flight`, `portcullis_limit`, `portcullis_full_limit` | | how full. `limit` is what is in force; under `full_limit` while it ramps, or is adaptive. `+Inf` if calls are only counted |
//! | `portcullis_waiting`, `portcullis_waited_total` | | a queue that is seldom empty is a limit that is too low |
//! | `portcullis_stalled` | | calls that have been running for `stall_after` |
//! | `portcullis_probes_total`, `portcullis_probes_in_flight`, `portcullis_reopenings` | | how the target is felt out; `reopenings` are probes that failed in a row, and each makes the next wait longer |
//! | `portcullis_transitions_total` | `from`, `to` | how often. A short outage between two scrapes shows here, and not in the state |
//! | `portcullis_last_transition_timestamp_seconds` | | since when it is as it is: `time()` less this. 0 if it never changed since the collector began |
//! | `portcullis_whole_calls_total`, `portcullis_whole_calls_failed_total`, `portcullis_whole_calls_refused_total` | | what callers asked for, how much of it failed whatever they got instead, and what the engine refused |
//! | `portcullis_attempts_total`, `portcullis_retries_total` | | attempts by calls is the amplification that a target bears |
//! | `portcullis_retries_refused_total` | `reason` | `budget`: too many fail for retries to help. `deadline`: no time for another. `body`: it is longer than what is kept |
//! | `portcullis_timeouts_total` | `probe` | attempts without an answer in their time: those of whole calls, and at the gateway of all calls that are admitted |
//! | `portcullis_deadlines_total` | `when` | callers that bring too little time, or whose attempts are cut |
//! | `portcullis_fallbacks_total` | `kind` | what callers got instead; `failed` if that failed, too |
//! | `portcullis_targets`, `portcullis_exhausted_total` | | how full the engine is. Without the label `target`, as the next two |
//! | `portcullis_observer_panics_total`, `portcullis_transitions_dropped_total` | | faults of your observers; transitions that the log lost |
//!
//! The gateway adds `portcullis_latency_seconds`, from the admission of an attempt to the head of its answer or to its timeout, so that neither a slow client
//! nor a stream is held against the target; refused connections and attempts that their caller left have none.
//! `portcullis_attempt_failures_total` says by `reason` why attempts had no answer, `portcullis_drill_remaining_seconds` is above 0 while a drill
//! is on. Where targets have [shadows](crate::docs::shadows), `portcullis_shadow_asked_total`, `_refused_total` (by `reason`), `_refused_but_succeeded_total`,
//! `_failures_avoided_total`, `_trips_total`, `_in_flight` and `_state` say by `target` and `shadow` what each would have done; they begin at 0 again with another
//! policy. Of the process there are `portcullis_requests_in_flight` and `portcullis_max_concurrent`,
//! `portcullis_requests_refused_total`, `portcullis_build_info` and `process_start_time_seconds`.
//!
//! # Bounds
//!
//! Labels come from outside, and each costs memory where they are kept. So at most `max_targets` targets (1,000; in the gateway `metrics_targets`) have
//! series of their own, about 70 each with whole calls, and all others are one more, `other`. Who has a place keeps it until the engine
//! lets go of it, or the gateway's configuration; free places go to targets that aren't CLOSED, then to the busiest. A name of more than 128 bytes is cut
//! and gets a hash of the whole. Names are escaped by whoever writes them: `"`, `\` and line ends.
//!
//! A target that is evicted is in no later collection. At the gateway that ends its series. The facade can't take a series back: its gauges are set to
//! 0 once, its counters stand still, and `metrics-exporter-prometheus` drops them after its `idle_timeout`, if one is set. What was counted of it under
//! `other` stays counted: a sum that fell would be taken for a restart.
//!
//! # What it costs
//!
//! The engine counts what its decisions rest on, and little beside: a series is what is read, not what is written.
//!
//! | option | a call pays |
//! | --- | --- |
//! | series of the engine, by `Publisher`, `Collector` or the gateway's `/metrics` | nothing; a collection takes the processor 0.8 us for each target that there is, on the thread that collects |
//! | the same at 100,000 targets, on another core | 0.99 to 1.00 times as long as without, with a collection a second; 1.00 to 1.03 times with one after the other, as beside a neighbour that walks through as much memory of its own |
//! | failures, refusals, probes | an addition each, when there is one: in the decision's own price |
//! | latencies, in the gateway | two additions, and two readings of the clock |
//! | transitions, in the gateway and with feature `tracing` | nothing; a transition pays its observers |
//!
//! A target of the gateway takes 744 bytes for latencies once it was called, and each that is summed up about 200 bytes in the collector, and 8 for
//! each counter that its caller adds.
//!
//! Median ratios of the calling thread's processor time, in turns, in one run, on 2 cores of an AMD EPYC virtual machine that others used meanwhile,
//! 2026-11-30: `cargo bench --features metrics --bench scrape`. What the gateway's options take is printed by a command in its README.
