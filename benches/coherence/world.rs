//! The scheduler: real threads, one a core, of which one runs at a time.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

use portcullis::internals::trace::{self, Access, Kind, Recorder};

use super::caches::Caches;
use super::tally::Tally;

/// Who is next, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Before each access the core whose number follows.
    Turns,
    /// Before each access any core, all with the same chance: the harshest, since a word that was read is often another's before it is
    /// written.
    Each,
    /// As `Each`, but only where an admission or a settlement begins: the kindest, since no compare-and-swap is ever lost.
    Halves,
}

/// A part of a run: so many decisions in one order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Phase {
    pub(crate) order: Order,
    pub(crate) decisions: u64,
}

/// A small generator of pseudorandom numbers: splitmix64.
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % end as u64) as usize
    }
}

#[derive(Debug)]
struct State {
    rng: Rng,
    caches: Caches,
    /// The cores that still run.
    living: Vec<usize>,
    phases: Vec<Phase>,
    /// The tally of each phase so far.
    tallies: Vec<Tally>,
}

impl State {
    fn order(&self) -> Order {
        self.phases.get(self.tallies.len() - 1).map_or(Order::Halves, |phase| phase.order)
    }

    fn next(&mut self, core: usize) -> usize {
        match self.order() {
            Order::Turns => self.living.iter().copied().find(|other| *other > core).unwrap_or(self.living[0]),
            Order::Each | Order::Halves => self.living[self.rng.below(self.living.len())],
        }
    }
}

/// The machine while it runs.
#[derive(Debug)]
pub(crate) struct World {
    state: Mutex<State>,
    turn: AtomicUsize,
    threads: OnceLock<Vec<Thread>>,
}

/// A thread's place in it.
#[derive(Debug)]
pub(crate) struct Seat {
    world: Arc<World>,
    core: usize,
    /// Whether others may run before an access.
    is_shared: Cell<bool>,
}

impl World {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets another core run until it is this one's turn again.
    fn pass(&self, core: usize, next: usize) {
        if next == core {
            return;
        }
        self.give(next);
        self.wait(core);
    }

    fn give(&self, next: usize) {
        self.turn.store(next, Ordering::SeqCst);
        if let Some(thread) = self.threads.get().and_then(|threads| threads.get(next)) {
            thread.unpark();
        }
    }

    fn wait(&self, core: usize) {
        while self.turn.load(Ordering::SeqCst) != core {
            std::thread::park();
        }
    }
}

impl Seat {
    /// One half of a decision is about to begin.
    pub(crate) fn begin(&self) {
        let next = {
            let mut state = self.world.state();
            if state.order() != Order::Halves {
                return;
            }
            state.next(self.core)
        };
        self.world.pass(self.core, next);
    }

    /// A decision is made: a call was refused, or settled.
    pub(crate) fn decided(&self, is_admitted: bool) {
        let mut state = self.world.state();
        let phase = state.phases.get(state.tallies.len() - 1).copied();
        let Some(tally) = state.tallies.last_mut() else { return };
        tally.decisions += 1;
        tally.refused += u64::from(!is_admitted);
        if phase.is_some_and(|phase| tally.decisions == phase.decisions) {
            state.tallies.push(Tally::default());
        }
    }

    /// Whether all phases are over.
    pub(crate) fn is_done(&self) -> bool {
        let state = self.world.state();
        state.tallies.len() > state.phases.len()
    }

    /// Lets others go first.
    pub(crate) fn rest(&self) {
        let next = self.world.state().next(self.core);
        self.world.pass(self.core, next);
    }

    /// Does something that counts, and that no other core comes between.
    pub(crate) fn undisturbed<R>(&self, work: impl FnOnce() -> R) -> R {
        self.is_shared.set(false);
        let result = work();
        self.is_shared.set(true);
        result
    }
}

impl Recorder for Seat {
    fn turn(&self) {
        if !self.is_shared.get() {
            return;
        }
        let next = {
            let mut state = self.world.state();
            if state.order() == Order::Halves {
                return;
            }
            state.next(self.core)
        };
        self.world.pass(self.core, next);
    }

    fn note(&self, access: Access) {
        let mut state = self.world.state();
        let cost = state.caches.access(self.core, access.address, access.kind);
        if let Some(tally) = state.tallies.last_mut() {
            tally.count(access, cost);
        }
    }
}

/// What a core does: it is given its seat, and ends when the seat is done.
pub(crate) type Work<'a> = dyn Fn(&Seat) + Sync + 'a;

/// Runs a machine of so many cores; the tally of each phase.
pub(crate) fn run(cores: usize, phases: &[Phase], work: &Work<'_>) -> Vec<Tally> {
    let state = State {
        rng: Rng::new(cores as u64),
        caches: Caches::default(),
        living: (0..cores).collect(),
        phases: phases.to_vec(),
        tallies: vec![Tally::default()],
    };
    let world = Arc::new(World {
        state: Mutex::new(state),
        // Nobody's.
        turn: AtomicUsize::new(usize::MAX),
        threads: OnceLock::new(),
    });
    std::thread::scope(|scope| {
        let seat = |core| {
            let world = Arc::clone(&world);
            scope.spawn(move || sit(world, core, work))
        };
        let seats: Vec<_> = (0..cores).map(seat).collect();
        let _ = world.threads.set(seats.iter().map(|seat| seat.thread().clone()).collect());
        world.give(0);
        // To the very end of each, when its number is free for the next run.
        for seat in seats {
            seat.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    let mut tallies = std::mem::take(&mut world.state().tallies);
    // What came after the last phase.
    tallies.truncate(phases.len());
    tallies
}

fn sit(world: Arc<World>, core: usize, work: &Work<'_>) {
    /// Lets the others go on, also if the work panics.
    struct Leave(Arc<World>, usize);

    impl Drop for Leave {
        fn drop(&mut self) {
            trace::record(None);
            let next = {
                let mut state = self.0.state();
                state.living.retain(|core| *core != self.1);
                if state.living.is_empty() { None } else { Some(state.next(self.1)) }
            };
            if let Some(next) = next {
                self.0.give(next);
            }
        }
    }

    world.wait(core);
    let leave = Leave(Arc::clone(&world), core);
    let seat = Rc::new(Seat { world, core, is_shared: Cell::new(true) });
    trace::record(Some(Rc::<Seat>::clone(&seat)));
    work(&seat);
    drop(leave);
}

/// Whether an access is a target's getting its stripes.
pub(crate) fn is_growth(access: Access) -> bool {
    access.kind == Kind::Publish && access.by.file().ends_with("stripe.rs")
}
