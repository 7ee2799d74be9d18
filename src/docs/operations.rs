//! What an operator sees and does.
//!
//! # Reading a target
//!
//! [`Engine::snapshot`](crate::Engine::snapshot) shows a target as a caller would meet it. Ask it three things:
//!
//! - Why is it open? The [`Evidence`](crate::Evidence) of the last transition to OPEN has every rule that was met, its counts and threshold, and
//!   the policy's version, frozen when it was judged.
//! - When is it asked again? `reopen_in`, and after that the next caller probes: nothing happens without traffic.
//! - What did callers get? `refusals` by reason. `open` and `probing` speak of the target's health, `saturated` of its limit, `shed` of
//!   what the limit is kept free for: they are different knobs.
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
//! | see what other settings would do | [`shadow`](crate::Engine::shadow), later [`promote`](crate::Engine::promote): see [`shadows`](crate::docs::shadows) |
//!
//! Forced states last until somebody ends them: no timer, no outcome, no probe does. Each of these is a transition in the log. A target with a
//! policy, limit or shadow of its own, or in a forced state, is never forgotten.
//!
//! # Choosing rules
//!
//! A window of time with `min_calls` never judges a target with fewer calls than that in its length: give it `consecutive_failures` as well.
//! A target that is cold when it comes back needs a `ramp`: longer than it takes to warm up at that load. `ramp_failures` of 1 or 2 never gets a
//! target through it that always fails a few calls.
//! Calls that hang are no evidence while they hang, unless there is a stall rule; `max_in_flight` bounds what they hold. `probe_lease` must be
//! longer than the calls' timeout, or slow probes are replaced before they can succeed. `slow_call` without `slow_rate` trips only when
//! every call in the window was slow.
//!
//! # Slow is worse than down
//!
//! A target that is down answers at once, and the breaker opens within calls. One that hangs gives no sign until its callers' timeout, and by
//! then holds as many of them as come in that time. With `stall_after` calls are counted while they run, and the target trips when
//! `stalled_calls` of them, or `stalled_share` of the limit, have been running for that long.
//!
//! - Choose `stall_after` well above what healthy calls take at their slowest, and well below the timeout: with a timeout of 10 s and a
//!   99.9th percentile of 800 ms, 2 s. It trips up to an eighth later, never earlier.
//! - Choose a number that isn't met by the few calls that are always slow, or a share such as a half of `max_in_flight`.
//! - It is judged by the first caller of each eighth of `stall_after` (of each stripe), also where the bulkhead is full, and by each
//!   [`snapshot`](crate::Engine::snapshot). Whoever notices is refused, as all after it. With no caller nothing happens, and nobody is hurt.
//! - What counts is the permit: from when it is granted (in the `tower` module: from the first poll) until it is settled, dropped or
//!   [recorded](crate::Permit::record), or until the first [sign of life](crate::OwnedPermit::touch). A body that is read slowly is no stall.
//! - Long polls and streams: record their verdict at the headers, or leave the rule off. A leaked permit counts until the target trips.
//! - Calls that still hang when the target closes again don't trip it a second time: they say nothing new. So do calls that were granted before
//!   the rule was there. Another `stall_after` starts empty: in CLOSED it begins a new generation, window and all.
//! - Probes aren't judged by it: their lease is.
//!
//! # What matters more
//!
//! [`admit`](crate::Engine::admit) asks for a critical call. Say with [`admit_with`](crate::Engine::admit_with) which calls aren't, and keep room for those that are by
//! `normal_share` and `sheddable_share`: with 0.8 and 0.5 of a limit of 10, prefetches stop at 5 calls in flight of whatever priority, ordinary calls at 8. A share
//! is rounded down, but to 1 at least, and is of the limit in force at each moment, also while it ramps up or is adapted. With no limit there
//! are no shares.
//!
//! Calls that must not be refused for a moment's burst may wait: [`admit_waiting`](crate::Engine::admit_waiting), [`admit_blocking`](crate::Engine::admit_blocking), with `max_waiting`
//! and `max_wait`. A queue hides an overload for as long as it is deep, and then every call in it is late: `max_waiting` no more than what the target
//! serves in `max_wait`, and `max_wait` well under the caller's timeout. While `waiting` in a snapshot stays above 0 the limit is too low or the
//! target too slow; `waited` counts calls that ever waited. Whole calls (feature `call`) wait without being asked to, within their deadline.
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
//! | priorities | those with a share of 1 take the same path as critical calls. The others go by the word that all threads share, and sweep the stripes' stashes when their share is reached |
//! | rules | `slow_call`, `on_abandon` and an adaptive limit stamp each call's start and end: two readings of the clock, and each success asks the policy. `stall_after` stamps the start, and writes one word more at the start and one at the end, on the caller's own stripe |
//!
//! Numbers: the README, and `cores` in `benches/peers` for your machine.
//!
//! # Memory
//!
//! On 64-bit machines a target is 256 bytes, four cache lines, beside its key (kept twice) and the map's entry. Its first failure or held
//! call makes a block of 192 bytes more, as do a slow-call rule and a window of time. That takes 128 bytes more for each stripe with calls
//! in up to 11 buckets, 424 for each with more, and 128 for every 8 buckets in which a call failed or was slow.
//! A stall rule takes 256 bytes for each stripe, 128 of them shared with a window of time. An [adaptive](crate::docs::adaptive) limit takes
//! 384 bytes, and 128 for each further stripe. A limit that ramps, or was ever set by hand or by another policy, takes 48 bytes. The first call that
//! waits makes a block of 64 bytes; those who wait take about 30 bytes each in a tree of theirs while they do, its first node 280. A target on whose words
//! threads have met 16 times gets a stripe of 128 bytes for each core but one, for good. A [shadow](crate::docs::shadows#cost)
//! takes 544 bytes, and the first of a target 1 KiB more. `max_targets` bounds all of
//! it. Idle targets go when keys are added and in [`sweep`](crate::Engine::sweep): call it from a timer of yours if keys come and go.
//!
//! Beside the targets each thread that asks by key has a table of 1,024 places, 48 KiB for keys of 24 bytes and copies of the keys in it.
