//! The engine's time: a monotonic clock, read at most once per decision, and the ticks that words are packed in.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// Nanoseconds since the engine was built, saturating: a clock that steps back before the start reads 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Now(u64);

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
        Duration::from_nanos(tick.saturating_mul(NANOS_PER_TICK).saturating_sub(self.0))
    }

    /// The time left until the start of `second`; zero once it has come.
    #[must_use]
    pub const fn until_second(self, second: u64) -> Duration {
        Duration::from_nanos(second.saturating_mul(NANOS_PER_SECOND).saturating_sub(self.0))
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

    pub fn now(&self) -> Now {
        self.taken.get().unwrap_or_else(|| {
            let now = (self.read)();
            self.taken.set(Some(now));
            now
        })
    }
}

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
    /// [`ClockError`] if the interval is zero, the thread can't be started, or quanta's upkeep was started elsewhere in the process.
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
        Started { raw: self.source.raw(), instant: self.source.now(), clock: self }
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

/// The thread that refreshes quanta's cached time.
#[derive(Debug)]
struct Upkeep {
    interval: Duration,
    _thread: quanta::Handle,
}

impl Upkeep {
    /// The process's one upkeep, started if nobody holds it. quanta allows no second.
    fn shared(interval: Duration) -> Result<Arc<Self>, ClockError> {
        static RUNNING: std::sync::Mutex<Option<Arc<Upkeep>>> = std::sync::Mutex::new(None);
        let mut running = RUNNING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(upkeep) = &*running {
            return Ok(Arc::clone(upkeep));
        }
        if interval.is_zero() {
            return Err(ClockError("interval: 0 is out of range: must be above zero".into()));
        }
        let thread = quanta::Upkeep::new(interval).start().map_err(|error| ClockError(error.to_string()))?;
        let upkeep = Arc::new(Self { interval, _thread: thread });
        *running = Some(Arc::clone(&upkeep));
        Ok(upkeep)
    }
}

/// A clock with the moment at which its engine was built.
#[derive(Debug)]
pub(crate) struct Started {
    clock: Clock,
    raw: u64,
    instant: quanta::Instant,
}

impl Started {
    pub(crate) fn now(&self) -> Now {
        let source = &self.clock.source;
        if self.clock.coarse.is_some() {
            // The upkeep may not have run yet, or lag behind the precise start: both read 0.
            return Now(saturating_nanos(source.recent().saturating_duration_since(self.instant)));
        }
        // Differences only, so any origin serves, also one that wraps; a step back before the start shows as a huge one.
        let elapsed = source.raw().wrapping_sub(self.raw);
        Now(if elapsed > u64::MAX / 2 { 0 } else { source.delta_as_nanos(0, elapsed) })
    }

    /// How old a reading may be; zero when each reading is fresh.
    pub(crate) fn resolution(&self) -> Duration {
        self.clock.coarse.as_ref().map_or(Duration::ZERO, |upkeep| upkeep.interval)
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
