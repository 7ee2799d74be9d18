//! What a bulkhead counts, read word by word.

use super::{Bulkhead, magazine};

impl Bulkhead {
    /// Calls in flight and calls settled: each word as it is met, the pool until it stands still between two looks.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut usage = self.look();
        for _ in 0..8 {
            let again = self.look();
            if again == usage {
                break;
            }
            usage = again;
        }
        usage
    }

    fn look(&self) -> Usage {
        let out = self.pool.load().out();
        let (mut stashed, mut settled) = (0, self.stripes.laps().saturating_mul(magazine::SETTLED_LAP));
        for stripe in self.stripes.iter() {
            let word = stripe.magazine.load();
            stashed += word.stash();
            settled += word.settled();
        }
        Usage { in_flight: out.saturating_sub(stashed), settled }
    }
}

/// What the models need to bring about at once, or to see.
#[cfg(portcullis_loom)]
impl Bulkhead {
    /// With so many calls settled, for models of what comes after the last of a lap.
    #[must_use]
    pub fn with_settled(limit: u32, settled: u64) -> Self {
        let bulkhead = Self::new(limit);
        let _ = bulkhead.magazine(0).give(0, settled);
        bulkhead
    }

    /// As [`Self::set_limit`] without what a lower limit owes, for a twin.
    pub fn set_limit_unswept(&self, limit: u32) {
        let _ = self.pool.limit(limit);
    }

    #[must_use]
    pub fn stripes(&self) -> usize {
        self.stripes.count()
    }
}

/// What a bulkhead counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub in_flight: u64,
    pub settled: u64,
}
