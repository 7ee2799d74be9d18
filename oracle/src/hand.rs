//! What is done to a target by hand, and how its place gets another tenant.

use std::rc::Rc;

use portcullis::{Cause, State, UNLIMITED};

use crate::Twin;
use crate::target::{NANOS_PER_MS, Phase, Target, Terms};

impl Target {
    pub(crate) fn force(&mut self, phase: Phase, cause: Cause, now: u64) -> bool {
        let changes = phase.state() != self.phase.state();
        if changes {
            (self.reopens, self.ramp, self.asked_ms) = (0, None, 0);
            self.go(phase, cause, now, None);
        }
        changes
    }

    pub(crate) fn release(&mut self, now: u64) -> bool {
        let changes = matches!(self.phase, Phase::ForcedOpen | Phase::Disabled);
        if changes {
            self.go(self.fresh(now), Cause::Released, now, None);
        }
        changes
    }

    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.is_configured = true;
        self.limit = limit.min(UNLIMITED);
        if self.twin == Twin::ForgetsInFlight {
            self.in_flight = self.in_flight.min(self.limit);
        }
    }

    /// Puts another policy in force (R17). `restarted` is what the real engine did where both ways are right.
    pub(crate) fn set_policy(&mut self, terms: &Rc<Terms>, now: u64, restarted: bool) {
        self.is_configured = true;
        if self.terms.policy == terms.policy {
            return;
        }
        let before = std::mem::replace(&mut self.terms, Rc::clone(terms));
        let (before, after) = (&before.rules, &terms.rules);
        self.policy_version += 1;
        if before.limit != after.limit {
            self.limit = after.limit;
        }
        self.adopt_ramp(now);
        // Once on and then off: who counted then may still come.
        self.has_counted |= before.stall_ms.is_some() && before.stall_ms != after.stall_ms;
        let Phase::Closed(window) = &mut self.phase else { return };
        let has_other_ticks = after.stall_ms.is_some() && before.stall_ms != after.stall_ms;
        if has_other_ticks && self.has_counted {
            return self.go(self.fresh(now), Cause::PolicyChanged, now, None);
        }
        if before.counts_streaks() != after.counts_streaks() {
            window.streak = 0;
        }
        if before.shape == after.shape {
            // The last calls are marked in their order, so there is no mark for one that was made while nobody asked. Buckets keep
            // theirs: each leaves with its time.
            if before.slow_rate_bp.is_some() != after.slow_rate_bp.is_some() && before.shape.length_ms() == 0 {
                window.forget_slow();
            }
            return;
        }
        // Empty because time passed: whether that is still worth a transition isn't said.
        let is_empty = window.streak == 0 && window.counts(before.shape, now / NANOS_PER_MS).calls == 0;
        if window.is_untouched() || is_empty && !restarted {
            window.forget_calls();
        } else {
            self.go(self.fresh(now), Cause::PolicyChanged, now, None);
        }
    }

    /// Moves the tenant out; only news if the target wasn't CLOSED.
    pub(crate) fn forget(&mut self, now: u64) {
        let is_news = self.phase.state() != State::Closed;
        self.go(self.fresh(now), Cause::Forgotten, now, None);
        if !is_news {
            self.news.pop();
        }
    }

    /// Makes the next tenant of this one's place.
    pub(crate) fn next(&self, key: u8, incarnation: u64, terms: Rc<Terms>) -> Self {
        let mut next = Self::new(self.twin, key, self.place, incarnation, terms);
        (next.phase, next.generation, next.newest_ms) = (self.phase.clone(), self.generation, self.newest_ms);
        next.has_counted = self.has_counted;
        next
    }
}
