//! The clock of a round: jumps from nanoseconds to years, and steps back.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portcullis::Clock;

use crate::plan::Random;

/// Where the clock begins, far enough from zero for every step back.
const ORIGIN: u64 = 1 << 60;
/// An engine reads a time 292 years after its start as one before it.
const END: u64 = ORIGIN + 200 * YEAR;
/// A little before the start, which reads as the start.
const LEAST: u64 = ORIGIN - HOUR;

const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;
const YEAR: u64 = 365 * 24 * HOUR;

#[derive(Debug)]
pub(crate) struct Time {
    mock: Arc<quanta::Mock>,
    /// What it shows, and the latest that it ever showed: one lock, so that a step back can't be computed from an old value.
    shown: Mutex<(u64, u64)>,
    /// Years pass in few rounds only: after 2.18 of them the packed ticks stand still, which is a world of its own.
    is_ancient: bool,
}

impl Time {
    #[must_use]
    pub(crate) fn new(is_ancient: bool) -> (Clock, Self) {
        let (clock, mock) = Clock::mock();
        mock.increment(ORIGIN);
        (clock, Self { mock, shown: Mutex::new((ORIGIN, ORIGIN)), is_ancient })
    }

    /// Moves somewhere.
    pub(crate) fn jump(&self, random: &mut Random) {
        let (least, most) = match random.draw(1_000) {
            0..400 => (1, 1_000),
            400..900 => (1_000, 3_000_000),
            900..985 => (3_000_000, SECOND),
            985..998 => (SECOND, 100 * SECOND),
            998 => (100 * SECOND, 24 * HOUR),
            _ if self.is_ancient => (24 * HOUR, 5 * YEAR),
            _ => (1, 2),
        };
        let by = least + random.draw(most - least);
        if random.one_in(8) { self.back(by) } else { self.pass(by) }
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.pass(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Undoes all steps back.
    pub(crate) fn catch_up(&self) {
        let (now, latest) = *self.lock();
        self.pass(latest - now);
    }

    fn pass(&self, by: u64) {
        let mut shown = self.lock();
        let by = by.min(END - shown.0);
        self.mock.increment(by);
        shown.0 += by;
        shown.1 = shown.1.max(shown.0);
    }

    fn back(&self, by: u64) {
        let mut shown = self.lock();
        let by = by.min(shown.0 - LEAST);
        self.mock.decrement(by);
        shown.0 -= by;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (u64, u64)> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
