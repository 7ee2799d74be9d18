//! What others than calls do with the words: look, replace the policy, act by hand, hand the slot on.

use super::{Change, NEXT_EPOCH, READ_EPOCH, SALT, SET_BRIEF, Words};
use crate::adaptive::samples::Samples;
use crate::counters::Counters;
use crate::event::Cause;
use crate::gate::{self, Applied, State, Step};
use crate::policy::Policy;
use crate::policy::brief::Brief;
use crate::time::Now;
use crate::window::lane::Lane;
use crate::window::{Counts, Geometry, ring};

impl Words {
    pub(crate) fn counters(&self) -> &Counters {
        &self.rare.force().counters
    }

    /// The samples of what calls took, if there ever were any.
    pub(crate) fn samples(&self) -> Option<&Samples> {
        self.rare.get().and_then(|rare| rare.samples.get())
    }

    pub(crate) fn counters_if_any(&self) -> Option<&Counters> {
        self.rare.get().map(|rare| &rare.counters)
    }

    /// Probes that were ever granted.
    pub(crate) fn probes_granted(&self) -> u64 {
        self.rare.get().map_or(0, |rare| rare.probes.get())
    }

    pub(super) fn count_probe(&self) {
        self.rare.force().probes.add(1);
    }

    /// When a window that is opened now begins: after every bucket that is there. Usually that is now; only where several windows fell
    /// into one millisecond, or the clock stepped back, it is later.
    #[must_use]
    pub fn beginning(&self, now: Now) -> Now {
        self.newest_start().map_or(now, |start| now.max(Now::from_millis(start.saturating_add(1))))
    }

    /// The newest start of any bucket in use, of whatever generation. Failures and slow calls stand under the start of their call.
    fn newest_start(&self) -> Option<u64> {
        self.lanes().filter_map(Lane::newest_start).max()
    }

    /// The calls of a window of time, of each stripe that counted any.
    pub(super) fn lanes(&self) -> impl Iterator<Item = &Lane> + Clone {
        self.bulkhead.each_stripe().filter_map(|stripe| stripe.lane.get()).map(|lane| &**lane)
    }

    /// Whether nothing is remembered that another policy could judge: no call in the window, no streak.
    #[must_use]
    pub fn is_blank(&self, policy: &Policy, now: Now) -> bool {
        let gate = self.gate.load();
        let calls = self.window(gate, policy, now).map_or(0, |counts| counts.calls);
        // Buckets that time emptied, too: a longer window would find their calls again.
        let is_untouched = self.newest_start().is_none_or(|start| start < gate.tick());
        calls == 0 && is_untouched && self.streak.count(gate.generation()) == 0
    }

    /// Goes by another policy. Empties the words that only one of the two has a rule for: they aren't written without one, and speak of
    /// another time.
    /// Calls that run are counted under the new one once [`Words::watch_from_now`] says so.
    pub fn adopt(&self, before: &Policy, after: &Policy) {
        self.watch_no_more(before, after);
        self.set_brief(after, self.brief().is_shadowed());
        let generation = self.gate.load().generation();
        if before.counts_streaks() != after.counts_streaks() {
            self.streak.succeeded(generation);
        }
        if before.slow_rate_bp.is_some() != after.slow_rate_bp.is_some() {
            self.rare.force().slow_calls.empty(generation);
        }
        // What was judged by the other isn't any more.
        self.clean.while_marking(|| ());
        if let Some(rare) = self.rare.get() {
            rare.marks.stir(generation, &self.gate);
        }
    }

    /// Says what calls must know of the policy in force, and whether shadows follow them. Only for whoever holds the tenant's lock, or the slot.
    pub(crate) fn set_brief(&self, policy: &Policy, is_shadowed: bool) {
        self.brief.store(Brief::from(policy).shadowed(is_shadowed).bits(), SET_BRIEF);
    }

    /// Applies what was done by hand.
    pub fn by_hand(&self, cause: Cause, now: Now, step: impl Fn(gate::Word) -> Step) -> Option<Change> {
        match self.gate.apply(step) {
            Applied::Moved(moved) => {
                let is_due = moved.from.is_ramping() && !moved.to.is_ramping() && self.leave_ramp(now);
                if is_due && moved.to.lets_pass() {
                    self.bulkhead.serve();
                }
                self.turn_away(moved);
                Some(Change::new(moved, cause, now))
            }
            Applied::Stale | Applied::Stayed => None,
        }
    }

    /// What the window of the gate's generation holds.
    #[must_use]
    pub fn window(&self, gate: gate::Word, policy: &Policy, now: Now) -> Option<Counts> {
        let generation = gate.generation();
        let geometry = policy.geometry?;
        if gate.state() != State::Closed {
            return Some(Counts::default());
        }
        match geometry {
            Geometry::Calls(size) => {
                let (calls, failures) = self.calls.counts(generation, size);
                let slow = self.rare.get().map_or(0, |rare| rare.slow_calls.counts(generation, size).1);
                Some(Counts { calls: calls.into(), failures: failures.into(), slow: slow.into() })
            }
            Geometry::Time { .. } => {
                let (view, rare) = (geometry.view(gate, || now)?, self.rare.get());
                Some(rare.map_or(Counts::default(), |rare| ring::counts(&view, &rare.marks, &self.lanes())))
            }
        }
    }

    /// Whether a failure or slow call is remembered, or a ramp under way, that a fresh target wouldn't have.
    #[must_use]
    pub fn holds_evidence(&self, gate: gate::Word, policy: &Policy, now: Now) -> bool {
        let counts = self.window(gate, policy, now).unwrap_or_default();
        let ramps = gate.is_ramping() && !Self::is_ramp_due(gate, policy, now);
        ramps || self.streak.count(gate.generation()) > 0 || counts.failures > 0 || counts.slow > 0
    }

    /// Which tenant the words are of.
    #[must_use]
    #[inline]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(READ_EPOCH)
    }

    /// What makes the jitter of this target its own.
    pub(crate) fn salt(&self) -> u32 {
        self.salt.load(SALT)
    }

    /// Ends a tenant: whoever knows the words by its epoch finds them changed. Only for whoever retired the bulkhead, and first of all.
    pub fn next_epoch(&self) {
        self.epoch.fetch_add(1, NEXT_EPOCH);
    }

    /// Makes the words a new tenant's. Only for whoever retired the bulkhead.
    pub fn recycle(&self, policy: &Policy, salt: u32) {
        if let Some(rare) = self.rare.get() {
            rare.counters.reset();
            rare.probes.reset();
        }
        if let Some(samples) = self.samples() {
            samples.restart();
        }
        self.bulkhead.reset_counts();
        self.set_brief(policy, false);
        self.watch_from_now(policy);
        self.salt.store(salt, SALT);
    }
}
