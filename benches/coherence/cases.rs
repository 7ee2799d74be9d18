//! What is asked of whom.

use std::time::Duration;

use portcullis::internals::trace;
use portcullis::{Policy, Window};

use super::patterns::{MapAndSemaphore, SingleWord};
use super::subject::{self, Keyed, Load, Resolved, Subject, limited};
use super::tally::Tally;
use super::world::{Order, Phase};

/// The sizes of machines.
pub(crate) const CORES: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// The size that the goal names.
pub(crate) const GOAL_CORES: usize = 64;
/// The most transfers per decision on the healthy path.
pub(crate) const GOAL: f64 = 0.05;

/// Large enough for stashes on 128 cores: 4 × 128 stripes × a batch of 32.
const LARGE: u32 = 16_384;
/// Large enough on 64 cores, and no larger.
const LEAST: u32 = 8_192;
/// Large enough on 4 cores, and no more.
const SMALL: u32 = 1_000;
/// Calls that a core has in flight at most, unless a case is about more.
const DEPTH: usize = 4;

/// Whose row it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kin {
    /// The engine as the goal means it.
    Healthy,
    /// The engine otherwise.
    Harder,
    /// What others do.
    Pattern,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) kin: Kin,
    run: fn(usize) -> Vec<Tally>,
}

/// What came of a case on a machine.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) case: &'static str,
    pub(crate) kin: Kin,
    pub(crate) cores: usize,
    /// How much of the limit is in flight, in percent, where a case is about that.
    pub(crate) share: Option<u32>,
    pub(crate) warm: Tally,
    /// Where cores come between any two accesses.
    pub(crate) harsh: Tally,
    /// Where they come between admissions and settlements only.
    pub(crate) kind: Tally,
}

pub(crate) const CASES: [Case; 16] = [
    Case {
        name: "resolved, unlimited",
        kin: Kin::Healthy,
        run: |cores| usual(&Resolved::new(Policy::builder()), cores),
    },
    Case {
        name: "resolved, limit 16,384",
        kin: Kin::Healthy,
        run: |cores| usual(&Resolved::new(limited(LARGE)), cores),
    },
    Case { name: "keyed, unlimited", kin: Kin::Healthy, run: |cores| usual(&Keyed::new(Policy::builder()), cores) },
    Case { name: "keyed, limit 16,384", kin: Kin::Healthy, run: |cores| usual(&Keyed::new(limited(LARGE)), cores) },
    Case { name: "resolved, streak of 5, no window", kin: Kin::Healthy, run: |cores| usual(&streak(), cores) },
    Case { name: "resolved, window of 10 s", kin: Kin::Healthy, run: |cores| timed(0, cores) },
    Case { name: "refused while OPEN", kin: Kin::Healthy, run: open },
    Case { name: "refused while full", kin: Kin::Healthy, run: full },
    Case { name: "calls end on any core", kin: Kin::Healthy, run: wandering },
    Case { name: "0 to 100 in flight on each core", kin: Kin::Healthy, run: bursts },
    Case { name: "0.1 % failures, window of 100 calls", kin: Kin::Harder, run: |cores| failing(1_000, cores) },
    Case { name: "1 % failures, window of 100 calls", kin: Kin::Harder, run: |cores| failing(100, cores) },
    Case { name: "1 % failures, window of 10 s", kin: Kin::Harder, run: |cores| timed(100, cores) },
    Case { name: "limit 1,000: no stashes from 8 cores on", kin: Kin::Harder, run: |cores| small(cores) },
    Case {
        name: "pattern: a single word",
        kin: Kin::Pattern,
        run: |cores| usual(&SingleWord::new(LARGE.into()), cores),
    },
    Case {
        name: "pattern: DashMap + Semaphore",
        kin: Kin::Pattern,
        run: |cores| usual(&MapAndSemaphore::new(LARGE.into()), cores),
    },
];

impl Case {
    pub(crate) fn run(&self, cores: usize) -> Row {
        trace::pretend_cores(cores);
        Row::new(self.name, self.kin, cores, None, (self.run)(cores))
    }
}

impl Row {
    fn new(case: &'static str, kin: Kin, cores: usize, share: Option<u32>, tallies: Vec<Tally>) -> Self {
        let Ok([warm, harsh, kind]) = <[Tally; 3]>::try_from(tallies) else { panic!("{case}: a phase is missing") };
        Self { case, kin, cores, share, warm, harsh, kind }
    }

    /// The worse of the two orders.
    pub(crate) fn worst(&self) -> f64 {
        self.harsh.transfers_per_decision().max(self.kind.transfers_per_decision())
    }
}

/// Until the target has its stripes and each core its stash, and then so many decisions a core in each order.
fn phases(cores: usize, harsh: u64, kind: u64) -> [Phase; 3] {
    let cores = cores as u64;
    // Few cores seldom meet, so their targets take long to get stripes.
    let warm = if cores <= 4 { 5_000 } else { 24 * cores + 400 };
    [(Order::Each, warm), (Order::Each, harsh * cores), (Order::Halves, kind * cores)]
        .map(|(order, decisions)| Phase { order, decisions })
}

fn streak() -> Resolved {
    Resolved::new(limited(LARGE).no_window().consecutive_failures(5))
}

fn load() -> Load {
    Load { depth: DEPTH, ..Load::default() }
}

/// Of which none is refused.
fn usual<S: Subject>(subject: &S, cores: usize) -> Vec<Tally> {
    let tallies = subject::run(subject, cores, &load(), &phases(cores, 40, 100));
    assert!(tallies.iter().all(|tally| tally.refused == 0), "a healthy target admits");
    tallies
}

/// A bucket of a second ends after each 64 decisions of a core.
fn timed(one_fails_in: u64, cores: usize) -> Vec<Tally> {
    let target = Resolved::new(limited(LARGE).window(Window::time(Duration::from_secs(10))));
    // Each decision has two halves.
    let step = Duration::from_secs(1) / (2 * 64 * cores as u32);
    let load = Load { one_fails_in, time: Some((target.time.clone(), step)), ..load() };
    let (harsh, kind) = if one_fails_in == 0 { (40, 200) } else { (6, 64) };
    subject::run(&target, cores, &load, &phases(cores, harsh, kind))
}

/// Long enough for stashes to run out and over.
fn wandering(cores: usize) -> Vec<Tally> {
    let load = Load { wanders: true, ..load() };
    subject::run(&Resolved::new(limited(LARGE)), cores, &load, &phases(cores, 60, 1_200))
}

fn bursts(cores: usize) -> Vec<Tally> {
    let load = Load { depth: 100, ..load() };
    subject::run(&Resolved::new(limited(LARGE)), cores, &load, &phases(cores, 60, 400))
}

/// Long enough to be judged, short enough to wait for.
fn small(cores: usize) -> Vec<Tally> {
    subject::run(&Resolved::new(limited(SMALL)), cores, &load(), &phases(cores, 10, 100))
}

fn failing(one_fails_in: u64, cores: usize) -> Vec<Tally> {
    let load = Load { one_fails_in, ..load() };
    subject::run(&Resolved::new(limited(LARGE)), cores, &load, &phases(cores, 40, 100))
}

fn open(cores: usize) -> Vec<Tally> {
    refused(&Resolved::new(limited(LARGE)).open(), cores, &load())
}

fn full(cores: usize) -> Vec<Tally> {
    refused(&Resolved::new(limited(LARGE)), cores, &Load { held: LARGE as usize, ..load() })
}

/// Of which none is admitted.
fn refused<S: Subject>(subject: &S, cores: usize, load: &Load) -> Vec<Tally> {
    let tallies = subject::run(subject, cores, load, &phases(cores, 40, 100));
    assert!(tallies.iter().all(|tally| tally.refused == tally.decisions), "a target that is open or full refuses");
    tallies
}

/// Shares of the limit that are in flight on average, in percent.
const SHARES: [u32; 9] = [50, 70, 75, 80, 90, 95, 99, 100, 105];

/// Nearer and nearer to the limit, on the machine of the goal.
pub(crate) fn near_the_limit() -> Vec<Row> {
    let limits = [("limit 8,192", LEAST), ("limit 65,536", 8 * LEAST)];
    let rows = limits.into_iter().flat_map(|(name, limit)| SHARES.map(|share| near(name, limit, share)));
    rows.collect()
}

fn near(name: &'static str, limit: u32, share: u32) -> Row {
    let cores = GOAL_CORES;
    trace::pretend_cores(cores);
    // The calls that come and go are half of the most, on average.
    let held = (limit as usize * share as usize / 100).saturating_sub(cores * DEPTH / 2);
    let tallies = subject::run(&Resolved::new(limited(limit)), cores, &Load { held, ..load() }, &phases(cores, 6, 60));
    Row::new(name, Kin::Harder, cores, Some(share), tallies)
}
