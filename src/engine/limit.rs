//! The limit of a target: set by hand, given back to its policy, and moved by what calls take.

use super::{Engine, Key};
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
        let Some(mut tenant) = slot.tenant_if_free() else { return };
        if let Some(tenant) = &mut *tenant {
            tenant.adapt(self.terms(slot).policy, &slot.words, samples, now);
        }
    }

    pub(crate) fn set_limit_by_hand(&self, slot: &Slot<K>, limit: u32) {
        let mut tenant = slot.tenant();
        if let Some(tenant) = &mut *tenant {
            tenant.is_configured = true;
            tenant.is_limit_by_hand = true;
        }
        if let Some(samples) = slot.words.samples() {
            samples.restart();
        }
        slot.words.set_limit(limit.min(UNLIMITED), self.terms(slot).policy, self.read_clock());
    }

    pub(crate) fn release_limit_of(&self, slot: &Slot<K>) -> bool {
        let mut tenant = slot.tenant();
        let Some(tenant) = &mut *tenant else { return false };
        if !tenant.is_limit_by_hand {
            return false;
        }
        tenant.begin(self.terms(slot).policy, &slot.words, self.read_clock());
        true
    }
}

impl<K> Tenant<K> {
    fn adapt(&mut self, policy: &Policy, words: &Words, samples: &Samples, now: Now) {
        let Some(rules) = &policy.adaptive else { return };
        if self.is_limit_by_hand {
            samples.end_at(now.nanos().saturating_add(crate::adaptive::samples::LONGEST));
            return;
        }
        let mut control = samples.control();
        let limit = match &mut *control {
            None => control.insert(Control::begin(rules, samples, now)).limit(rules),
            Some(control) => {
                if !control.close(rules, samples, now) {
                    // Another was quicker.
                    return;
                }
                control.limit(rules)
            }
        };
        if words.limits(now).full != limit {
            words.set_limit(limit, policy, now);
        }
    }

    /// Puts the policy's own limit in force.
    fn begin(&mut self, policy: &Policy, words: &Words, now: Now) {
        self.is_limit_by_hand = false;
        if let Some(samples) = words.samples() {
            samples.restart();
        }
        words.set_limit(policy.first_limit(), policy, now);
    }

    /// Puts another policy's limit in force, if that differs. A limit that follows latency goes on where it is, within the new bounds.
    pub(super) fn adopt_limit(&mut self, before: &Policy, after: &Policy, words: &Words, now: Now) {
        if before.limit == after.limit && before.adaptive == after.adaptive {
            return;
        }
        if let (Some(samples), Some(old), Some(new)) = (words.samples(), &before.adaptive, &after.adaptive)
            && old.law == new.law
            && let Some(control) = &mut *samples.control()
        {
            control.adopt(new);
            words.set_limit(control.limit(new), after, now);
            return;
        }
        self.begin(after, words, now);
    }

    /// What a snapshot shows of it.
    pub(super) fn show_limit(&self, policy: &Policy, words: &Words) -> Option<AdaptiveSnapshot> {
        policy.adaptive.as_ref()?;
        let control = words.samples().and_then(|samples| *samples.control());
        Some(AdaptiveSnapshot::of(control, self.is_limit_by_hand))
    }
}
