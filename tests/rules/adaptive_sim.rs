//! An upstream with a knee, and callers that arrive as they like: what the adaptive limit is tried on.
//!
//! The model, in simulated time on the engine's mock clock, the same in every run of a seed:
//!
//! - The upstream has `workers`; each works on one call at a time, and calls beyond that queue without bound, first come first served.
//! - Service times are drawn independently, exponential or even between half and one and a half of their mean.
//! - Callers arrive in a Poisson process, independent of how calls end, and don't come back when they are refused.
//!
//! So `limit` calls in it take the service time on average while `limit <= workers`, and `limit / workers` times as long beyond that (Little's
//! law): the knee is a limit of `workers`. A lower one leaves workers idle, a higher one adds nothing but latency.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use portcullis::{Permit, PolicyBuilder, Target};

use crate::common::{Bench, Draw, T};

/// How long a call takes once a worker has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Service {
    Exponential,
    /// Even between half and one and a half of the mean.
    Even,
}

/// What happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival,
    /// The worker's call, by its number.
    Done(u64),
}

pub(super) struct World<'b> {
    bench: &'b Bench,
    target: Target<'b>,
    draw: Draw,
    /// In nanoseconds.
    now: u64,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    working: Vec<(u64, Permit<'b>)>,
    queue: VecDeque<Permit<'b>>,
    number: u64,
    pub(super) workers: usize,
    /// Mean, in nanoseconds.
    pub(super) service: f64,
    pub(super) kind: Service,
    /// Calls per second.
    pub(super) rate: f64,
    /// One call in so many takes a hundred times the mean; none if 0.
    pub(super) outliers: u64,
    /// One call in so many fails; none if 0.
    pub(super) fails: u64,
    /// As it was when one of the last sixteen calls ended: nothing else moves it.
    limit: u32,
    done: u64,
}

impl<'b> World<'b> {
    /// An upstream of so many workers that take 20 ms on average, and half as many callers more than it can serve.
    pub(super) fn new(bench: &'b Bench, seed: u64, workers: usize) -> Self {
        let mut world = Self {
            bench,
            target: bench.engine.target(T).expect("there is room"),
            draw: Draw(seed),
            now: 0,
            events: BinaryHeap::new(),
            working: Vec::new(),
            queue: VecDeque::new(),
            number: 0,
            workers,
            service: 20e6,
            kind: Service::Exponential,
            rate: 0.0,
            outliers: 0,
            fails: 0,
            limit: bench.engine.target(T).expect("there is room").snapshot().limit,
            done: 0,
        };
        world.load(1.5);
        world.events.push(Reverse((0, Event::Arrival)));
        world
    }

    /// Sets the rate to so many times the capacity as it is now.
    pub(super) fn load(&mut self, share: f64) {
        self.rate = share * self.capacity();
    }

    /// Calls per second that it can serve.
    pub(super) fn capacity(&self) -> f64 {
        self.workers as f64 / (self.service / 1e9)
    }

    fn even(&mut self) -> f64 {
        (self.draw.below(1 << 53) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> u64 {
        (-self.even().ln() * mean) as u64
    }

    /// Lets that much time pass; the mean of the limit in it, by time, and calls done per second.
    pub(super) fn run(&mut self, time: Duration) -> (f64, f64) {
        let end = self.now + time.as_nanos() as u64;
        let (begin, done, mut area) = (self.now, self.done, 0.0);
        while let Some(Reverse((at, event))) = self.events.peek().copied() {
            let until = at.min(end);
            area += f64::from(self.limit()) * (until - self.now) as f64;
            self.bench.advance(Duration::from_nanos(until - self.now));
            self.now = until;
            if at > end {
                break;
            }
            self.events.pop();
            match event {
                Event::Arrival => self.arrive(),
                Event::Done(number) => self.finish(number),
            }
            self.start_work();
        }
        let span = (end - begin) as f64;
        (area / span, (self.done - done) as f64 / (span / 1e9))
    }

    fn arrive(&mut self) {
        // Whoever is refused doesn't come back.
        self.queue.extend(self.target.admit());
        let next = self.now + self.exponential(1e9 / self.rate).max(1);
        self.events.push(Reverse((next, Event::Arrival)));
    }

    fn finish(&mut self, number: u64) {
        let place = self.working.iter().position(|(of, _)| *of == number).expect("a call that is done was begun");
        let (_, permit) = self.working.swap_remove(place);
        self.done += 1;
        if self.fails > 0 && self.draw.below(self.fails) == 0 {
            permit.failure();
        } else {
            permit.success();
        }
        // A look at each call would be most of the work.
        if self.done.is_multiple_of(16) {
            self.limit = self.target.snapshot().limit;
        }
    }

    fn start_work(&mut self) {
        while self.working.len() < self.workers {
            let Some(permit) = self.queue.pop_front() else { return };
            let is_outlier = self.outliers > 0 && self.draw.below(self.outliers) == 0;
            let took = match self.kind {
                _ if is_outlier => (self.service * 100.0) as u64,
                Service::Exponential => self.exponential(self.service),
                Service::Even => (self.service * (0.5 + self.even())) as u64,
            };
            self.number += 1;
            self.working.push((self.number, permit));
            self.events.push(Reverse((self.now + took.max(1), Event::Done(self.number))));
        }
    }

    pub(super) fn limit(&self) -> u32 {
        self.limit
    }
}

/// A bench whose breaker never trips: what fails is the upstream's business here.
pub(super) fn bench(policy: PolicyBuilder) -> Bench {
    Bench::new(policy.no_window())
}
