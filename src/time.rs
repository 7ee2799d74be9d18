//! The engine's time: a monotonic clock, read at most once per decision, and the ticks that words are packed in.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use crate::sync::{AtomicU64, Ordering, Role, role};

/// Nanoseconds since the engine was built, saturating: a clock that steps back before the start reads 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now(u64);

/// Relaxed: a number by itself.
const READ_COARSE: Role = role("coarse.read", Ordering::Relaxed);
/// Relaxed: as `READ_COARSE`.
const REFRESH: Role = role("coarse.refresh", Ordering::Relaxed);

pub(crate) const NANOS_PER_TICK: u64 = 1_000_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

impl Now {
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(NANOS_PER_TICK))
    }

    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Whole milliseconds, the tick of gates and buckets.
    #[must_use]
    pub const fn tick(self) -> u64 {
        self.0 / NANOS_PER_TICK
    }

    /// The first tick that is not before `millis` from now.
    #[must_use]
    pub const fn tick_after(self, millis: u64) -> u64 {
        self.0.div_ceil(NANOS_PER_TICK).saturating_add(millis)
    }

    /// Whole seconds, the tick of leases.
    #[must_use]
    pub const fn second(self) -> u64 {
        self.0 / NANOS_PER_SECOND
    }

    /// The first whole second that is not before `seconds` from now.
    #[must_use]
    pub const fn second_after(self, seconds: u64) -> u64 {
        self.0.div_ceil(NANOS_PER_SECOND).saturating_add(seconds)
    }

    /// The time left until the start of `tick`; zero once it has come.
    #[must_use]
    pub const fn until_tick(self, tick: u64) -> Duration {
        Duration::from_nanos(self.nanos_until_tick(tick))
    }

    #[must_use]
    #[inline]
    pub const fn nanos_until_tick(self, tick: u64) -> u64 {
        tick.saturating_mul(NANOS_PER_TICK).saturating_sub(self.0)
    }

    /// The time left until the start of `second`; zero once it has come.
    #[must_use]
    pub const fn nanos_until_second(self, second: u64) -> u64 {
        second.saturating_mul(NANOS_PER_SECOND).saturating_sub(self.0)
    }

    /// Nanoseconds that have passed since `earlier`; 0 if the clock stepped back.
    #[must_use]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The one clock reading of a decision, taken when first asked for (R13).
#[derive(Debug)]
pub struct Reading<F> {
    read: F,
    taken: Cell<Option<Now>>,
}

impl<F: Fn() -> Now> Reading<F> {
    pub fn new(read: F) -> Self {
        Self { read, taken: Cell::new(None) }
    }

    /// The reading if it was taken.
    pub(crate) fn taken(&self) -> Option<Now> {
        self.taken.get()
    }

    pub fn now(&self) -> Now {
        self.taken.get().unwrap_or_else(|| {
            let now = (self.read)();
            self.taken.set(Some(now));
            now
        })
    }
}

/// A reading by whatever clock: shadows are asked from within a decision, whose own reading's type would go on without end.
pub(crate) type AnyReading<'r> = Reading<&'r dyn Fn() -> Now>;

/// A whole number of nanoseconds; more than `u64` holds (584 years) becomes the largest.
pub(crate) fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A source of monotonic time for one engine.
///
/// Wall time never enters a decision. On Linux and macOS the clock stands still while the machine is suspended, so an
/// open wait goes on where it stopped; where it leaps instead, the leap counts as ordinary elapsed time.
#[derive(Clone, Debug)]
pub struct Clock {
    source: quanta::Clock,
    coarse: Option<Arc<Upkeep>>,
}

impl Clock {
    /// Reads the time stamp counter at each use, about 12 ns on x86-64.
    #[must_use]
    pub fn precise() -> Self {
        Self::from(quanta::Clock::new())
    }

    /// Reads a cached time, under 1 ns, that a thread refreshes every `interval` (1 ms to 1 s is sensible).
    ///
    /// Times are late by up to `interval`, and `retry_after` is rounded up by it. The thread is one for the process: it
    /// starts with the first coarse clock and stays; later clocks share it with the interval it has.
    ///
    /// # Errors
    ///
    /// [`ClockError`] if the interval is zero or the thread can't be started.
    pub fn coarse(interval: Duration) -> Result<Self, ClockError> {
        Ok(Self { source: quanta::Clock::new(), coarse: Some(Upkeep::shared(interval)?) })
    }

    /// Stands still until the returned handle moves it; for tests and simulations.
    ///
    /// ```
    /// use std::time::Duration;
    /// let (clock, time) = portcullis::Clock::mock();
    /// let engine = portcullis::Engine::<String>::builder().clock(clock).build();
    /// time.increment(Duration::from_secs(5));
    /// assert_eq!(engine.now(), Duration::from_secs(5));
    /// ```
    #[must_use]
    pub fn mock() -> (Self, Arc<quanta::Mock>) {
        let (clock, mock) = quanta::Clock::mock();
        (Self::from(clock), mock)
    }

    pub(crate) fn start(self) -> Started {
        let (start, resolution) = match &self.coarse {
            Some(upkeep) => {
                // So that an engine's time doesn't begin with a leap.
                upkeep.refresh();
                (upkeep.elapsed.load(READ_COARSE), saturating_nanos(upkeep.interval))
            }
            None => (self.source.raw(), 0),
        };
        Started { start, resolution, clock: self }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::precise()
    }
}

impl From<quanta::Clock> for Clock {
    fn from(source: quanta::Clock) -> Self {
        Self { source, coarse: None }
    }
}

/// A coarse clock couldn't be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockError(String);

impl std::fmt::Display for ClockError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no coarse clock: {}", self.0)
    }
}

impl std::error::Error for ClockError {}

/// The thread that reads the clock for everybody, one for the process.
///
/// quanta's own does the same, but what it keeps must be converted at each use, which takes as long as a refusal, and whoever else
/// starts it in the process decides how coarse it is.
#[derive(Debug)]
struct Upkeep {
    interval: Duration,
    source: quanta::Clock,
    /// What the source showed at the beginning.
    origin: u64,
    /// Nanoseconds since then.
    elapsed: AtomicU64,
}

impl Upkeep {
    /// The process's one upkeep, started if nobody did.
    fn shared(interval: Duration) -> Result<Arc<Self>, ClockError> {
        static RUNNING: std::sync::Mutex<Option<Arc<Upkeep>>> = std::sync::Mutex::new(None);
        let mut running = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(upkeep) = &*running {
            return Ok(Arc::clone(upkeep));
        }
        if interval.is_zero() {
            return Err(ClockError("interval: 0 is out of range: must be above zero".into()));
        }
        let source = quanta::Clock::new();
        let upkeep = Arc::new(Self { interval, origin: source.raw(), source, elapsed: AtomicU64::new(0) });
        let kept = Arc::clone(&upkeep);
        let thread = std::thread::Builder::new().name("portcullis-clock".into());
        thread.spawn(move || kept.run()).map_err(|error| ClockError(error.to_string()))?;
        *running = Some(Arc::clone(&upkeep));
        Ok(upkeep)
    }

    fn run(&self) -> ! {
        loop {
            self.refresh();
            std::thread::sleep(self.interval);
        }
    }

    fn refresh(&self) {
        self.elapsed.fetch_max(nanos_between(&self.source, self.origin, self.source.raw()), REFRESH);
    }
}

/// Differences only, so any origin serves, also one that wraps; a step back before the start shows as a huge one and counts as none.
#[inline]
fn nanos_between(source: &quanta::Clock, start: u64, end: u64) -> u64 {
    let elapsed = end.wrapping_sub(start);
    if elapsed > u64::MAX / 2 { 0 } else { source.delta_as_nanos(0, elapsed) }
}

/// A clock with the moment at which its engine was built.
#[derive(Debug)]
pub(crate) struct Started {
    clock: Clock,
    /// By the source's own count; with an upkeep, in its nanoseconds.
    start: u64,
    resolution: u64,
}

impl Started {
    #[inline]
    pub(crate) fn now(&self) -> Now {
        match &self.clock.coarse {
            Some(upkeep) => Now(upkeep.elapsed.load(READ_COARSE).saturating_sub(self.start)),
            None => Now(nanos_between(&self.clock.source, self.start, self.clock.source.raw())),
        }
    }

    /// How many nanoseconds old a reading may be; zero when each reading is fresh.
    #[inline]
    pub(crate) fn resolution(&self) -> u64 {
        self.resolution
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_round_down_and_deadlines_round_up() {
        let now = Now::from_nanos(1_500_000);
        assert_eq!(now.tick(), 1);
        assert_eq!(now.tick_after(30), 32);
        assert_eq!(now.until_tick(32), Duration::from_nanos(30_500_000));
        assert_eq!(Now::from_millis(2).tick_after(30), 32);
        assert_eq!(now.second_after(10), 11);
    }

    #[test]
    fn a_clock_that_steps_back_never_panics() {
        let (clock, mock) = Clock::mock();
        mock.increment(100_u64);
        let started = clock.start();
        mock.decrement(50_u64);
        assert_eq!(started.now(), Now::default());
        assert_eq!(Now::from_nanos(3).nanos_since(Now::from_nanos(9)), 0);
    }

    #[test]
    fn any_origin_gives_the_same_time() {
        for origin in [0, 1, u64::from(u32::MAX), 1 << 40, u64::MAX / 2, u64::MAX - 20] {
            let (clock, mock) = Clock::mock();
            mock.increment(origin);
            let started = clock.start();
            mock.increment(20_u64);
            assert_eq!(started.now(), Now::from_nanos(20), "origin {origin}");
        }
    }

    #[test]
    fn the_last_moment_saturates() {
        let end = Now::from_nanos(u64::MAX);
        assert!(end.tick_after(u64::MAX) == u64::MAX);
        assert_eq!(end.until_tick(u64::MAX), Duration::ZERO);
        assert_eq!(saturating_nanos(Duration::MAX), u64::MAX);
    }
}
