//! An upstream at work: calls in service, calls that queue, and answers.

use std::collections::{BTreeMap, VecDeque};

use super::{Event, NANOS, REFUSED_AFTER, Sim};
use crate::simulate::draws::Draws;
use crate::simulate::scenario::{Nanos, OutageKind, Upstream};

/// A call at an upstream: whose attempt it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Job {
    request: u64,
    serial: u64,
}

#[derive(Debug)]
pub(super) struct Server {
    draws: Draws,
    /// By number, with whether it will fail.
    running: BTreeMap<u64, (Job, bool)>,
    queue: VecDeque<Job>,
}

impl Server {
    pub(super) fn new(_: &Upstream, seed: u64, place: u64) -> Self {
        Self { draws: Draws::new(seed, 2_000_000 + place), running: BTreeMap::new(), queue: VecDeque::new() }
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
            _ if !is_busy => self.start(upstream, Job { request, serial }),
            _ if server.queue.len() < of.queue as usize => server.queue.push_back(Job { request, serial }),
            _ => self.after(REFUSED_AFTER, Event::Refused { request, serial }),
        }
    }

    fn start(&mut self, upstream: usize, job: Job) {
        let (outage, slowness) = self.trouble(upstream);
        let number = self.next_serial();
        let (server, of) = (&mut self.servers[upstream], &self.model.upstreams[upstream]);
        let at_once = server.running.len() + server.queue.len() + 1;
        let crowding = of.knee.map_or(1.0, |knee| 1.0 + knee.slope * at_once.saturating_sub(knee.at as usize) as f64);
        let seconds = of.service.draw(&mut server.draws) * slowness * crowding;
        let errors = if let Some(OutageKind::Errors(share)) = outage { share.max(of.errors) } else { of.errors };
        let fails = server.draws.chance(errors);
        server.running.insert(number, (job, fails));
        self.after((seconds * NANOS) as Nanos, Event::Answers { upstream, job: number });
    }

    pub(super) fn answer(&mut self, upstream: usize, number: u64) {
        // Gone, if an outage or its caller ended it before.
        let Some((job, fails)) = self.servers[upstream].running.remove(&number) else { return };
        self.end_attempt(job.request, job.serial, !fails);
        self.start_next(upstream);
    }

    fn start_next(&mut self, upstream: usize) {
        if self.servers[upstream].running.len() < self.model.upstreams[upstream].servers as usize
            && let Some(next) = self.servers[upstream].queue.pop_front()
        {
            self.start(upstream, next);
        }
    }

    /// Nobody waits for this attempt's answer any more; most upstreams go on all the same.
    pub(super) fn abandon(&mut self, upstream: usize, request: u64, serial: u64) {
        if !self.model.upstreams[upstream].cancels {
            return;
        }
        let (server, job) = (&mut self.servers[upstream], Job { request, serial });
        server.queue.retain(|queued| *queued != job);
        let running = server.running.iter().find(|(_, (running, _))| *running == job).map(|(number, _)| *number);
        if running.is_some_and(|number| server.running.remove(&number).is_some()) {
            self.start_next(upstream);
        }
    }

    /// Ends what runs and waits there: with a broken connection, or without a word.
    pub(super) fn break_off(&mut self, upstream: usize, refuses: bool) {
        let server = &mut self.servers[upstream];
        let running = std::mem::take(&mut server.running).into_values().map(|(job, _)| job);
        let lost: Vec<Job> = running.chain(server.queue.drain(..)).collect();
        if refuses {
            lost.iter().for_each(|job| self.end_attempt(job.request, job.serial, false));
        }
    }
}
