//! The queue of those who wait for a permit: who they are, in the order in which they came, and what they were told.
//!
//! It knows nothing of permits; [`waiting`](super::waiting) does. Under its lock runs no code but its own: wakers are cloned before it is
//! taken, and dropped and woken after it is left.

use std::collections::BTreeMap;
use std::task::Waker;

use crate::sync::Mutex;

/// The queue that threads share, made when the first call waits.
#[derive(Debug, Default)]
pub(super) struct Queue(Mutex<Line>);

/// The queue under its lock.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// By number, which is by age.
    waiting: BTreeMap<u64, Waker>,
    /// What those were told who haven't come for it yet.
    told: BTreeMap<u64, Told>,
    /// Calls that ever waited: the next number. Never wraps.
    joined: u64,
}

/// A place in the queue. Whoever has it owes [`Bulkhead::leave`](super::Bulkhead::leave), or heard what it was told.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
#[must_use]
pub struct Ticket(u64);

/// What somebody who waits is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Told {
    /// A permit is his: he holds it from now on.
    Granted,
    /// Waiting is over without one: the target doesn't let calls pass any more.
    TurnedAway,
}

/// Calls that wait, and calls that ever did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    pub waiting: u64,
    pub waited: u64,
}

impl Queue {
    pub(super) fn lock(&self) -> impl std::ops::DerefMut<Target = Line> + '_ {
        self.0.lock()
    }

    /// Counts from zero again, for a new tenant: nobody has a ticket then.
    pub(super) fn reset(&self) {
        self.lock().joined = 0;
    }
}

impl Line {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn waits(&self) -> Waits {
        Waits { waiting: self.len() as u64, waited: self.joined }
    }

    pub(super) fn join(&mut self, waker: Waker) -> Ticket {
        let ticket = Ticket(self.joined);
        self.waiting.insert(self.joined, waker);
        self.joined += 1;
        ticket
    }

    /// Tells the one who has waited longest; whom to wake.
    pub(super) fn grant(&mut self) -> Option<Waker> {
        let (number, waker) = self.waiting.pop_first()?;
        self.told.insert(number, Told::Granted);
        Some(waker)
    }

    /// Tells everybody to ask again; whom to wake.
    pub(super) fn turn_away(&mut self) -> BTreeMap<u64, Waker> {
        let waiting = std::mem::take(&mut self.waiting);
        self.told.extend(waiting.keys().map(|number| (*number, Told::TurnedAway)));
        waiting
    }

    pub(super) fn hear(&mut self, Ticket(number): &Ticket) -> Option<Told> {
        self.told.remove(number)
    }

    /// Whether the waker that is known of a ticket wakes the same as `waker`.
    pub(super) fn would_wake(&self, Ticket(number): &Ticket, waker: &Waker) -> bool {
        self.waiting.get(number).is_none_or(|known| known.will_wake(waker))
    }

    /// Puts another waker in place of the one known; what to drop.
    pub(super) fn replace(&mut self, Ticket(number): &Ticket, waker: Waker) -> Waker {
        match self.waiting.get_mut(number) {
            Some(known) => std::mem::replace(known, waker),
            None => waker,
        }
    }

    /// Takes a ticket out; what to drop.
    pub(super) fn remove(&mut self, Ticket(number): &Ticket) -> Option<Waker> {
        self.waiting.remove(number)
    }
}
