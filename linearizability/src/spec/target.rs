//! One target as the rules have it: breaker, window, streak and bulkhead, no two of them clever.

use std::collections::VecDeque;

use crate::plan::{Ending, Shown};
use crate::shape::Rules;

/// Where the breaker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    Closed,
    Open { reopen_at_ms: u64 },
    HalfOpen { probes: u32, successes: u32, lease_end_s: u64 },
    ForcedOpen,
    Disabled,
}

/// Limits from here on let the engine keep permits in stashes, four batches of 32; below it there are none.
const STASHES_FROM: u32 = 128;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Index of the rules in force.
    pub rules: usize,
    pub gate: Gate,
    pub generation: u32,
    /// Failed probes in a row.
    pub reopens: u32,
    /// True for a failure, oldest first.
    pub window: VecDeque<bool>,
    pub streak: u32,
    pub in_flight: u32,
    pub limit: u32,
    /// The limit that a lowering under way replaces.
    pub lowering_from: Option<u32>,
    /// The limit of a policy that is being put in force.
    pub limit_to_come: Option<u32>,
    /// Whether permits may lie in stashes, or have once.
    pub has_stashes: bool,
    /// Whether a hand set its policy or limit: it is never forgotten then.
    pub is_configured: bool,
}

impl Target {
    pub(super) fn new(limit: u32) -> Self {
        Self {
            rules: 0,
            gate: Gate::Closed,
            generation: 0,
            reopens: 0,
            window: VecDeque::new(),
            streak: 0,
            in_flight: 0,
            limit,
            lowering_from: None,
            limit_to_come: None,
            has_stashes: limit >= STASHES_FROM,
            is_configured: false,
        }
    }

    /// A new generation: its window and streak are empty.
    fn enter(&mut self, gate: Gate, reopens: u32) {
        self.gate = gate;
        self.generation += 1;
        self.reopens = reopens;
        self.window.clear();
        self.streak = 0;
    }

    /// Whether a call that asks now enters without probing.
    pub(super) fn enters(&self) -> bool {
        matches!(self.gate, Gate::Closed | Gate::Disabled)
    }

    /// Whether a call that asks at `now` becomes a probe (R2, R4).
    pub(super) fn probes(&self, now: u64, rules: &Rules) -> bool {
        match self.gate {
            Gate::Open { reopen_at_ms } => now >= reopen_at_ms,
            Gate::HalfOpen { probes, lease_end_s, .. } => probes < rules.max_probes || now / 1_000 >= lease_end_s,
            Gate::Closed | Gate::ForcedOpen | Gate::Disabled => false,
        }
    }

    /// Takes a probe slot: a free one, or a new generation's first.
    pub(super) fn take_probe(&mut self, now: u64, rules: &Rules) {
        let lease_end_s = now.div_ceil(1_000) + rules.lease_s;
        match self.gate {
            Gate::HalfOpen { probes, successes, .. } if probes < rules.max_probes => {
                self.gate = Gate::HalfOpen { probes: probes + 1, successes, lease_end_s };
            }
            _ => self.enter(Gate::HalfOpen { probes: 1, successes: 0, lease_end_s }, self.reopens),
        }
    }

    /// A probe of the present generation ended (R3, R4).
    pub(super) fn probe_ended(&mut self, ending: Ending, now: u64, rules: &Rules) {
        let Gate::HalfOpen { probes, successes, lease_end_s } = self.gate else { return };
        match ending {
            Ending::Success if successes + 1 >= rules.successes_to_close => self.enter(Gate::Closed, 0),
            Ending::Success => {
                self.gate = Gate::HalfOpen { probes: probes - 1, successes: successes + 1, lease_end_s };
            }
            Ending::Failure => {
                let reopens = self.reopens + 1;
                self.enter(Gate::Open { reopen_at_ms: now + rules.wait(reopens) }, reopens);
            }
            Ending::Ignored | Ending::Dropped => {
                self.gate = Gate::HalfOpen { probes: probes - 1, successes, lease_end_s };
            }
        }
    }

    /// Counts an outcome in the window; whether the window then meets its rule (R9).
    pub(super) fn count(&mut self, failed: bool, rules: &Rules) -> bool {
        let Some(rule) = rules.window else { return false };
        self.window.push_back(failed);
        if self.window.len() > rule.size {
            self.window.pop_front();
        }
        let failures = self.window.iter().filter(|failed| **failed).count();
        self.window.len() >= rule.min_calls && failures * 100 >= rule.percent * self.window.len()
    }

    /// Counts an outcome in the streak; whether that then meets its rule.
    pub(super) fn lengthen(&mut self, failed: bool, rules: &Rules) -> bool {
        let Some(most) = rules.streak else { return false };
        self.streak = if failed { self.streak + 1 } else { 0 };
        self.streak >= most
    }

    /// Opens, if the window of this generation is still the one in force (R8).
    pub(super) fn trip(&mut self, generation: u32, now: u64, rules: &Rules) {
        if self.gate == Gate::Closed && self.generation == generation {
            self.enter(Gate::Open { reopen_at_ms: now + rules.wait(0) }, 0);
        }
    }

    /// What a hand does; whether that changed anything (R16).
    pub(super) fn by_hand(&mut self, to: Shown) -> bool {
        let gate = match (to, self.gate) {
            (Shown::ForcedOpen, Gate::ForcedOpen) | (Shown::Disabled, Gate::Disabled) => return false,
            (Shown::ForcedOpen, _) => Gate::ForcedOpen,
            (Shown::Disabled, _) => Gate::Disabled,
            (_, Gate::ForcedOpen | Gate::Disabled) => Gate::Closed,
            _ => return false,
        };
        self.enter(gate, 0);
        true
    }

    /// Whether a permit can be taken. While a limit with stashes is being lowered, the old one may still be met.
    pub(super) fn has_room(&self) -> bool {
        self.in_flight < self.limit || self.lowering_from.is_some_and(|before| self.in_flight < before)
    }

    pub(super) fn set_limit(&mut self, limit: u32) {
        self.lowering_from = (self.limit >= STASHES_FROM && limit < self.limit).then_some(self.limit);
        self.limit = limit;
        self.has_stashes |= limit >= STASHES_FROM;
    }

    /// Whether it may not be forgotten (R19).
    pub(super) fn must_stay(&self) -> bool {
        let has_evidence = self.streak > 0 || self.window.contains(&true);
        self.in_flight > 0 || self.gate != Gate::Closed || has_evidence || self.is_configured
    }
}
