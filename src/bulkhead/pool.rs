//! The pool of a target's permits: `waiting | retired | open | limit | out`.
//!
//! ```text
//!  63        62        61      48 47      24 23       0
//! +---------+---------+----------+----------+----------+
//! | waiting | retired |   open   |  limit   |   out    |
//! |    1    |    1    |    14    |    24    |    24    |
//! +---------+---------+----------+----------+----------+
//! ```
//!
//! `out` counts the permits in flight and those stashed in magazines; `open` the open magazines and those about to be. In use is
//! stored, not free, so a lowered limit needs no negative number. Nothing wraps: `out` rises only below `limit`, and `open` only
//! below 2^13, by one per magazine.
//!
//! `waiting` is set while somebody waits in the queue, and written under its lock only. What is idle is theirs then: nobody else takes a
//! permit or opens a magazine, and whoever gives back sees it in the word that he writes anyway.

use super::Refused;
use crate::bits::Field;
use crate::policy::UNLIMITED;
use crate::sync::{AtomicU64, Ordering, Role, role};

const OUT: Field = Field::lowest(24);
const LIMIT: Field = OUT.above(24);
const OPEN: Field = LIMIT.above(14);
const RETIRED: Field = OPEN.above(1);
const WAITING: Field = RETIRED.above(1);
const _: () = assert!(WAITING.end() == 64 && LIMIT.max() == UNLIMITED as u64);

const MOST_OPEN: u64 = 1 << 13;

/// Acquire: pairs with `GIVE`; whoever takes what another gave back comes after it.
const READ: Role = role("pool.read", Ordering::Acquire);
/// Acquire: pairs with `GIVE` and `REINSTATE`; a taker writes nothing that others wait for.
const TAKE: Role = role("pool.take", Ordering::Acquire);
/// Acquire: as `TAKE`. Release: the magazine is opened after it.
const ANNOUNCE: Role = role("pool.announce", Ordering::AcqRel);
/// Release: pairs with `TAKE` and `RETIRE`. Acquire: comes after the announcement that it strikes off.
const GIVE: Role = role("pool.give", Ordering::AcqRel);
/// Acquire: pairs with `CONFIRM`; the sweep of whoever begins to wait finds the magazines that were open before. Release: pairs with
/// `CONFIRM` and `GIVE`; whoever finds somebody waiting finds the queue made.
const WAIT: Role = role("pool.wait", Ordering::AcqRel);
/// Acquire: as `WAIT`, whose setter holds the same lock. Release: pairs with `READ`.
const LEAVE: Role = role("pool.leave", Ordering::AcqRel);
/// Release: pairs with `WAIT`; what its caller did comes before the wait that it doesn't see. Acquire: pairs with `WAIT`.
const CONFIRM: Role = role("pool.confirm", Ordering::AcqRel);
/// Release: pairs with `READ`; whoever sees the limit sees what its setter wrote. Acquire: as `TAKE`.
const SET_LIMIT: Role = role("pool.limit", Ordering::AcqRel);
/// Acquire: pairs with `GIVE`; retiring comes after the last return, and sees what its call recorded. Release: pairs with `READ`.
const RETIRE: Role = role("pool.retire", Ordering::AcqRel);
/// Release: pairs with `TAKE`; the tenant's key, policy and counters are written before it.
const REINSTATE: Role = role("pool.reinstate", Ordering::Release);

/// A copy of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// `{ retired: false, open: 0, limit, out: 0 }`
    #[must_use]
    pub const fn fresh(limit: u32) -> Self {
        Self(LIMIT.set(0, limit as u64))
    }

    #[must_use]
    pub const fn out(self) -> u64 {
        OUT.get(self.0)
    }

    #[must_use]
    pub const fn limit(self) -> u64 {
        LIMIT.get(self.0)
    }

    #[must_use]
    pub const fn open(self) -> u64 {
        OPEN.get(self.0)
    }

    /// Whether the limit is reached, no magazine is open and the slot isn't retired. Any bit above the limit makes more of it than can be out.
    #[must_use]
    #[inline]
    pub const fn is_full_for_sure(self) -> bool {
        self.out() >= self.0 >> LIMIT.start()
    }

    #[must_use]
    pub const fn is_retired(self) -> bool {
        RETIRED.get(self.0) == 1
    }

    #[must_use]
    pub const fn is_waiting(self) -> bool {
        WAITING.get(self.0) == 1
    }

    /// `permits` more out, if the limit allows them, nobody waits for them and the target isn't retired.
    #[must_use]
    pub const fn taken(self, permits: u64) -> Option<Self> {
        self.taken_within(permits, self.limit())
    }

    /// The same, with no more than `most` out after that.
    #[must_use]
    pub const fn taken_within(self, permits: u64, most: u64) -> Option<Self> {
        // Both bits at once.
        if self.0 >= RETIRED.one() || self.out() + permits > most {
            None
        } else {
            Some(Self(self.0 + OUT.one() * permits))
        }
    }

    /// One permit more out, for one of those who wait; with the last of them nobody does.
    #[must_use]
    pub const fn granted(self, is_last: bool) -> Option<Self> {
        if !self.is_waiting() || self.is_retired() || self.out() >= self.limit() {
            return None;
        }
        let word = Self(self.0 + OUT.one());
        Some(if is_last { word.deserted() } else { word })
    }

    /// Somebody waiting, if there is nothing to take.
    #[must_use]
    pub const fn awaited(self) -> Option<Self> {
        if self.is_retired() || self.taken(1).is_some() { None } else { Some(Self(WAITING.set(self.0, 1))) }
    }

    /// Nobody waiting.
    #[must_use]
    pub const fn deserted(self) -> Self {
        Self(WAITING.set(self.0, 0))
    }

    /// One permit more out and one magazine announced.
    #[must_use]
    pub const fn announced(self) -> Option<Self> {
        match self.taken(1) {
            Some(word) if self.open() < MOST_OPEN => Some(Self(word.0 + OPEN.one())),
            _ => None,
        }
    }

    /// The refusal of a caller that finds nothing to take.
    #[must_use]
    pub fn full(self) -> Refused {
        Refused::Full { limit: u32::try_from(self.limit()).unwrap_or(u32::MAX) }
    }

    /// The limit replaced, everything else kept.
    #[must_use]
    pub const fn limited(self, limit: u32) -> Self {
        Self(LIMIT.set(self.0, limit as u64))
    }

    /// Retired, if nothing is out, no magazine open, and nobody waiting.
    #[must_use]
    pub const fn retired(self) -> Option<Self> {
        if self.out() == 0 && self.open() == 0 && self.0 < RETIRED.one() {
            Some(Self(RETIRED.set(self.0, 1)))
        } else {
            None
        }
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct("Pool");
        fields.field("waiting", &self.is_waiting()).field("retired", &self.is_retired()).field("open", &self.open());
        fields.field("limit", &self.limit()).field("out", &self.out()).finish()
    }
}

/// The word that threads share.
#[derive(Debug)]
pub struct Cell(AtomicU64);

impl Cell {
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self(AtomicU64::new(Word::fresh(limit).bits()))
    }

    #[must_use]
    #[inline]
    pub fn load(&self) -> Word {
        Word(self.0.load(READ))
    }

    /// Puts `next` in place of `word`, to take permits.
    pub fn take(&self, word: Word, next: Word) -> bool {
        self.0.compare_exchange(word.0, next.0, TAKE, READ).is_ok()
    }

    /// Puts `next` in place of `word`, to take a permit and announce a magazine.
    pub fn announce(&self, word: Word, next: Word) -> bool {
        self.0.compare_exchange(word.0, next.0, ANNOUNCE, READ).is_ok()
    }

    /// Gives `permits` back and strikes `magazines` off, in one step; true if somebody waits for them.
    pub fn give(&self, permits: u64, magazines: u64) -> bool {
        if permits == 0 && magazines == 0 {
            // Another thread brought them home, and the pool may be the next tenant's by now.
            return false;
        }
        let before = Word(self.0.fetch_sub(OUT.one() * permits + OPEN.one() * magazines, GIVE));
        permits > 0 && before.is_waiting()
    }

    /// Whether somebody waits, by a write that changes nothing: whoever begins to wait after it finds all that its caller did before. A load
    /// may miss a wait whose beginner missed that in turn.
    #[must_use]
    pub fn confirm_waiting(&self) -> bool {
        Word(self.0.fetch_add(0, CONFIRM)).is_waiting()
    }

    /// Puts `next` in place of `word`, to begin to wait. Under the queue's lock.
    pub fn wait(&self, word: Word, next: Word) -> bool {
        self.0.compare_exchange(word.0, next.0, WAIT, READ).is_ok()
    }

    /// Nobody waits any more. Under the queue's lock.
    pub fn desert(&self) {
        let mut word = self.load();
        while word.is_waiting() {
            match self.0.compare_exchange_weak(word.0, word.deserted().0, LEAVE, READ) {
                Ok(_) => return,
                Err(bits) => word = Word(bits),
            }
        }
    }

    /// Sets the limit and returns the word before.
    pub fn limit(&self, limit: u32) -> Word {
        let mut word = self.load();
        loop {
            match self.0.compare_exchange_weak(word.0, word.limited(limit).0, SET_LIMIT, READ) {
                Ok(_) => return word,
                Err(bits) => word = Word(bits),
            }
        }
    }

    /// Turns every later taker away, if nothing is out and no magazine open.
    pub fn retire(&self) -> bool {
        let mut word = self.load();
        loop {
            let Some(next) = word.retired() else { return false };
            match self.0.compare_exchange_weak(word.0, next.0, RETIRE, READ) {
                Ok(_) => return true,
                Err(bits) => word = Word(bits),
            }
        }
    }

    /// Opens a retired pool again, with nothing out. Only for whoever retired it: nobody else writes a retired pool but the limit's
    /// setter, who holds the same lock.
    pub fn reinstate(&self, limit: u32) {
        self.0.store(Word::fresh(limit).bits(), REINSTATE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_permit_is_the_limit_not_one_more() {
        for limit in [0, 1, 2, 1_000, UNLIMITED] {
            let limit = u64::from(limit);
            let full = Word(OUT.set(Word::fresh(limit as u32).bits(), limit));
            assert_eq!(full.taken(1), None, "limit {limit}");
            if limit > 0 {
                let last = Word(OUT.set(full.bits(), limit - 1));
                assert_eq!(last.taken(1), Some(full));
                assert_eq!(last.taken(2), None);
            }
        }
    }

    #[test]
    fn a_limit_below_what_is_out_loses_nothing() {
        let eight = Word::fresh(10).taken(8).unwrap().limited(3);
        assert_eq!((eight.out(), eight.limit(), eight.taken(1)), (8, 3, None));
        let raised = eight.limited(10);
        assert_eq!(raised.taken(2).map(Word::out), Some(10));
        assert_eq!(raised.taken(3), None);
    }

    #[test]
    fn a_retired_pool_gives_nothing_and_only_an_idle_one_retires() {
        let retired = Word::fresh(5).retired().unwrap();
        assert_eq!((retired.taken(1), retired.announced(), retired.retired()), (None, None, None));
        assert_eq!(Word::fresh(5).taken(1).unwrap().retired(), None);
        let opened = Word(OPEN.set(Word::fresh(5).bits(), 1));
        assert_eq!(opened.retired(), None);
    }

    #[test]
    fn while_somebody_waits_permits_are_granted_and_not_taken() {
        let idle = Word::fresh(2).taken(1).unwrap();
        assert_eq!((idle.awaited(), idle.granted(false)), (None, None), "there is one to take");
        let full = idle.taken(1).unwrap();
        let awaited = full.awaited().unwrap();
        assert_eq!((awaited.awaited(), awaited.granted(false), awaited.retired()), (Some(awaited), None, None));
        let given = Word(awaited.bits() - OUT.one());
        assert_eq!((given.taken(1), given.taken_within(1, 9), given.announced()), (None, None, None));
        assert_eq!((given.granted(false), given.granted(true)), (Some(awaited), Some(full)));
        assert_eq!(awaited.deserted(), full);
        let empty = Word::fresh(0).awaited().unwrap();
        assert_eq!((empty.retired(), empty.deserted().retired().is_some()), (None, true));
        assert_eq!(Word::fresh(0).retired().unwrap().awaited(), None);
    }

    #[test]
    fn a_share_is_counted_with_all_that_is_out() {
        let word = Word::fresh(9).taken(3).unwrap();
        assert_eq!(word.taken_within(1, 4).map(Word::out), Some(4));
        assert_eq!((word.taken_within(1, 3), word.taken_within(1, 0)), (None, None));
    }

    #[test]
    fn the_announcements_are_bounded() {
        let full = Word(OPEN.set(Word::fresh(9).bits(), MOST_OPEN));
        assert_eq!(full.announced(), None);
        assert!(full.taken(1).is_some());
    }
}
