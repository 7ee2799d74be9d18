//! Common mistakes around a breaker, in numbers.
//!
//! Each is a file in `examples/mistakes` that does it wrong and, beside it, right, on a clock that is moved by hand: the numbers are the same in
//! every run, and a test holds this page against them. `cargo run --features call --example mistakes`, with a name behind `--` for one.
//!
//! # One breaker for all
//!
//! With two targets behind one breaker, one dead: its failures are half of the calls, and the healthy one is refused as well. With ten, they are a
//! tenth, and the breaker never opens. There is no threshold that is right for both.
//!
//! - Wrong: one for 2 targets: the healthy one got 10 of 600 calls; one for 10: the dead one got 600 of 600
//! - Right: one each: the healthy one got 600 of 600 calls, the dead one 21
//!
//! `one_breaker_for_all`. A key per target; per tenant and target, where a tenant can break it for himself.
//!
//! # The same numbers for all
//!
//! A timeout that is too short opens the breaker of a healthy target. One that is too long is no timeout.
//!
//! - Wrong: 1 s for both: 0 of 20 reports came, and a hung cache held its callers for 5,000 ms
//! - Right: 5 s and 20 ms: 20 of 20 reports came, and the cache held them for 100 ms
//!
//! `same_numbers_for_all`. Where they come from: [`calls`](super::calls).
//!
//! # A breaker, and no limit
//!
//! Slow is worse than down: a target that answers after 3 s fails nobody, opens nothing, and holds everything.
//!
//! - Wrong: a slow target held 64 of 64 workers, and its neighbour answered 1,316 of 3,089 calls
//! - Right: with max_in_flight = 16 it held 16, and the neighbour answered 3,089 of 3,089 calls
//!
//! `no_limit`. `slow_call` and `stall_after` make slowness evidence; only `max_in_flight` bounds what it holds.
//!
//! # Business errors as failures
//!
//! A declined card is an answer. Counted as failures, such answers open the breaker of a target that works, for all its callers, the sooner the
//! worse the requests are.
//!
//! - Wrong: 814 of 1,000 payments refused, 17 trips, of a target that answered every one
//! - Right: 0 refused, 0 trips
//!
//! `business_errors_as_failures`. What is one: no answer, no connection, a system error; see [`words`](super::words). The opposite happens, too: a
//! failure in an `Ok`, or under status 200, is one. The verdict sees the whole result.
//!
//! # The timeout outside of the breaker
//!
//! What is cut from outside has no outcome. Each caller waits the whole timeout, for ever, and the breaker stands by.
//!
//! - Wrong: 100 calls waited 20 s for a hung target, and it is still closed
//! - Right: they waited 1 s, then it was open
//!
//! `timeout_outside_the_breaker`. `on_abandon` is the net below that: async calls that were silent for 500 ms when they were dropped are failures
//! unless the policy says otherwise. Here they were dropped after 200 ms.
//!
//! # The first sign at the timeout
//!
//! Every rule that judges answers waits for one. A target that hangs gives none until the first timeout is over, and by then all that came is in it.
//!
//! - Wrong: a hung target opened after 10,200 ms, when 199 calls hung in it
//! - Right: with stalled_calls = 10 and stall_after = 2s after 2,500 ms and 50 calls
//!
//! `first_sign_at_the_timeout`. The slowest answer of a good day comes after 1.5 s here, and may take 10 s.
//!
//! # The fallback inside of the breaker
//!
//! Every failure is answered before it is settled, and so a success. The callers are content, and each of them waits the timeout first.
//!
//! - Wrong: all 100 callers got the fallback, 100 of them after waiting 1 s for the hung target
//! - Right: all 100 got it, 5 after waiting 1 s
//!
//! `fallback_inside_the_breaker`. Outside it also answers for refusals, which inside it never sees.
//!
//! # The retry inside of the breaker
//!
//! Three attempts are settled as one failure.
//!
//! - Wrong: consecutive_failures = 5 opened after 15 attempts and 15 s
//! - Right: consecutive_failures = 5 opened after 5 attempts and 5 s
//!
//! `retry_inside_the_breaker`. The call whose second attempt opened it gets no third: it is refused.
//!
//! # Retries around everything
//!
//! Each layer's retries multiply those of the next. A retry storm is that load on a target which is coming up, and goes down under it again.
//!
//! - Wrong: 3 attempts at each of 3 layers: 100 calls reached the dead target 2,700 times
//! - Right: 3 at the last, within a budget of 10 %: 110 times; with that budget at each: 133
//!
//! `retries_at_every_layer`. The breakers are off in it; with them the storm ends when they open, and begins again with each probe that succeeds.
//!
//! # Retries of what does harm twice
//!
//! No answer doesn't mean not done.
//!
//! - Wrong: 110 charges for 100 orders, and no error
//! - Right: 100 charges and 10 errors; with an idempotency key 100 and 0
//!
//! `retry_of_what_harms_twice`. Unless a call says that it is idempotent, it is made once.
//!
//! # Retries of refusals
//!
//! A refusal says when to come back. Asked again at once it is the same refusal, and the attempts are spent when the target is back. (Where
//! refusals count as failures, too, the breaker keeps itself open. Here they have no permit to settle.)
//!
//! - Wrong: 100 callers were refused 300 times, and 0 of them answered
//! - Right: refused 100 times, and 100 answered once the wait was over
//!
//! `retry_of_refusals`.
//!
//! # No half-open
//!
//! A breaker that closes because its time is over sends everybody to find out. The crowd that does has to wait its timeout, and may be what
//! brings down a target that was just coming up.
//!
//! - Wrong: closing by the clock: the dead target got 1,040 calls in a minute, up to 100 at once
//! - Right: closing by a probe: 113 calls, after the first outbreak 1 at once
//!
//! `no_half_open`. The first 104 came before anybody could know: that part is the limit's, and the stall rule's. The first good probe isn't the end
//! either: `successes_to_close` asks for more than one, and `ramp` lets the load back by and by.
//!
//! # The full load after closing
//!
//! What has just restarted bears less than it did: its caches are cold, its pools empty. All its callers at once bring it down again, each time.
//!
//! - Wrong: the target went down 55 times and answered 54 of 30,000 calls
//! - Right: with ramp = 30s it went down once and answered 28,240 of 30,000 calls
//!
//! `full_load_after_closing`. It bears 5 calls at once when it starts and 50 after 20 s, of 40 that there are. The ramp must take longer than getting
//! warm does, or it overtakes it.
//!
//! # Opened, and nobody told
//!
//! A fallback that works hides the outage from all who watch errors.
//!
//! - Wrong: ten minutes of outage, 0 errors on the dashboard
//! - Right: core-banking opened after 4 s by consecutive_failures: 5 of 5; 600 answers counted as the fallback's
//!
//! `nobody_told`. [`Engine::observe`](crate::Engine::observe) or [`subscribe`](crate::Engine::subscribe) tell of each transition, with its evidence; feature `tracing`
//! makes an event of each. Alert on trips and on the share of answers that are the fallback's.
//!
//! # A fallback that is never exercised
//!
//! It first runs in an outage, and first fails in one: nothing under that name, a credential that expired, a bug.
//!
//! - Wrong: 0 of 100 callers got the last good answer in the outage
//! - Right: a drill of 5 calls found 5 without one; mended, 100 of 100 got it
//!
//! `fallback_never_exercised`. A drill is [`force_open`](crate::Engine::force_open), a look at `fallback_failed`, and [`release`](crate::Engine::release), on a schedule;
//! with the gateway `portcullis drill`.
