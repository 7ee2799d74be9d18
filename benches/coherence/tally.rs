//! What is counted.

use std::collections::BTreeMap;

use portcullis::internals::trace::{Access, Kind};

use super::caches::Cost;

/// The sums over a part of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) decisions: u64,
    pub(crate) refused: u64,
    pub(crate) accesses: u64,
    /// Of the accesses, those that ask for the line alone.
    pub(crate) writes: u64,
    /// Of the writes, compare-and-swaps that were lost.
    pub(crate) lost: u64,
    pub(crate) locks: u64,
    pub(crate) memory: u64,
    pub(crate) transfers: u64,
    /// Transfers by the line of the source that caused them.
    pub(crate) by: BTreeMap<(&'static str, u32), u64>,
    /// Decisions and transfers before the target got its stripes, if it did in this part.
    pub(crate) growth: Option<(u64, u64)>,
}

impl Tally {
    pub(crate) fn count(&mut self, access: Access, cost: Cost) {
        self.accesses += 1;
        self.writes += u64::from(access.kind != Kind::Load);
        self.lost += u64::from(access.kind == Kind::Lost);
        self.locks += u64::from(access.kind == Kind::Lock);
        match cost {
            Cost::Hit => {}
            Cost::Memory => self.memory += 1,
            Cost::Transfer => {
                self.transfers += 1;
                *self.by.entry((access.by.file(), access.by.line())).or_default() += 1;
            }
        }
        if self.growth.is_none() && super::world::is_growth(access) {
            self.growth = Some((self.decisions, self.transfers));
        }
    }

    /// Remote transfers per decision.
    pub(crate) fn transfers_per_decision(&self) -> f64 {
        per(self.transfers, self.decisions)
    }

    pub(crate) fn refused_per_decision(&self) -> f64 {
        per(self.refused, self.decisions)
    }

    pub(crate) fn writes_per_decision(&self) -> f64 {
        per(self.writes, self.decisions)
    }

    /// The lines of the source that caused the most transfers, per decision.
    pub(crate) fn culprits(&self, most: usize) -> Vec<(String, f64)> {
        let mut all: Vec<_> = self.by.iter().collect();
        all.sort_by_key(|(_, transfers)| std::cmp::Reverse(**transfers));
        let one = |((file, line), transfers): (&(&str, u32), &u64)| {
            (format!("{file}:{line}"), per(*transfers, self.decisions))
        };
        all.into_iter().take(most).map(one).collect()
    }
}

fn per(sum: u64, decisions: u64) -> f64 {
    sum as f64 / decisions.max(1) as f64
}
