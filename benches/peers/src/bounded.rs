//! Runs a scenario in its own thread with a deadline: a subject that deadlocks costs its cell, not the run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::time::Duration;

/// What came of a bounded run.
#[derive(Debug)]
pub enum Ended<T> {
    /// It returned.
    Done(T),
    /// It panicked; the message went to stderr.
    Panicked,
    /// It hadn't returned at the deadline. Its thread is left behind, and ends with the process.
    Stuck,
}

/// Runs `work` for at most `deadline`.
pub fn run<T: Send + 'static>(deadline: Duration, work: impl FnOnce() -> T + Send + 'static) -> Ended<T> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody may be left to hear it: that is the stuck case.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    match receiver.recv_timeout(deadline) {
        Ok(Ok(value)) => Ended::Done(value),
        Ok(Err(_)) => Ended::Panicked,
        Err(_) => Ended::Stuck,
    }
}
