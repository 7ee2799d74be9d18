//! Running calls by tick, `generation 16 | tick 16 | count 32`, where one step is wrong. One stripe.

use loom::sync::atomic::{AtomicU64, Ordering};
use portcullis::internals::{Gate, Now};

use crate::running::Running;

/// Which step is wrong.
#[derive(Debug)]
pub struct Drift;

impl Drift {
    /// None: the twin itself is sound.
    pub const NONE: u8 = 0;
    /// A reader looks at the buckets first, and at the older ones after.
    pub const OLDER_LAST: u8 = 1;
    /// What is left in a bucket is added to the older ones before it is taken out.
    pub const ADDED_FIRST: u8 = 2;
    /// A call that ends is taken out of its bucket, whichever tick that is of by then.
    pub const ENDS_BLINDLY: u8 = 3;
    /// A bucket is emptied in one step, and counted in another.
    pub const SPLIT: u8 = 4;
    /// The gate is read before the word that another generation has left, or so one thinks.
    pub const GATE_FIRST: u8 = 5;
}

const COUNT: u64 = 0xffff_ffff;

const fn word(generation: u32, tick: u64, count: i64) -> u64 {
    (generation as u64) << 48 | tick << 32 | count as u64 & COUNT
}

const fn generation(word: u64) -> u32 {
    (word >> 48) as u32
}

const fn tick(word: u64) -> u64 {
    (word >> 32) & 0xffff
}

const fn count(word: u64) -> i64 {
    word as u32 as i32 as i64
}

/// One stripe with one drift.
#[derive(Debug)]
pub struct Drifting<const DRIFT: u8> {
    gate: Gate,
    buckets: [AtomicU64; 2],
    /// `generation | 0 | count`
    older: AtomicU64,
}

impl<const DRIFT: u8> Drifting<DRIFT> {
    fn is_current(&self, own: u32) -> bool {
        self.gate.load().generation() == own
    }

    fn add_older(&self, own: u32, by: i64) {
        let _ = self.older.fetch_update(Ordering::AcqRel, Ordering::Acquire, |old| {
            let before = if generation(old) == own { count(old) } else { 0 };
            (generation(old) == own || self.is_current(own)).then(|| word(own, 0, before + by))
        });
    }

    fn count_by(&self, own: u32, at: u64, by: i64) {
        let bucket = &self.buckets[at as usize % 2];
        if DRIFT == Drift::ENDS_BLINDLY && by < 0 {
            let blindly = |old| Some(word(generation(old), tick(old), count(old) + by));
            let _ = bucket.fetch_update(Ordering::AcqRel, Ordering::Acquire, blindly);
            return;
        }
        let was_current = self.is_current(own);
        let mut old = bucket.load(Ordering::Acquire);
        loop {
            let (next, left) = if generation(old) != own {
                let is_current = if DRIFT == Drift::GATE_FIRST { was_current } else { self.is_current(own) };
                if !is_current {
                    return;
                }
                (word(own, at, by), 0)
            } else if tick(old) == at {
                (word(own, at, count(old) + by), 0)
            } else if tick(old) < at {
                (word(own, at, by), count(old))
            } else {
                return self.add_older(own, by);
            };
            if left != 0 && DRIFT == Drift::ADDED_FIRST {
                self.add_older(own, left);
            }
            if left != 0 && DRIFT == Drift::SPLIT {
                bucket.store(word(own, at, 0), Ordering::Release);
                self.add_older(own, left);
                old = bucket.load(Ordering::Acquire);
                continue;
            }
            match bucket.compare_exchange(old, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    if left != 0 && DRIFT != Drift::ADDED_FIRST {
                        self.add_older(own, left);
                    }
                    return;
                }
                Err(seen) => old = seen,
            }
        }
    }
}

impl<const DRIFT: u8> Running for Drifting<DRIFT> {
    fn new() -> Self {
        Self { gate: Gate::default(), buckets: <_>::default(), older: AtomicU64::new(0) }
    }

    fn begin(&self, _: usize, tick: u64) -> Option<u32> {
        let own = self.gate.load().generation();
        self.count_by(own, tick, 1);
        Some(own)
    }

    fn end(&self, _: usize, generation: u32, tick: u64) {
        if self.is_current(generation) {
            self.count_by(generation, tick, -1);
        }
    }

    fn stalled(&self, now: u64) -> i64 {
        let own = self.gate.load().generation();
        let older = || {
            let older = self.older.load(Ordering::Acquire);
            if generation(older) == own { count(older) } else { 0 }
        };
        let buckets = || {
            let words = self.buckets.iter().map(|bucket| bucket.load(Ordering::Acquire));
            words.filter(|word| generation(*word) == own && tick(*word) + 1 < now).map(count).sum::<i64>()
        };
        let sum = if DRIFT == Drift::OLDER_LAST {
            let buckets = buckets();
            buckets + older()
        } else {
            older() + buckets()
        };
        sum.max(0)
    }

    fn restart(&self) {
        let _ = self.gate.apply(|gate| gate.restart(Now::default()));
    }
}
