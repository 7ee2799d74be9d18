//! Permits that a thread holds, of every kind, and the ways in which they end.

use std::sync::Arc;

use portcullis::{Engine, Held, Outcome, OwnedHeld, OwnedPermit, Permit};

use crate::faults::{stage_a_panic, survive};
use crate::plan::{PINNED, Random};
use crate::stage::{Counts, Stage};

type Owned = OwnedPermit<Arc<Engine>>;

#[derive(Debug)]
pub(crate) enum Kept<'e> {
    Permit(Permit<'e>),
    Owned(Owned),
    #[expect(dead_code, reason = "held to be dropped")]
    Held(Held<'e>),
    #[expect(dead_code, reason = "held to be dropped")]
    OwnedHeld(OwnedHeld<Arc<Engine>>),
}

/// A permit with the key that it is of.
#[derive(Debug)]
pub(crate) struct Holding<'e> {
    kept: Kept<'e>,
    seat: usize,
    probe: Option<u32>,
}

#[must_use]
pub(crate) fn outcome(random: &mut Random) -> Outcome {
    match random.draw(10) {
        0..5 => Outcome::Success,
        5..9 => Outcome::Failure,
        _ => Outcome::Ignored,
    }
}

impl<'e> Holding<'e> {
    pub(crate) fn new(kept: Kept<'e>, seat: usize, stage: &Stage) -> Self {
        let probe = match &kept {
            Kept::Permit(permit) => permit.is_probe().then(|| permit.generation()),
            Kept::Owned(permit) => permit.is_probe().then(|| permit.generation()),
            Kept::Held(_) | Kept::OwnedHeld(_) => None,
        };
        stage.seats[seat].entered(probe, &stage.faults);
        Counts::add(&stage.counts.probes, u64::from(probe.is_some()));
        Self { kept, seat, probe }
    }

    /// Ends it in some way; what is left of it if only its outcome is recorded.
    pub(crate) fn end(mut self, random: &mut Random, stage: &Stage) -> Option<Self> {
        let seat = &stage.seats[self.seat];
        let way = random.draw(100);
        if let Kept::Owned(permit) = &mut self.kept
            && random.one_in(4)
        {
            permit.touch();
        }
        if way < 3 && matches!(self.kept, Kept::Permit(_)) && self.seat < PINNED && random.one_in(50) && seat.may_leak()
        {
            Counts::add(&stage.counts.leaked, 1);
            // Borrowed ones only: an owned one would keep the whole engine.
            std::mem::forget(self.kept);
            return None;
        }
        seat.leaves_probe(self.probe.take());
        if (10..20).contains(&way) {
            return self.record(random, stage);
        }
        seat.leaves();
        if matches!(self.kept, Kept::Held(_) | Kept::OwnedHeld(_)) {
            return None;
        }
        match way {
            0..10 => {
                seat.tally.dropped();
                drop(self.kept);
            }
            20..24 => {
                seat.tally.panicked();
                Counts::add(&stage.counts.panics, 1);
                survive(move || {
                    let _held = self.kept;
                    stage_a_panic()
                });
            }
            _ => {
                let outcome = outcome(random);
                let settled = match self.kept {
                    Kept::Permit(permit) => permit.settle(outcome),
                    Kept::Owned(permit) => permit.settle(outcome),
                    Kept::Held(_) | Kept::OwnedHeld(_) => return None,
                };
                seat.tally.settled(outcome, settled);
                Counts::add(&stage.counts.stale, u64::from(settled == portcullis::Settled::Stale));
            }
        }
        None
    }

    fn record(self, random: &mut Random, stage: &Stage) -> Option<Self> {
        let Self { kept, seat, .. } = self;
        let (tally, outcome) = (&stage.seats[seat].tally, outcome(random));
        let kept = match kept {
            Kept::Permit(permit) => {
                let held = permit.record(outcome);
                tally.settled(outcome, held.settled());
                Kept::Held(held)
            }
            Kept::Owned(permit) => {
                let held = permit.record(outcome);
                tally.settled(outcome, held.settled());
                Kept::OwnedHeld(held)
            }
            held => held,
        };
        Some(Self { kept, seat, probe: None })
    }
}
