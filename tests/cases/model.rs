//! One target as the rules describe it, in plain fields and whole milliseconds: what the engine is compared with.

use std::collections::VecDeque;

use portcullis::{Outcome, Policy, PolicyBuilder, State, Window};

use crate::common::{ms, secs};

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) limit: u32,
    pub(super) window: usize,
    pub(super) min_calls: usize,
    pub(super) streak: u64,
    pub(super) wait_ms: u64,
    pub(super) wait_max_ms: u64,
    pub(super) probes: u32,
    pub(super) successes: u32,
    pub(super) lease_s: u64,
    pub(super) ignored: u32,
}

impl Settings {
    /// Half the window fails, waits double, no jitter.
    pub(super) fn policy(&self) -> PolicyBuilder {
        Policy::builder()
            .max_in_flight(self.limit)
            .window(Window::calls(self.window as u32))
            .min_calls(self.min_calls as u32)
            .consecutive_failures(self.streak as u32)
            .open_wait(ms(self.wait_ms))
            .open_wait_max(ms(self.wait_max_ms))
            .jitter(0.0)
            .max_probes(self.probes)
            .successes_to_close(self.successes)
            .probe_lease(secs(self.lease_s))
            .ignored_probes(self.ignored)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Phase {
    Closed { window: VecDeque<bool>, streak: u64 },
    Open { reopen_ms: u64 },
    HalfOpen { probes: u32, successes: u32, ignored: u32, lease_ms: u64 },
    ForcedOpen,
    Disabled,
}

/// What the model makes of a call that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Permit { is_probe: bool, generation: u64 },
    Open { retry_ms: u64 },
    Probing { retry_ms: u64 },
    Saturated,
    Forced,
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    settings: Settings,
    pub(super) now_ms: u64,
    pub(super) phase: Phase,
    pub(super) generation: u64,
    pub(super) reopens: u32,
    pub(super) in_flight: u32,
    pub(super) limit: u32,
    pub(super) admitted: u64,
    pub(super) stale: u64,
    pub(super) moves: Vec<(State, State)>,
}

impl Model {
    pub(super) fn new(settings: Settings) -> Self {
        let phase = Phase::Closed { window: VecDeque::new(), streak: 0 };
        let limit = settings.limit;
        let (generation, admitted, stale, moves) = (0, 0, 0, Vec::new());
        Self { settings, now_ms: 0, phase, generation, reopens: 0, in_flight: 0, limit, admitted, stale, moves }
    }

    pub(super) fn written(&self) -> State {
        match self.phase {
            Phase::Closed { .. } => State::Closed,
            Phase::Open { .. } => State::Open,
            Phase::HalfOpen { .. } => State::HalfOpen,
            Phase::ForcedOpen => State::ForcedOpen,
            Phase::Disabled => State::Disabled,
        }
    }

    pub(super) fn shown(&self) -> State {
        match self.phase {
            Phase::Open { reopen_ms } if self.now_ms >= reopen_ms => State::HalfOpen,
            _ => self.written(),
        }
    }

    fn go(&mut self, phase: Phase) {
        let from = self.written();
        self.phase = phase;
        self.generation += 1;
        self.moves.push((from, self.written()));
    }

    fn closed() -> Phase {
        Phase::Closed { window: VecDeque::new(), streak: 0 }
    }

    fn lease_ms(&self) -> u64 {
        (self.now_ms.div_ceil(1_000) + self.settings.lease_s) * 1_000
    }

    pub(super) fn admit(&mut self) -> Answer {
        let (has_room, lease_ms) = (self.in_flight < self.limit, self.lease_ms());
        let fresh = Phase::HalfOpen { probes: 1, successes: 0, ignored: 0, lease_ms };
        let is_probe = match &mut self.phase {
            Phase::ForcedOpen => return Answer::Forced,
            Phase::Open { reopen_ms } if *reopen_ms > self.now_ms => {
                return Answer::Open { retry_ms: *reopen_ms - self.now_ms };
            }
            Phase::HalfOpen { probes, lease_ms, .. } if *probes >= self.settings.probes && self.now_ms < *lease_ms => {
                return Answer::Probing { retry_ms: *lease_ms - self.now_ms };
            }
            _ if !has_room => return Answer::Saturated,
            Phase::Closed { .. } | Phase::Disabled => false,
            Phase::HalfOpen { probes, lease_ms: end, .. } if *probes < self.settings.probes => {
                (*probes, *end) = (*probes + 1, lease_ms);
                true
            }
            Phase::Open { .. } | Phase::HalfOpen { .. } => {
                self.go(fresh);
                true
            }
        };
        self.in_flight += 1;
        self.admitted += 1;
        Answer::Permit { is_probe, generation: self.generation }
    }

    /// Whether the outcome counts; `Ignored` with `is_abandoned` for a permit that was dropped.
    pub(super) fn record(&mut self, generation: u64, outcome: Outcome, is_abandoned: bool) -> bool {
        if generation != self.generation {
            self.stale += 1;
            return false;
        }
        let settings = self.settings;
        let failed = outcome == Outcome::Failure;
        match &mut self.phase {
            Phase::Closed { window, streak } if outcome != Outcome::Ignored => {
                window.push_back(failed);
                if window.len() > settings.window {
                    window.pop_front();
                }
                *streak = if failed { *streak + 1 } else { 0 };
                let failures = window.iter().filter(|failed| **failed).count();
                if *streak >= settings.streak || window.len() >= settings.min_calls && 2 * failures >= window.len() {
                    let reopen_ms = self.now_ms + settings.wait_ms;
                    self.reopens = 0;
                    self.go(Phase::Open { reopen_ms });
                }
            }
            Phase::HalfOpen { .. } if failed => {
                self.reopens = (self.reopens + 1).min(31);
                let wait = settings.wait_ms.saturating_mul(1 << self.reopens).min(settings.wait_max_ms);
                self.go(Phase::Open { reopen_ms: self.now_ms + wait });
            }
            Phase::HalfOpen { probes, successes, ignored, .. } => {
                *probes -= 1;
                let is_ignored = outcome == Outcome::Ignored;
                *ignored = if is_ignored { *ignored + u32::from(!is_abandoned) } else { 0 };
                if !is_ignored || *ignored == settings.ignored {
                    (*ignored, *successes) = (0, *successes + 1);
                }
                if *successes >= settings.successes {
                    self.reopens = 0;
                    self.go(Self::closed());
                }
            }
            _ => {}
        }
        true
    }

    pub(super) fn force(&mut self, phase: Phase) {
        let before = self.clone();
        self.go(phase);
        if self.written() == before.written() {
            *self = before;
        } else {
            self.reopens = 0;
        }
    }

    pub(super) fn release(&mut self) {
        if matches!(self.phase, Phase::ForcedOpen | Phase::Disabled) {
            self.go(Self::closed());
        }
    }
}
