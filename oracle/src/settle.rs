//! What an ending does to its target.

use portcullis::{Cause, Outcome, Rule, Settled};

use crate::Twin;
use crate::ramp::{MOST_REOPENS, Ramp};
use crate::rules::Abandon;
use crate::target::{NANOS_PER_MS, Phase, Proof, Target, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Settled(Outcome),
    Abandoned,
    Panicked,
}

impl Target {
    /// Records how a call ended; its place in the bulkhead stays taken.
    pub(crate) fn record(&mut self, mut token: Token, ending: Ending, now: u64) -> Settled {
        self.counts_out(&mut token);
        let outcome = self.outcome(token, ending, now);
        self.asked_ms = if outcome == Outcome::Failure { token.asked_ms } else { 0 };
        let is_verdict = matches!(ending, Ending::Settled(Outcome::Success | Outcome::Failure));
        let ran = token.started.map(|started| token.answered.unwrap_or(now) - started);
        let slow_ms = self.terms.rules.slow_ms;
        let slow =
            is_verdict && ran.zip(slow_ms).is_some_and(|(ran, slow_ms)| ran >= slow_ms.saturating_mul(NANOS_PER_MS));
        if token.generation != self.generation {
            self.totals.stale += 1;
            if self.twin == Twin::CountsStale && outcome == Outcome::Failure {
                self.count_call(true, slow, now);
            }
            return Settled::Stale;
        }
        match &self.phase {
            Phase::Closed(_) if outcome != Outcome::Ignored => self.count_call(outcome == Outcome::Failure, slow, now),
            Phase::HalfOpen { .. } => self.probe_ended(outcome, ending, slow, now),
            _ => {}
        }
        self.totals.slow += u64::from(slow);
        match ending {
            Ending::Settled(Outcome::Success) => self.totals.success += 1,
            Ending::Settled(Outcome::Failure) | Ending::Panicked => self.totals.failure += 1,
            Ending::Settled(_) => self.totals.ignored += 1,
            Ending::Abandoned => self.totals.abandoned += 1,
        }
        Settled::Recorded
    }

    /// Gives a place in the bulkhead back.
    pub(crate) fn give_back(&mut self) {
        // Saturating for the twin that forgets them.
        self.in_flight = self.in_flight.saturating_sub(1);
        self.settled += 1;
    }

    /// What an ending says about the target (R11).
    fn outcome(&self, token: Token, ending: Ending, now: u64) -> Outcome {
        match ending {
            Ending::Settled(outcome) => return outcome,
            Ending::Panicked => return Outcome::Failure,
            Ending::Abandoned => {}
        }
        let least_ms = match self.terms.rules.abandon {
            Abandon::Failure => return Outcome::Failure,
            Abandon::Unset if self.twin == Twin::DropFails => return Outcome::Failure,
            Abandon::Unset if token.is_async => 500,
            Abandon::Ignore | Abandon::Unset => return Outcome::Ignored,
            Abandon::FailureAfter(least_ms) => least_ms,
        };
        match token.alive.or(token.started) {
            Some(since) if now - since >= least_ms * NANOS_PER_MS => Outcome::Failure,
            _ => Outcome::Ignored,
        }
    }

    fn count_call(&mut self, failed: bool, slow: bool, now: u64) {
        let (rules, now_ms) = (&self.terms.rules, now / NANOS_PER_MS);
        let Phase::Closed(window) = &mut self.phase else { return };
        let start_ms = window.record(rules.shape, now_ms, failed, slow);
        self.newest_ms = self.newest_ms.max(start_ms);
        if rules.counts_streaks() {
            window.streak = if failed { window.streak + 1 } else { 0 };
        }
        let streak = window.streak;
        let Some(proof) = self.judge(streak, now_ms) else { return };
        let cause = match proof.met[0].0 {
            Rule::ConsecutiveFailures => Cause::ConsecutiveFailures,
            Rule::FailureRate => Cause::FailureRate,
            Rule::Failures => Cause::Failures,
            Rule::SlowRate => Cause::SlowRate,
            _ => Cause::Relapse,
        };
        self.reopened();
        self.go(self.open(now, self.reopens), cause, now, Some(proof));
    }

    /// The rules that are met, in their order (R9).
    fn judge(&self, streak: u64, now_ms: u64) -> Option<Proof> {
        let rules = &self.terms.rules;
        let Phase::Closed(window) = &self.phase else { return None };
        let counts = window.counts(rules.shape, now_ms);
        let reaches = |part: u64, rate_bp: u64| {
            let (part, whole) = (part * 10_000, rate_bp * counts.calls);
            if self.twin == Twin::TripsAboveTheRate { part > whole } else { part >= whole }
        };
        let mut met = Vec::new();
        if rules.streak.is_some_and(|most| streak >= most) {
            met.push((Rule::ConsecutiveFailures, streak, streak, rules.streak?));
        }
        let is_enough = counts.calls >= rules.min_calls;
        if is_enough && rules.rate_bp.is_some_and(|rate_bp| reaches(counts.failures, rate_bp)) {
            met.push((Rule::FailureRate, counts.failures, counts.calls, rules.rate_bp?));
        }
        if rules.failures.is_some_and(|most| counts.failures >= most) {
            met.push((Rule::Failures, counts.failures, counts.calls, rules.failures?));
        }
        if is_enough && rules.slow_rate_bp.is_some_and(|rate_bp| reaches(counts.slow, rate_bp)) {
            met.push((Rule::SlowRate, counts.slow, counts.calls, rules.slow_rate_bp?));
        }
        if self.ramp.is_some() && self.twin != Twin::BlindWhileRamping {
            let few = rules.ramp_failures;
            let reached = |count, rate_bp: Option<u64>| {
                (count >= few && rate_bp.is_some_and(|rate_bp| reaches(count, rate_bp)))
                    .then_some((count, counts.calls))
            };
            let in_a_row = (streak >= few).then_some((streak, streak));
            let share = || reached(counts.failures, rules.rate_bp).or_else(|| reached(counts.slow, rules.slow_rate_bp));
            met.extend(in_a_row.or_else(share).map(|(count, calls)| (Rule::Relapse, count, calls, few)));
        }
        let policy_version = self.policy_version;
        (!met.is_empty()).then_some(Proof { met, streak, counts, stalled: 0, policy_version })
    }

    fn probe_ended(&mut self, outcome: Outcome, ending: Ending, slow: bool, now: u64) {
        let rules = &self.terms.rules;
        let Phase::HalfOpen { probes, successes, ignored, .. } = &mut self.phase else { return };
        if outcome == Outcome::Failure || outcome == Outcome::Success && slow {
            self.reopens = (self.reopens + 1).min(MOST_REOPENS);
            let cause = if outcome == Outcome::Failure { Cause::ProbeFailed } else { Cause::ProbeSlow };
            return self.go(self.open(now, self.reopens), cause, now, None);
        }
        *probes -= 1;
        let mut is_good = outcome == Outcome::Success;
        if ending == Ending::Settled(Outcome::Ignored) {
            *ignored += 1;
            // The next multiple, should a new policy have passed the mark: it is there so that HALF_OPEN ends, not as a verdict.
            is_good = ignored.is_multiple_of(rules.ignored);
        }
        if is_good {
            (*ignored, *successes) = (0, *successes + 1);
            if *successes >= rules.successes {
                match rules.ramp_ms.filter(|_| self.twin != Twin::NeverRamps) {
                    Some(length_ms) => self.ramp = Some(Ramp { since_ms: now.div_ceil(NANOS_PER_MS), length_ms }),
                    None => self.reopens = 0,
                }
                self.go(self.fresh(now), Cause::ProbesSucceeded, now, None);
            }
        }
    }
}
