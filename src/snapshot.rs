//! A target as it was at a moment.

use std::fmt;
use std::time::Duration;

use crate::adaptive::control::Control;
use crate::bulkhead::Usage;
use crate::counters::{Counter, Counters};
use crate::gate::State;
use crate::policy::{Policy, UNLIMITED};
use crate::target::Words;
use crate::time::Now;

/// A target as it was at a moment: each word as it was read, one after the other.
///
/// Every word is consistent in itself: state, generation, deadline, probes and reopenings are of one instant, and so is a window of
/// calls. Between words other threads may have moved: the window may be a call ahead of the totals, and a window of time may
/// miss or hold what was recorded while it was summed. Totals of calls that have ended never go back.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// As a caller would meet it: an OPEN whose wait is over shows as HALF_OPEN, ready to probe, and nothing was changed.
    pub state: State,
    /// The generation in the gate; wraps at 1,048,576.
    pub generation: u32,
    /// Number of the target among all that the engine ever made.
    pub incarnation: u64,
    /// Until a probe may start, while nobody has yet: zero once the wait is over. None in other states.
    #[cfg_attr(
        feature = "serde",
        serde(with = "crate::policy::file::duration", skip_serializing_if = "Option::is_none")
    )]
    pub reopen_in: Option<Duration>,
    /// Probes in flight, in HALF_OPEN.
    pub probes_in_flight: u32,
    /// Probes ever granted.
    pub probes_granted: u64,
    /// Successes so far, in HALF_OPEN.
    pub probe_successes: u32,
    /// Transitions so far: the number of the last one that was reported.
    pub transitions: u64,
    /// Failed probes in a row, and relapses while the limit ramped, to 31.
    pub reopens: u32,
    /// Calls in flight, probes among them.
    pub in_flight: u32,
    /// Calls among them that have been running for `stall_after`, if the policy has a rule on them and the target is CLOSED.
    pub stalled: u64,
    /// The limit in force; [`UNLIMITED`] if calls are only counted.
    pub limit: u32,
    /// Calls that wait for a permit.
    pub waiting: u32,
    /// Calls that ever waited for a permit, whatever became of them.
    pub waited: u64,
    /// What an adaptive limit goes by, if the policy has one.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "Option::is_none"))]
    pub adaptive: Option<AdaptiveSnapshot>,
    /// The limit that was set, by the policy or by hand: what `limit` ramps to.
    pub full_limit: u32,
    /// While the limit ramps, until it is full.
    #[cfg_attr(
        feature = "serde",
        serde(with = "crate::policy::file::duration", skip_serializing_if = "Option::is_none")
    )]
    pub ramps_for: Option<Duration>,
    /// Failures in a row, if the policy has a rule on them or a ramp.
    pub streak: u64,
    /// The window's contents, if the policy has one; empty in all states but CLOSED.
    pub window: Option<WindowSnapshot>,
    /// Calls by how they ended.
    pub totals: Totals,
    /// Refusals by reason.
    pub refusals: Refusals,
    /// The policy in force.
    pub policy: Policy,
    /// Policies that the target had before.
    pub policy_version: u32,
}

/// What an adaptive limit goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AdaptiveSnapshot {
    /// Mean latency in the last window of samples that counted; none before the first.
    #[cfg_attr(
        feature = "serde",
        serde(with = "crate::policy::file::duration", skip_serializing_if = "Option::is_none")
    )]
    pub latency: Option<Duration>,
    /// Latency without a queue, as last measured; none before that, and where the limit doesn't go by it.
    #[cfg_attr(
        feature = "serde",
        serde(with = "crate::policy::file::duration", skip_serializing_if = "Option::is_none")
    )]
    pub baseline: Option<Duration>,
    /// Whether the limit in force is one set by hand, and stands still.
    pub by_hand: bool,
}

impl AdaptiveSnapshot {
    pub(crate) fn of(control: Option<Control>, by_hand: bool) -> Self {
        let nanos = |of: fn(&Control) -> Option<u64>| control.as_ref().and_then(of).map(Duration::from_nanos);
        Self { latency: nanos(Control::latency), baseline: nanos(Control::baseline), by_hand }
    }
}

/// What a window holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct WindowSnapshot {
    /// Calls.
    pub calls: u64,
    /// Calls among them that failed.
    pub failures: u64,
    /// Calls among them that were slow; counted only where a rule asks for it.
    pub slow: u64,
}

/// Calls by how they ended. Each counts once, but in `slow`, which counts beside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Totals {
    /// Permits granted: calls in flight, and calls that gave their permit back. Two words are added up, so it may be off by the calls
    /// that move between them just then.
    pub admitted: u64,
    /// Successes.
    pub success: u64,
    /// Failures, and permits dropped by a panic.
    pub failure: u64,
    /// Settled as no evidence.
    pub ignored: u64,
    /// Dropped unsettled, whatever the policy makes of that.
    pub abandoned: u64,
    /// Successes and failures that took at least `slow_call`.
    pub slow: u64,
    /// Settled in another generation than granted.
    pub stale: u64,
}

/// Refusals by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Refusals {
    /// The circuit was open.
    pub open: u64,
    /// All probes were taken.
    pub probing: u64,
    /// All calls that the target may hold were in flight.
    pub saturated: u64,
    /// The call's priority was being shed.
    pub shed: u64,
    /// The target was closed to calls by hand.
    pub forced: u64,
}

impl Refusals {
    /// All refusals.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.open + self.probing + self.saturated + self.shed + self.forced
    }
}

impl Snapshot {
    /// Whether calls in flight are only counted.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.limit == UNLIMITED
    }

    pub(crate) fn take(
        (words, success_seen): (&Words, &Counter),
        policy: &Policy,
        policy_version: u32,
        incarnation: u64,
        now: Now,
    ) -> Self {
        let gate = words.gate.load();
        let is = |state| gate.state() == state;
        // Before the counters: an ending that is counted belongs to a call that may not be counted yet, never the other way.
        let usage = words.bulkhead.usage();
        let counters = words.counters_if_any();
        let (waits, limits) = (words.bulkhead.waits(), words.limits(now));
        Self {
            state: gate.state_at(now),
            generation: gate.generation(),
            incarnation,
            reopen_in: is(State::Open).then(|| now.until_tick(gate.tick())),
            probes_in_flight: if is(State::HalfOpen) { gate.probes() } else { 0 },
            probes_granted: words.probes_granted(),
            transitions: 0,
            probe_successes: if is(State::HalfOpen) { gate.successes() } else { 0 },
            reopens: gate.reopens(),
            in_flight: u32::try_from(usage.in_flight).unwrap_or(u32::MAX),
            stalled: words.stalled(gate, now),
            adaptive: None,
            limit: limits.now,
            full_limit: limits.full,
            ramps_for: limits.left_ms.map(Duration::from_millis),
            streak: if policy.counts_streaks() { words.streak.count(gate.generation()) } else { 0 },
            window: words.window(gate, policy, now).map(|counts| {
                let crate::window::Counts { calls, failures, slow } = counts;
                WindowSnapshot { calls, failures, slow }
            }),
            waiting: u32::try_from(waits.waiting).unwrap_or(u32::MAX),
            waited: waits.waited,
            totals: Totals::take(success_seen, usage, counters),
            refusals: words.bulkhead.refusals(),
            policy: policy.clone(),
            policy_version,
        }
    }
}

impl Totals {
    fn take(success_seen: &Counter, usage: Usage, counters: Option<&Counters>) -> Self {
        let Usage { in_flight, settled } = usage;
        let admitted = settled + in_flight;
        let Some(counters) = counters else {
            return Self { admitted, success: success_seen.at_least(settled), ..Self::default() };
        };
        let held = counters.held.get();
        let [failure, ignored, abandoned, slow, stale] =
            [&counters.failure, &counters.ignored, &counters.abandoned, &counters.slow, &counters.stale]
                .map(Counter::get);
        let success = (settled + held).saturating_sub(failure + ignored + abandoned + stale);
        Self { admitted, success: success_seen.at_least(success), failure, ignored, abandoned, slow, stale }
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (generation {}), {} in flight", self.state, self.generation, self.in_flight)?;
        if !self.is_unlimited() {
            write!(f, " of {}", self.limit)?;
        }
        if self.ramps_for.is_some() {
            write!(f, ", ramping to {}", self.full_limit)?;
        }
        if let Some(window) = self.window.filter(|_| self.state == State::Closed) {
            write!(f, ", {} of {} calls failed", window.failures, window.calls)?;
        }
        Ok(())
    }
}
