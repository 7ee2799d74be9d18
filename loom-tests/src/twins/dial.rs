//! A limit that is moved by whoever finds a window of samples over, and by hand, with one step done wrong.

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicU64, Ordering};
use portcullis::internals::Now;
use portcullis::internals::samples::Samples;

/// Which step is wrong.
#[derive(Debug)]
pub struct Blunder;

impl Blunder {
    /// None: moved as the engine does it.
    pub const NONE: u8 = 0;
    /// Whether the window is over isn't looked at again under the lock.
    pub const LOOKED_ONCE: u8 = 1;
    /// The limit is set when the lock is given back.
    pub const SET_UNLOCKED: u8 = 2;
}

/// A limit of 5, and the window of its samples, which is over.
#[derive(Debug)]
pub struct Dial<const BLUNDER: u8> {
    samples: Samples,
    limit: AtomicU64,
    is_by_hand: Mutex<bool>,
}

impl<const BLUNDER: u8> Default for Dial<BLUNDER> {
    fn default() -> Self {
        Self { samples: Samples::default(), limit: AtomicU64::new(5), is_by_hand: Mutex::new(false) }
    }
}

impl<const BLUNDER: u8> Dial<BLUNDER> {
    /// Ends a call, and the window with it.
    pub fn end(&self) {
        let now = Now::from_millis(1);
        self.samples.add(0, false, false, 7_000);
        if !self.samples.is_over(now) {
            return;
        }
        let Ok(is_by_hand) = self.is_by_hand.try_lock() else { return };
        if (BLUNDER != Blunder::LOOKED_ONCE && !self.samples.is_over(now)) || *is_by_hand {
            return;
        }
        let _ = self.samples.take();
        self.samples.end_at(Now::from_millis(100).nanos());
        let raised = self.limit.load(Ordering::Acquire) + 1;
        if BLUNDER == Blunder::SET_UNLOCKED {
            drop(is_by_hand);
        }
        self.limit.store(raised, Ordering::Release);
    }

    pub fn set(&self, limit: u64) {
        let mut is_by_hand = self.is_by_hand.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *is_by_hand = true;
        self.limit.store(limit, Ordering::Release);
    }

    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Acquire)
    }
}

/// A word of samples, `calls << 32 | micros`, that is read and then emptied.
#[derive(Debug)]
pub struct Tray(AtomicU64);

impl Default for Tray {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Tray {
    pub fn add(&self, micros: u64) {
        self.0.fetch_add(1 << 32 | micros, Ordering::AcqRel);
    }

    pub fn take(&self) -> (u64, u64) {
        let word = self.0.load(Ordering::Acquire);
        self.0.store(0, Ordering::Release);
        (word >> 32, word & u64::from(u32::MAX))
    }
}
