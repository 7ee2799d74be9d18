//! Where a target's shadows are asked, and where it is kept what each of them makes of the calls that run.
//!
//! A permit has no room for that: it carries the number of an entry here. The entry holds the shadows that were asked, so that one that is
//! taken away, or promoted, lives until the last call that it was asked for is over, and needs no other scheme.
//!
//! One lock for each of a few threads, held while the shadows decide. Nobody else's code runs under it, and nobody waits for another lock there
//! but for those of a shadow's own words.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::MOST;
use super::candidate::{Candidate, Seat, Set};
use crate::bulkhead::stripe;
use crate::priority::Admit;
use crate::sync::Mutex;
use crate::target::{Ending, Signs};
use crate::time::AnyReading;

/// Threads that have a lock of their own.
const SHARDS: usize = if cfg!(portcullis_loom) { 1 } else { 8 };

/// The shadows of one target.
#[derive(Debug)]
pub(crate) struct Desk([CachePadded<Mutex<Shard>>; SHARDS]);

#[derive(Debug)]
struct Shard {
    /// A copy of its own, so that its count is no other shard's business.
    set: Set,
    entries: Vec<Entry>,
    vacant: Vec<u32>,
}

/// Room for a call that runs; filled and read where it is, since copying it would take longer than all else.
#[derive(Debug, Default)]
struct Entry {
    /// None while it is vacant.
    set: Option<Set>,
    /// In the order of the set.
    seats: [Option<Seat>; MOST],
}

#[cfg(test)]
pub(crate) const BYTES: usize = size_of::<Desk>();
/// What a call in flight takes.
#[cfg(test)]
pub(crate) const ENTRY_BYTES: usize = size_of::<Entry>();

impl Default for Desk {
    fn default() -> Self {
        let shard = || Shard { set: Arc::new([]), entries: Vec::new(), vacant: Vec::new() };
        Self(std::array::from_fn(|_| CachePadded::new(Mutex::new(shard()))))
    }
}

impl Entry {
    fn each(&self) -> impl Iterator<Item = (&Candidate, Seat)> {
        let set = self.set.as_deref().unwrap_or_default();
        set.iter().zip(self.seats).filter_map(|(candidate, seat)| Some((&**candidate, seat?)))
    }

    fn each_mut(&mut self) -> impl Iterator<Item = (&Candidate, &mut Option<Seat>)> {
        let set = self.set.as_deref().unwrap_or_default();
        set.iter().zip(&mut self.seats).map(|(candidate, seat)| (&**candidate, seat))
    }
}

impl Desk {
    /// Asks all shadows about a call that starts; the ticket of what they make of it. None if there are no shadows (any more).
    pub(crate) fn ask(&self, how: Admit, time: &AnyReading<'_>) -> Option<u32> {
        let number = stripe::own() % SHARDS;
        let mut shard = self.0[number].lock();
        if shard.set.is_empty() {
            return None;
        }
        let place = shard.vacant.pop().map_or(shard.entries.len(), |place| place as usize);
        // Too many only where memory would have been before.
        let ticket = u32::try_from(place * SHARDS + number).ok()?;
        if place == shard.entries.len() {
            shard.entries.push(Entry::default());
        }
        let set = Arc::clone(&shard.set);
        let entry = shard.entries.get_mut(place)?;
        entry.set = Some(set);
        for (candidate, seat) in entry.each_mut() {
            *seat = Some(candidate.ask(how, time));
        }
        Some(ticket)
    }

    /// Tells the shadows how a call ended, and that it is over.
    pub(crate) fn end(&self, ticket: u32, signs: Signs, ending: Ending, time: &AnyReading<'_>) {
        self.finish(ticket, |candidate, seat| {
            candidate.hear(seat, signs, ending, time);
            candidate.release(seat);
        });
    }

    /// Tells the shadows how a call ended that keeps its permit.
    pub(crate) fn hold(&self, ticket: u32, signs: Signs, ending: Ending, time: &AnyReading<'_>) {
        self.with(ticket, |entry| {
            for (candidate, seat) in entry.each() {
                candidate.hear(seat, signs, ending, time);
                candidate.hold(seat);
            }
        });
    }

    /// Tells them that it gave it back.
    pub(crate) fn let_go(&self, ticket: u32) {
        self.finish(ticket, Candidate::release_held);
    }

    /// Tells the shadows that a call wasn't made after all.
    pub(crate) fn cancel(&self, ticket: u32) {
        self.finish(ticket, Candidate::cancel);
    }

    #[cfg(feature = "tower")]
    pub(crate) fn begun(&self, ticket: u32, at: crate::time::Now) {
        self.replace_seats(ticket, |candidate, seat| candidate.begun(seat, at));
    }

    pub(crate) fn answered(&self, ticket: u32) {
        self.replace_seats(ticket, Candidate::answered);
    }

    fn replace_seats(&self, ticket: u32, with: impl Fn(&Candidate, Seat) -> Seat) {
        self.with(ticket, |entry| {
            for (candidate, seat) in entry.each_mut() {
                *seat = seat.map(|seat| with(candidate, seat));
            }
        });
    }

    /// Uses the entry of a call that is over, and empties it.
    fn finish(&self, ticket: u32, last: impl Fn(&Candidate, Seat)) {
        let mut shard = self.0[ticket as usize % SHARDS].lock();
        let place = ticket as usize / SHARDS;
        if let Some(entry) = shard.entries.get_mut(place) {
            for (candidate, seat) in entry.each() {
                last(candidate, seat);
            }
            entry.set = None;
            shard.vacant.push(place as u32);
        }
    }

    fn with(&self, ticket: u32, use_it: impl FnOnce(&mut Entry)) {
        let mut shard = self.0[ticket as usize % SHARDS].lock();
        if let Some(entry) = shard.entries.get_mut(ticket as usize / SHARDS) {
            use_it(entry);
        }
    }

    /// The shadows that new calls are shown to.
    pub(crate) fn all(&self) -> Vec<Arc<Candidate>> {
        self.0[0].lock().set.to_vec()
    }

    /// Shows new calls to others from now on. Under the tenant's lock.
    pub(crate) fn replace(&self, all: &[Arc<Candidate>]) {
        for shard in &self.0 {
            shard.lock().set = all.into();
        }
    }
}
