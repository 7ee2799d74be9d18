//! The limit of a target: set by hand, given back to its policy, and moved by what calls take.

use super::{Engine, Key};
use crate::adaptive::Rules;
use crate::adaptive::control::Control;
use crate::adaptive::samples::Samples;
use crate::policy::{Policy, UNLIMITED};
use crate::slot::{Slot, Tenant};
use crate::snapshot::AdaptiveSnapshot;
use crate::target::Words;
use crate::time::Now;

impl<K: Key> Engine<K> {
    /// Moves the limit by the samples of a window that is over. The caller's permit pins the slot.
    ///
    /// Under the tenant's lock, as all that sets limits, so that a limit set by hand stays; but nobody waits for that: whoever settles next finds
    /// the window over, too.
    #[cold]
    #[inline(never)]
    pub(super) fn adapt(&self, slot: &Slot<K>, samples: &Samples, now: Now) {
        let is_due = {
            let Some(mut tenant) = slot.tenant_if_free() else { return };
            tenant.as_mut().is_some_and(|tenant| tenant.adapt(self.terms(slot).policy, &slot.words, samples, now))
        };
        if is_due {
            slot.words.bulkhead.serve();
        }
    }

    pub(crate) fn set_limit_by_hand(&self, slot: &Slot<K>, limit: u32) {
        let is_due = {
            let mut tenant = slot.tenant();
            slot.configure();
            if let Some(tenant) = &mut *tenant {
                tenant.set_limit_by_hand(true);
            }
            if let Some(samples) = slot.words.samples() {
                samples.restart();
            }
            slot.words.set_limit(limit.min(UNLIMITED), self.terms(slot).policy, self.read_clock())
        };
        if is_due {
            slot.words.bulkhead.serve();
        }
    }

    pub(crate) fn release_limit_of(&self, slot: &Slot<K>) -> bool {
        let is_due = {
            let mut tenant = slot.tenant();
            let Some(tenant) = &mut *tenant else { return false };
            if !tenant.is_limit_by_hand() {
                return false;
            }
            tenant.begin(self.terms(slot).policy, &slot.words, self.read_clock())
        };
        if is_due {
            slot.words.bulkhead.serve();
        }
        true
    }
}

impl Words {
    /// Moves the limit by the samples of a window that is over; true if somebody is to be served once the caller holds no lock.
    pub(crate) fn adapt(&self, rules: &Rules, policy: &Policy, samples: &Samples, now: Now) -> bool {
        let mut control = samples.control();
        let limit = match &mut *control {
            None => control.insert(Control::begin(rules, samples, now)).limit(rules),
            Some(control) => {
                if !control.close(rules, samples, now) {
                    // Another was quicker.
                    return false;
                }
                control.limit(rules)
            }
        };
        self.limits(now).full != limit && self.set_limit(limit, policy, now)
    }
}

/// Each true if somebody is to be served once the tenant's lock is left.
impl<K> Tenant<K> {
    fn adapt(&mut self, policy: &Policy, words: &Words, samples: &Samples, now: Now) -> bool {
        let Some(rules) = &policy.adaptive else { return false };
        if self.is_limit_by_hand() {
            samples.end_at(now.nanos().saturating_add(crate::adaptive::samples::LONGEST));
            return false;
        }
        words.adapt(rules, policy, samples, now)
    }

    /// Puts the policy's own limit in force.
    fn begin(&mut self, policy: &Policy, words: &Words, now: Now) -> bool {
        self.set_limit_by_hand(false);
        if let Some(samples) = words.samples() {
            samples.restart();
        }
        words.set_limit(policy.first_limit(), policy, now)
    }

    /// Puts another policy's limit in force, if that differs. A limit that follows latency goes on where it is, within the new bounds.
    pub(super) fn adopt_limit(&mut self, before: &Policy, after: &Policy, words: &Words, now: Now) -> bool {
        if before.limit == after.limit && before.adaptive == after.adaptive {
            return false;
        }
        if let (Some(samples), Some(old), Some(new)) = (words.samples(), &before.adaptive, &after.adaptive)
            && old.law == new.law
            && let Some(control) = &mut *samples.control()
        {
            control.adopt(new);
            return words.set_limit(control.limit(new), after, now);
        }
        self.begin(after, words, now)
    }

    /// What a snapshot shows of it.
    pub(super) fn show_limit(&self, policy: &Policy, words: &Words) -> Option<AdaptiveSnapshot> {
        policy.adaptive.as_ref()?;
        let control = words.samples().and_then(|samples| *samples.control());
        Some(AdaptiveSnapshot::of(control, self.is_limit_by_hand()))
    }
}
