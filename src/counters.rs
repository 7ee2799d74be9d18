//! What is counted beside the decisions: refusals by reason and every ending but success.
//!
//! Successes aren't counted: they are the calls that settled less all other endings. An ending is counted before its call is
//! (in the magazine, with the release), and read after it, so the difference is never too large, and the target keeps it from going back.

use crate::sync::{AtomicU64, Ordering, Role, role};

/// Release: pairs with `READ`, so that a call seen as settled or held has its ending seen too.
const ADD: Role = role("counter.add", Ordering::Release);
/// Acquire: pairs with `ADD`.
const READ: Role = role("counter.read", Ordering::Acquire);
/// Acquire and release: whoever raises the most comes after those that it exceeds.
const RAISE: Role = role("counter.raise", Ordering::AcqRel);
/// Release: pairs with `READ`; a new tenant's counters.
const RESET: Role = role("counter.reset", Ordering::Release);

const WATCHED: u64 = if cfg!(portcullis_loom) { 1 } else { 8 };

/// A counter that only rises, within 584 years of nanoseconds.
#[derive(Debug)]
pub struct Counter(AtomicU64);

impl Default for Counter {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Counter {
    /// Adds and returns the value before.
    pub fn add(&self, amount: u64) -> u64 {
        self.0.fetch_add(amount, ADD)
    }

    /// Adds 1; true if another thread was seen to count here, too.
    ///
    /// That shows in a compare-and-swap that fails, and costs more than an addition: every eighth time is enough.
    #[inline(always)]
    pub fn add_watching(&self) -> bool {
        let seen = self.0.load(READ);
        let is_watched = seen.is_multiple_of(WATCHED);
        if is_watched && self.0.compare_exchange(seen, seen + 1, ADD, READ).is_ok() {
            return false;
        }
        self.0.fetch_add(1, ADD);
        is_watched
    }

    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(READ)
    }

    /// The larger of what was seen before and `value`.
    #[must_use]
    pub fn at_least(&self, value: u64) -> u64 {
        self.0.fetch_max(value, RAISE).max(value)
    }

    /// Only while nobody else holds the target.
    pub fn reset(&self) {
        self.0.store(0, RESET);
    }
}

/// A number that rises and falls.
#[derive(Debug, Default)]
pub struct Gauge(Counter);

impl Gauge {
    pub fn raise(&self) {
        self.0.add(1);
    }

    pub fn lower(&self) {
        // Wraps back: it was raised before.
        self.0.add(u64::MAX);
    }

    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// Refusals by reason.
#[derive(Debug, Default)]
pub struct Refusals {
    pub open: Counter,
    pub probing: Counter,
    pub saturated: Counter,
    pub shed: Counter,
    pub forced: Counter,
}

impl Refusals {
    /// Starts again at zero for a new tenant; nobody else may hold the target.
    pub fn reset(&self) {
        let Self { open, probing, saturated, shed, forced } = self;
        for counter in [open, probing, saturated, shed, forced] {
            counter.reset();
        }
    }
}

/// The endings of one target's calls, made when the first of them is needed.
#[derive(Debug, Default)]
pub struct Counters {
    pub failure: Counter,
    pub ignored: Counter,
    pub abandoned: Counter,
    pub slow: Counter,
    pub stale: Counter,
    /// Calls whose ending is counted while they are still in flight.
    pub held: Gauge,
}

impl Counters {
    /// As [`Refusals::reset`].
    pub fn reset(&self) {
        let Self { failure, ignored, abandoned, slow, stale, held } = self;
        for counter in [failure, ignored, abandoned, slow, stale, &held.0] {
            counter.reset();
        }
    }
}
