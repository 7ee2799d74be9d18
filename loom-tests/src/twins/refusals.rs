//! Refusals counted over two stripes, with one step done wrong.

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::scenes::Refuses;

/// Which step is wrong.
#[derive(Debug)]
pub struct Slip;

impl Slip {
    /// None: the twin itself is sound.
    pub const NONE: u8 = 0;
    /// A compare-and-swap that was lost notes the meeting and leaves it at that.
    pub const LOST: u8 = 1;
    /// A second stripe takes the place of the first, and what that counted isn't summed any more.
    pub const REPLACED: u8 = 2;
    /// The sum is moved to the second stripe as that comes.
    pub const MOVED: u8 = 3;
}

/// A counter with one slip.
#[derive(Debug, Default)]
pub struct Slate<const SLIP: u8> {
    counts: [AtomicU64; 2],
    has_grown: AtomicBool,
}

impl<const SLIP: u8> Slate<SLIP> {
    fn grow(&self) {
        if SLIP == Slip::MOVED && !self.has_grown.load(Ordering::Acquire) {
            let first = self.counts[0].load(Ordering::Acquire);
            self.counts[1].fetch_add(first, Ordering::AcqRel);
            self.counts[0].store(0, Ordering::Release);
        }
        self.has_grown.store(true, Ordering::Release);
    }
}

impl<const SLIP: u8> Refuses for Slate<SLIP> {
    fn new() -> Self {
        Self::default()
    }

    fn refuse(&self, thread: usize) {
        let count = &self.counts[if self.has_grown.load(Ordering::Acquire) { thread } else { 0 }];
        let seen = count.load(Ordering::Acquire);
        if count.compare_exchange(seen, seen + 1, Ordering::Release, Ordering::Acquire).is_err() {
            if SLIP != Slip::LOST {
                count.fetch_add(1, Ordering::Release);
            }
            self.grow();
        }
    }

    fn refused(&self) -> u64 {
        let first = usize::from(SLIP == Slip::REPLACED && self.has_grown.load(Ordering::Acquire));
        self.counts[first..].iter().map(|count| count.load(Ordering::Acquire)).sum()
    }

    fn has_grown(&self) -> bool {
        self.has_grown.load(Ordering::Acquire)
    }
}
