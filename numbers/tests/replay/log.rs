//! Logs made by hand, and by chance.

use portcullis::Outcome;
use portcullis_numbers::logs::{Call, Names, TargetId};
use portcullis_numbers::policies::Policies;
use portcullis_numbers::replay::Replay;
use portcullis_numbers::replay::report::{Report, Under};

/// A whole hour, so that times in reports are the test's own and this.
pub(crate) const EPOCH_MS: u64 = 1_700_000_000_000 / 3_600_000 * 3_600_000;

pub(crate) fn call(target: u32, at_ms: u64, latency_ms: u64, outcome: Outcome) -> Call {
    let nanos = 1_000_000;
    Call {
        start: (EPOCH_MS + at_ms) * nanos,
        latency: latency_ms * nanos,
        target: TargetId(target),
        status: 0,
        outcome,
    }
}

pub(crate) fn names(targets: u32) -> Names {
    (0..targets).map(|n| format!("t{n}")).collect()
}

pub(crate) fn policies(text: &str) -> Policies {
    text.parse().unwrap_or_else(|errors| panic!("{errors}"))
}

/// Starts a replay of one policy, named `p`, and takes the calls.
pub(crate) fn taken(policy: &str, calls: &[Call]) -> Replay {
    let mut replay = Replay::new(vec![("p".to_owned(), policies(policy))]);
    let targets = calls.iter().map(|call| call.target.0 + 1).max().unwrap_or_default();
    let names = names(targets);
    calls.iter().for_each(|call| replay.take(call, &names));
    replay
}

pub(crate) fn played(policy: &str, calls: &[Call]) -> Report {
    taken(policy, calls).finish(100)
}

/// The one target under the one policy.
pub(crate) fn only(report: &Report) -> &Under {
    report.targets[0].under[0].as_ref().unwrap_or_else(|| panic!("no policy"))
}

/// Numbers by chance, the same for the same seed: splitmix64 of S. Vigna.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }
}

/// Calls to some targets, each of which fails for a while now and then.
pub(crate) fn by_chance(seed: u64, targets: u32, calls: usize) -> Vec<Call> {
    let mut chance = Chance(seed);
    let mut at = 0;
    let mut log = Vec::with_capacity(calls);
    for _ in 0..calls {
        at += chance.below(20);
        let target = chance.below(targets.into()) as u32;
        let is_down = (at / 5_000 + u64::from(target)).is_multiple_of(4);
        let outcome = match chance.below(100) {
            0..3 => Outcome::Ignored,
            3..5 => Outcome::Failure,
            5..85 if is_down => Outcome::Failure,
            _ => Outcome::Success,
        };
        let latency = 1 + chance.below(if is_down { 800 } else { 60 });
        log.push(call(target, at, latency, outcome));
    }
    log
}
