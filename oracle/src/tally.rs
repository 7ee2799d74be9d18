//! What a run did.

use std::collections::BTreeMap;

use crate::op::KINDS;

/// What was done, so that a run can show that it did something.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Times that each of [`KINDS`] was done.
    pub kinds: [u64; KINDS.len()],
    /// Transitions by cause.
    pub causes: BTreeMap<&'static str, u64>,
    /// Refusals by reason.
    pub rejections: BTreeMap<&'static str, u64>,
    /// Outcomes that came too late.
    pub stale: u64,
}

impl Tally {
    /// All operations.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.kinds.iter().sum()
    }

    pub fn add(&mut self, other: &Self) {
        self.kinds.iter_mut().zip(other.kinds).for_each(|(sum, more)| *sum += more);
        for (sums, more) in [(&mut self.causes, &other.causes), (&mut self.rejections, &other.rejections)] {
            more.iter().for_each(|(name, count)| *sums.entry(name).or_default() += count);
        }
        self.stale += other.stale;
    }
}
