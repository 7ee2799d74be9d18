//! What the calls of one target share: the policy in force, the retry budget, the counters.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use super::counters::Counters;
use super::policy::CallPolicy;
use crate::budget::{Allowance, Cell};

/// A policy and the budget of calls that go by it.
///
/// Periods are halves of `retry_memory`, so that another memory has other numbers for them: a word that knows the higher ones of a shorter
/// memory would take every lower one for a reading that lags, and forget nothing until the numbers are reached. So each memory has a word.
#[derive(Clone, Debug)]
pub(super) struct InForce {
    pub(super) policy: Arc<CallPolicy>,
    pub(super) budget: Arc<Cell>,
}

#[derive(Debug)]
pub(super) struct Lane {
    in_force: RwLock<InForce>,
    pub(super) counters: Counters,
}

impl Lane {
    pub(super) fn new(policy: Arc<CallPolicy>) -> Self {
        let in_force = InForce { policy, budget: Arc::default() };
        Self { in_force: RwLock::new(in_force), counters: Counters::default() }
    }

    /// The policy for a call that begins now; the whole call goes by it.
    pub(super) fn in_force(&self) -> InForce {
        self.in_force.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The budget stays, unless its memory is another.
    pub(super) fn set_policy(&self, policy: CallPolicy) {
        let mut in_force = self.in_force.write().unwrap_or_else(PoisonError::into_inner);
        if policy.retry_memory != in_force.policy.retry_memory {
            in_force.budget = Arc::default();
        }
        in_force.policy = Arc::new(policy);
    }
}

impl InForce {
    /// Counts a call that its retries are a share of. A call that is refused loads nothing, and earns no retry.
    pub(super) fn earn(&self, now: Duration) {
        let policy = &self.policy;
        // A target that is never called twice has no use for the shared word.
        if policy.attempts > 1 && policy.retry_budget_milli.is_some() {
            self.budget.called(period(policy, now));
        }
    }

    /// Takes a retry from the budget, if one is left.
    pub(super) fn spend(&self, now: Duration) -> bool {
        let policy = &self.policy;
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
