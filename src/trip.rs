//! The trip rules, and the evidence that a trip carries.

use crate::policy::{BASIS_POINTS, Policy};
use crate::window::Counts;

/// A rule that opens a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Rule {
    /// Failures with no success between them reached `consecutive_failures`.
    ConsecutiveFailures,
    /// The window's share of failures reached `failure_rate`.
    FailureRate,
    /// The window's failures reached `failures`.
    Failures,
    /// The window's share of slow calls reached `slow_rate`.
    SlowRate,
    /// Calls that were running for `stall_after` reached `stalled_calls`.
    StalledCalls,
    /// Calls that were running for `stall_after` reached `stalled_share` of the limit in force.
    StalledShare,
    /// While the limit ramped, `ramp_failures` calls failed in a row; or as many failed or were slow, and their share reached its rate,
    /// however few the calls.
    Relapse,
}

/// A rule that was met, with the numbers that met it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Met {
    /// The rule.
    pub rule: Rule,
    /// What was counted: failures, slow or stalled calls.
    pub count: u64,
    /// The calls among which it was counted; for a streak, its own length; for stalled calls the limit in force.
    pub calls: u64,
    /// The threshold: a count for streaks and absolute counts, basis points (hundredths of a per cent) for rates and shares.
    pub threshold: u64,
}

/// Why a target opened: frozen when it was judged, so that later outcomes can't contradict it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Evidence {
    /// All rules that were met, in the order of [`Rule`]; never empty.
    pub met: Vec<Met>,
    /// Failures in a row.
    pub streak: u64,
    /// Calls in the window.
    pub calls: u64,
    /// Failures in the window.
    pub failures: u64,
    /// Slow calls in the window.
    pub slow: u64,
    /// Calls that were running for `stall_after`, where that was judged: by an admission or a snapshot, not by an outcome.
    pub stalled: u64,
    /// Version of the target's policy, counted from 0 at its creation.
    pub policy_version: u32,
}

/// Whether `part` of `whole` reached a rate in basis points: integers, and >= (R9).
const fn reaches(part: u64, whole: u64, rate_bp: u32) -> bool {
    part as u128 * BASIS_POINTS as u128 >= rate_bp as u128 * whole as u128
}

impl Policy {
    /// Every rule that the counts meet, in order.
    pub(crate) fn met(&self, is_ramping: bool, streak: u64, counts: Counts) -> impl Iterator<Item = Met> {
        // At least 1 where there is a rate.
        let is_enough = counts.calls >= u64::from(self.min_calls);
        let relapse = if is_ramping { self.relapse(streak, counts) } else { None };
        self.met_if(is_enough, streak, counts).chain(relapse)
    }

    /// The rule that holds while the limit ramps.
    ///
    /// Failures in a row tell of a target that dies when the window is full of successes already; failures that reach their rate, of one
    /// that answers some of its calls. A few of them, not one or two, since a ramp has many calls: of a share `p` that always fails, three
    /// in a row are met once in `1 / p³` calls.
    fn relapse(&self, streak: u64, counts: Counts) -> Option<Met> {
        let few = u64::from(self.ramp_failures);
        let reached = |count, rate_bp: Option<u32>| {
            let is_met = count >= few && rate_bp.is_some_and(|rate_bp| reaches(count, counts.calls, rate_bp));
            is_met.then_some((count, counts.calls))
        };
        let in_a_row = (streak >= few).then_some((streak, streak));
        let met = in_a_row
            .or_else(|| reached(counts.failures, self.failure_rate_bp))
            .or_else(|| reached(counts.slow, self.slow_rate_bp));
        met.map(|(count, calls)| Met { rule: Rule::Relapse, count, calls, threshold: few })
    }

    /// Whether a rule could be met with these failures and slow calls among so many calls or more: with more the rates only fall.
    pub(crate) fn could_meet(&self, is_ramping: bool, streak: u64, counts: Counts) -> bool {
        // A relapse's rates are among the others.
        let relapses = is_ramping && streak >= u64::from(self.ramp_failures);
        relapses || self.met_if(true, streak, counts).next().is_some()
    }

    /// Every rule on running calls that is met with so many stalled, in order.
    fn met_by_stalled(&self, stalled: u64, limit: u32) -> impl Iterator<Item = Met> {
        let met = move |rule, threshold: Option<u32>, is_reached: fn(u64, u64, u32) -> bool| {
            let threshold =
                threshold.filter(|threshold| stalled > 0 && is_reached(stalled, limit.into(), *threshold))?;
            Some(Met { rule, count: stalled, calls: limit.into(), threshold: threshold.into() })
        };
        let (calls, share_bp) = self.stall.map_or((None, None), |stall| (stall.calls, stall.share_bp));
        [
            met(Rule::StalledCalls, calls, |stalled, _, calls| stalled >= u64::from(calls)),
            met(Rule::StalledShare, share_bp, reaches),
        ]
        .into_iter()
        .flatten()
    }

    fn met_if(&self, is_enough: bool, streak: u64, counts: Counts) -> impl Iterator<Item = Met> {
        let rate = move |rule, count, rate_bp: Option<u32>| {
            let rate_bp = rate_bp.filter(|rate_bp| is_enough && reaches(count, counts.calls, *rate_bp))?;
            Some(Met { rule, count, calls: counts.calls, threshold: u64::from(rate_bp) })
        };
        let number = |rule, count, calls, threshold: Option<u32>| {
            let threshold = u64::from(threshold?);
            (count >= threshold).then_some(Met { rule, count, calls, threshold })
        };
        [
            number(Rule::ConsecutiveFailures, streak, streak, self.consecutive_failures),
            rate(Rule::FailureRate, counts.failures, self.failure_rate_bp),
            number(Rule::Failures, counts.failures, counts.calls, self.failures),
            rate(Rule::SlowRate, counts.slow, self.slow_rate_bp),
        ]
        .into_iter()
        .flatten()
    }
}

impl Evidence {
    /// The evidence, if any rule is met.
    pub(crate) fn judge(
        policy: &Policy,
        policy_version: u32,
        is_ramping: bool,
        streak: u64,
        counts: Counts,
    ) -> Option<Box<Self>> {
        let met: Vec<Met> = policy.met(is_ramping, streak, counts).collect();
        let Counts { calls, failures, slow } = counts;
        (!met.is_empty()).then(|| Box::new(Self { met, streak, calls, failures, slow, stalled: 0, policy_version }))
    }

    /// The evidence, if so many stalled calls at a limit meet a rule; what else was known is asked for only then.
    pub(crate) fn judge_stalled(
        policy: &Policy,
        policy_version: u32,
        (stalled, limit): (u64, u32),
        known: impl FnOnce() -> (u64, Counts),
    ) -> Option<Box<Self>> {
        let met: Vec<Met> = policy.met_by_stalled(stalled, limit).collect();
        if met.is_empty() {
            return None;
        }
        let (streak, Counts { calls, failures, slow }) = known();
        Some(Box::new(Self { met, streak, calls, failures, slow, stalled, policy_version }))
    }

    /// The first rule that was met.
    #[must_use]
    pub fn rule(&self) -> Rule {
        self.met.first().map_or(Rule::ConsecutiveFailures, |met| met.rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WM-01: all failures of up to 1,000 calls against division in floats that can't be wrong at these sizes.
    #[test]
    fn r09_rates_are_compared_exactly() {
        let mut compared = 0_u64;
        for calls in 1..=1_000_u64 {
            for failures in [0, 1, calls / 3, calls / 2, calls.div_ceil(2), calls - 1, calls] {
                for rate_bp in [1, 5, 333, 3_333, 3_334, 5_000, 9_999, 10_000] {
                    let whole = f64::from(rate_bp) * calls as f64;
                    assert_eq!(reaches(failures, calls, rate_bp), failures as f64 * 10_000.0 >= whole);
                    compared += 1;
                }
            }
        }
        assert_eq!(compared, 1_000 * 7 * 8);
    }

    #[test]
    fn several_rules_are_met_at_once_and_named_in_order() {
        let policy = Policy::builder().consecutive_failures(2).failures(2).min_calls(2).build().unwrap();
        let counts = Counts { calls: 4, failures: 2, slow: 0 };
        let evidence = Evidence::judge(&policy, 3, false, 2, counts).unwrap();
        let rules: Vec<Rule> = evidence.met.iter().map(|met| met.rule).collect();
        assert_eq!(rules, [Rule::ConsecutiveFailures, Rule::FailureRate, Rule::Failures]);
        assert_eq!(evidence.policy_version, 3);
    }

    #[test]
    fn stalled_calls_are_judged_by_number_and_by_share_of_the_limit() {
        let policy = Policy::builder().max_in_flight(10).stall_after(std::time::Duration::from_secs(1));
        let policy = policy.stalled_calls(4).stalled_share(0.25).build().unwrap();
        let met = |stalled, limit| {
            let evidence = Evidence::judge_stalled(&policy, 2, (stalled, limit), || (7, Counts::default()))?;
            assert_eq!((evidence.stalled, evidence.streak, evidence.policy_version), (stalled, 7, 2));
            Some(evidence.met.iter().map(|met| (met.rule, met.count, met.calls, met.threshold)).collect::<Vec<_>>())
        };
        let (calls, share) = (Rule::StalledCalls, Rule::StalledShare);
        assert_eq!(met(2, 10), None);
        assert_eq!(met(3, 10), Some(vec![(share, 3, 10, 2_500)]));
        assert_eq!(met(4, 10), Some(vec![(calls, 4, 10, 4), (share, 4, 10, 2_500)]));
        assert_eq!(met(4, 17), Some(vec![(calls, 4, 17, 4)]));
        // A limit of 0 by hand.
        assert_eq!((met(0, 0), met(1, 0)), (None, Some(vec![(share, 1, 0, 2_500)])));
    }

    #[test]
    fn a_rate_waits_for_enough_calls_and_a_count_does_not() {
        let policy = Policy::builder().min_calls(10).failures(3).build().unwrap();
        let two = Counts { calls: 2, failures: 2, slow: 0 };
        assert!(Evidence::judge(&policy, 0, false, 2, two).is_none());
        let three = Counts { calls: 3, failures: 3, slow: 0 };
        assert_eq!(Evidence::judge(&policy, 0, false, 3, three).unwrap().rule(), Rule::Failures);
    }

    #[test]
    fn a_relapse_is_a_few_in_a_row_or_a_few_that_reach_their_rate() {
        let slow = std::time::Duration::from_secs(1);
        let policy = Policy::builder().max_in_flight(9).ramp(slow).ramp_failures(3).min_calls(50).failure_rate(0.5);
        let policy = policy.slow_call(slow).slow_rate(0.75).build().unwrap();
        let met = |is_ramping, streak, calls, failures, slow| {
            let evidence = Evidence::judge(&policy, 0, is_ramping, streak, Counts { calls, failures, slow });
            evidence.map(|evidence| evidence.met.iter().map(|met| (met.rule, met.count, met.calls)).collect::<Vec<_>>())
        };
        assert_eq!(met(true, 2, 40, 2, 0), None);
        assert_eq!(met(true, 3, 40, 3, 0), Some(vec![(Rule::Relapse, 3, 3)]));
        assert_eq!(met(true, 1, 7, 3, 0), None);
        assert_eq!(met(true, 1, 6, 3, 0), Some(vec![(Rule::Relapse, 3, 6)]));
        assert_eq!(met(true, 1, 2, 2, 0), None);
        assert_eq!(met(true, 0, 4, 0, 3), Some(vec![(Rule::Relapse, 3, 4)]));
        assert_eq!(met(true, 0, 5, 0, 3), None);
        assert_eq!(met(true, 3, 50, 25, 0), Some(vec![(Rule::FailureRate, 25, 50), (Rule::Relapse, 3, 3)]));
        assert_eq!([met(false, 9, 40, 9, 0), met(false, 1, 6, 3, 0), met(false, 0, 4, 0, 3)], [None, None, None]);
        // Whether it could be met asks for the calls only where a relapse does.
        let could =
            |is_ramping, streak| policy.could_meet(is_ramping, streak, Counts { calls: 9, failures: 3, slow: 0 });
        assert_eq!([could(true, 3), could(true, 2), could(false, 3)], [true, false, false]);
    }
}
