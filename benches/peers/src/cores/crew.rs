//! Threads that stay, one pinned to each core, and the meetings at which they start and stop together.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

type Job = Box<dyn FnOnce() + Send>;

/// One thread for each core. They live as long as the run, as a server's do: what a subject keeps per thread stays warm.
#[derive(Debug)]
pub struct Crew {
    seats: Vec<Sender<Job>>,
    /// Whether every thread has a core of its own.
    pub is_pinned: bool,
}

impl Crew {
    #[must_use]
    pub fn new() -> Self {
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let (pinned, answers) = channel();
        let seat = |number: usize| {
            let (sender, jobs) = channel::<Job>();
            let (core, pinned) = (cores.get(number).copied(), pinned.clone());
            std::thread::spawn(move || {
                let _ = pinned.send(core.is_some_and(core_affinity::set_for_current));
                jobs.into_iter().for_each(|job| job());
            });
            sender
        };
        let seats: Vec<_> = (0..threads).map(seat).collect();
        let is_pinned = answers.into_iter().take(threads).all(|is_pinned| is_pinned);
        Self { seats, is_pinned }
    }

    #[must_use]
    pub fn cores(&self) -> usize {
        self.seats.len()
    }

    /// Runs `work` on the first `threads` of them at once; the caller sleeps meanwhile. A panic of one is the caller's.
    pub fn run<T: Send + 'static>(&self, threads: usize, work: impl Fn(&Seat) -> T + Send + Sync + 'static) -> Vec<T> {
        let (work, meeting) = (Arc::new(work), Arc::new(AtomicUsize::new(0)));
        let (sender, results) = channel();
        for (number, jobs) in self.seats.iter().take(threads).enumerate() {
            let (work, meeting, sender) = (Arc::clone(&work), Arc::clone(&meeting), sender.clone());
            let job = move || {
                let seat = Seat { number, threads, meeting, meetings: Cell::new(0) };
                let result = catch_unwind(AssertUnwindSafe(|| work(&seat)));
                // What `work` owns goes before the caller hears of it, and may build the next.
                drop(work);
                let _ = sender.send(result);
            };
            assert!(jobs.send(Box::new(job)).is_ok(), "a pinned thread ended");
        }
        drop(sender);
        results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }
}

impl Default for Crew {
    fn default() -> Self {
        Self::new()
    }
}

/// A thread's place among those that run together.
#[derive(Debug)]
pub struct Seat {
    pub number: usize,
    pub threads: usize,
    meeting: Arc<AtomicUsize>,
    meetings: Cell<usize>,
}

impl Seat {
    /// Waits, awake, for all others to come to the same point.
    pub fn meet(&self) {
        self.meetings.set(self.meetings.get() + 1);
        let all = self.meetings.get() * self.threads;
        // Release: what a thread did before is over for all who meet it. Acquire: pairs with it.
        self.meeting.fetch_add(1, Ordering::AcqRel);
        while self.meeting.load(Ordering::Acquire) < all {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_leaves_a_meeting_before_all_have_come() {
        let crew = Crew::new();
        let threads = crew.cores();
        let came = AtomicUsize::new(0);
        let seen = crew.run(threads, move |seat| {
            came.fetch_add(1, Ordering::SeqCst);
            seat.meet();
            let seen = came.load(Ordering::SeqCst);
            seat.meet();
            (seat.number, seen)
        });
        let mut numbers: Vec<_> = seen.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..threads).collect::<Vec<_>>());
        assert!(seen.iter().all(|(_, seen)| *seen == threads), "{seen:?}");
    }
}
