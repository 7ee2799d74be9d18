//! Another policy for a target whose calls go on.

use std::sync::Arc;

use super::{Engine, Key};
use crate::event::{Cause, Transition};
use crate::policy::Policy;
use crate::slot::{Slot, Tenant};
use crate::target::Words;

impl<K: Key> Engine<K> {
    /// Puts a policy in force for a pinned slot; the report if that emptied a window. Those who wait are to be served after it.
    pub(crate) fn reconfigure(&self, slot: &Slot<K>, policy: Policy) -> Option<Arc<Transition<K>>> {
        let mut tenant = slot.tenant();
        self.put_in_force(slot, tenant.as_mut()?, policy)
    }

    /// The same under the tenant's lock.
    pub(super) fn put_in_force(
        &self,
        slot: &Slot<K>,
        tenant: &mut Tenant<K>,
        policy: Policy,
    ) -> Option<Arc<Transition<K>>> {
        let policies = self.registry.policies();
        let index = policies.intern(policy);
        slot.configure();
        let (_, before) = slot.terms();
        if before == index {
            return None;
        }
        let (before, after) = (policies.get(before), policies.get(index));
        slot.set_policy(index);
        let now = self.read_clock();
        // The caller serves, whatever came of it: here the tenant's lock is held.
        let _ = tenant.adopt_limit(before, after, &slot.words, now);
        let _ = slot.words.adopt_ramp(after, now);
        slot.words.adopt(before, after);
        let changes_window = before.geometry != after.geometry && !slot.words.is_blank(before, now);
        let begins = slot.words.beginning(now);
        let change = if slot.words.must_forget_running(before, after) {
            slot.words.by_hand(Cause::PolicyChanged, now, |word| Words::forget_running(word, begins))
        } else if changes_window {
            slot.words.by_hand(Cause::PolicyChanged, now, |word| word.restart(begins))
        } else {
            None
        };
        slot.words.watch_from_now(after);
        let change = change?;
        let report = slot.report(change, tenant);
        self.hub.write(slot.index, &report);
        Some(report)
    }
}
