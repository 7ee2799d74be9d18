//! One call's decisions: how long an attempt may take, and whether there is another. Pure but for the budget; no clock, no timer.

use std::sync::Arc;
use std::time::Duration;

use super::backoff;
use super::error::{CallError, Cause, GaveUp};
use super::lane::{InForce, Lane};
use super::policy::CallPolicy;
use super::verdict::{Again, Verdict};
use crate::outcome::Outcome;

/// What an attempt is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Counted from 1.
    pub number: u32,
    /// How long it may take: the policy's timeout, or what is left of the deadline if that is less.
    pub timeout: Duration,
    /// Whether the target is being felt out.
    pub is_probe: bool,
}

#[derive(Debug)]
pub(super) struct Plan {
    in_force: InForce,
    lane: Arc<Lane>,
    /// From the call's start.
    deadline: Duration,
    /// Whether that deadline is the caller's own, and not the policy's.
    is_callers: bool,
    is_idempotent: bool,
    seed: u64,
    /// Attempts that were admitted.
    pub(super) made: u32,
}

impl Plan {
    pub(super) fn new(lane: Arc<Lane>, left: Option<Duration>, is_idempotent: bool, seed: u64) -> Self {
        let in_force = lane.in_force();
        // Unset, it is what attempts and backoffs make it anyway. Held against the clock, that sum would cut every last attempt by the
        // microseconds before it, and what the target didn't do in time would be its caller's doing.
        let own = in_force.policy.deadline.unwrap_or(Duration::MAX);
        // A caller's deadline can only shorten the policy's.
        let deadline = left.map_or(own, |left| left.min(own));
        let is_callers = left.is_some_and(|left| left < own);
        Self { in_force, lane, deadline, is_callers, is_idempotent, seed, made: 0 }
    }

    pub(super) fn lane(&self) -> &Lane {
        &self.lane
    }

    pub(super) fn policy(&self) -> &Arc<CallPolicy> {
        &self.in_force.policy
    }

    /// What is left at `elapsed` from the start; none once it has passed.
    pub(super) fn left(&self, elapsed: Duration) -> Option<Duration> {
        self.deadline.checked_sub(elapsed).filter(|left| !left.is_zero())
    }

    /// The longest wait for a permit where so much is left: who gets one then may still take the whole timeout.
    pub(super) fn patience(&self, left: Duration) -> Duration {
        left.saturating_sub(self.policy().timeout)
    }

    /// Whether a call like this may be made twice.
    pub(super) fn may_repeat(&self) -> bool {
        self.is_idempotent && self.policy().attempts > 1
    }

    /// Counts an admitted attempt; what it is told, and whether its caller's deadline ends it before its timeout does.
    ///
    /// The policy's deadline holds the worst case: what it cuts off is the microseconds before the attempt, and nobody's hurry.
    pub(super) fn begin(&mut self, left: Duration, is_probe: bool, now: Duration) -> (Attempt, bool) {
        let counters = &self.lane.counters;
        self.made += 1;
        counters.attempts.add(1);
        if self.made == 1 {
            self.in_force.earn(now);
        } else {
            counters.retries.add(1);
        }
        let timeout = if is_probe { self.policy().probe_timeout() } else { self.policy().timeout };
        (Attempt { number: self.made, timeout: timeout.min(left), is_probe }, self.is_callers && left < timeout)
    }

    /// The wait before another attempt, or why there is none. What says no without a trace comes first, the budget last.
    pub(super) fn next(
        &self,
        elapsed: Duration,
        again: Again,
        can_replay: bool,
        now: Duration,
    ) -> Result<Duration, GaveUp> {
        let least = match again {
            Again::No => return Err(GaveUp::Final),
            Again::Yes => Duration::ZERO,
            Again::After(least) => least,
        };
        if self.made >= self.policy().attempts {
            return Err(GaveUp::Attempts);
        }
        if !self.is_idempotent {
            return Err(GaveUp::NotIdempotent);
        }
        if !can_replay {
            self.lane.counters.not_replayable.add(1);
            return Err(GaveUp::NotReplayable);
        }
        let wait = backoff::wait(self.policy(), self.made, draw(self.seed, self.made)).max(least);
        // Only an attempt that may take its whole timeout is sure to have had its chance.
        let end = elapsed.saturating_add(wait).saturating_add(self.policy().timeout);
        // What the target asks for is no part of the sum that bounds a call without a deadline, and has to find its place in it.
        let is_asked_too_much = !least.is_zero() && end > self.policy().deadline();
        if end > self.deadline || is_asked_too_much {
            self.lane.counters.deadline_kept.add(1);
            return Err(GaveUp::Deadline);
        }
        if !self.in_force.spend(now) {
            self.lane.counters.budget_refused.add(1);
            return Err(GaveUp::Budget);
        }
        Ok(wait)
    }

    pub(super) fn timed_out(&self, attempt: Attempt) {
        let counters = &self.lane.counters;
        counters.timeouts.add(1);
        counters.probe_timeouts.add(attempt.is_probe.into());
    }

    /// The error of a call that ends with `cause`, counted.
    pub(super) fn failed<E>(
        &self,
        cause: Cause<E>,
        verdict: Verdict,
        gave_up: GaveUp,
        previous: Option<Cause<E>>,
    ) -> CallError<E> {
        let counters = &self.lane.counters;
        counters.failed.add(1);
        let mut error = CallError::new(cause, self.made, gave_up);
        match error.cause {
            Cause::Rejected(_) => {
                counters.rejected.add(1);
                error.previous = previous.map(Box::new);
            }
            Cause::Deadline { on_arrival: true } => {
                counters.deadline_refused.add(1);
                error.gave_up = GaveUp::Deadline;
            }
            Cause::Deadline { on_arrival: false } => {
                error.gave_up = GaveUp::Deadline;
                error.previous = previous.map(Box::new);
            }
            _ => {}
        }
        error.failed_code = verdict.code;
        // An error that says nothing about the target is its caller's own.
        error.is_callers = verdict.outcome == Outcome::Ignored;
        error
    }
}

/// A number without pattern for each retry of each call: the finaliser of MurmurHash3, which changes half of the bits with any one.
fn draw(seed: u64, number: u32) -> u64 {
    let mut bits = seed.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::CallPolicyBuilder;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn plan(policy: CallPolicyBuilder, left: Option<Duration>, is_idempotent: bool) -> Plan {
        let lane = Arc::new(Lane::new(Arc::new(policy.build().unwrap())));
        let mut plan = Plan::new(lane, left, is_idempotent, 7);
        let _ = plan.begin(ms(1_000), false, Duration::ZERO);
        plan
    }

    fn three() -> CallPolicyBuilder {
        CallPolicy::builder().timeout(ms(100)).attempts(3).backoff(ms(10)).backoff_max(ms(20))
    }

    fn next(plan: &Plan, elapsed: u64, again: Again) -> Result<Duration, GaveUp> {
        plan.next(ms(elapsed), again, true, Duration::ZERO)
    }

    #[test]
    fn a_retry_has_reasons_not_to_be_made() {
        assert!(next(&plan(three(), None, true), 100, Again::Yes).unwrap() <= ms(10));
        assert_eq!(next(&plan(three(), None, true), 100, Again::No), Err(GaveUp::Final));
        assert_eq!(next(&plan(three(), None, false), 100, Again::Yes), Err(GaveUp::NotIdempotent));
        assert_eq!(next(&plan(three().attempts(1), None, true), 100, Again::Yes), Err(GaveUp::Attempts));
        let unkept = plan(three(), None, true).next(ms(100), Again::Yes, false, Duration::ZERO);
        assert_eq!(unkept, Err(GaveUp::NotReplayable));
        let spent = plan(three().retry_floor(0), None, true);
        assert_eq!(next(&spent, 100, Again::Yes), Err(GaveUp::Budget));
        assert_eq!(spent.lane().counters.read().budget_refused, 1);
    }

    #[test]
    fn a_retry_that_could_not_end_before_the_deadline_is_not_made() {
        // 330 ms is the worst case.
        let bounded = || three().deadline(ms(330));
        assert!(next(&plan(bounded(), None, true), 220, Again::Yes).is_ok());
        assert_eq!(next(&plan(bounded(), None, true), 231, Again::Yes), Err(GaveUp::Deadline));
        // Without a deadline it is bounded by the attempts.
        assert!(next(&plan(three(), None, true), 231, Again::Yes).is_ok());
        assert_eq!(next(&plan(three(), Some(ms(150)), true), 60, Again::Yes), Err(GaveUp::Deadline));
        assert!(next(&plan(three(), Some(ms(150)), true), 20, Again::Yes).is_ok());
        // A caller's deadline never lengthens the policy's.
        assert_eq!(next(&plan(bounded(), Some(ms(5_000)), true), 231, Again::Yes), Err(GaveUp::Deadline));
    }

    #[test]
    fn what_the_target_asked_for_is_the_least_wait() {
        assert_eq!(next(&plan(three(), None, true), 0, Again::After(ms(200))), Ok(ms(200)));
        assert_eq!(next(&plan(three(), None, true), 100, Again::After(ms(200))), Err(GaveUp::Deadline));
        assert_eq!(next(&plan(three(), None, true), 0, Again::After(Duration::MAX)), Err(GaveUp::Deadline));
    }

    #[test]
    fn an_attempt_has_its_timeout_or_what_is_left() {
        let of = |left| plan(three().probe_timeout(ms(30)).deadline(ms(330)), left, true);
        let told = |plan: &mut Plan, left, is_probe| {
            let (attempt, is_cut) = plan.begin(ms(left), is_probe, Duration::ZERO);
            (attempt.timeout, is_cut)
        };
        let hurried = &mut of(Some(ms(329)));
        assert_eq!(told(hurried, 300, false), (ms(100), false));
        assert_eq!(told(hurried, 100, false), (ms(100), false));
        assert_eq!(told(hurried, 99, false), (ms(99), true));
        assert_eq!(told(hurried, 300, true), (ms(30), false));
        assert_eq!(told(hurried, 20, true), (ms(20), true));
        assert_eq!((hurried.left(ms(329)), hurried.left(ms(328))), (None, Some(ms(1))));
        // By the policy's deadline nobody is in a hurry.
        for left in [None, Some(ms(330)), Some(ms(5_000))] {
            assert_eq!(told(&mut of(left), 99, false), (ms(99), false));
            assert_eq!((of(left).left(ms(330)), of(left).left(ms(329))), (None, Some(ms(1))));
        }
    }

    #[test]
    fn draws_differ_by_call_and_by_retry() {
        let draws: std::collections::HashSet<u64> =
            (0..100).flat_map(|seed| (1..10).map(move |n| draw(seed, n))).collect();
        assert_eq!(draws.len(), 900);
    }
}
