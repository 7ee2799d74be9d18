//! What decides, and the cores that ask it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use portcullis::{Clock, Engine, Permit, Policy, PolicyBuilder, Target};

use super::tally::Tally;
use super::world::{self, Phase, Rng, Seat};

/// Something that admits calls and hears how they ended.
pub(crate) trait Subject: Sync {
    type Call: Send;

    /// None if the call is refused.
    fn admit(&self) -> Option<Self::Call>;

    fn settle(&self, call: Self::Call, failed: bool);
}

pub(crate) const KEY: &str = "core-banking.eu-west-1.example.com:443";

/// A clock that stands still until it is moved.
type Time = Arc<quanta::Mock>;

fn engine(policy: PolicyBuilder) -> (&'static Engine, Time) {
    let (clock, time) = Clock::mock();
    let policy = policy.build().unwrap_or_else(|error| panic!("the policy of a bench builds: {error}"));
    (Box::leak(Box::new(Engine::builder().policy(policy).clock(clock).build())), time)
}

/// The engine, asked by a handle.
#[derive(Debug)]
pub(crate) struct Resolved {
    target: Target<'static>,
    pub(crate) time: Time,
}

impl Resolved {
    pub(crate) fn new(policy: PolicyBuilder) -> Self {
        let (engine, time) = engine(policy);
        let target = engine.target(KEY).unwrap_or_else(|rejection| panic!("there is room: {rejection}"));
        Self { target, time }
    }

    /// With a breaker that opened.
    pub(crate) fn open(self) -> Self {
        while let Ok(permit) = self.target.admit() {
            permit.failure();
        }
        self
    }
}

fn settle(permit: Permit<'static>, failed: bool) {
    if failed {
        permit.failure()
    } else {
        permit.success()
    };
}

impl Subject for Resolved {
    type Call = Permit<'static>;

    fn admit(&self) -> Option<Self::Call> {
        self.target.admit().ok()
    }

    fn settle(&self, call: Self::Call, failed: bool) {
        settle(call, failed);
    }
}

/// The engine, asked by key.
#[derive(Debug)]
pub(crate) struct Keyed(&'static Engine);

impl Keyed {
    pub(crate) fn new(policy: PolicyBuilder) -> Self {
        let (engine, _) = engine(policy);
        // So that no core has to make the target, which takes a lock that others would wait for out of turn.
        drop(engine.target(KEY));
        Self(engine)
    }
}

impl Subject for Keyed {
    type Call = Permit<'static>;

    fn admit(&self) -> Option<Self::Call> {
        self.0.admit(KEY).ok()
    }

    fn settle(&self, call: Self::Call, failed: bool) {
        settle(call, failed);
    }
}

/// How the cores ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct Load {
    /// The most calls that a core has in flight at once; between none and so many at any time.
    pub(crate) depth: usize,
    /// One call in so many fails; 0 for none.
    pub(crate) one_fails_in: u64,
    /// Calls that are in flight all along, spread over the cores.
    pub(crate) held: usize,
    /// Whether a call ends on any core, not on the one that it began on.
    pub(crate) wanders: bool,
    /// A clock, and by how much it goes on with each decision.
    pub(crate) time: Option<(Time, std::time::Duration)>,
}

/// Lets so many cores ask a subject.
pub(crate) fn run<S: Subject>(subject: &S, cores: usize, load: &Load, phases: &[Phase]) -> Vec<Tally> {
    let (seats, seated, settled) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(0));
    let wandering = Mutex::new(Vec::new());
    let pool = || wandering.lock().unwrap_or_else(PoisonError::into_inner);
    let settle = |seat: &Seat, call: S::Call| {
        let number = settled.fetch_add(1, Ordering::Relaxed) + 1;
        subject.settle(call, load.one_fails_in > 0 && number.is_multiple_of(load.one_fails_in));
        seat.decided(true);
    };
    let work = |seat: &Seat| {
        let core = seats.fetch_add(1, Ordering::Relaxed);
        let share = load.held / cores + usize::from(core < load.held % cores);
        let held: Vec<_> = seat.undisturbed(|| (0..share).filter_map(|_| subject.admit()).collect());
        seated.fetch_add(1, Ordering::Relaxed);
        while seated.load(Ordering::Relaxed) < cores {
            seat.rest();
        }
        let mut rng = Rng::new(core as u64 + 1);
        let mut own = Vec::new();
        while !seat.is_done() {
            if let Some((time, step)) = &load.time {
                time.increment(*step);
            }
            let at_hand = if load.wanders { pool().len() } else { own.len() };
            let most = if load.wanders { load.depth * cores } else { load.depth };
            seat.begin();
            if at_hand == 0 || (at_hand < most && rng.below(2) == 0) {
                match subject.admit() {
                    Some(call) if load.wanders => pool().push(call),
                    Some(call) => own.push(call),
                    None => seat.decided(false),
                }
                continue;
            }
            let call = if load.wanders {
                let mut calls = pool();
                // Another core may have come first.
                if calls.is_empty() { None } else { Some(rng.below(calls.len())).map(|place| calls.swap_remove(place)) }
            } else {
                Some(own.swap_remove(rng.below(at_hand)))
            };
            if let Some(call) = call {
                settle(seat, call);
            }
        }
        seat.undisturbed(|| {
            for call in held.into_iter().chain(own) {
                subject.settle(call, false);
            }
        });
    };
    let tallies = world::run(cores, phases, &work);
    let decided: Vec<_> = tallies.iter().map(|tally| tally.decisions).collect();
    let planned: Vec<_> = phases.iter().map(|phase| phase.decisions).collect();
    assert_eq!(decided, planned, "a run that stopped early says nothing");
    tallies
}

/// The usual policy: a window of 100 calls, as in the other benches.
pub(crate) fn limited(limit: u32) -> PolicyBuilder {
    Policy::builder().max_in_flight(limit)
}
