//! A window of time over two stripes: the real one, and twins that take its steps in another order.

use loom::sync::atomic::{AtomicU64, Ordering};
use portcullis::internals::buckets::View;
use portcullis::internals::lane::{Again, Lane};
use portcullis::internals::marks::{Marks, is_quiet};
use portcullis::internals::ring::{self, Counted, Ring};
use portcullis::internals::{Counts, Gate, GateWord, Now};

use crate::model;

/// Which step is wrong.
#[derive(Debug)]
pub struct Slack;

impl Slack {
    /// None: the engine's own steps.
    pub const NONE: u8 = 0;
    /// A success looks at the sign, and is counted after that.
    pub const SIGN_FIRST: u8 = 1;
    /// A failure looks at the calls, and is marked after that.
    pub const MARKED_LAST: u8 = 2;
    /// That nothing can be met is noted under the sign as it is by then.
    pub const NOTED_LATE: u8 = 3;
    /// A success goes by a policy that it read before the sign.
    pub const POLICY_FIRST: u8 = 4;
}

/// Two buckets of a second, in generation 1, and a rule: a share of failures in no fewer calls than `min_calls`.
#[derive(Debug)]
pub struct Timed<const SLACK: u8> {
    lanes: [Lane; 2],
    marks: Marks,
    gate: Gate,
    min_calls: u64,
    /// The policy.
    percent: AtomicU64,
}

/// The window of both stripes at the beginning.
const VIEW: View = View::new(1, 0, 1_000, 2, Now::from_millis(0));

impl<const SLACK: u8> Timed<SLACK> {
    /// With these outcomes, each by its stripe and whether it failed.
    #[must_use]
    pub fn with(min_calls: u64, percent: u64, outcomes: &[(usize, bool)]) -> Self {
        let timed = Self {
            lanes: <_>::default(),
            marks: Marks::default(),
            gate: Gate::from_bits(GateWord::closed(1, 0).bits()),
            min_calls,
            percent: AtomicU64::new(percent),
        };
        for (stripe, failed) in outcomes {
            let _ = timed.ring(*stripe).record(&VIEW, *failed, false, &timed.gate);
        }
        timed
    }

    fn ring(&self, stripe: usize) -> Ring<'_, impl Iterator<Item = &Lane> + Clone> {
        Ring::new(&self.lanes[stripe], self.lanes.iter(), &self.marks)
    }

    /// Puts another share in force.
    pub fn adopt(&self, percent: u64) {
        self.percent.store(percent, Ordering::Release);
        self.marks.stir(1, &self.gate);
    }

    fn policy(&self) -> u64 {
        self.percent.load(Ordering::Acquire)
    }

    fn is_met(&self, counts: Option<Counts>) -> bool {
        counts.is_some_and(|counts| counts.calls >= self.min_calls)
    }

    /// Fails a call; true if that meets the rule.
    pub fn fail(&self, stripe: usize) -> bool {
        let (ring, percent) = (self.ring(stripe), self.policy());
        if SLACK != Slack::MARKED_LAST {
            let _ = ring.record(&VIEW, true, false, &self.gate);
            return self.is_met(ring.look(&VIEW, |counts| could_meet(percent, counts)));
        }
        let _ = ring.record(&VIEW, false, false, &self.gate);
        let mut counts = ring::counts(&VIEW, &self.marks, &self.lanes.iter());
        self.marks.mark(&VIEW, VIEW.start(), true, false, &self.gate);
        counts.failures += 1;
        self.is_met(Some(counts).filter(|counts| could_meet(percent, *counts)))
    }

    /// Ends a call well; true if that meets the rule.
    pub fn succeed(&self, stripe: usize) -> bool {
        let (lane, ring) = (&self.lanes[stripe], self.ring(stripe));
        let policy = (SLACK == Slack::POLICY_FIRST).then(|| self.policy());
        let counted = if SLACK == Slack::SIGN_FIRST {
            self.count_by_an_old_sign(lane)
        } else {
            ring::count_at_once(lane, &self.marks, 1, 0)
        };
        let sign = match counted {
            Counted::Done => return false,
            Counted::Judge(sign) => sign,
            Counted::Met | Counted::Elsewhere => {
                let percent = self.policy();
                let _ = ring.record(&VIEW, false, false, &self.gate);
                return self.is_met(ring.look(&VIEW, |counts| could_meet(percent, counts)));
            }
        };
        let percent = policy.unwrap_or_else(|| self.policy());
        if SLACK != Slack::NOTED_LATE {
            return self.is_met(ring.judge(&VIEW, sign, |counts| could_meet(percent, counts)));
        }
        let counts = ring.look(&VIEW, |counts| could_meet(percent, counts));
        if counts.is_none() {
            lane.note_judged(&VIEW, self.marks.sign());
        }
        self.is_met(counts)
    }

    fn count_by_an_old_sign(&self, lane: &Lane) -> Counted {
        let sign = self.marks.sign();
        match lane.count_again(1, 0) {
            Again::Counted(call) if is_quiet(sign, 1, 0) || lane.is_judged(1, call, sign) => Counted::Done,
            Again::Counted(_) => Counted::Judge(sign),
            Again::Met => Counted::Met,
            Again::Elsewhere => Counted::Elsewhere,
        }
    }
}

fn could_meet(percent: u64, counts: Counts) -> bool {
    counts.failures * 100 >= percent * counts.calls
}

/// A failure on one stripe, and the success on the other that completes the calls: one of the two sees both.
pub fn a_failure_and_the_last_call<const SLACK: u8>(name: &str) {
    model(
        name,
        &[[true, false], [false, true], [true, true]],
        || Timed::<SLACK>::with(4, 25, &[(0, false), (1, false)]),
        [|timed: &Timed<SLACK>| timed.succeed(0), |timed| timed.fail(1)],
        |_, met| {
            assert_ne!(met, [false; 2], "a rule was met and nobody saw it");
            met
        },
    );
}

/// After a failure, a success on each stripe, which complete the calls only together: one of them sees both.
pub fn two_last_calls<const SLACK: u8>(name: &str) {
    model(
        name,
        &[[true, false], [false, true], [true, true]],
        || Timed::<SLACK>::with(4, 25, &[(0, true), (1, false)]),
        [|timed: &Timed<SLACK>| timed.succeed(0), |timed| timed.succeed(1)],
        |_, met| {
            assert_ne!(met, [false; 2], "a rule was met and nobody saw it");
            met
        },
    );
}

/// A success judges and notes that nothing can be met, and a failure comes: the next success judges again.
pub fn a_failure_after_the_judgement<const SLACK: u8>(name: &str) {
    model(
        name,
        &[()],
        || Timed::<SLACK>::with(6, 33, &[(0, true), (0, false), (0, false)]),
        [|timed: &Timed<SLACK>| timed.succeed(0), |timed| timed.fail(1)],
        |timed, met| {
            assert_eq!(met, [false; 2]);
            assert!(timed.succeed(0), "a failure was taken for judged");
        },
    );
}

/// A success judges by one policy while another is put in force: the next success goes by that.
pub fn a_policy_after_the_judgement<const SLACK: u8>(name: &str) {
    model(
        name,
        &[()],
        || Timed::<SLACK>::with(6, 50, &[(0, true), (0, false), (0, false), (0, false)]),
        [|timed: &Timed<SLACK>| assert!(!timed.succeed(0)), |timed| timed.adopt(10)],
        |timed, _| assert!(timed.succeed(0), "a policy was taken for judged by"),
    );
}
