//! Trying a policy on live calls before it decides any: how to read a shadow's figures, what they can't say, and what they cost.
//!
//! A shadow is a candidate for the policy of one target. It has a gate, windows and a limit of its own, is told of each call that the
//! target lets start and of how it ended, and decides nothing: the target's answers, counts, transitions and their numbers are those that they
//! would be without it. A target has up to four, each with a name.
//!
//! ```
//! use portcullis::{Engine, Policy};
//!
//! let engine: Engine = Engine::builder().build();
//! engine.shadow("core-banking", "strict", Policy::builder().consecutive_failures(5).build()?)?;
//! // ... a day of calls ...
//! for shadow in engine.shadows("core-banking") {
//!     println!("{}: {} trips, refused {} of {}", shadow.name, shadow.trips, shadow.refused, shadow.asked);
//! }
//! // The policy that was in force until now may be the next shadow.
//! let before = engine.promote("core-banking", "strict")?;
//! engine.shadow("core-banking", "before", before)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Reading the figures
//!
//! [`ShadowSnapshot`](crate::ShadowSnapshot) counts what the policy would have done with `asked` calls, and, since they were made all the same, what came of it:
//!
//! - `refused_but_succeeded` is the price: answers that callers would have missed.
//! - `failures_avoided` is the gain: calls that would have been refused at once instead of failing later.
//! - `trips` with the evidence of the last: how often it would have opened, and why. A threshold that normal noise meets shows here
//!   within hours, as trips whose refused calls nearly all succeeded.
//! - `would_be` is a [`Snapshot`](crate::Snapshot) of the target as it would be: its state, its refusals by reason, its calls in flight.
//!
//! A good candidate for a breaker has many failures avoided for each success refused. For a limit, `would_be.refusals.saturated` and `shed` say
//! how often it would have been reached; what was refused there mostly succeeds, so the price says whether it is too low.
//!
//! # What exactly it does
//!
//! - The calls that a shadow refuses never reach its windows. On the others it decides as an engine with its policy would: to the same answer,
//!   state and counts after every call. That is tested with random calls, against an engine that gets the same ones.
//! - Its probes are calls like any other: after its wait the next call is its probe, others meanwhile count as refused, reason `probing`.
//! - It judges by its own rules what it is told: slow and stalled calls, also where the target times none, and dropped calls by its own `on_abandon`.
//! - A call goes on with the shadows that were there when it started.
//! - Another policy for the target leaves the shadows as they are. So do forced states and limits set by hand: a shadow has none. While
//!   a target is disabled its shadows see all its calls, while it is forced open none.
//! - Its transitions are in no log, no observer hears of them, and its state isn't taken over by [`promote`](crate::Engine::promote): that puts its policy
//!   in force as [`set_policy`](crate::Engine::set_policy) does. Calls in flight stay counted, the state stays, and the window too unless its kind changes (R17).
//!
//! # What it can't say
//!
//! - What would have become of calls that the target itself refused: nobody knows. They are in `not_asked`. The stricter the policy in force, the
//!   less its shadows see; where `not_asked` rises with `asked` standing still, the figures are of another time than you think.
//! - What refusing would have changed. A candidate that refuses more takes load off the target, which might have recovered sooner, and callers try
//!   again. `failures_avoided` is too high by what the relief would have healed, and too low by what retries would have added.
//! - What waiting would have changed. Nobody waits at a shadow: with `max_waiting` in its policy, a call that might have waited counts as refused.
//! - With an adaptive limit or a ramp: latency is that of all the calls that were made, not of those that its limit would have let through.
//!
//! # In the gateway
//!
//! ```toml
//! [target.rates]
//! upstream = ["http://127.0.0.1:8110"]
//! min_calls = 20
//!
//! [target.rates.shadow.strict]      # all else as for the target
//! consecutive_failures = 5
//! ```
//!
//! `GET /targets/rates` at the admin listener shows its `shadows`, `/metrics` has `portcullis_shadow_*`, and `POST /targets/rates/promote?shadow=strict` puts
//! one in force until the configuration is read again; the answer has the lines for the file, and those that were in force. A reload leaves shadows counting
//! whose policy didn't change.
//!
//! # Cost
//!
//! Without shadows none: the flag is a bit in a word that each call reads anyway. With them each call pays for an entry under a lock that one
//! thread in eight shares, and for a decision of each shadow, at its start and at its end. As multiples of the decision on a healthy target, from
//! `cargo bench --bench decision` (`admit + success, resolved`; two runs on two cores of a busy Zen 3 machine differed by a fifth), and instructions from
//! `cargo bench --bench instructions`:
//!
//! | shadows | time | instructions |
//! | --- | --- | --- |
//! | none | 1 | 94 |
//! | 1 | 13 | 930 |
//! | 4 | 33 | 1,869 |
//!
//! Of the 6 ns that the README's table has for that decision, one shadow makes about 80 ns, and four about 200 ns.
//!
//! A shadow takes 544 bytes and, as a target's words do, what its windows, rules and threads need beside that; see [Memory](crate::docs::operations#memory).
//! Each call in flight takes 112 bytes more, which stay for those that come after it. A target's first shadow makes a block of 1 KiB, which stays with the target.
