//! A log played to several policies at once, in one pass.

use portcullis::Snapshot;
use rayon::prelude::*;

use super::candidate::Candidate;
use super::facts::Facts;
use super::lane::Asked;
use super::series::Scale;
use crate::logs::{Call, Names};
use crate::policies::Policies;

/// Calls that are played at a time: enough to keep each policy's thread busy, and 2 MB.
const BLOCK: usize = 65_536;
const HOUR: u64 = 3_600_000_000_000;

/// Plays calls to policies: each has engines and a clock of its own, so that each does what it would do alone.
///
/// Time is the log's. A call asks at its start; admitted, it is settled with the log's outcome at its end, or as a failure at the policy's timeout.
/// What ends at the moment at which another call starts, ends first. Memory is bounded by the calls in flight, and by targets.
#[derive(Debug)]
pub struct Replay {
    pub(super) candidates: Vec<Candidate>,
    pub(super) facts: Vec<Facts>,
    pub(super) scale: Scale,
    /// A whole hour not after the first call, since the Unix epoch: buckets and ticks begin on round times.
    pub(super) origin: u64,
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) end: u64,
    block: Vec<(usize, Asked)>,
}

impl Replay {
    /// Starts with policies by name.
    #[must_use]
    pub fn new(policies: Vec<(String, Policies)>) -> Self {
        Self {
            candidates: policies.into_iter().map(|(name, policies)| Candidate::new(name, policies)).collect(),
            facts: Vec::new(),
            scale: Scale::default(),
            origin: 0,
            first: 0,
            last: 0,
            end: 0,
            block: Vec::with_capacity(BLOCK),
        }
    }

    /// Takes the next call of a log. One that started before the call that came before it, is taken as having started with that.
    pub fn take(&mut self, call: &Call, names: &Names) {
        let target = call.target.0 as usize;
        while self.facts.len() <= target {
            let next = crate::logs::TargetId(self.facts.len() as u32);
            let name = names.name(next).to_owned();
            self.candidates.iter_mut().for_each(|candidate| candidate.meet(&name));
            self.facts.push(Facts::new(name));
            if self.facts.len() == 1 {
                self.origin = call.start - call.start % HOUR;
                self.first = call.start - self.origin;
            }
        }
        let at = call.start.saturating_sub(self.origin).max(self.last);
        self.last = at;
        self.end = self.end.max(at.saturating_add(call.latency));
        self.block.push((target, Asked { at, latency: call.latency, outcome: call.outcome }));
        if self.block.len() == BLOCK {
            self.play();
        }
    }

    /// Plays what was taken.
    fn play(&mut self) {
        let scale = self.scale.fit(self.first, self.last, self.facts.len());
        let (block, facts) = (&self.block, &mut self.facts);
        let count = || {
            for fact in facts.iter_mut() {
                fact.series.widen(self.scale, scale);
            }
            for (target, call) in block {
                facts[*target].add(*call, scale);
            }
        };
        let candidates = self.candidates.par_iter_mut();
        let ask = || {
            candidates.for_each(|candidate| {
                candidate.widen(scale);
                block.iter().for_each(|(target, call)| candidate.ask(*target, *call));
            });
        };
        rayon::join(count, ask);
        self.scale = scale;
        self.block.clear();
    }

    /// Plays to the end: all that is in flight is settled.
    pub(super) fn settle_all(&mut self) {
        self.play();
        let (end, scale) = (self.end, self.scale.fit(self.first, self.end, self.facts.len()));
        self.facts.iter_mut().for_each(|fact| fact.series.widen(self.scale, scale));
        self.candidates.par_iter_mut().for_each(|candidate| {
            candidate.widen(scale);
            candidate.finish(end);
        });
        self.scale = scale;
    }

    /// A target of a policy's engine as it is once all calls taken so far are played; none if the policy has nothing for it.
    #[must_use]
    pub fn snapshot(&mut self, policy: &str, target: &str) -> Option<Snapshot> {
        self.play();
        let target = self.facts.iter().position(|facts| facts.name == target)?;
        self.candidates.iter().find(|candidate| candidate.name == policy)?.snapshot(target)
    }
}
