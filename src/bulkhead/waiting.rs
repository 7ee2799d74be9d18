//! Waiting for a permit: bounded, first come first served, and nobody forgotten.
//!
//! What it rests on, in the pool's word but for the queue itself:
//!
//! - Whoever begins to wait sets `waiting` by a CAS from a word with nothing to take, under the queue's lock. While it is set nobody else
//!   takes a permit or announces a magazine.
//! - Then he sweeps. All magazines are closed from there on, so each permit that is given back comes by the pool, in a read-modify-write that
//!   the giver needs anyway. One that came before the CAS left something to take; one that comes after it sees the bit, and serves. There is
//!   no third case, since it is one word. A magazine that had been announced before and is opened after the sweep is closed by its opener, who
//!   confirms in the pool, by a read-modify-write, that nobody began to wait meanwhile.
//! - Whoever serves takes from the pool for the one who has waited longest, under the queue's lock, until there is nothing to take or nobody
//!   left; the bit goes with the last one. So nobody overtakes those who wait.
//! - Whoever leaves with a permit that he was granted gives it back like any other, which serves the next.
//! - A transition to a state that lets no call pass confirms in the same way. Whoever began to wait before it is turned away; one who begins after it
//!   finds the new state in the gate, which he reads once he is in the queue.

use std::task::Waker;

use super::queue::{Queue, Ticket, Told, Waits};
use super::{Bulkhead, Refused};

/// What came of joining the queue.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Joined {
    /// A permit was there after all.
    Granted,
    Waits(Ticket),
}

/// How somebody left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Left {
    /// Before he was told anything.
    Waiting,
    Told(Told),
}

impl Bulkhead {
    /// Takes a permit, or waits for one behind those who do, if they are fewer than `most`.
    ///
    /// # Errors
    ///
    /// [`Refused`]: as many wait, or the slot was recycled.
    pub fn join(&self, most: usize, waker: Waker) -> Result<Joined, Refused> {
        let ticket = {
            let mut line = self.queue.force().lock();
            loop {
                let pool = self.pool.load();
                if pool.is_retired() {
                    return Err(Refused::Retired);
                }
                if let Some(next) = pool.taken(1) {
                    if self.pool.take(pool, next) {
                        return Ok(Joined::Granted);
                    }
                    continue;
                }
                if line.len() >= most {
                    return Err(pool.full());
                }
                if pool.is_waiting() || pool.awaited().is_some_and(|next| self.pool.wait(pool, next)) {
                    break;
                }
            }
            line.join(waker)
        };
        if self.sweep() {
            self.serve();
        }
        Ok(Joined::Waits(ticket))
    }

    /// Hands permits that were given back to those who wait. The caller holds no lock: it runs wakers.
    #[cold]
    pub fn serve(&self) {
        let Some(queue) = self.queue.get() else { return };
        while let Some(waker) = self.grant(queue) {
            waker.wake();
        }
    }

    fn grant(&self, queue: &Queue) -> Option<Waker> {
        let mut line = queue.lock();
        loop {
            let pool = self.pool.load();
            // Nobody waits unless the bit is set.
            let next = pool.granted(line.len() == 1)?;
            if self.pool.take(pool, next) {
                return line.grant();
            }
        }
    }

    /// Sends everybody who waits back to the gate, after a change there. The caller holds no lock: it runs wakers.
    pub fn turn_away(&self) {
        if !self.pool.confirm_waiting() {
            return;
        }
        let Some(queue) = self.queue.get() else { return };
        let woken = {
            let mut line = queue.lock();
            self.pool.desert();
            line.turn_away()
        };
        woken.into_values().for_each(Waker::wake);
    }

    /// What a ticket was told, which ends it; none if nothing yet, and `waker` is woken when it is.
    #[must_use]
    pub fn hear(&self, ticket: &Ticket, waker: &Waker) -> Option<Told> {
        let queue = self.queue.force();
        {
            let mut line = queue.lock();
            let told = line.hear(ticket);
            if told.is_some() || line.would_wake(ticket, waker) {
                return told;
            }
        }
        let waker = waker.clone();
        let (told, _dropped) = {
            let mut line = queue.lock();
            (line.hear(ticket), line.replace(ticket, waker))
        };
        told
    }

    /// Gives a ticket up. Who was granted a permit holds it: it must be used or given back.
    pub fn leave(&self, ticket: &Ticket) -> Left {
        let _dropped = {
            let mut line = self.queue.force().lock();
            if let Some(told) = line.hear(ticket) {
                return Left::Told(told);
            }
            let waker = line.remove(ticket);
            if line.len() == 0 {
                self.pool.desert();
            }
            waker
        };
        Left::Waiting
    }

    /// Calls that wait, and calls that ever did.
    #[must_use]
    pub fn waits(&self) -> Waits {
        self.queue.get().map(|queue| queue.lock().waits()).unwrap_or_default()
    }

    /// Gives a permit back that no call was made with, for a caller that holds a lock; true if somebody is to be [served](Self::serve)
    /// once it doesn't.
    #[must_use]
    pub(crate) fn cancel_under_lock(&self, thread: usize) -> bool {
        let magazine = self.magazine(thread);
        let before = magazine.give(1, 0);
        self.pass_on(magazine, before)
    }
}
