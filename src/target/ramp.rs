//! Recovery without a flood: once HALF_OPEN closes, the limit rises from the probes' to the full one, linearly in time.
//!
//! The pool's limit is the only bound there is, in a ramp as at any other time. It is low before the gate is CLOSED, and only ever set to
//! what the ramp allows at a moment that has come. So never more calls start than the ramp allows: no caller needs to know of it, be it
//! one that was stalled through the whole outage, and no permit that was stashed before lets a call past it, since lowering a limit sweeps.
//!
//! Nothing runs by itself: whoever asks while the gate is ramping and finds no room raises the limit to what is due by then, and whoever asks
//! after the end ends the ramp. All that moves the limit does so under one lock, which also keeps the full limit: closing, raising, ending, a
//! limit set by hand, another policy. An admission only tries that lock. Whoever leaves CLOSED ends the ramp, so that no other state
//! knows of one.

use std::cell::Cell;

use super::Words;
use crate::gate::{Applied, Step, Word};
use crate::policy::{Policy, UNLIMITED};
use crate::sync::Mutex;
use crate::time::Now;

/// How a limit comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ramp {
    /// The limit at its end: the policy's, or what was set by hand.
    full: u32,
    /// What it rises to meanwhile: the policy's limit if the full one is none.
    top: u32,
    from: u32,
    since_tick: u64,
    length_ms: u64,
}

impl Ramp {
    fn new(full: u32, policy: &Policy, since_tick: u64) -> Self {
        let top = if full == UNLIMITED { policy.limit } else { full };
        let from = policy.max_probes.min(top);
        Self { full, top, from, since_tick, length_ms: policy.ramp_ms.unwrap_or(0) }
    }

    fn is_over(self, now: Now) -> bool {
        now.tick() >= self.since_tick.saturating_add(self.length_ms)
    }

    /// `from + (top - from) × elapsed / length`, rounded down, and full at the end.
    ///
    /// No product overflows: 24 bits of calls, and 35 of the milliseconds in a year.
    fn limit_at(self, now: Now) -> u32 {
        if self.is_over(now) {
            return self.full;
        }
        let elapsed = now.tick().saturating_sub(self.since_tick);
        let risen = u64::from(self.top - self.from) * elapsed / self.length_ms;
        self.from + u32::try_from(risen).unwrap_or(0)
    }

    fn left_ms(self, now: Now) -> u64 {
        self.since_tick.saturating_add(self.length_ms).saturating_sub(now.tick())
    }
}

fn has_run(gate: Word, length_ms: u64, now: Now) -> bool {
    now.tick() >= gate.tick().saturating_add(length_ms)
}

/// What a limit is, and will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// In force now.
    pub(crate) now: u32,
    pub(crate) full: u32,
    /// Until it is full, in milliseconds; none if it doesn't ramp.
    pub(crate) left_ms: Option<u64>,
}

/// The lock over all that moves a target's limit, and the ramp while there is one.
#[derive(Debug, Default)]
pub(super) struct Limiter(Mutex<Option<Ramp>>);

impl Words {
    fn limiter(&self) -> &Mutex<Option<Ramp>> {
        &self.rare.force().limiter.force().0
    }

    /// The lock, if a limit was ever moved.
    fn limiter_if_any(&self) -> Option<&Mutex<Option<Ramp>>> {
        self.rare.get()?.limiter.get().map(|limiter| &limiter.0)
    }

    /// A probe's success under a policy that ramps: if it closes, the limit is low before.
    pub(super) fn probe_succeeded_to_ramp(&self, generation: u32, begins: Now, now: Now, policy: &Policy) -> Applied {
        let (rules, closes) = (policy.probe_rules(), Cell::new(false));
        let applied = self.gate.apply(|word| match word.probe_succeeded(generation, begins, rules) {
            Step::Move(_) => {
                closes.set(true);
                Step::Stale
            }
            step => {
                closes.set(false);
                step
            }
        });
        if !closes.get() {
            return applied;
        }
        let mut is_due = false;
        let applied = self.close_to_ramp(generation, begins, now, policy, &mut is_due);
        if is_due {
            self.bulkhead.serve();
        }
        applied
    }

    /// Closes, with the limit low before that. Somebody is to be served after it if that `is_due`.
    fn close_to_ramp(&self, generation: u32, begins: Now, now: Now, policy: &Policy, is_due: &mut bool) -> Applied {
        let rules = policy.probe_rules();
        let mut ramp = self.limiter().lock();
        // Another may have closed it meanwhile, and the ramp is its then. Nobody can any more.
        if self.gate.load().generation() != generation {
            return Applied::Stale;
        }
        let full = ramp.map_or_else(|| self.bulkhead.limit(), |ramp| ramp.full);
        let begun = Ramp::new(full, policy, now.tick_after(0));
        *ramp = Some(begun);
        *is_due |= self.bulkhead.set_limit_under_lock(begun.from);
        let applied = self.gate.apply(|word| word.probe_succeeded_to_ramp(generation, begins, rules));
        if !matches!(applied, Applied::Moved(_)) {
            *is_due |= self.end(&mut ramp);
        }
        applied
    }

    /// Whether the ramp of `gate` is over by what its word and the policy say, without the lock.
    pub(super) fn is_ramp_due(gate: Word, policy: &Policy, now: Now) -> bool {
        has_run(gate, policy.ramp_ms.unwrap_or(0), now)
    }

    /// Raises the limit to what is due, or ends the ramp; whether that made room. False, too, while another thread is at it. `is_due` is set
    /// if somebody is to be [served](crate::bulkhead::Bulkhead::serve) once the caller holds no lock.
    #[cold]
    #[inline(never)]
    pub(super) fn raise(&self, now: Now, is_due: &mut bool) -> bool {
        let Some(mut ramp) = self.limiter_if_any().and_then(Mutex::try_lock) else { return false };
        self.follow(&mut ramp, now, is_due)
    }

    /// Ends the ramp of a gate that isn't ramping any more; true if somebody is to be served once the caller holds no lock.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_ramp(&self, now: Now) -> bool {
        let mut is_due = false;
        if let Some(limiter) = self.limiter_if_any() {
            self.follow(&mut limiter.lock(), now, &mut is_due);
        }
        is_due
    }

    /// Under the lock: the limit that is due now. Never lowers it; whether it rose.
    fn follow(&self, ramp: &mut Option<Ramp>, now: Now, is_due: &mut bool) -> bool {
        let Some(terms) = *ramp else { return false };
        let before = self.bulkhead.limit();
        let gate = self.gate.load();
        // Under the lock no gate begins to ramp. Where a new window began later than the ramp, a few failures of it go on to be enough.
        if !gate.is_ramping() || terms.is_over(now) && has_run(gate, terms.length_ms, now) {
            *is_due |= self.end(ramp);
        } else if terms.limit_at(now) > before {
            *is_due |= self.bulkhead.set_limit_under_lock(terms.limit_at(now));
        }
        self.bulkhead.limit() > before
    }

    /// True if somebody is to be served.
    fn end(&self, ramp: &mut Option<Ramp>) -> bool {
        let Some(terms) = ramp.take() else { return false };
        let is_due = self.bulkhead.set_limit_under_lock(terms.full);
        let _ = self.gate.apply(Word::ramped);
        is_due
    }

    /// Sets the full limit: at once, or where the ramp leads to. Lowered, it admits nobody until fewer than it are in flight. True if
    /// somebody is to be [served](crate::bulkhead::Bulkhead::serve) once the caller holds no lock.
    #[must_use]
    pub fn set_limit(&self, limit: u32, policy: &Policy, now: Now) -> bool {
        let mut ramp = self.limiter().lock();
        let limit = match &mut *ramp {
            Some(terms) => {
                *terms = Ramp { length_ms: terms.length_ms, ..Ramp::new(limit, policy, terms.since_tick) };
                terms.limit_at(now)
            }
            None => limit,
        };
        self.bulkhead.set_limit_under_lock(limit)
    }

    /// Goes by another policy's probes and length, if a ramp is under way; true if somebody is to be served.
    #[must_use]
    pub(crate) fn adopt_ramp(&self, after: &Policy, now: Now) -> bool {
        let Some(limiter) = self.limiter_if_any() else { return false };
        let mut ramp = limiter.lock();
        let Some(terms) = ramp.map(|terms| Ramp::new(terms.full, after, terms.since_tick)) else { return false };
        *ramp = Some(terms);
        if after.ramp_ms.is_none() || terms.is_over(now) {
            self.end(&mut ramp)
        } else {
            self.bulkhead.set_limit_under_lock(terms.limit_at(now))
        }
    }

    /// Makes a retired bulkhead its tenant's again. Its limit is read only now: a caller who asked before may have moved it.
    pub(crate) fn reinstate(&self) {
        let _ramp = self.limiter_if_any().map(Mutex::lock);
        self.bulkhead.reinstate(self.bulkhead.limit());
    }

    /// The limits as they are at `now`. Changes nothing.
    pub(crate) fn limits(&self, now: Now) -> Limits {
        self.limits_by(self.limiter_if_any().map(Mutex::lock).as_deref(), now)
    }

    /// The same without waiting; none while another moves the limit.
    pub(super) fn limits_at_once(&self, now: Now) -> Option<Limits> {
        match self.limiter_if_any() {
            Some(limiter) => Some(self.limits_by(Some(&*limiter.try_lock()?), now)),
            None => Some(self.limits_by(None, now)),
        }
    }

    fn limits_by(&self, ramp: Option<&Option<Ramp>>, now: Now) -> Limits {
        let in_force = self.bulkhead.limit();
        match ramp {
            Some(Some(ramp)) if self.gate.load().is_ramping() && !ramp.is_over(now) => {
                Limits { now: ramp.limit_at(now).max(in_force), full: ramp.full, left_ms: Some(ramp.left_ms(now)) }
            }
            Some(Some(ramp)) => Limits { now: ramp.full, full: ramp.full, left_ms: None },
            _ => Limits { now: in_force, full: in_force, left_ms: None },
        }
    }
}

#[cfg(test)]
mod tests;
