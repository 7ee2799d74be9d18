//! The retry budget with a step done wrong.

use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::Relaxed;

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waste {
    /// The sum is judged, and then taken from whatever is there: as tower's `TpsBudget` does it.
    JudgedThenTaken,
    /// A new period is stored over what came meanwhile.
    PeriodStored,
}

/// `period 32 | retries 32`, with one retry allowed in all.
#[derive(Debug)]
pub struct Purse {
    word: AtomicU64,
    waste: Waste,
}

impl Purse {
    #[must_use]
    pub fn new(waste: Waste) -> Self {
        Self { word: AtomicU64::new(0), waste }
    }

    pub fn take(&self, period: u64) -> bool {
        let word = self.word.load(Relaxed);
        let (now, retries) = (word >> 32, word & 0xffff_ffff);
        if retries > 0 {
            return false;
        }
        match self.waste {
            Waste::JudgedThenTaken => {
                self.word.fetch_add(1, Relaxed);
                true
            }
            Waste::PeriodStored if period > now => {
                self.word.store((period << 32) | 1, Relaxed);
                true
            }
            Waste::PeriodStored => self.word.compare_exchange(word, word + 1, Relaxed, Relaxed).is_ok(),
        }
    }
}
