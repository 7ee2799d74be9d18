//! The transition that an ending makes: a trip, or what a probe's end does to HALF_OPEN.

use super::{Change, Ending, Words};
use crate::event::Cause;
use crate::gate::Applied;
use crate::outcome::{Outcome, Settled};
use crate::policy::Policy;
use crate::time::{Now, Reading};
use crate::trip::Evidence;
use crate::window::Recorded;

/// What an ending says of its target.
#[derive(Clone, Copy)]
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    pub(super) slow: bool,
    /// For a failure: the milliseconds after which the target said to come back; 0 if none.
    pub(super) back_in_ms: u64,
}

impl Words {
    #[cold]
    #[inline(never)]
    pub(super) fn trip(
        &self,
        generation: u32,
        policy: &Policy,
        evidence: Box<Evidence>,
        back_in_ms: u64,
        now: Now,
    ) -> Option<Change> {
        let change = self.trip_under_lock(generation, policy, evidence, back_in_ms, now)?;
        self.turn_away(change.moved);
        Some(change)
    }

    /// The same for a caller that may hold a lock, and [turns those who wait away](Self::turn_away) once it doesn't.
    pub(super) fn trip_under_lock(
        &self,
        generation: u32,
        policy: &Policy,
        evidence: Box<Evidence>,
        back_in_ms: u64,
        now: Now,
    ) -> Option<Change> {
        let wait = |reopens| policy.wait_at_least_ms(back_in_ms, reopens, self.draw(generation));
        let applied = self.gate.apply(|word| {
            if word.is_ramping() {
                word.relapse(generation, now, wait)
            } else {
                word.trip(generation, now.tick_after(wait(0)))
            }
        });
        match applied {
            Applied::Moved(moved) => {
                if moved.from.is_ramping() {
                    // Nobody is to be served: whoever waits is turned away.
                    let _ = self.leave_ramp(now);
                }
                let cause = Cause::from(evidence.rule());
                let evidence = Some(evidence);
                Some(Change { evidence, asked_ms: back_in_ms, ..Change::new(moved, cause, now) })
            }
            // Another outcome tripped on the same window: its report is the only one.
            Applied::Stale | Applied::Stayed => None,
        }
    }

    pub(super) fn probe_ended<F: Fn() -> Now>(
        &self,
        generation: u32,
        Verdict { outcome, slow, back_in_ms }: Verdict,
        ending: Ending,
        policy: &Policy,
        time: &Reading<F>,
    ) -> (Settled, Option<Change>) {
        let (now, rules) = (time.now(), policy.probe_rules());
        let good = match outcome {
            Outcome::Success => !slow,
            Outcome::Failure => false,
            Outcome::Ignored
                if ending == Ending::Settled(Outcome::Ignored) && self.is_enough_ignored(generation, policy) =>
            {
                true
            }
            Outcome::Ignored => {
                let applied = self.gate.apply(|word| word.probe_returned(generation));
                return (settled(applied), None);
            }
        };
        let (applied, cause) = if good {
            if let Some(rare) = self.rare.get() {
                rare.ignored.succeeded(generation);
            }
            let begins = self.beginning(now);
            let applied = if policy.ramp_ms.is_some() {
                self.probe_succeeded_to_ramp(generation, begins, now, policy)
            } else {
                self.gate.apply(|word| word.probe_succeeded(generation, begins, rules))
            };
            (applied, Cause::ProbesSucceeded)
        } else {
            let wait = |reopens| policy.wait_at_least_ms(back_in_ms, reopens, self.draw(generation));
            let cause = if outcome == Outcome::Failure { Cause::ProbeFailed } else { Cause::ProbeSlow };
            (self.gate.apply(|word| word.probe_failed(generation, now, wait)), cause)
        };
        let change = match applied {
            Applied::Moved(moved) => Some(Change { asked_ms: back_in_ms, ..Change::new(moved, cause, now) }),
            Applied::Stale | Applied::Stayed => None,
        };
        (settled(applied), change)
    }

    /// Whether this ignored probe is the one that makes so many in a row count as a success (R4).
    fn is_enough_ignored(&self, generation: u32, policy: &Policy) -> bool {
        let length = self.rare.force().ignored.failed(generation, &self.gate);
        // Not >=: two probes may pass the mark before the first of them has reset the streak.
        matches!(length, Recorded::Counted(length) if length.is_multiple_of(u64::from(policy.ignored_probes)))
    }

    /// This target's jitter for the trip that ends `generation`.
    fn draw(&self, generation: u32) -> u64 {
        mix(u64::from(self.salt()) << 32 | u64::from(generation))
    }
}

fn settled(applied: Applied) -> Settled {
    match applied {
        Applied::Stale => Settled::Stale,
        Applied::Stayed | Applied::Moved(_) => Settled::Recorded,
    }
}

/// The finalizer of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
fn mix(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reference sequence of splitmix64 from the seed 1,234,567.
    #[test]
    fn the_jitters_hash_is_splitmix64() {
        let states = (0..5_u64).map(|step| 1_234_567_u64.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        let reference = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert!(states.map(mix).eq(reference));
    }
}
