//! The control and the floor, which are one: each thread moves a counter of its own, twice a turn. Where that doesn't scale with
//! the threads, a neighbour has taken a core, and what was timed meanwhile says nothing.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::crew::Crew;
use super::stats::Spread;

/// How far above its calm figure a control may be.
const TOLERANCE: f64 = 1.2;
/// Turns between two readings of the clock.
const TURNS: u32 = 500;
/// How many controls are looked at for the calm figure.
const LOOKS: usize = 100;

/// A counter on a line of its own.
pub type Private = CachePadded<AtomicU64>;

/// Two read-modify-writes: the least that takes a permit and gives it back.
#[inline]
pub fn pair(word: &AtomicU64) {
    black_box(word).fetch_add(1, Ordering::AcqRel);
    black_box(word).fetch_add(1, Ordering::AcqRel);
}

/// Nanoseconds that a pair takes this thread now.
#[must_use]
pub fn time(word: &Private, length: Duration) -> f64 {
    let clock = quanta::Clock::new();
    let (start, mut turns) = (clock.raw(), 0);
    loop {
        (0..TURNS).for_each(|_| pair(word));
        turns += TURNS;
        let nanos = clock.delta_as_nanos(start, clock.raw());
        if u128::from(nanos) >= length.as_nanos() {
            return nanos as f64 / f64::from(turns);
        }
    }
}

/// The calm figures for each number of threads.
#[derive(Clone, Debug)]
pub struct Calm(Vec<f64>);

impl Calm {
    /// Looks at the machine with 1, 2, ... all cores. Noise only ever adds, so a low figure is a true one; not quite the lowest, which
    /// may be a moment's turbo.
    #[must_use]
    pub fn look(crew: &Crew, length: Duration) -> Self {
        let figure = |threads| {
            let mut looks: Vec<f64> = (0..LOOKS).map(|_| worst(crew, threads, length)).collect();
            looks.sort_by(f64::total_cmp);
            looks[LOOKS / 10]
        };
        Self((1..=crew.cores()).map(figure).collect())
    }

    /// Whether a control is as it should be with so many threads.
    #[must_use]
    pub fn holds(&self, threads: usize, control: f64) -> bool {
        control <= TOLERANCE * self.of(threads)
    }

    /// Nanoseconds of a pair with so many threads and no neighbours.
    #[must_use]
    pub fn of(&self, threads: usize) -> f64 {
        self.0.get(threads - 1).copied().unwrap_or(f64::INFINITY)
    }
}

fn worst(crew: &Crew, threads: usize, length: Duration) -> f64 {
    let all = crew.run(threads, move |seat| {
        let word = Private::default();
        seat.meet();
        time(&word, length)
    });
    Spread::of(all).map_or(f64::INFINITY, |spread| spread.max)
}

/// The step in which stamps move, in nanoseconds: the finest that single decisions are told apart by.
#[must_use]
pub fn step() -> f64 {
    let clock = quanta::Clock::new();
    let steps = (0..100_000).map(|_| clock.delta_as_nanos(clock.raw(), clock.raw()));
    steps.filter(|step| *step > 0).min().unwrap_or(0) as f64
}

/// How long this thread has stood in line for its core so far, as Linux counts it; nothing elsewhere.
#[must_use]
pub fn queued() -> Duration {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = line.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_shared_with_a_neighbour_shows() {
        let calm = Calm(vec![5.4, 5.6]);
        assert!(calm.holds(1, 5.5) && calm.holds(2, 6.0));
        assert!(!calm.holds(2, 11.2), "half a core is twice the time");
        assert!(!calm.holds(1, 6.6));
    }

    #[test]
    fn a_pair_takes_some_time() {
        let nanos = time(&Private::default(), Duration::from_micros(200));
        assert!(nanos > 0.1 && nanos < 100_000.0, "{nanos}");
    }
}
