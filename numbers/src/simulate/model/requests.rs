//! Callers: when they come, how long they wait, and how often they try.

use super::gateway::Stage;
use super::{Event, NANOS, Sim};
use crate::simulate::draws::Draws;
use crate::simulate::record::End;
use crate::simulate::scenario::{Arrivals, Callers, Nanos};

/// A crowd with its random numbers.
#[derive(Debug)]
pub(super) struct Crowd {
    arrivals: Arrivals,
    is_high: bool,
    /// Which arrival is expected: a change of the rate makes the one before void.
    arrival: u64,
    come: Draws,
    switch: Draws,
    back: Draws,
}

/// What a caller wants, until it has it or gives it up.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) crowd: usize,
    pub(super) upstream: usize,
    pub(super) arrived: Nanos,
    /// By the caller.
    pub(super) tries: u32,
    /// When this try began.
    pub(super) began: Nanos,
    /// By the gateway, in this try.
    pub(super) attempts: u32,
    /// Tells this stage from the ones before.
    pub(super) serial: u64,
    pub(super) stage: Stage,
}

impl Crowd {
    pub(super) fn new(callers: &Callers, seed: u64, place: u64) -> Self {
        // Streams of their own, so that every variant meets the same arrivals.
        let draws = |kind: u64| Draws::new(seed, 10 * place + kind);
        let (come, switch, back) = (draws(0), draws(1), draws(2));
        Self { arrivals: callers.arrivals, is_high: false, arrival: 0, come, switch, back }
    }

    /// The time to the next change of the rate, for a bursty crowd.
    pub(super) fn next_switch(&mut self) -> Option<Nanos> {
        let Arrivals::Bursts { on, off, .. } = self.arrivals else { return None };
        let mean = if self.is_high { on } else { off };
        Some((self.switch.exponential(mean) * NANOS) as Nanos)
    }

    /// The time to the next request; none if there is none at this rate.
    fn next_arrival(&mut self) -> Option<Nanos> {
        let (rate, is_regular) = match self.arrivals {
            Arrivals::Constant(rate) => (rate, true),
            Arrivals::Poisson(rate) => (rate, false),
            Arrivals::Bursts { high, low, .. } => (if self.is_high { high } else { low }, false),
        };
        let gap = if is_regular { 1.0 / rate } else { self.come.exponential(1.0 / rate) };
        (rate > 0.0).then_some((gap * NANOS) as Nanos)
    }
}

impl Sim<'_> {
    pub(super) fn expect_arrival(&mut self, crowd: usize) {
        let arrival = self.next_serial();
        self.crowds[crowd].arrival = arrival;
        let Some(wait) = self.crowds[crowd].next_arrival() else { return };
        let at = self.now.saturating_add(wait.max(1));
        if at < self.model.duration {
            self.at(at, Event::Arrives { crowd, arrival });
        }
    }

    pub(super) fn switch(&mut self, crowd: usize) {
        self.crowds[crowd].is_high ^= true;
        if let Some(wait) = self.crowds[crowd].next_switch().filter(|wait| self.now + wait < self.model.duration) {
            self.after(wait, Event::Switches { crowd });
        }
        // A Poisson process has no memory: from here on it goes by the new rate.
        self.expect_arrival(crowd);
    }

    pub(super) fn arrive(&mut self, crowd: usize, arrival: u64) {
        if self.crowds[crowd].arrival != arrival {
            return;
        }
        let upstream = self.model.callers[crowd].upstream;
        let serial = self.next_serial();
        let stage = Stage::Away;
        let (arrived, began, tries, attempts) = (self.now, self.now, 0, 0);
        self.requests.insert(serial, Request { crowd, upstream, arrived, tries, began, attempts, serial, stage });
        self.record.arrived(upstream, self.now);
        self.try_once(serial);
        self.expect_arrival(crowd);
    }

    /// Sends the request to the gateway.
    pub(super) fn try_once(&mut self, id: u64) {
        let now = self.now;
        let Some(request) = self.requests.get_mut(&id) else { return };
        request.tries += 1;
        (request.began, request.attempts) = (now, 0);
        let (tries, patience) = (request.tries, self.model.callers[request.crowd].patience);
        self.after(patience, Event::GivesUp { request: id, tries });
        if self.gateway.has_place() && self.backlog.is_empty() {
            self.enter(id);
        } else if self.backlog.len() < self.model.backlog as usize {
            let serial = self.stage(id, Stage::Backlog);
            self.backlog.insert(serial, id);
        } else {
            self.after_try(id, End::Refused("process"));
        }
    }

    /// The caller has waited long enough: whatever goes on for it is dropped.
    pub(super) fn give_up(&mut self, id: u64, tries: u32) {
        let Some(request) = self.requests.get_mut(&id).filter(|request| request.tries == tries) else { return };
        let (upstream, serial) = (request.upstream, request.serial);
        match &request.stage {
            Stage::Away => return,
            Stage::Backlog => {
                self.backlog.remove(&serial);
            }
            Stage::Calling(_) => {
                self.record.left(upstream);
                self.abandon(upstream, serial);
                self.gateway.leave();
            }
            Stage::Asking(_) | Stage::BackingOff => self.gateway.leave(),
        }
        self.after_try(id, End::GaveUp);
    }

    /// The gateway's answer to a try that holds one of its places.
    pub(super) fn end_try(&mut self, id: u64, end: End) {
        self.gateway.leave();
        self.after_try(id, end);
    }

    /// Whether the caller is content, tries again or is lost.
    fn after_try(&mut self, id: u64, end: End) {
        self.stage(id, Stage::Away);
        let Some(request) = self.requests.get(&id) else { return };
        let (upstream, arrived, crowd, tries) = (request.upstream, request.arrived, request.crowd, request.tries);
        self.record.tried(upstream, self.now, end);
        let callers = &self.model.callers[crowd];
        if end != End::Good && tries < callers.attempts {
            let longest = callers.backoff.saturating_mul(1 << (tries - 1).min(32)).min(callers.backoff_max);
            let wait = (self.crowds[crowd].back.share() * longest as f64) as Nanos;
            self.after(wait, Event::TriesAgain { request: id });
            return;
        }
        self.record.ended(upstream, arrived, self.now, end == End::Good);
        self.requests.remove(&id);
    }

    /// Puts a request into another stage, and makes what was planned for the one before void; what it held is dropped.
    pub(super) fn stage(&mut self, id: u64, stage: Stage) -> u64 {
        let serial = self.next_serial();
        if let Some(request) = self.requests.get_mut(&id) {
            (request.serial, request.stage) = (serial, stage);
        }
        serial
    }
}
