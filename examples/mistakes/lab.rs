//! What every mistake needs: an engine on a clock that is moved by hand.

use std::sync::Arc;
use std::time::Duration;

use portcullis::call::{CallPolicyBuilder, Caller, Sleep};
use portcullis::{Clock, Engine, Policy, PolicyBuilder, PolicyError, State};

pub(crate) const TARGET: &str = "core-banking";

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Opens after five failures in a row, for 5 s each time; one success closes.
pub(crate) fn five_in_a_row() -> PolicyBuilder {
    let five = Policy::builder().no_window().consecutive_failures(5);
    five.open_wait(secs(5)).backoff(1.0).jitter(0.0).successes_to_close(1)
}

pub(crate) struct Lab {
    pub(crate) engine: Arc<Engine>,
    pub(crate) time: Arc<quanta::Mock>,
}

impl Lab {
    pub(crate) fn new(policy: PolicyBuilder) -> Result<Self, PolicyError> {
        let (clock, time) = Clock::mock();
        let engine = Engine::builder().policy(policy.build()?).clock(clock).seed(1).build();
        Ok(Self { engine: Arc::new(engine), time })
    }

    pub(crate) fn caller(&self, policy: CallPolicyBuilder) -> Result<Caller, PolicyError> {
        Caller::builder(Arc::clone(&self.engine)).policy(policy.build()?).seed(7).build()
    }

    /// The state of `TARGET`.
    pub(crate) fn state(&self) -> Option<State> {
        self.engine.snapshot(TARGET).map(|snapshot| snapshot.state)
    }

    /// How often any target opened.
    pub(crate) fn trips(&self) -> usize {
        self.engine.transitions().iter().filter(|transition| transition.to == State::Open).count()
    }
}

/// Waits of blocking calls move the clock.
impl Sleep for Lab {
    fn sleep(&self, duration: Duration) {
        self.time.increment(duration);
    }
}

/// Numbers without a pattern, the same in every run (Knuth's MMIX generator).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The upper half: the lower bits of such a generator repeat soon.
        (self.0 >> 32) as u32 % end
    }
}

/// With a comma at the thousands.
pub(crate) fn grouped(number: impl TryInto<u64>) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    if number < 1_000 { number.to_string() } else { format!("{},{:03}", number / 1_000, number % 1_000) }
}

/// Runs async work in a runtime whose time leaps from timer to timer, with the lab's clock after it, to the millisecond.
pub(crate) fn paused<T>(lab: &Lab, work: impl Future<Output = T>) -> std::io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let time = Arc::clone(&lab.time);
    Ok(runtime.block_on(async move {
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(ms(1)).await;
                time.increment(ms(1));
            }
        });
        work.await
    }))
}
