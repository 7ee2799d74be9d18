use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use portcullis::call::{CallCounts, CallPolicy, CallPolicyBuilder, Caller};
use portcullis::{Clock, Engine, Policy, PolicyBuilder, Snapshot};

use crate::common::{T, ms};

/// An engine and a caller whose clock follows tokio's paused one, to the millisecond.
pub(super) struct World {
    pub(super) engine: Arc<Engine>,
    pub(super) caller: Caller,
    pub(super) time: Arc<quanta::Mock>,
}

impl World {
    /// Within a runtime whose time is paused.
    pub(super) fn new(policy: PolicyBuilder, call: CallPolicyBuilder) -> Self {
        Self::ticking(policy, call, ms(1))
    }

    /// As `new`, whose clock follows in steps of this length.
    pub(super) fn ticking(policy: PolicyBuilder, call: CallPolicyBuilder, tick: Duration) -> Self {
        let world = Self::standing(policy, call);
        let time = Arc::clone(&world.time);
        let mut seen = tokio::time::Instant::now();
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(tick).await;
                let now = tokio::time::Instant::now();
                time.increment(now - seen);
                seen = now;
            }
        });
        world
    }

    /// On a clock that stands still until it is moved.
    pub(super) fn standing(policy: PolicyBuilder, call: CallPolicyBuilder) -> Self {
        let (clock, time) = Clock::mock();
        let engine = Arc::new(Engine::builder().policy(policy.build().unwrap()).clock(clock).seed(1).build());
        let caller = Caller::builder(Arc::clone(&engine)).policy(call.build().unwrap()).seed(7).build().unwrap();
        Self { engine, caller, time }
    }

    pub(super) fn counts(&self) -> CallCounts {
        self.caller.counts(T).unwrap_or_default()
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.engine.snapshot(T).unwrap()
    }

    /// Successes, failures, ignored and abandoned calls.
    pub(super) fn totals(&self) -> [u64; 4] {
        let totals = self.snapshot().totals;
        [totals.success, totals.failure, totals.ignored, totals.abandoned]
    }
}

/// A breaker that never trips.
pub(super) fn patient() -> PolicyBuilder {
    Policy::builder().no_window()
}

/// Three attempts of 100 ms with backoffs of at most 10 and 20 ms: 330 ms at worst.
pub(super) fn three() -> CallPolicyBuilder {
    CallPolicy::builder().timeout(ms(100)).attempts(3).backoff(ms(10)).backoff_max(ms(20))
}

/// Counts how often it was asked.
#[derive(Clone, Default)]
pub(super) struct Count(Arc<AtomicU32>);

impl Count {
    /// The number of this time, from 1.
    pub(super) fn next(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What tokio's clock says of how long this takes.
pub(super) async fn timed<F: Future>(future: F) -> (F::Output, Duration) {
    let started = tokio::time::Instant::now();
    (future.await, started.elapsed())
}
