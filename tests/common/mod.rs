//! What every behaviour test needs: an engine on a clock that stands still until it is moved.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod waiter;

use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use portcullis::{
    Clock, Engine, EngineBuilder, Permit, Policy, PolicyBuilder, Rejection, Snapshot, State, Transition, Window,
};

pub(crate) const T: &str = "core-banking";

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The textbook breaker: the last 10 calls, at least 5, half of them failed; a wait of 30 s without jitter, one success closes.
pub(crate) fn textbook() -> PolicyBuilder {
    let window = Policy::builder().window(Window::calls(10)).min_calls(5).failure_rate(0.5);
    window.open_wait(secs(30)).open_wait_max(secs(300)).jitter(0.0).successes_to_close(1)
}

/// An engine with its time.
pub(crate) struct Bench {
    pub(crate) engine: Engine,
    pub(crate) time: Arc<quanta::Mock>,
}

impl Bench {
    /// An engine with this policy for all targets, on a clock of its own.
    pub(crate) fn new(policy: PolicyBuilder) -> Self {
        Self::with(policy, |builder| builder)
    }

    /// As `new`, with further settings of the engine.
    pub(crate) fn with(policy: PolicyBuilder, more: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        let (clock, time) = Clock::mock();
        let policy = policy.build().expect("the policy of a test builds");
        Self { engine: more(Engine::builder().policy(policy).clock(clock).seed(1)).build(), time }
    }

    /// An engine whose target `T` was tripped by five failures just now.
    pub(crate) fn tripped(policy: PolicyBuilder) -> Self {
        let bench = Self::new(policy);
        bench.fail(5);
        assert_eq!(bench.state(), State::Open, "five failures trip the policy of this test");
        bench
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.time.increment(by);
    }

    pub(crate) fn admit(&self) -> Result<Permit<'_>, Rejection> {
        self.engine.admit(T)
    }

    pub(crate) fn enter(&self) -> Permit<'_> {
        self.admit().expect("admitted")
    }

    /// A permit that must be a probe.
    pub(crate) fn probe(&self) -> Permit<'_> {
        let permit = self.admit().expect("admitted as a probe");
        assert!(permit.is_probe(), "{permit:?}");
        permit
    }

    pub(crate) fn refusal(&self) -> Rejection {
        self.admit().expect_err("refused")
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.engine.snapshot(T).expect("the target is known")
    }

    pub(crate) fn state(&self) -> State {
        self.snapshot().state
    }

    /// The gate's state as written, which an elapsed OPEN doesn't leave by itself.
    pub(crate) fn last_state(&self) -> State {
        self.log().last().map_or(State::Closed, |transition| transition.to)
    }

    /// Calls and failures in the window.
    pub(crate) fn window(&self) -> (u64, u64) {
        let window = self.snapshot().window.expect("the policy has a window");
        (window.calls, window.failures)
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

/// What admission needs after a trip: the permits that were there before it.
pub(crate) fn take<'e>(bench: &'e Bench, permits: usize) -> Vec<Permit<'e>> {
    (0..permits).map(|_| bench.enter()).collect()
}

/// Runs `work` on so many threads that start together, and gives back what they made of it.
pub(crate) fn race<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        let run = |index| {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                work(index)
            })
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        running.into_iter().map(|thread| thread.join().expect("no thread of a race panics")).collect()
    })
}

/// Everything that an observer heard.
pub(crate) type Heard<K = String> = Arc<Mutex<Vec<Transition<K>>>>;

/// An observer that keeps what it hears.
pub(crate) fn listener() -> (Heard, impl Fn(&Transition) + Send + Sync + 'static) {
    let heard: Heard = Heard::default();
    let shared = Arc::clone(&heard);
    (heard, move |transition: &Transition| shared.lock().expect("no listener panics").push(transition.clone()))
}

/// A generator of numbers for load that is the same in every run (splitmix64).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % end
    }
}
