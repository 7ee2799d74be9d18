//! One sample on one thread: the control, the loop, the control again.

use std::hint::black_box;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::case::{Case, Path};
use super::control::{self, Private};
use super::crew::Seat;
use super::keys::{Key, KeySet};
use super::timed::Timed;
use crate::alloc;
use crate::subject::{Ending, Killable};

/// What is measured by a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The time of many decisions together.
    Rate,
    /// The time of each, between two stamps.
    Each,
    /// What is asked of the allocator. Counting takes time, so none is measured.
    Allocations,
}

/// How long a sample takes.
#[derive(Clone, Copy, Debug)]
pub struct Lengths {
    pub control: Duration,
    pub warm: Duration,
    pub sample: Duration,
}

/// One sample, as all of its threads know it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub case: Case,
    pub threads: usize,
    pub measure: Measure,
    pub lengths: Lengths,
    /// Which sample it is: each begins elsewhere in the order of keys.
    pub round: usize,
}

/// What one thread did.
#[derive(Debug)]
pub struct Tally {
    pub decisions: u64,
    pub admitted: u64,
    pub nanos: u64,
    /// The batches that it ran in, and the nanoseconds of the longest.
    pub batches: u64,
    pub longest: u64,
    /// The control before and after.
    pub controls: [f64; 2],
    /// How long it stood in line for its core.
    pub queued: Duration,
    /// Calls that it held open meanwhile.
    pub held: usize,
    pub allocations: u64,
    pub latency: Option<Histogram<u64>>,
}

/// Runs a sample on the thread of a seat.
pub fn run<S: Timed>(subject: &S, keys: &KeySet, seat: &Seat, plan: &Plan) -> Tally {
    let home = &keys.all[keys.home(seat.number)];
    match (keys.order(seat.number), plan.case.path) {
        (Some(order), _) => {
            let at = plan.round.wrapping_mul(0x9e37_79b1);
            sample(subject, keys, seat, plan, Drawn { all: &keys.all, order, at }, Successes)
        }
        (None, Path::Failing(_, one_in)) => {
            // Threads fail at different times, as far as they go in step.
            let left = 1 + one_in * (seat.number as u32 + 1) / seat.threads as u32;
            sample(subject, keys, seat, plan, One(home), Mixed { one_in, left })
        }
        (None, _) => sample(subject, keys, seat, plan, One(home), Successes),
    }
}

fn sample<S: Timed>(
    subject: &S,
    keys: &KeySet,
    seat: &Seat,
    plan: &Plan,
    asking: impl Asking,
    endings: impl Endings,
) -> Tally {
    let home = keys.home(seat.number);
    let (word, clock) = (Private::default(), quanta::Clock::new());
    let mut turns = Turns::<S, _, _> { caller: subject.caller(home), asking, endings };
    seat.meet();
    let held = hold(subject, home, seat, plan.case.path);
    seat.meet();
    let queued = control::queued();
    let before = control::time(&word, plan.lengths.control);
    seat.meet();
    let batch = turns.warm(&clock, plan.lengths.warm);
    seat.meet();
    let allocations = alloc::calls();
    let (mut tally, latency) = match plan.measure {
        Measure::Rate | Measure::Allocations => (turns.together(&clock, plan.lengths.sample, batch), None),
        Measure::Each => turns.each(&clock, plan.lengths.sample),
    };
    let allocations = alloc::calls() - allocations;
    seat.meet();
    let after = control::time(&word, plan.lengths.control);
    let queued = control::queued().saturating_sub(queued);
    // Nobody lets go of what he holds while others are still refused for it.
    seat.meet();
    tally.held = held.len();
    Tally { controls: [before, after], queued, allocations, latency, ..tally }
}

/// Takes what must be out for the others to be refused: every permit, or the one probe, which all ask for at once.
fn hold<'a, S: Timed>(subject: &'a S, home: usize, seat: &Seat, path: Path) -> Vec<Box<dyn Killable + 'a>> {
    let at_most = match path {
        Path::Full if seat.number == 0 => usize::MAX,
        Path::Probing => 1,
        _ => 0,
    };
    (0..at_most).map_while(|_| subject.hold(home)).collect()
}

struct Turns<'a, S: Timed, A, E> {
    caller: S::Caller<'a>,
    asking: A,
    endings: E,
}

impl<S: Timed, A: Asking, E: Endings> Turns<'_, S, A, E> {
    #[inline(always)]
    fn turn(&mut self) -> bool {
        S::call(&mut self.caller, self.asking.key(), self.endings.ending())
    }

    /// How many of so many were admitted.
    #[inline(always)]
    fn batch(&mut self, decisions: u64) -> u64 {
        let mut admitted = 0;
        for _ in 0..decisions {
            admitted += u64::from(self.turn());
        }
        admitted
    }

    /// Runs until caches and predictors know the way. How many decisions are worth one reading of the clock: it is to weigh nothing.
    fn warm(&mut self, clock: &quanta::Clock, length: Duration) -> u64 {
        let (start, mut decisions) = (clock.raw(), 1);
        loop {
            let before = clock.raw();
            black_box(self.batch(decisions));
            let now = clock.raw();
            if clock.delta_as_nanos(start, now) as u128 >= length.as_nanos() {
                return decisions;
            }
            if clock.delta_as_nanos(before, now) < 20_000 {
                decisions *= 2;
            }
        }
    }

    fn together(&mut self, clock: &quanta::Clock, length: Duration, batch: u64) -> Tally {
        let mut tally = Tally::new();
        let start = clock.raw();
        while u128::from(tally.nanos) < length.as_nanos() {
            tally.admitted += self.batch(batch);
            tally.decisions += batch;
            let nanos = clock.delta_as_nanos(start, clock.raw());
            tally.longest = tally.longest.max(nanos - tally.nanos);
            (tally.nanos, tally.batches) = (nanos, tally.batches + 1);
        }
        tally
    }

    fn each(&mut self, clock: &quanta::Clock, length: Duration) -> (Tally, Option<Histogram<u64>>) {
        let mut tally = Tally::new();
        // Two digits: 1 % of a latency is close enough, and the counts stay in the nearest cache.
        let mut latency = Histogram::new_with_bounds(1, 10_000_000_000, 2).ok();
        let (start, mut end) = (clock.raw(), clock.raw());
        while u128::from(clock.delta_as_nanos(start, end)) < length.as_nanos() {
            let before = clock.raw();
            tally.admitted += u64::from(self.turn());
            end = clock.raw();
            tally.decisions += 1;
            if let Some(latency) = &mut latency {
                latency.saturating_record(clock.delta_as_nanos(before, end));
            }
        }
        tally.nanos = clock.delta_as_nanos(start, end);
        (tally, latency)
    }
}

impl Tally {
    fn new() -> Self {
        Self {
            decisions: 0,
            admitted: 0,
            nanos: 0,
            batches: 0,
            longest: 0,
            controls: [0.0; 2],
            queued: Duration::ZERO,
            held: 0,
            allocations: 0,
            latency: None,
        }
    }
}

/// Which key is asked for next.
trait Asking {
    fn key(&mut self) -> &Key;
}

struct One<'a>(&'a Key);

impl Asking for One<'_> {
    #[inline(always)]
    fn key(&mut self) -> &Key {
        self.0
    }
}

/// The drawn order, round and round.
struct Drawn<'a> {
    all: &'a [Key],
    order: &'a [u32],
    at: usize,
}

impl Asking for Drawn<'_> {
    #[inline(always)]
    fn key(&mut self) -> &Key {
        self.at = self.at.wrapping_add(1);
        // A power of two, so that the remainder costs nothing.
        let place = self.order[self.at & (self.order.len() - 1)];
        &self.all[place as usize]
    }
}

/// How the next call ends.
trait Endings {
    fn ending(&mut self) -> Ending;
}

struct Successes;

impl Endings for Successes {
    #[inline(always)]
    fn ending(&mut self) -> Ending {
        Ending::Success
    }
}

/// One failure in so many, as far from each other as can be.
struct Mixed {
    one_in: u32,
    left: u32,
}

impl Endings for Mixed {
    #[inline(always)]
    fn ending(&mut self) -> Ending {
        self.left -= 1;
        if self.left > 0 {
            return Ending::Success;
        }
        self.left = self.one_in;
        Ending::Failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_spread() {
        let mut endings = Mixed { one_in: 10, left: 3 };
        let failed: Vec<_> = (0..30).filter(|_| endings.ending() == Ending::Failure).collect();
        assert_eq!(failed, [2, 12, 22]);
    }

    #[test]
    fn a_drawn_order_goes_round() {
        let all: Vec<Key> = (0..3).map(crate::cores::keys::name).collect();
        let mut drawn = Drawn { all: &all, order: &[2, 0, 1, 1], at: 3 };
        let asked: Vec<_> = (0..5).map(|_| drawn.key().clone()).collect();
        assert_eq!(asked, [2, 0, 1, 1, 2].map(|place| all[place].clone()));
    }
}
