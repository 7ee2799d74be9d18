//! An upstream at work: calls in service, calls that queue, and answers.

use std::collections::BTreeMap;

use super::{Event, NANOS, REFUSED_AFTER, Sim};
use crate::simulate::draws::Draws;
use crate::simulate::scenario::{Nanos, OutageKind};

/// Calls by the serial of their attempt, which is the order in which they came, and the request that each is for.
#[derive(Debug)]
pub(super) struct Server {
    draws: Draws,
    /// With whether it will fail.
    running: BTreeMap<u64, (u64, bool)>,
    queue: BTreeMap<u64, u64>,
}

impl Server {
    pub(super) fn new(seed: u64, place: u64) -> Self {
        Self { draws: Draws::new(seed, 2_000_000 + place), running: BTreeMap::new(), queue: BTreeMap::new() }
    }
}

impl Sim<'_> {
    /// Sends an attempt to its upstream.
    pub(super) fn submit(&mut self, upstream: usize, request: u64, serial: u64) {
        let (outage, _) = self.trouble(upstream);
        let (server, of) = (&mut self.servers[upstream], &self.model.upstreams[upstream]);
        let is_busy = server.running.len() >= of.servers as usize;
        match outage {
            Some(OutageKind::Hang) => {}
            Some(OutageKind::Refuse) => self.after(REFUSED_AFTER, Event::Refused { request, serial }),
            _ if !is_busy => self.start(upstream, request, serial),
            _ if server.queue.len() < of.queue as usize => {
                server.queue.insert(serial, request);
            }
            _ => self.after(REFUSED_AFTER, Event::Refused { request, serial }),
        }
    }

    fn start(&mut self, upstream: usize, request: u64, serial: u64) {
        let (outage, slowness) = self.trouble(upstream);
        let (server, of) = (&mut self.servers[upstream], &self.model.upstreams[upstream]);
        let at_once = server.running.len() + server.queue.len() + 1;
        let crowding = of.knee.map_or(1.0, |knee| 1.0 + knee.slope * at_once.saturating_sub(knee.at as usize) as f64);
        let seconds = of.service.draw(&mut server.draws) * slowness * crowding;
        let errors = if let Some(OutageKind::Errors(share)) = outage { share.max(of.errors) } else { of.errors };
        let fails = server.draws.chance(errors);
        server.running.insert(serial, (request, fails));
        self.after((seconds * NANOS) as Nanos, Event::Answers { upstream, serial });
    }

    pub(super) fn answer(&mut self, upstream: usize, serial: u64) {
        // Gone, if an outage or its caller ended it before.
        let Some((request, fails)) = self.servers[upstream].running.remove(&serial) else { return };
        self.end_attempt(request, serial, !fails);
        self.start_next(upstream);
    }

    fn start_next(&mut self, upstream: usize) {
        if self.servers[upstream].running.len() < self.model.upstreams[upstream].servers as usize
            && let Some((serial, request)) = self.servers[upstream].queue.pop_first()
        {
            self.start(upstream, request, serial);
        }
    }

    /// Nobody waits for this attempt's answer any more; most upstreams go on all the same.
    pub(super) fn abandon(&mut self, upstream: usize, serial: u64) {
        let server = &mut self.servers[upstream];
        if self.model.upstreams[upstream].cancels && server.queue.remove(&serial).is_none() {
            server.running.remove(&serial);
            self.start_next(upstream);
        }
    }

    /// Ends what runs and waits there: with a broken connection, or without a word.
    pub(super) fn break_off(&mut self, upstream: usize, refuses: bool) {
        let server = &mut self.servers[upstream];
        let running = std::mem::take(&mut server.running).into_iter().map(|(serial, (request, _))| (serial, request));
        let lost: Vec<(u64, u64)> = running.chain(std::mem::take(&mut server.queue)).collect();
        if refuses {
            lost.iter().for_each(|(serial, request)| self.end_attempt(*request, *serial, false));
        }
    }
}
