//! A bulkhead with a queue, the real one or a twin, and whoever waits there.

use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use portcullis::internals::share::Share;
use portcullis::internals::waiting::{Joined, Left};
use portcullis::internals::{Ticket, Told};

use crate::room::{Permits, Room, Striped};

/// What the models do with a queue.
pub trait Queued: Permits {
    type Ticket: Debug + Send;

    /// Waits behind any number of others; none if there was a permit.
    fn join(&self, waker: Waker) -> Option<Self::Ticket>;
    fn hear(&self, ticket: &Self::Ticket) -> Option<Told>;
    /// Leaves the queue, and gives back what it was granted.
    fn leave(&self, ticket: &Self::Ticket, stripe: usize);
    fn turn_away(&self);
}

/// What calls do that have a share of the limit.
pub trait Shares: Permits {
    /// Asks within one half of the limit.
    fn acquire_half(&self, stripe: usize) -> bool;
}

impl<const N: usize> Queued for Striped<N> {
    type Ticket = Ticket;

    fn join(&self, waker: Waker) -> Option<Ticket> {
        match (**self).join(9, waker) {
            Ok(Joined::Granted) => None,
            Ok(Joined::Waits(ticket)) => Some(ticket),
            Err(refused) => panic!("{refused:?}"),
        }
    }

    fn hear(&self, ticket: &Ticket) -> Option<Told> {
        (**self).hear(ticket, Waker::noop())
    }

    fn leave(&self, ticket: &Ticket, stripe: usize) {
        if (**self).leave(ticket) == Left::Told(Told::Granted) {
            self.cancel(stripe);
        }
    }

    fn turn_away(&self) {
        (**self).turn_away();
    }
}

impl<const N: usize> Shares for Striped<N> {
    fn acquire_half(&self, _: usize) -> bool {
        let half = Share::new(5_000).unwrap_or_else(|| unreachable!("a half isn't the whole"));
        self.acquire_within(half, &mut false).is_ok()
    }
}

/// Counts how often it was rung, in plain std: loom's threads take turns.
#[derive(Debug, Default)]
pub struct Bell(AtomicU32);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A room with a queue before it.
#[derive(Debug)]
pub struct Hall<P: Queued> {
    pub room: Room<P>,
    /// Who waits, by their tickets.
    places: Mutex<Vec<(P::Ticket, Arc<Bell>)>>,
}

impl<P: Queued> Hall<P> {
    /// Before the race: `entered` came in through a stripe, and `waiting` joined the queue.
    #[must_use]
    pub fn new(limit: u32, stripe: usize, entered: u32, waiting: usize) -> Self {
        let hall = Self { room: Room::used(limit, stripe, entered, 0), places: Mutex::default() };
        (0..waiting).for_each(|_| assert!(!hall.join()));
        hall
    }

    /// Takes a permit at once, or waits for one.
    pub fn join(&self) -> bool {
        let bell = Arc::new(Bell::default());
        let ticket = self.room.permits.join(Waker::from(Arc::clone(&bell)));
        match ticket {
            None => {
                self.room.count_in();
                true
            }
            Some(ticket) => {
                self.places.lock().unwrap_or_else(PoisonError::into_inner).push((ticket, bell));
                false
            }
        }
    }

    /// The one that has waited longest, or joined first during the race, leaves.
    pub fn leave_queue(&self, stripe: usize) {
        let (ticket, _) = self.places.lock().unwrap_or_else(PoisonError::into_inner).remove(0);
        self.room.permits.leave(&ticket, stripe);
    }

    /// Whether the one that has waited longest was granted a permit, which is his then.
    pub fn is_granted(&self) -> bool {
        let places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        self.room.permits.hear(&places[0].0) == Some(Told::Granted)
    }

    /// What each of those who waited was told, in their order. Whoever was told something was woken for it, once, and whoever was granted a
    /// permit is inside now.
    pub fn told(&self) -> Vec<Option<Told>> {
        let places = std::mem::take(&mut *self.places.lock().unwrap_or_else(PoisonError::into_inner));
        let told = places.iter().map(|(ticket, bell)| {
            let told = self.room.permits.hear(ticket);
            let rung = bell.0.load(Ordering::Relaxed);
            assert_eq!(rung, u32::from(told.is_some()), "who is told something is woken for it");
            if told == Some(Told::Granted) {
                self.room.count_in();
            } else if told.is_none() {
                self.room.permits.leave(ticket, 0);
            }
            told
        });
        told.collect()
    }
}
