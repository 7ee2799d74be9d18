//! What the calls of one target share: the policy in force, the retry budget, the counters.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::counters::Counters;
use super::policy::CallPolicy;
use crate::budget::{Allowance, Cell};

#[derive(Debug)]
pub(super) struct Lane {
    policy: RwLock<Arc<CallPolicy>>,
    budget: Cell,
    pub(super) counters: Counters,
}

impl Lane {
    pub(super) fn new(policy: Arc<CallPolicy>) -> Self {
        Self { policy: RwLock::new(policy), budget: Cell::default(), counters: Counters::default() }
    }

    /// The policy for a call that begins now; the whole call goes by it.
    pub(super) fn policy(&self) -> Arc<CallPolicy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn set_policy(&self, policy: CallPolicy) {
        *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// Counts a call that its retries are a share of. A call that is refused loads nothing, and earns no retry.
    pub(super) fn earn(&self, policy: &CallPolicy, now: Duration) {
        // A target that is never called twice has no use for the shared word.
        if policy.attempts > 1 && policy.retry_budget_milli.is_some() {
            self.budget.called(period(policy, now));
        }
    }

    /// Takes a retry from the budget, if one is left.
    pub(super) fn spend(&self, policy: &CallPolicy, now: Duration) -> bool {
        let Some(share_milli) = policy.retry_budget_milli else { return true };
        // At most 1,000 a second for 60 s.
        let floor = u128::from(policy.retry_floor) * policy.retry_memory.as_millis() / 1_000;
        let allowance = Allowance { share_milli, floor: u32::try_from(floor).unwrap_or(u32::MAX) };
        self.budget.take(period(policy, now), allowance)
    }
}

/// Both periods of the word make up the budget's memory.
fn period(policy: &CallPolicy, now: Duration) -> u64 {
    let half = (policy.retry_memory.as_nanos() / 2).max(1);
    u64::try_from(now.as_nanos() / half).unwrap_or(u64::MAX)
}
