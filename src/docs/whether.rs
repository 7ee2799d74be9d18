//! Whether to use a breaker at all, and what callers get while it is open.
//!
//! # When not to
//!
//! A breaker is a guess about the next call, made from the last ones. It costs upkeep, and now and then it is wrong. It pays where one target's
//! outage takes down what doesn't need it. Ask in this order:
//!
//! | question | if so |
//! | --- | --- |
//! | Do calls a second × `timeout` stay well below what the process can hold (workers, connections, memory)? | a timeout and `max_in_flight` do: nobody else notices the outage, and neither can open by mistake |
//! | Does it fail at once when it fails (a refused connection, a full disk, anything in this process)? | the failure costs as little as a refusal |
//! | Do so few calls come that an outage is over before `consecutive_failures` of them are? | at one a minute five take five minutes: a timeout, and a fallback per call |
//! | Can nothing be done without it, and does nobody wait (batch, migrations, consumers of a queue)? | stop and come back later; a queue keeps the work |
//! | Do failures belong to the request and not to the target (a poisoned message, one tenant's bad data)? | give each tenant a key of its own, or judge such errors as answers |
//! | Does something between already eject what is dead (a mesh, a balancer that looks at instances)? | one of the two: in a row, one judges the other's refusals |
//! | Will nobody look at it? | it will be open for months, with a fallback in front (see [`mistakes`](super::mistakes), *nobody told*) |
//!
//! # What it costs, and what it saves
//!
//! Count for one target and one year, in one currency:
//!
//! - saved = outages × (minutes of each − minutes to notice) × share of the other traffic that goes down with it × worth of a minute;
//! - upkeep = hours (choosing and reviewing numbers, drills, alerts) × cost of an hour;
//! - wrongly refused = trips of a healthy target × minutes until it is closed again × share of the traffic that is the target's × worth of a minute.
//!
//! The share of the other traffic is what decides. It is nothing as long as the calls that wait for the target fit: calls a second × `timeout`
//! < capacity (Little's law). Above that the capacity goes, and all that needs it.
//!
//! ```
//! struct Target {
//!     calls_per_s: f64,
//!     timeout_s: f64,
//!     capacity: f64,          // calls that the process can hold at once
//!     others: f64,            // share of the traffic that doesn't need the target
//!     outages: f64,           // a year, by its log
//!     outage_min: f64,        // minutes each
//!     notice_min: f64,        // until it opens
//!     worth_of_a_minute: f64, // of the whole service
//!     upkeep_h: f64,          // hours a year
//!     hour: f64,              // cost of one
//!     wrong_trips: f64,       // a year
//!     wrong_min: f64,         // minutes each
//! }
//!
//! impl Target {
//!     fn goes_down_with_it(&self) -> f64 {
//!         if self.calls_per_s * self.timeout_s < self.capacity { 0.0 } else { self.others }
//!     }
//!
//!     /// What a breaker saves a year, less what it costs.
//!     fn gain(&self) -> f64 {
//!         let saved = self.outages * (self.outage_min - self.notice_min) * self.goes_down_with_it() * self.worth_of_a_minute;
//!         let wrong = self.wrong_trips * self.wrong_min * (1.0 - self.others) * self.worth_of_a_minute;
//!         saved - wrong - self.upkeep_h * self.hour
//!     }
//! }
//!
//! // 150 calls a second that may take 3 s want 450 places, and there are 64: four outages of half an hour take the other nine tenths with them.
//! let core_banking = Target {
//!     calls_per_s: 150.0, timeout_s: 3.0, capacity: 64.0, others: 0.9, outages: 4.0, outage_min: 30.0, notice_min: 0.1,
//!     worth_of_a_minute: 100.0, upkeep_h: 12.0, hour: 100.0, wrong_trips: 2.0, wrong_min: 0.1,
//! };
//! assert_eq!(core_banking.gain().round(), 9_562.0);
//!
//! // 5 calls a second of at most 1 s want 5 places: whatever happens to it, nobody else notices. The upkeep is what is left.
//! let thumbnails = Target { calls_per_s: 5.0, timeout_s: 1.0, ..core_banking };
//! assert_eq!(thumbnails.gain().round(), -1_202.0);
//! ```
//!
//! What the sum leaves out: callers who are refused at once can do something better with their time (count it if there is a fallback), and a target that
//! isn't called comes back sooner (count it if its restarts have failed under load). If the first sum is nothing, set `timeout` and `max_in_flight` only:
//! `Policy::builder().max_in_flight(16).no_window()` never opens by itself.
//!
//! # Fail open or fail closed
//!
//! Nothing to do with the breaker's states: to fail closed is to refuse callers what they ask for, to fail open to give them something in its place.
//! Closed is right where
//!
//! ```text
//! chance that the substitute is wrong × harm of a wrong answer > harm of no answer
//! ```
//!
//! That is the target's nature, so it is declared with the target: `CallPolicy`'s `fallback`.
//!
//! | target | fail | why | fallback |
//! | --- | --- | --- | --- |
//! | payments, transfers | closed | money that moved by a guess doesn't come back | refuse; or take the order as pending, and pay later with an idempotency key |
//! | authentication | closed | an open door is worse than a locked one | refuse; signed tokens are checked with the last good keys until they expire |
//! | permissions | closed | who was let in by a guess has seen it | the last good answer, no older than a revocation may take |
//! | fraud checks | by amount | below the amount at which a false yes costs more than a lost sale | a function: yes under a bound, no above |
//! | stock, prices | open to look, closed to buy | a shown price may be a minute old, a sold one may not | the last good answer for pages, refuse at the till |
//! | feature flags | open | a flag decides among things that all work | the last good answer, then the value compiled in |
//! | recommendations, advertisements | open | none is a good answer | a value: bestsellers, nothing |
//! | search, catalogues | open | yesterday's are nearly right | the last good answer |
//! | a cache | open, within a limit | it is there to save time. But at 95 % hits the origin gets 20 times its load without it: 1 / (1 − 0.95) | the origin, with its own `max_in_flight`, and shedding |
//! | a rate limiter | open, within a limit | refusing everybody is the outage that it is there to prevent | a bound of this process |
//! | configuration, service discovery | open | what was right a minute ago still is | the last good answer, of any age |
//! | metrics, traces | open | no call is worth less than its metric | drop, and count what was dropped |
//! | an audit log that the law asks for | closed | what isn't recorded must not happen | refuse; or a local file first |
//! | mail, notifications | open | late is fine | a queue |
//!
//! Failing open is never silent: answers are marked (`x-portcullis-fallback`, `Answer::fallback`), counted (`fallback_value`, `fallback_function`,
//! `fallback_stale`), and a fallback that fails is counted and said, too (`fallback_failed`). Exercise it: force the target open for some seconds on a
//! schedule ([`force_open`](crate::Engine::force_open), [`release`](crate::Engine::release); with the gateway `portcullis drill`), and look at what
//! callers got.
