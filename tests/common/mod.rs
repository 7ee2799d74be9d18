//! What every behaviour test needs: an engine on a clock that stands still until it is moved.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::sync::Arc;
use std::time::Duration;

use portcullis::{Clock, Engine, PolicyBuilder, Snapshot, State, Transition};

pub(crate) const T: &str = "core-banking";

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// An engine with its time.
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) time: Arc<quanta::Mock>,
}

impl Bench {
    /// An engine whose waits have no jitter unless the policy sets one before.
    pub(crate) fn new(policy: PolicyBuilder) -> Self {
        let (clock, time) = Clock::mock();
        let policy = policy.build().expect("the policy of a test builds");
        Self { engine: Engine::builder().policy(policy).clock(clock).seed(1).build(), time }
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.time.increment(by);
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.engine.snapshot(T).expect("the target is known")
    }

    pub(crate) fn state(&self) -> State {
        self.snapshot().state
    }

    pub(crate) fn fail(&self, times: usize) {
        (0..times).for_each(|_| {
            self.engine.admit(T).expect("admitted to fail").failure();
        });
    }

    pub(crate) fn succeed(&self, times: usize) {
        (0..times).for_each(|_| {
            self.engine.admit(T).expect("admitted to succeed").success();
        });
    }

    pub(crate) fn log(&self) -> Vec<Arc<Transition>> {
        self.engine.transitions()
    }

    /// `from -> to` of every transition.
    pub(crate) fn path(&self) -> Vec<(State, State)> {
        self.log().iter().map(|transition| (transition.from, transition.to)).collect()
    }
}
