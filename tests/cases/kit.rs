//! What the cases share: the notation's two policies, and threads behind a barrier.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use portcullis::{Policy, PolicyBuilder, Rejection, State, Subscription, Window};

use crate::common::{Bench, T, secs};

/// `C0`: the last 10 calls, at least 5, one half, 30 s, one probe, one success closes.
pub(crate) fn c0() -> PolicyBuilder {
    let policy = Policy::builder().window(Window::calls(10)).min_calls(5).failure_rate(0.5);
    policy.open_wait(secs(30)).backoff(1.0).jitter(0.0).max_probes(1).successes_to_close(1)
}

/// `T0`: as `C0`, over 10 s in 10 buckets.
pub(crate) fn t0() -> PolicyBuilder {
    c0().window(Window::time(secs(10)).buckets(10))
}

/// A bench that tripped just now.
pub(crate) fn opened(policy: PolicyBuilder) -> Bench {
    let bench = Bench::new(policy);
    bench.fail(5);
    assert!(matches!(bench.engine.admit(T), Err(Rejection::Open { .. })), "five failures open");
    bench
}

/// A bench that tripped and waited out its 30 s.
pub(crate) fn elapsed(policy: PolicyBuilder) -> Bench {
    let bench = opened(policy);
    bench.advance(secs(30));
    bench
}

/// Runs one closure per thread, all let go at once; their values in the order of the threads' numbers.
pub(crate) fn race<R: Send>(threads: usize, run: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let barrier = Barrier::new(threads);
    std::thread::scope(|scope| {
        let start = |number| {
            let (barrier, run) = (&barrier, &run);
            move || {
                barrier.wait();
                run(number)
            }
        };
        let racers: Vec<_> = (0..threads).map(|number| scope.spawn(start(number))).collect();
        racers.into_iter().map(|racer| racer.join().expect("a racer doesn't panic")).collect()
    })
}

/// Notices whether threads were inside of something at the same time.
#[derive(Debug, Default)]
pub(crate) struct Overlap {
    inside: AtomicUsize,
    met: AtomicUsize,
}

impl Overlap {
    pub(crate) fn during<R>(&self, run: impl FnOnce() -> R) -> R {
        if self.inside.fetch_add(1, Ordering::SeqCst) > 0 {
            self.met.fetch_add(1, Ordering::SeqCst);
        }
        if self.met.load(Ordering::SeqCst) == 0 {
            // Invites the others in, also where there are fewer cores than threads.
            std::thread::yield_now();
        }
        let value = run();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        value
    }

    /// Fails a test whose threads never met: it looked at nothing.
    pub(crate) fn assert_met(&self) {
        assert!(self.met.load(Ordering::SeqCst) > 0, "no two threads met");
    }
}

/// Says that a value of no interest, such as what came of a settlement that the test doesn't ask about, is let go.
pub(crate) fn done<T>(_: T) {}

/// Invariant 8: what a subscription with room for all delivers is in order, its chain unbroken but for holes that the engine owns up
/// to (a thread that sleeps between its transition and its report is waited for only so long), and nothing is missing. How many
/// came.
pub(crate) fn assert_ordered(bench: &Bench, subscription: &Subscription) -> u64 {
    let (mut state, mut sequence, mut came) = (State::Closed, 0, 0_u64);
    while let Ok(transition) = subscription.try_recv() {
        assert!(transition.sequence > sequence, "{} after {sequence}", transition.sequence);
        if transition.sequence == sequence + 1 {
            assert_eq!(transition.from, state, "at {}", transition.sequence);
        }
        (state, sequence, came) = (transition.to, transition.sequence, came + 1);
    }
    let snapshot = bench.snapshot();
    // The log keeps the last 1,024 of what came.
    let holes = bench.engine.transitions_dropped() - came.saturating_sub(1_024);
    assert_eq!((sequence, came + holes), (u64::from(snapshot.generation), sequence));
    assert_eq!(subscription.dropped(), 0);
    let is_elapsed = (state, snapshot.state) == (State::Open, State::HalfOpen);
    assert!(snapshot.state == state || is_elapsed, "{state} but shows {}", snapshot.state);
    came
}
