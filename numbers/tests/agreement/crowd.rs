//! Callers at random that hold a permit for a while: how many there are, who is refused and who waits.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use portcullis::{Admit, Clock, Engine, OwnedPermit, Policy, Rejection};
use portcullis_numbers::simulate::draws::{Draws, Times};

type Permit = OwnedPermit<Arc<Engine>>;
type Asking = Pin<Box<dyn Future<Output = Result<Permit, Rejection>>>>;

/// What callers met who came long after one another, so that each is a sample of its own: all came at random, and so they saw what is the case
/// over time.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) samples: u64,
    /// Calls in flight, added up.
    pub(crate) in_flight: u64,
    /// Samples with at most so many in flight as asked for.
    pub(crate) at_most: u64,
    pub(crate) refused: u64,
    pub(crate) waited: u64,
    /// Samples that waited longer than asked for.
    pub(crate) waited_longer: u64,
}

/// An engine with one target, arrivals of a rate, and times that permits are held for.
pub(crate) struct Crowd {
    engine: Arc<Engine>,
    time: Arc<quanta::Mock>,
    rate: f64,
    times: Times,
    draws: Draws,
    held: HashMap<u64, Permit>,
    /// Who waits, since when, and whether it is a sample.
    asking: HashMap<u64, (Asking, u64, bool)>,
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    woken: Arc<Mutex<Vec<u64>>>,
    seen: Seen,
}

struct Wakes(u64, Arc<Mutex<Vec<u64>>>);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.1.lock().unwrap().push(self.0);
    }
}

impl Crowd {
    pub(crate) fn new(policy: Policy, rate: f64, times: Times, draws: Draws) -> Self {
        let (clock, time) = Clock::mock();
        let engine = Arc::new(Engine::builder().policy(policy).clock(clock).seed(1).build());
        let (held, asking, ends, woken) = Default::default();
        Self { engine, time, rate, times, draws, held, asking, ends, woken, seen: Seen::default() }
    }

    /// Samples every `spacing`-th caller; `at_most` calls in flight and `longer` seconds of waiting are what is asked about.
    pub(crate) fn run(mut self, samples: u64, spacing: u64, at_most: u64, longer: f64) -> Seen {
        let longer = (longer * 1e9) as u64;
        let mut arrival = 0;
        for caller in 1..=samples * spacing {
            arrival += (self.draws.exponential(1.0 / self.rate) * 1e9) as u64;
            while let Some(Reverse((end, ending))) =
                self.ends.peek().copied().filter(|Reverse((end, _))| *end <= arrival)
            {
                self.ends.pop();
                self.go_to(end);
                self.held.remove(&ending).unwrap().success();
                self.serve(longer);
            }
            self.go_to(arrival);
            let is_sample = caller % spacing == 0;
            if is_sample {
                let in_flight = u64::from(self.engine.snapshot("target").map_or(0, |snapshot| snapshot.in_flight));
                self.seen.samples += 1;
                self.seen.in_flight += in_flight;
                self.seen.at_most += u64::from(in_flight <= at_most);
            }
            self.ask(caller, is_sample);
        }
        self.seen
    }

    fn go_to(&self, nanos: u64) {
        self.time.increment(nanos - self.time.value());
    }

    fn ask(&mut self, caller: u64, is_sample: bool) {
        let engine = Arc::clone(&self.engine);
        let mut asking: Asking =
            Box::pin(
                async move { engine.admit_waiting_owned("target", Admit::new(), |_| std::future::pending()).await },
            );
        match self.poll(&mut asking, caller) {
            Poll::Ready(Ok(permit)) => self.hold(caller, permit),
            Poll::Ready(Err(rejection)) => {
                assert!(matches!(rejection, Rejection::Saturated { .. }), "{rejection}");
                self.seen.refused += u64::from(is_sample);
            }
            Poll::Pending => {
                self.seen.waited += u64::from(is_sample);
                self.asking.insert(caller, (asking, self.time.value(), is_sample));
            }
        }
    }

    fn poll(&self, asking: &mut Asking, caller: u64) -> Poll<Result<Permit, Rejection>> {
        let waker = Waker::from(Arc::new(Wakes(caller, Arc::clone(&self.woken))));
        asking.as_mut().poll(&mut Context::from_waker(&waker))
    }

    fn hold(&mut self, caller: u64, permit: Permit) {
        let end = self.time.value() + (self.times.draw(&mut self.draws) * 1e9) as u64;
        self.held.insert(caller, permit);
        self.ends.push(Reverse((end, caller)));
    }

    /// Those whose turn it is by now.
    fn serve(&mut self, longer: u64) {
        let woken = std::mem::take(&mut *self.woken.lock().unwrap());
        for caller in woken {
            let (mut asking, since, is_sample) = self.asking.remove(&caller).unwrap();
            let Poll::Ready(Ok(permit)) = self.poll(&mut asking, caller) else { panic!("woken for nothing") };
            self.seen.waited_longer += u64::from(is_sample && self.time.value() - since > longer);
            self.hold(caller, permit);
        }
    }
}
