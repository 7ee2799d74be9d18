//! Permits, a queue for them and a share of them, over the real words, with one step of the protocol done wrong.

use std::collections::VecDeque;
use std::task::Waker;

use loom::sync::Mutex;
use portcullis::internals::{Told, magazine, pool};

use crate::hall::{Queued, Shares};
use crate::room::Permits;

const STRIPES: usize = 2;
const BATCH: u64 = 1;
const SPARE: u64 = 1;

/// Which step is wrong.
#[derive(Debug)]
pub struct Neglect;

impl Neglect {
    /// None: the twin itself is sound, so that what catches the others is their neglect.
    pub const NONE: u8 = 0;
    /// A release looks whether somebody waits, and then gives.
    pub const LOOKED_FIRST: u8 = 1;
    /// The bit is set whatever the word is by then.
    pub const SET_BLINDLY: u8 = 2;
    /// Whoever begins to wait doesn't sweep.
    pub const NO_SWEEP: u8 = 3;
    /// An opener doesn't confirm that nobody waits.
    pub const UNCONFIRMED: u8 = 4;
    /// An opener confirms by a load.
    pub const CONFIRMED_BY_LOAD: u8 = 5;
    /// Whoever leaves keeps what he was granted.
    pub const GRANT_KEPT: u8 = 6;
    /// Newcomers take what those who wait were given.
    pub const OVERTAKEN: u8 = 7;
    /// The last to come is the first to be served.
    pub const LAST_FIRST: u8 = 8;
    /// A transition looks by a load whether somebody waits.
    pub const TURNED_AWAY_BY_LOAD: u8 = 9;
    /// A call with a share takes from its stripe's stash.
    pub const SHARE_FROM_STASH: u8 = 10;
    /// A call is shed without a sweep.
    pub const SHED_UNSWEPT: u8 = 11;
    /// A raised limit serves nobody.
    pub const RAISED_SILENTLY: u8 = 12;
}

#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<(u64, Waker)>,
    told: Vec<(u64, Told)>,
    joined: u64,
}

/// A bulkhead with a queue and one neglect. Its limits are such that stashes are in use from 8.
#[derive(Debug)]
pub struct Usher<const NEGLECT: u8> {
    pool: pool::Cell,
    magazines: [magazine::Cell; STRIPES],
    line: Mutex<Line>,
}

impl<const NEGLECT: u8> Usher<NEGLECT> {
    fn line(&self) -> loom::sync::MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn give(&self, permits: u64, magazines: u64) {
        if NEGLECT == Neglect::LOOKED_FIRST {
            let is_waiting = self.pool.load().is_waiting();
            self.pool.give(permits, magazines);
            if is_waiting {
                self.serve();
            }
        } else if self.pool.give(permits, magazines) {
            self.serve();
        }
    }

    fn serve(&self) {
        loop {
            let waker = {
                let mut line = self.line();
                loop {
                    let pool = self.pool.load();
                    let Some(next) = pool.granted(line.waiting.len() == 1) else { return };
                    if self.pool.take(pool, next) {
                        break;
                    }
                }
                let served =
                    if NEGLECT == Neglect::LAST_FIRST { line.waiting.pop_back() } else { line.waiting.pop_front() };
                let Some((number, waker)) = served else { return };
                line.told.push((number, Told::Granted));
                waker
            };
            waker.wake();
        }
    }

    fn close(&self, magazine: &magazine::Cell) {
        if let Some(stash) = magazine.close() {
            self.give(stash, 1);
        }
    }

    fn sweep(&self) {
        self.magazines.iter().for_each(|magazine| self.close(magazine));
    }

    fn open(&self, magazine: &magazine::Cell) {
        if !magazine.open(0) {
            return self.give(0, 1);
        }
        let is_waiting = match NEGLECT {
            Neglect::UNCONFIRMED => false,
            Neglect::CONFIRMED_BY_LOAD => self.pool.load().is_waiting(),
            _ => self.pool.confirm_waiting(),
        };
        if is_waiting {
            self.close(magazine);
        }
    }

    /// The word as a newcomer takes it.
    fn seen(pool: pool::Word) -> pool::Word {
        if NEGLECT == Neglect::OVERTAKEN { pool.deserted() } else { pool }
    }
}

impl<const NEGLECT: u8> Permits for Usher<NEGLECT> {
    fn with_limit(limit: u32) -> Self {
        let magazines = std::array::from_fn(|_| magazine::Cell::default());
        Self { pool: pool::Cell::new(limit), magazines, line: Mutex::new(Line::default()) }
    }

    fn stripes(&self) -> usize {
        STRIPES
    }

    fn acquire(&self, stripe: usize) -> bool {
        let magazine = &self.magazines[stripe];
        let mut swept = false;
        loop {
            let word = magazine.load();
            if let Some(next) = word.taken(1).filter(|_| !word.is_closed()) {
                if magazine.take(word, next) {
                    return true;
                }
                continue;
            }
            let pool = self.pool.load();
            let Some(one) = Self::seen(pool).taken(1) else {
                if swept || pool.open() == 0 {
                    return false;
                }
                swept = true;
                self.sweep();
                continue;
            };
            let spare = SPARE * STRIPES as u64;
            let is_abundant = pool.limit() >= 4 * STRIPES as u64 * BATCH && pool.limit() > pool.out() + spare;
            if is_abundant && word.is_closed() {
                if pool.announced().is_some_and(|next| self.pool.announce(pool, next)) {
                    self.open(magazine);
                    return true;
                }
            } else {
                // Whoever overlooks the bit leaves it standing.
                let one = if pool.is_waiting() { pool::Word::from_bits(one.bits() | 1 << 63) } else { one };
                if self.pool.take(pool, one) {
                    return true;
                }
            }
        }
    }

    fn release(&self, stripe: usize) {
        let magazine = &self.magazines[stripe];
        if magazine.give(1, 1).is_closed() {
            let one = magazine.withdraw(magazine::Word::is_closed, |stash| stash.min(1));
            self.give(one, 0);
        }
    }

    fn set_limit(&self, limit: u32) {
        if self.pool.limit(limit).is_waiting() && NEGLECT != Neglect::RAISED_SILENTLY {
            self.serve();
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

impl<const NEGLECT: u8> Queued for Usher<NEGLECT> {
    type Ticket = u64;

    fn join(&self, waker: Waker) -> Option<u64> {
        let number = {
            let mut line = self.line();
            let mut pool = self.pool.load();
            loop {
                if let Some(next) = pool.taken(1) {
                    if self.pool.take(pool, next) {
                        return None;
                    }
                } else if pool.is_waiting() {
                    break;
                } else if let Some(next) = pool.awaited()
                    && self.pool.wait(pool, next)
                {
                    break;
                }
                pool = self.pool.load();
                if NEGLECT == Neglect::SET_BLINDLY && self.pool.wait(pool, pool::Word::from_bits(pool.bits() | 1 << 63))
                {
                    break;
                }
            }
            let number = line.joined;
            line.joined += 1;
            line.waiting.push_back((number, waker));
            number
        };
        if NEGLECT != Neglect::NO_SWEEP {
            self.sweep();
        }
        Some(number)
    }

    fn hear(&self, ticket: &u64) -> Option<Told> {
        let mut line = self.line();
        let at = line.told.iter().position(|(number, _)| number == ticket)?;
        Some(line.told.swap_remove(at).1)
    }

    fn leave(&self, ticket: &u64, stripe: usize) {
        let was_granted = {
            let mut line = self.line();
            line.waiting.retain(|(number, _)| number != ticket);
            if line.waiting.is_empty() {
                self.pool.desert();
            }
            line.told.contains(&(*ticket, Told::Granted))
        };
        if was_granted && NEGLECT != Neglect::GRANT_KEPT {
            self.release(stripe);
        }
    }

    fn turn_away(&self) {
        let is_waiting = if NEGLECT == Neglect::TURNED_AWAY_BY_LOAD {
            self.pool.load().is_waiting()
        } else {
            self.pool.confirm_waiting()
        };
        if !is_waiting {
            return;
        }
        let woken = {
            let mut line = self.line();
            self.pool.desert();
            let woken = std::mem::take(&mut line.waiting);
            line.told.extend(woken.iter().map(|(number, _)| (*number, Told::TurnedAway)));
            woken
        };
        woken.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

impl<const NEGLECT: u8> Shares for Usher<NEGLECT> {
    fn acquire_half(&self, stripe: usize) -> bool {
        let magazine = &self.magazines[stripe];
        let mut swept = NEGLECT == Neglect::SHED_UNSWEPT;
        loop {
            let word = magazine.load();
            if NEGLECT == Neglect::SHARE_FROM_STASH
                && let Some(next) = word.taken(1).filter(|_| !word.is_closed())
                && magazine.take(word, next)
            {
                return true;
            }
            let pool = self.pool.load();
            if let Some(next) = pool.taken_within(1, pool.limit() / 2) {
                if self.pool.take(pool, next) {
                    return true;
                }
            } else if !swept && pool.open() > 0 {
                swept = true;
                self.sweep();
            } else {
                return false;
            }
        }
    }
}
