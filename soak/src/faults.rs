//! What was found wrong, and panics that nobody planned.

use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// As many are kept in words; the rest is only counted.
const KEPT: usize = 20;

#[derive(Debug, Default)]
pub(crate) struct Faults {
    found: AtomicU64,
    words: Mutex<Vec<String>>,
}

impl Faults {
    pub(crate) fn add(&self, what: String) {
        self.found.fetch_add(1, Ordering::Relaxed);
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        if words.len() < KEPT {
            words.push(what);
        }
    }

    /// Notes a violation unless it holds.
    pub(crate) fn check(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.add(what());
        }
    }

    pub(crate) fn equal<T: Copy + PartialEq + std::fmt::Debug>(&self, what: &str, got: T, expected: T) {
        self.check(got == expected, || format!("{what}: {got:?}, expected {expected:?}"));
    }

    #[must_use]
    pub(crate) fn found(&self) -> u64 {
        self.found.load(Ordering::Relaxed)
    }

    #[must_use]
    pub(crate) fn words(&self) -> Vec<String> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs something that must not panic.
    pub(crate) fn guard<R>(&self, what: &str, run: impl FnOnce() -> R) -> Option<R> {
        let result = catch_unwind(AssertUnwindSafe(run));
        if result.is_err() {
            self.add(format!("{what} panicked"));
        }
        result.ok()
    }
}

/// The payload of a panic that belongs to the play.
#[derive(Debug)]
pub(crate) struct Staged;

/// Panics as a user's code may.
pub(crate) fn stage_a_panic() -> ! {
    panic_any(Staged)
}

/// Runs something that may panic, by plan.
pub(crate) fn survive<R>(run: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<Staged>() => None,
        Err(payload) => std::panic::resume_unwind(payload),
    }
}

/// Keeps staged panics out of the output.
pub(crate) fn quieten() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.payload().is::<Staged>() {
            usual(info);
        }
    }));
}
