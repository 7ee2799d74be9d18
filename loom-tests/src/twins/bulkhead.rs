//! The permits of a bulkhead over the real words, with one step of the protocol done wrong.

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use portcullis::internals::{magazine, pool};

use crate::room::Permits;

const STRIPES: usize = 2;
const BATCH: u64 = 1;
const HIGH_MARK: u64 = 2;

/// Which step is wrong.
#[derive(Debug)]
pub struct Flaw;

impl Flaw {
    /// None: the twin itself is sound, so that what catches the others is their flaw.
    pub const NONE: u8 = 0;
    /// A lowering raises the version before the pool has the limit.
    pub const VERSION_FIRST: u8 = 1;
    /// A magazine is stamped with a version read after its announcement.
    pub const LATE_STAMP: u8 = 2;
    /// An opener that comes second leaves its announcement standing.
    pub const ANNOUNCEMENT_KEPT: u8 = 3;
    /// `Saturated` is said without a look at the other stripes.
    pub const NO_SWEEP: u8 = 4;
    /// A permit given back to a closed magazine goes to the pool without being taken out of the magazine.
    pub const BLIND_DECREMENT: u8 = 5;
    /// A batch isn't taken back from a magazine that was closed under it.
    pub const BATCH_LEFT: u8 = 6;
    /// A spill gives to the pool first and takes from the magazine after.
    pub const SPILL_FIRST: u8 = 7;

    /// None, in a twin that grows, as those below do: one stripe, and a second once threads have met.
    pub const NONE_GROWING: u8 = 8;
    /// Once there are others, a sweep goes by those only.
    pub const FIRST_FORGOTTEN: u8 = 9;
    /// `Saturated` is said as if the stripe that was there first still were the only one.
    pub const STILL_ALONE: u8 = 10;
    /// The first stripe's magazine is closed as the second comes, and what it stashed goes nowhere.
    pub const STASH_LEFT: u8 = 11;
    /// What there was when a caller began is all that it looks at before it says `Saturated`.
    pub const SEEN_EARLY: u8 = 12;
}

/// A bulkhead with one flaw.
#[derive(Debug)]
pub struct Twin<const FLAW: u8> {
    pool: pool::Cell,
    version: AtomicU64,
    magazines: [magazine::Cell; STRIPES],
    /// None if all stripes are there from the start.
    has_grown: Option<AtomicBool>,
}

impl<const FLAW: u8> Twin<FLAW> {
    fn close(&self, magazine: &magazine::Cell) {
        if let Some(stash) = magazine.close() {
            self.pool.give(stash, 1);
        }
    }

    /// How many stripes there are.
    fn count(&self) -> usize {
        let has_grown = self.has_grown.as_ref().is_none_or(|grown| grown.load(Ordering::Acquire));
        if has_grown { STRIPES } else { 1 }
    }

    fn sweep(&self) {
        let count = self.count();
        let first = usize::from(FLAW == Flaw::FIRST_FORGOTTEN && count > 1);
        self.magazines[first..count].iter().for_each(|magazine| self.close(magazine));
    }

    fn open(&self, magazine: &magazine::Cell, version: u64) {
        let version = if FLAW == Flaw::LATE_STAMP { self.version.load(Ordering::Acquire) } else { version };
        if !magazine.open(version) && FLAW != Flaw::ANNOUNCEMENT_KEPT {
            self.pool.give(0, 1);
        }
    }

    fn refill(&self, magazine: &magazine::Cell) {
        if magazine.give(BATCH, 0).is_closed() && FLAW != Flaw::BATCH_LEFT {
            let found = magazine.withdraw(magazine::Word::is_closed, |stash| stash.min(BATCH));
            self.pool.give(found, 0);
        }
    }
}

impl<const FLAW: u8> Permits for Twin<FLAW> {
    fn with_limit(limit: u32) -> Self {
        let magazines = std::array::from_fn(|_| magazine::Cell::default());
        let has_grown = (FLAW >= Flaw::NONE_GROWING).then(|| AtomicBool::new(false));
        Self { pool: pool::Cell::new(limit), version: AtomicU64::new(0), magazines, has_grown }
    }

    fn stripes(&self) -> usize {
        STRIPES
    }

    fn meet(&self) {
        if FLAW == Flaw::STASH_LEFT && self.magazines[0].close().is_some() {
            self.pool.give(0, 1);
        }
        if let Some(has_grown) = &self.has_grown {
            has_grown.store(true, Ordering::Release);
        }
    }

    fn acquire(&self, stripe: usize) -> bool {
        let is_alone = FLAW == Flaw::STILL_ALONE || (FLAW == Flaw::SEEN_EARLY && self.count() == 1);
        let mut swept = FLAW == Flaw::NO_SWEEP || is_alone;
        loop {
            let magazine = &self.magazines[stripe % self.count()];
            let version = self.version.load(Ordering::Acquire);
            let word = magazine.load();
            if !word.is_closed() && !word.is_open_under(version) {
                self.close(magazine);
                continue;
            }
            if let Some(next) = word.taken(1).filter(|_| !word.is_closed()) {
                if magazine.take(word, next) {
                    return true;
                }
                self.meet();
                continue;
            }
            let pool = self.pool.load();
            let is_abundant = pool.limit() >= 4 * self.count() as u64 * BATCH;
            let Some(one) = pool.taken(1) else {
                if swept || pool.is_retired() || pool.open() == 0 || self.count() == 1 {
                    return false;
                }
                swept = true;
                self.sweep();
                continue;
            };
            if is_abundant && word.is_closed() {
                if pool.announced().is_some_and(|next| self.pool.announce(pool, next)) {
                    self.open(magazine, version);
                    return true;
                }
            } else if let Some(batch) = pool.taken(1 + BATCH).filter(|_| is_abundant) {
                if self.pool.take(pool, batch) {
                    self.refill(magazine);
                    return true;
                }
            } else if self.pool.take(pool, one) {
                return true;
            }
        }
    }

    fn release(&self, stripe: usize) {
        let magazine = &self.magazines[stripe % self.count()];
        let before = magazine.give(1, 1);
        if before.is_closed() {
            let one = if FLAW == Flaw::BLIND_DECREMENT {
                1
            } else {
                magazine.withdraw(magazine::Word::is_closed, |stash| stash.min(1))
            };
            self.pool.give(one, 0);
        } else if before.stash() >= HIGH_MARK {
            if FLAW == Flaw::SPILL_FIRST {
                self.pool.give(before.stash() / 2, 0);
            }
            let half = magazine.withdraw(|word| !word.is_closed() && word.stash() > HIGH_MARK / 2, |stash| stash / 2);
            if FLAW != Flaw::SPILL_FIRST {
                self.pool.give(half, 0);
            }
        }
    }

    fn set_limit(&self, limit: u32) {
        if FLAW == Flaw::VERSION_FIRST {
            self.version.fetch_add(1, Ordering::Release);
        }
        let before = self.pool.limit(limit).limit();
        if before > u64::from(limit) {
            if FLAW != Flaw::VERSION_FIRST {
                self.version.fetch_add(1, Ordering::Release);
            }
            self.sweep();
        }
    }

    fn retire(&self) -> bool {
        self.sweep();
        self.pool.retire()
    }

    fn reinstate(&self, limit: u32) {
        self.pool.reinstate(limit);
    }

    fn in_flight(&self) -> u64 {
        let stashed: u64 = self.magazines.iter().map(|magazine| magazine.load().stash()).sum();
        self.pool.load().out().saturating_sub(stashed)
    }
}
