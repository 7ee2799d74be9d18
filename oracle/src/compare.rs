//! Field by field: what the real engine shows against what the naive one has.

use std::time::Duration;

use portcullis::{Snapshot, State, Transition};

use crate::rules::Shape;
use crate::target::{NANOS_PER_MS, News, Phase, Proof, Target};
use crate::window::Counts;

pub(crate) fn transitions(heard: &[Transition<u8>], told: &[News]) {
    assert_eq!(heard.iter().map(news).collect::<Vec<_>>(), told, "transitions");
}

fn news(transition: &Transition<u8>) -> News {
    News {
        key: *transition.target,
        from: transition.from,
        to: transition.to,
        cause: transition.cause,
        sequence: transition.sequence,
        generation: transition.generation,
        incarnation: transition.incarnation,
        at: transition.at,
        asked: transition.retry_after,
        proof: transition.evidence.as_ref().map(|evidence| Proof {
            met: evidence.met.iter().map(|met| (met.rule, met.count, met.calls, met.threshold)).collect(),
            streak: evidence.streak,
            counts: Counts { calls: evidence.calls, failures: evidence.failures, slow: evidence.slow },
            stalled: evidence.stalled,
            policy_version: evidence.policy_version,
        }),
    }
}

pub(crate) fn snapshot(shown: &Snapshot, target: &Target, now: u64) {
    let key = target.key;
    let same = |is_same: bool, field: &str| {
        assert!(is_same, "{field} of {key}: {shown:?} differs from {target:?}");
    };
    let rules = &target.terms.rules;
    let (reopen_in, probes, successes) = match &target.phase {
        Phase::Open { reopen_ms, .. } => {
            let left = (reopen_ms * NANOS_PER_MS).saturating_sub(now);
            (Some(Duration::from_nanos(left)), 0, 0)
        }
        Phase::HalfOpen { probes, successes, .. } => (None, *probes, *successes),
        Phase::Closed(_) | Phase::ForcedOpen | Phase::Disabled => (None, 0, 0),
    };
    let (counts, streak) = match &target.phase {
        Phase::Closed(window) => (window.counts(rules.shape, now / NANOS_PER_MS), window.streak),
        _ => (Counts::default(), 0),
    };
    let window = shown.window.map(|window| (window.calls, window.failures, window.slow));
    let expected = (rules.shape != Shape::None).then_some((counts.calls, counts.failures, counts.slow));
    same(shown.state == target.shown(now), "state");
    same(shown.generation == target.generation, "generation");
    same(shown.incarnation == target.incarnation, "incarnation");
    same(shown.reopen_in == reopen_in, "reopen_in");
    same((shown.probes_in_flight, shown.probe_successes) == (probes, successes), "probes and successes");
    same(shown.reopens == target.reopens, "reopens");
    let (limit, ramps_for) = target.limit_at(now);
    same((shown.in_flight, shown.limit) == (target.in_flight, limit), "in flight and limit");
    same((shown.full_limit, shown.ramps_for) == (target.limit, ramps_for.map(Duration::from_millis)), "ramp");
    same(shown.stalled == target.stalled(now), "stalled");
    same(shown.streak == streak, "streak");
    same(window == expected, "window");
    same(shown.totals == target.totals, "totals");
    same(shown.refusals == target.refusals, "refusals");
    same(shown.policy == target.terms.policy, "policy");
    same(shown.policy_version == target.policy_version, "policy version");
    same(shown.state != State::Closed || reopen_in.is_none(), "state with a wait");
}
