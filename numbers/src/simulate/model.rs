//! The discrete-event model: events in order of virtual time, and what each leads to.
//!
//! A request is a caller's wish. The caller tries it, and again if it failed; each try is a call through the gateway, which holds one of its places
//! and makes attempts at the upstream, each with the engine's leave. Nothing depends on a real clock, a thread or the order of a hash map.

mod gateway;
mod requests;
mod server;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use gateway::Gateway;
use requests::{Crowd, Request};
use server::Server;

use super::record::{Record, Run};
use super::scenario::{Model, Nanos, OutageKind, Variant};

/// How long a refused connection takes.
const REFUSED_AFTER: Nanos = 1_000_000;
const NANOS: f64 = 1e9;

/// What happens at a moment. What was meant for a state that is past is passed over: `serial` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The next request of a crowd.
    Arrives { crowd: usize, arrival: u64 },
    /// A bursty crowd changes its rate.
    Switches { crowd: usize },
    /// A caller tries again.
    TriesAgain { request: u64 },
    /// A caller's patience with a try is over.
    GivesUp { request: u64, tries: u32 },
    /// A server is done with a call.
    Answers { upstream: usize, serial: u64 },
    /// An attempt found no connection.
    Refused { request: u64, serial: u64 },
    /// An attempt takes longer than the gateway allows.
    TimesOut { request: u64, serial: u64 },
    /// The gateway's backoff is over.
    Retries { request: u64, serial: u64 },
    /// The wait for a permit is over.
    WaitEnds { request: u64, serial: u64 },
    /// An outage begins that ends what runs.
    Breaks { upstream: usize, refuses: bool },
}

/// One run of one variant.
struct Sim<'a> {
    model: &'a Model,
    variant: &'a Variant,
    now: Nanos,
    /// Of events and of what has to be told apart: never reused.
    serial: u64,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    crowds: Vec<Crowd>,
    servers: Vec<Server>,
    gateway: Gateway,
    requests: HashMap<u64, Request>,
    /// Requests that wait for a place in the gateway, by serial: in the order in which they came.
    backlog: BTreeMap<u64, u64>,
    record: Record,
}

/// Runs a variant from a seed until the last request has ended; `tick` hears of each step of the plots that is over.
pub(super) fn run(model: &Model, variant: &Variant, seed: u64, tick: impl Fn()) -> Run {
    let mut sim = Sim::new(model, variant, seed);
    let mut steps = 0;
    while let Some(Reverse((at, _, event))) = sim.events.pop() {
        while steps < (at / model.bucket).min(model.steps()) {
            steps += 1;
            tick();
        }
        sim.go_to(at);
        sim.happen(event);
        sim.settle_down();
    }
    (steps..model.steps()).for_each(|_| tick());
    debug_assert!(sim.requests.is_empty() && sim.backlog.is_empty(), "a request never ended");
    debug_assert!(
        sim.gateway.is_at_rest() && sim.record.is_at_rest(),
        "a place, a permit or an attempt was never given back"
    );
    sim.record.finish(&sim.gateway.transitions(), sim.now)
}

impl<'a> Sim<'a> {
    fn new(model: &'a Model, variant: &'a Variant, seed: u64) -> Self {
        let mut sim = Self {
            model,
            variant,
            now: 0,
            serial: 0,
            events: BinaryHeap::new(),
            crowds: (0..).zip(&model.callers).map(|(place, callers)| Crowd::new(callers, seed, place)).collect(),
            servers: (0..).take(model.upstreams.len()).map(|place| Server::new(seed, place)).collect(),
            gateway: Gateway::new(model, variant, seed),
            requests: HashMap::new(),
            backlog: BTreeMap::new(),
            record: Record::new(model),
        };
        for crowd in 0..sim.crowds.len() {
            sim.expect_arrival(crowd);
            if let Some(change) = sim.crowds[crowd].next_switch() {
                sim.after(change, Event::Switches { crowd });
            }
        }
        for (place, upstream) in model.upstreams.iter().enumerate() {
            for outage in &upstream.outages {
                let refuses = match outage.kind {
                    OutageKind::Refuse => true,
                    OutageKind::Hang => false,
                    OutageKind::Slow(_) | OutageKind::Errors(_) => continue,
                };
                sim.at(outage.from, Event::Breaks { upstream: place, refuses });
            }
        }
        sim
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    fn at(&mut self, at: Nanos, event: Event) {
        // What is due at the same moment happens in the order in which it was planned.
        let serial = self.next_serial();
        self.events.push(Reverse((at, serial, event)));
    }

    fn after(&mut self, wait: Nanos, event: Event) {
        self.at(self.now.saturating_add(wait), event);
    }

    fn go_to(&mut self, at: Nanos) {
        self.gateway.pass(at - self.now);
        self.now = at;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrives { crowd, arrival } => self.arrive(crowd, arrival),
            Event::Switches { crowd } => self.switch(crowd),
            Event::TriesAgain { request } => self.try_once(request),
            Event::GivesUp { request, tries } => self.give_up(request, tries),
            Event::Answers { upstream, serial } => self.answer(upstream, serial),
            Event::Refused { request, serial } => self.end_attempt(request, serial, false),
            Event::TimesOut { request, serial } => self.time_out(request, serial),
            Event::Retries { request, serial } => self.retry(request, serial),
            Event::WaitEnds { request, serial } => self.end_wait(request, serial),
            Event::Breaks { upstream, refuses } => self.break_off(upstream, refuses),
        }
    }

    /// Gives away what the event has set free: permits to those who wait for one, and places to the backlog.
    fn settle_down(&mut self) {
        loop {
            if let Some(request) = self.gateway.next_woken() {
                self.ask_again(request);
            } else if self.gateway.has_place() && !self.backlog.is_empty() {
                if let Some((_, request)) = self.backlog.pop_first() {
                    self.enter(request);
                }
            } else {
                return;
            }
        }
    }

    /// How slow an upstream is, and whether it is in an outage, now.
    fn trouble(&self, upstream: usize) -> (Option<OutageKind>, f64) {
        let upstream = &self.model.upstreams[upstream];
        let begun = upstream.outages.partition_point(|outage| outage.from <= self.now);
        let Some(last) = begun.checked_sub(1).and_then(|place| upstream.outages.get(place)) else { return (None, 1.0) };
        if self.now < last.to {
            return (Some(last.kind), if let OutageKind::Slow(factor) = last.kind { factor } else { 1.0 });
        }
        let since = self.now - last.to;
        let factor = upstream
            .cold
            .filter(|cold| since < cold.lasts)
            .map_or(1.0, |cold| 1.0 + (cold.factor - 1.0) * (1.0 - since as f64 / cold.lasts as f64));
        (None, factor)
    }
}
