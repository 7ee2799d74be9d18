//! A magazine: a stripe's stash of permits and its count of settled calls, `settled | version | closed | stash`.
//!
//! ```text
//!  63            21 20     13   12    11      0
//! +----------------+---------+--------+--------+
//! |    settled     | version | closed | stash  |
//! |       43       |    8    |   1    |   12   |
//! +----------------+---------+--------+--------+
//! ```
//!
//! Giving a permit back and counting the call is one `fetch_add`. `settled` wraps off the top of the word, after 17 hours at one
//! call per 7 ns, without touching its neighbours; the caller whose addition wrapped it counts a lap in a wide word. `stash` can't
//! carry: a releaser that finds 512 or more gives half back to the pool, and an empty magazine is refilled by 32. It would take 3,583
//! releasers, or 111 refillers, standing still between their two steps at once. `version` is the low byte of the limit's version; an opener stalled over exactly 256 lowered
//! limits would stamp a stale one.

use crate::bits::Field;
use crate::sync::{AtomicU64, Ordering, Role, role};

const STASH: Field = Field::lowest(12);
const CLOSED: Field = STASH.above(1);
const VERSION: Field = CLOSED.above(8);
const SETTLED: Field = VERSION.above(43);
const _: () = assert!(SETTLED.end() == 64);

/// Acquire: pairs with `GIVE`; whoever takes a stashed permit comes after the call that stashed it.
const READ: Role = role("magazine.read", Ordering::Acquire);
/// Acquire: as `READ`, for the CAS that takes.
const TAKE: Role = role("magazine.take", Ordering::Acquire);
/// Release: pairs with `TAKE`. Acquire as well, so that a releaser that finds the magazine closed comes after the closer.
const GIVE: Role = role("magazine.give", Ordering::AcqRel);
/// Release: pairs with `CLOSE`, whose strike in the pool comes after the announcement. Acquire: comes after the last closer.
const OPEN: Role = role("magazine.open", Ordering::AcqRel);
/// Acquire: pairs with `GIVE` and `OPEN`; the stash goes to the pool with all that its givers wrote. Release: pairs with `OPEN`.
const CLOSE: Role = role("magazine.close", Ordering::AcqRel);
/// Relaxed: written while the slot is retired, published by the Release that reinstates the bulkhead.
const RESET: Role = role("magazine.reset", Ordering::Relaxed);
/// Acquire: pairs with `GIVE`, as for `CLOSE`. Release: pairs with `GIVE` and `READ`.
const WITHDRAW: Role = role("magazine.withdraw", Ordering::AcqRel);

/// A copy of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(u64);

/// How many calls [`Word::settled`] counts before it starts again.
pub const SETTLED_LAP: u64 = SETTLED.max() + 1;

impl Word {
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// `{ settled: 0, version: 0, closed: true, stash: 0 }`
    #[must_use]
    pub const fn fresh() -> Self {
        Self(CLOSED.set(0, 1))
    }

    #[must_use]
    pub const fn stash(self) -> u64 {
        STASH.get(self.0)
    }

    #[must_use]
    pub const fn is_closed(self) -> bool {
        CLOSED.get(self.0) == 1
    }

    #[must_use]
    pub const fn version(self) -> u64 {
        VERSION.get(self.0)
    }

    #[must_use]
    pub const fn settled(self) -> u64 {
        SETTLED.get(self.0)
    }

    /// Whether the magazine is open under this version of the limit.
    #[must_use]
    #[inline]
    pub const fn is_open_under(self, version: u64) -> bool {
        !self.is_closed() && self.version() == version & VERSION.max()
    }

    /// `permits` fewer stashed.
    #[must_use]
    #[inline]
    pub const fn taken(self, permits: u64) -> Option<Self> {
        if self.stash() < permits { None } else { Some(Self(self.0 - STASH.one() * permits)) }
    }

    #[must_use]
    pub const fn opened(self, version: u64) -> Self {
        Self(VERSION.set(CLOSED.set(self.0, 0), version & VERSION.max()))
    }

    #[must_use]
    pub const fn closed(self) -> Self {
        Self(STASH.set(CLOSED.set(self.0, 1), 0))
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct("Magazine");
        fields.field("settled", &self.settled()).field("version", &self.version());
        fields.field("closed", &self.is_closed()).field("stash", &self.stash()).finish()
    }
}

/// The word that threads share.
#[derive(Debug)]
pub struct Cell(AtomicU64);

impl Default for Cell {
    fn default() -> Self {
        Self(AtomicU64::new(Word::fresh().bits()))
    }
}

impl Cell {
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(AtomicU64::new(bits))
    }

    #[must_use]
    #[inline]
    pub fn load(&self) -> Word {
        Word(self.0.load(READ))
    }

    /// Puts `next` in place of `word`, to take stashed permits. Fails only if another thread came between.
    #[inline]
    pub fn take(&self, word: Word, next: Word) -> bool {
        self.0.compare_exchange(word.0, next.0, TAKE, READ).is_ok()
    }

    /// Stashes permits and counts settled calls; the word before.
    #[inline]
    pub fn give(&self, permits: u64, settled: u64) -> Word {
        Word(self.0.fetch_add(STASH.one() * permits + (settled << SETTLED.start()), GIVE))
    }

    /// Opens a closed magazine; false if another thread did.
    pub fn open(&self, version: u64) -> bool {
        let mut word = self.load();
        while word.is_closed() {
            match self.0.compare_exchange_weak(word.0, word.opened(version).0, OPEN, READ) {
                Ok(_) => return true,
                Err(bits) => word = Word(bits),
            }
        }
        false
    }

    /// Closes an open magazine and returns what was stashed; none if it is closed.
    pub fn close(&self) -> Option<u64> {
        let mut word = self.load();
        while !word.is_closed() {
            match self.0.compare_exchange_weak(word.0, word.closed().0, CLOSE, READ) {
                Ok(_) => return Some(word.stash()),
                Err(bits) => word = Word(bits),
            }
        }
        None
    }

    /// Starts to count settled calls at zero. Only while the bulkhead is retired, when it is closed and empty.
    pub fn reset(&self) {
        self.0.store(Word::fresh().0, RESET);
    }

    /// Takes up to `most(stash)` permits while `may` holds; how many it got.
    pub fn withdraw(&self, may: impl Fn(Word) -> bool, most: impl Fn(u64) -> u64) -> u64 {
        let mut word = self.load();
        while may(word) {
            let permits = most(word.stash());
            let Some(next) = word.taken(permits).filter(|_| permits > 0) else { return 0 };
            match self.0.compare_exchange_weak(word.0, next.0, WITHDRAW, READ) {
                Ok(_) => return permits,
                Err(bits) => word = Word(bits),
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settled_wraps_off_the_top_and_carries_into_nothing() {
        let cell = Cell::from_bits(SETTLED.set(STASH.set(Word::fresh().opened(7).bits(), 5), u64::MAX));
        let before = cell.give(1, 1);
        assert_eq!(before.settled(), SETTLED_LAP - 1);
        let after = cell.load();
        assert_eq!((after.settled(), after.version(), after.is_closed(), after.stash()), (0, 7, false, 6));
    }

    #[test]
    fn closing_returns_the_stash_once() {
        let cell = Cell::default();
        assert!(cell.open(0x1_02));
        assert!(!cell.open(3));
        assert!(cell.load().is_open_under(0x2_02) && !cell.load().is_open_under(1));
        let _ = cell.give(4, 0);
        assert_eq!(cell.close(), Some(4));
        assert_eq!(cell.close(), None);
        assert_eq!(cell.load().stash(), 0);
    }

    #[test]
    fn a_withdrawal_takes_what_may_be_taken() {
        let cell = Cell::default();
        let _ = cell.give(3, 0);
        assert_eq!(cell.withdraw(Word::is_closed, |_| 1), 1);
        assert_eq!(cell.withdraw(|word| !word.is_closed(), |stash| stash), 0);
        assert_eq!(cell.withdraw(Word::is_closed, |stash| stash), 2);
        assert_eq!(cell.withdraw(Word::is_closed, |_| 1), 0);
    }
}
