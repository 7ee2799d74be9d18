//! Windows that do one step wrong.

use loom::sync::atomic::{AtomicU64, Ordering};
use portcullis::internals::Gate;

/// A count tagged with its generation, `generation 32 | count 32`: the streak and the window of calls in one, but for what a
/// count is.
#[derive(Debug)]
pub struct Tagged(AtomicU64);

impl Tagged {
    #[must_use]
    pub fn new(generation: u32) -> Self {
        Self(AtomicU64::new(u64::from(generation) << 32))
    }

    /// Counts an outcome. Whether an older word may be reset is decided by the gate as it was BEFORE the word was read.
    pub fn record(&self, generation: u32, gate: &Gate) {
        let is_current = gate.load().generation() == generation;
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            let next = if word >> 32 == u64::from(generation) {
                word + 1
            } else if is_current {
                u64::from(generation) << 32 | 1
            } else {
                return;
            };
            match self.0.compare_exchange(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(seen) => word = seen,
            }
        }
    }

    #[must_use]
    pub fn count(&self, generation: u32) -> u64 {
        let word = self.0.load(Ordering::Acquire);
        if word >> 32 == u64::from(generation) { word & u64::from(u32::MAX) } else { 0 }
    }
}

/// A bucket, `start 32 | count 32`, that is reset in one step and counted in another.
#[derive(Debug)]
pub struct SplitBucket(AtomicU64);

impl SplitBucket {
    #[must_use]
    pub fn new(start: u32, count: u32) -> Self {
        Self(AtomicU64::new(u64::from(start) << 32 | u64::from(count)))
    }

    pub fn record(&self, start: u32) {
        let word = self.0.load(Ordering::Acquire);
        if word >> 32 < u64::from(start) {
            self.0.store(u64::from(start) << 32, Ordering::Release);
        }
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire) & u64::from(u32::MAX)
    }
}
