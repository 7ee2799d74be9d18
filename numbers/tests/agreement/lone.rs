//! One caller after the other: what trips on noise.

use std::sync::Arc;

use portcullis::{Clock, Engine, Policy, State};
use portcullis_numbers::simulate::draws::Draws;

/// An engine with one target, on a clock that is moved by hand.
pub(crate) struct Lone {
    engine: Engine,
    time: Arc<quanta::Mock>,
}

/// What a while of calls came to.
pub(crate) struct Noise {
    /// Calls that were counted.
    pub(crate) calls: u64,
    /// Trips among them.
    pub(crate) trips: u64,
    /// Seconds that they took.
    pub(crate) seconds: f64,
}

impl Lone {
    pub(crate) fn new(policy: Policy) -> Self {
        let (clock, time) = Clock::mock();
        Self { engine: Engine::builder().policy(policy).clock(clock).seed(1).build(), time }
    }

    /// Makes calls at a mean rate, evenly at random, of which a share fails; after each trip it closes again at once, with an empty window.
    /// Counts only calls and time of windows that are `filled`: that have seen so many calls, and so many seconds, since they began.
    pub(crate) fn noise(&self, calls: u64, rate: f64, failure: f64, filled: (u64, f64), mut draws: Draws) -> Noise {
        let target = self.engine.target("target").unwrap();
        let mut noise = Noise { calls: 0, trips: 0, seconds: 0.0 };
        let mut of_window = (0, 0.0);
        for _ in 0..calls {
            let gap = draws.exponential(1.0 / rate);
            self.time.increment((gap * 1e9) as u64);
            let is_filled = of_window.0 >= filled.0 && of_window.1 >= filled.1;
            of_window = (of_window.0 + 1, of_window.1 + gap);
            let permit = target.admit().unwrap();
            let _ = if draws.chance(failure) { permit.failure() } else { permit.success() };
            let is_tripped = target.state() == State::Open;
            if is_filled {
                noise.calls += 1;
                noise.seconds += gap;
                noise.trips += u64::from(is_tripped);
            }
            if is_tripped {
                of_window = (0, 0.0);
                self.close();
            }
        }
        noise
    }

    /// How many of so many windows trip before they have seen `calls` calls.
    pub(crate) fn trips_while_filling(&self, windows: u64, calls: u32, failure: f64, mut draws: Draws) -> u64 {
        let target = self.engine.target("target").unwrap();
        let mut trips = 0;
        for _ in 0..windows {
            for _ in 0..calls {
                let permit = target.admit().unwrap();
                let _ = if draws.chance(failure) { permit.failure() } else { permit.success() };
                if target.state() == State::Open {
                    trips += 1;
                    break;
                }
            }
            target.force_open();
            target.release();
        }
        trips
    }

    /// How many of so many windows trip within their first `seconds`.
    pub(crate) fn trips_in_time(&self, windows: u64, seconds: f64, rate: f64, failure: f64, mut draws: Draws) -> u64 {
        let target = self.engine.target("target").unwrap();
        let mut trips = 0;
        for _ in 0..windows {
            let mut passed = 0.0;
            loop {
                let gap = draws.exponential(1.0 / rate);
                passed += gap;
                self.time.increment((gap * 1e9) as u64);
                if passed > seconds {
                    break;
                }
                let permit = target.admit().unwrap();
                let _ = if draws.chance(failure) { permit.failure() } else { permit.success() };
                if target.state() == State::Open {
                    trips += 1;
                    break;
                }
            }
            target.force_open();
            target.release();
        }
        trips
    }

    fn close(&self) {
        self.time.increment(1_000_000_u64 * 2);
        let target = self.engine.target("target").unwrap();
        target.admit().unwrap().success();
        assert_eq!(target.state(), State::Closed);
    }
}
