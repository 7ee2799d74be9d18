//! What others do to decide, brought down to the words that each of their calls must touch, each on a line of its own.
//!
//! They are patterns, not crates: kinder than what they stand for, which also counts references, keeps windows and locks to give a
//! permit back.

use std::sync::atomic::Ordering;

use portcullis::internals::trace::AtomicU64;

use super::subject::Subject;

/// A word on a line of its own, and on none that is fetched with another's.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Alone(pub(crate) AtomicU64);

/// State and calls in flight in one word, a compare-and-swap to admit and one to settle.
#[derive(Debug)]
pub(crate) struct SingleWord {
    word: Alone,
    limit: u64,
}

const OPEN: u64 = 1 << 63;

impl SingleWord {
    pub(crate) fn new(limit: u64) -> Self {
        Self { word: Alone::default(), limit }
    }

    fn update(&self, next: impl Fn(u64) -> Option<u64>) -> bool {
        self.word.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }
}

impl Subject for SingleWord {
    type Call = ();

    fn admit(&self) -> Option<()> {
        self.update(|word| (word & OPEN == 0 && word < self.limit).then_some(word + 1)).then_some(())
    }

    fn settle(&self, (): (), failed: bool) {
        self.update(|word| Some(if failed { (word - 1) | OPEN } else { word - 1 }));
    }
}

/// A map of keys under locks, a breaker and a semaphore for each: the shard's lock taken and left, the breaker read to admit and written to
/// settle, the semaphore taken and given back.
#[derive(Debug)]
pub(crate) struct MapAndSemaphore {
    shard: Alone,
    entry: Alone,
    breaker: Alone,
    permits: Alone,
}

impl MapAndSemaphore {
    pub(crate) fn new(limit: u64) -> Self {
        let permits = Alone(AtomicU64::new(limit));
        Self { shard: Alone::default(), entry: Alone::default(), breaker: Alone::default(), permits }
    }
}

impl Subject for MapAndSemaphore {
    type Call = ();

    fn admit(&self) -> Option<()> {
        // Readers of a lock count themselves.
        self.shard.0.fetch_add(1, Ordering::Acquire);
        let _ = self.entry.0.load(Ordering::Relaxed);
        self.shard.0.fetch_sub(1, Ordering::Release);
        if self.breaker.0.load(Ordering::Acquire) & OPEN != 0 {
            return None;
        }
        let take = |permits: u64| permits.checked_sub(1);
        self.permits.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok().map(|_| ())
    }

    fn settle(&self, (): (), failed: bool) {
        self.breaker.0.fetch_add(if failed { 1 << 32 } else { 1 }, Ordering::AcqRel);
        self.permits.0.fetch_add(1, Ordering::AcqRel);
    }
}
