//! The retry budget's word: calls and retries of this period and the one before.
//!
//! ```text
//!  127     96 95         72 71           48 47       24 23         0
//! +----------+-------------+---------------+-----------+-------------+
//! |  period  | calls before| retries before|   calls   |   retries   |
//! |    32    |     24      |      24       |    24     |     24      |
//! +----------+-------------+---------------+-----------+-------------+
//! ```
//!
//! A period is half of the budget's memory, counted from the engine's start: with the least memory of 1 s, 32 bits last 68 years.
//! Counts stand still at 16,777,215, where fewer calls are seen than there were and no retry more is allowed: wrong to the safe side.
//!
//! A retry is allowed if, with it, the retries in both periods are at most the share of the calls in both, or at most the floor.
//! Both sides are whole thousandths, so that no share is rounded to another one: tower's `TpsBudget` cuts 1 / 0.6 to 1, and lets every
//! call be retried where 60 % were to be (tower issue 857); it also reads its sum and takes from it in two steps, which threads can
//! both pass. Here calls and retries are one word, and the CAS that takes is on the very sum that was judged.

use std::fmt;

use crate::sync::{AtomicU128, Ordering, Role, role};

const COUNT_BITS: u32 = 24;
const MOST: u128 = (1 << COUNT_BITS) - 1;
const PERIOD_BITS: u32 = 32;
const LAST_PERIOD: u64 = (1 << PERIOD_BITS) - 1;
const _: () = assert!(4 * COUNT_BITS + PERIOD_BITS == 128);

/// Relaxed: a count by itself, that tells of no other memory; each change is judged on the newest by its CAS.
const READ: Role = role("budget.read", Ordering::Relaxed);
/// Relaxed: as `READ`.
const WRITE: Role = role("budget.write", Ordering::Relaxed);

/// What is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    /// Retries per call, in thousandths.
    pub share_milli: u32,
    /// Retries in any case, in both periods together.
    pub floor: u32,
}

/// A copy of the word.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Word(u128);

/// What came of asking for a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Asked {
    /// Allowed, if this word takes the old one's place.
    Take(Word),
    /// Spent.
    Refuse,
}

impl Word {
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0
    }

    const fn count(self, place: u32) -> u64 {
        ((self.0 >> (place * COUNT_BITS)) & MOST) as u64
    }

    const fn raised(self, place: u32) -> Self {
        if self.count(place) as u128 == MOST { self } else { Self(self.0 + (1 << (place * COUNT_BITS))) }
    }

    #[must_use]
    pub const fn period(self) -> u64 {
        (self.0 >> (4 * COUNT_BITS)) as u64
    }

    /// Calls in both periods.
    #[must_use]
    pub const fn calls(self) -> u64 {
        self.count(1) + self.count(3)
    }

    /// Retries in both periods.
    #[must_use]
    pub const fn retries(self) -> u64 {
        self.count(0) + self.count(2)
    }

    /// The word as of `period`: what is older than the period before is forgotten. A reading that lags counts in the newest.
    #[must_use]
    pub const fn at(self, period: u64) -> Self {
        let period = if period > LAST_PERIOD { LAST_PERIOD } else { period };
        if period <= self.period() {
            return self;
        }
        let now = self.0 & ((1 << (2 * COUNT_BITS)) - 1);
        let before = if period == self.period() + 1 { now << (2 * COUNT_BITS) } else { 0 };
        Self(((period as u128) << (4 * COUNT_BITS)) | before)
    }

    /// One call more.
    #[must_use]
    pub const fn called(self) -> Self {
        self.raised(1)
    }

    /// Whether one retry more is allowed.
    pub const fn ask(self, allowance: Allowance) -> Asked {
        let retries = self.retries() + 1;
        let is_within_share = retries * 1_000 <= self.calls() * allowance.share_milli as u64;
        if (is_within_share || retries <= allowance.floor as u64) && (self.count(0) as u128) < MOST {
            Asked::Take(self.raised(0))
        } else {
            Asked::Refuse
        }
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Budget");
        fields.field("period", &self.period()).field("calls", &self.calls()).field("retries", &self.retries()).finish()
    }
}

/// The word that threads share.
#[derive(Debug)]
pub struct Cell(AtomicU128);

impl Default for Cell {
    fn default() -> Self {
        Self(AtomicU128::new(0))
    }
}

impl Cell {
    #[must_use]
    pub fn load(&self) -> Word {
        Word(self.0.load(READ))
    }

    /// Counts a call.
    pub fn called(&self, period: u64) {
        let mut word = self.load();
        loop {
            let next = word.at(period).called();
            match self.0.compare_exchange_weak(word.0, next.0, WRITE, READ) {
                Ok(_) => return,
                Err(bits) => word = Word(bits),
            }
        }
    }

    /// Takes a retry, if one is allowed.
    #[must_use]
    pub fn take(&self, period: u64, allowance: Allowance) -> bool {
        let mut word = self.load();
        loop {
            let Asked::Take(next) = word.at(period).ask(allowance) else { return false };
            match self.0.compare_exchange_weak(word.0, next.0, WRITE, READ) {
                Ok(_) => return true,
                Err(bits) => word = Word(bits),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Allowance = Allowance { share_milli: 0, floor: 0 };

    fn share(share_milli: u32) -> Allowance {
        Allowance { share_milli, ..NONE }
    }

    fn taken(cell: &Cell, period: u64, allowance: Allowance) -> u64 {
        let mut taken = 0;
        while cell.take(period, allowance) {
            taken += 1;
            assert!(taken < 10_000, "a budget ends");
        }
        taken
    }

    #[test]
    fn in15_any_share_of_a_thousand_calls_is_exact() {
        for step in 0..=38 {
            let share_milli = 100 + step * 50;
            let cell = Cell::default();
            (0..1_000).for_each(|_| cell.called(7));
            assert_eq!(taken(&cell, 7, share(share_milli)), u64::from(share_milli), "of {share_milli} thousandths");
        }
        // And where the share of the calls is no whole number, what is over is kept for the next call.
        let cell = Cell::default();
        (0..3).for_each(|_| cell.called(7));
        assert_eq!(taken(&cell, 7, share(600)), 1);
        (0..2).for_each(|_| cell.called(7));
        assert_eq!(taken(&cell, 7, share(600)), 2);
    }

    #[test]
    fn in16_the_floor_and_the_share_each_hold_by_themselves() {
        let allowance = Allowance { share_milli: 200, floor: 3 };
        let cell = Cell::default();
        cell.called(1);
        assert_eq!(taken(&cell, 1, allowance), 3);
        // The larger of both, not their sum; and retries are no calls.
        (0..99).for_each(|_| cell.called(1));
        assert_eq!(taken(&cell, 1, allowance), 17);
        assert_eq!((cell.load().calls(), cell.load().retries()), (100, 20));
    }

    #[test]
    fn what_was_not_used_is_gone_after_two_periods() {
        let cell = Cell::default();
        (0..100).for_each(|_| cell.called(4));
        assert_eq!(Word::default().at(5).ask(share(1_000)), Asked::Refuse);
        assert_eq!(taken(&cell, 5, share(100)), 10);
        // The calls of period 4 are out of it, the retries of 5 are not.
        assert_eq!(taken(&cell, 6, share(100)), 0);
        assert_eq!(taken(&cell, 7, Allowance { floor: 2, ..NONE }), 2);
        assert_eq!((cell.load().period(), cell.load().calls(), cell.load().retries()), (7, 0, 2));
    }

    #[test]
    fn a_reading_that_lags_counts_in_the_newest_period() {
        let cell = Cell::default();
        cell.called(9);
        cell.called(3);
        assert_eq!((cell.load().period(), cell.load().calls()), (9, 2));
    }

    #[test]
    fn full_counts_stand_still_and_allow_nothing_more() {
        let full = Word((MOST << COUNT_BITS) | MOST);
        assert_eq!((full.called(), full.calls()), (full, 16_777_215));
        assert_eq!(full.ask(share(10_000)), Asked::Refuse);
        let last = full.at(u64::MAX);
        assert_eq!((last.period(), last.calls()), (LAST_PERIOD, 0));
        assert_eq!(last.at(u64::MAX).called().calls(), 1);
    }
}
