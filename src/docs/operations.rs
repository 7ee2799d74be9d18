//! What an operator sees and does.
//!
//! # Reading a target
//!
//! [`Engine::snapshot`](crate::Engine::snapshot) shows a target as a caller would meet it. Ask it three things:
//!
//! - Why is it open? The [`Evidence`](crate::Evidence) of the last transition to OPEN has every rule that was met, its counts and threshold, and
//!   the policy's version, frozen when it was judged.
//! - When is it asked again? `reopen_in`, and after that the next caller probes: nothing happens without traffic.
//! - What did callers get? `refusals` by reason. `open` and `probing` speak of the target's health, `saturated` of its limit: they
//!   are different knobs.
//!
//! `abandoned` rising while `success` stands still is a target that hangs under callers with a timeout of their own. `stale` rising means
//! that calls take longer than the state lasts: look at timeouts.
//!
//! # Coming back
//!
//! With `ramp` in its policy a target that closed takes few calls at first. `limit` in its snapshot is what it takes now, `full_limit` what it
//! will, `ramps_for` how long that is away; `saturated` counts whom it turned away meanwhile. A limit set by hand is where the ramp leads
//! from then on, and is in force in full at its end; 0 stops the calls and the ramp goes on beneath. Leaving a forced state has no ramp: whoever
//! releases a target by hand takes that upon himself. A relapse has the cause `relapse`, and waits as long as after a failed probe.
//!
//! A wait that is longer than `open_wait` has its reason in the transition's `retry_after`: the target asked for it.
//!
//! # Doing it by hand
//!
//! | want | do |
//! | --- | --- |
//! | stop all calls to a target | [`force_open`](crate::Engine::force_open), later [`release`](crate::Engine::release) |
//! | close an open target at once | [`force_open`](crate::Engine::force_open), then [`release`](crate::Engine::release): alone, releasing leaves an automatic OPEN as it is |
//! | stop new calls but keep the breaker's state | [`set_limit`](crate::Engine::set_limit) to 0, later [`release_limit`](crate::Engine::release_limit) |
//! | let calls through whatever happens | [`disable`](crate::Engine::disable), later [`release`](crate::Engine::release) |
//! | other settings, calls running | [`set_policy`](crate::Engine::set_policy): state and calls in flight stay |
//!
//! Forced states last until somebody ends them: no timer, no outcome, no probe does. Each of these is a transition in the log. A target with a
//! policy or limit of its own, or in a forced state, is never forgotten.
//!
//! # Choosing rules
//!
//! A window of time with `min_calls` never judges a target with fewer calls than that in its length: give it `consecutive_failures` as well.
//! A target that is cold when it comes back needs a `ramp`: longer than it takes to warm up at that load. `ramp_failures` of 1 or 2 never gets a
//! target through it that always fails a few calls.
//! Calls that hang without a timeout are no evidence while they hang; `max_in_flight` bounds what they hold. `probe_lease` must be longer
//! than the calls' timeout, or slow probes are replaced before they can succeed. `slow_call` without `slow_rate` trips only when
//! every call in the window was slow.
//!
//! # Choosing for speed
//!
//! | choice | advice |
//! | --- | --- |
//! | how to ask | [`Engine::target`](crate::Engine::target) once where the targets are known: by key costs three times as much |
//! | how to hold | a `static` engine and [`Permit`](crate::Permit); an [`OwnedPermit`](crate::OwnedPermit) with an `Arc` writes a count that all threads share, twice |
//! | window | of calls where targets rarely fail: a healthy one reads a word and writes none. Its word is shared once there are failures in it: where a few per cent always fail and many cores call, of time, which each stripe counts by itself |
//! | clock | [`Clock::coarse`](crate::Clock::coarse) with windows of time and for targets that are often open, unless waits of few milliseconds matter. Windows of calls read no clock while a target is closed |
//! | limit | [`UNLIMITED`](crate::UNLIMITED), or 128 for each stripe (as many as cores, rounded up to a power of two) and more: below that every call goes through one word. A target that is called by one thread at a time has one stripe |
//! | rules | `slow_call`, `on_abandon` and an adaptive limit stamp each call's start and end: two readings of the clock, and each success asks the policy |
//!
//! Numbers: the README, and `cores` in `benches/peers` for your machine.
//!
//! # Memory
//!
//! On 64-bit machines a target is 256 bytes, four cache lines, beside its key (kept twice) and the map's entry. Its first failure or held
//! call makes a block of 192 bytes more, as do a slow-call rule and a window of time. That takes 128 bytes more for each stripe with calls
//! in up to 12 buckets, 416 for each with more, and 128 for every 8 buckets in which a call failed or was slow.
//! An [adaptive](crate::docs::adaptive) limit takes 384 bytes, and 128 for each further stripe. A target on whose words
//! threads have met 16 times gets a stripe of 128 bytes for each core but one, for good. `max_targets` bounds all of
//! it. Idle targets go when keys are added and in [`sweep`](crate::Engine::sweep): call it from a timer of yours if keys come and go.
//!
//! Beside the targets each thread that asks by key has a table of 1,024 places, 48 KiB for keys of 24 bytes and copies of the keys in it.
