//! Twins that do the right thing too late: each thread after its next admission.

use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;

use crate::door::{Admitted, Door, Honest, Ticket};
use crate::plan::Ending;

/// What threads put off. Kept apart by thread, since each does its own later.
type Owed<T> = Mutex<Vec<(ThreadId, T)>>;

fn put_off<T>(owed: &Owed<T>, what: T) {
    owed.lock().unwrap_or_else(PoisonError::into_inner).push((std::thread::current().id(), what));
}

fn take_up<T>(owed: &Owed<T>) -> Vec<T> {
    let own = std::thread::current().id();
    let mut owed = owed.lock().unwrap_or_else(PoisonError::into_inner);
    let (mine, others) = owed.drain(..).partition(|(thread, _)| *thread == own);
    *owed = others;
    mine.into_iter().map(|(_, what)| what).collect()
}

pub(super) struct RecordsLate<'e> {
    honest: Honest<'e>,
    owed: Owed<(Ticket<'e>, Ending)>,
}

impl<'e> RecordsLate<'e> {
    pub(super) fn new(honest: Honest<'e>) -> Self {
        Self { honest, owed: Mutex::default() }
    }

    fn pay(&self) {
        for (ticket, ending) in take_up(&self.owed) {
            self.honest.settle(ticket, ending);
        }
    }
}

impl<'e> Door<'e> for RecordsLate<'e> {
    fn honest(&self) -> &Honest<'e> {
        &self.honest
    }

    fn admit(&self, key: u8) -> Admitted<'e> {
        let answer = self.honest.admit(key);
        self.pay();
        answer
    }

    fn settle(&self, ticket: Ticket<'e>, ending: Ending) -> Option<bool> {
        self.pay();
        let generation = ticket.permit.as_ref().map(portcullis::Permit::generation);
        let now = self.honest.with(ticket.key, |target| target.snapshot().generation);
        put_off(&self.owed, (ticket, ending));
        (ending != Ending::Dropped).then_some(generation != now)
    }

    fn leave(&self) {
        self.pay();
    }
}

pub(super) struct LimitsLate<'e> {
    honest: Honest<'e>,
    owed: Owed<(u8, u32)>,
}

impl<'e> LimitsLate<'e> {
    pub(super) fn new(honest: Honest<'e>) -> Self {
        Self { honest, owed: Mutex::default() }
    }

    fn pay(&self) {
        for (key, limit) in take_up(&self.owed) {
            self.honest.set_limit(key, limit);
        }
    }
}

impl<'e> Door<'e> for LimitsLate<'e> {
    fn honest(&self) -> &Honest<'e> {
        &self.honest
    }

    fn admit(&self, key: u8) -> Admitted<'e> {
        let answer = self.honest.admit(key);
        self.pay();
        answer
    }

    fn set_limit(&self, key: u8, limit: u32) -> bool {
        put_off(&self.owed, (key, limit));
        true
    }

    fn leave(&self) {
        self.pay();
    }
}
