use portcullis::{Policy, PolicyBuilder, State, Window};

use super::kit::t0;
use crate::common::{Bench, T, ms, secs};

/// R8: closing starts an empty window, also after 16 transitions, when a narrow tag comes round again. Here two outages of an hour's
/// window, 3 + 2 x reopenings transitions each, add up to 16.
#[test]
fn wm06_an_old_outage_does_not_come_back_after_sixteen_transitions() {
    let policy = t0().window(Window::time(secs(3_600)).buckets(10));
    let bench = Bench::new(policy);
    let outage = |reopens: usize| {
        bench.fail(5);
        for _ in 0..reopens {
            bench.advance(secs(30));
            bench.fail(1);
        }
        bench.advance(secs(30));
        bench.succeed(1);
        assert_eq!(bench.state(), State::Closed);
    };
    // Into another bucket than a new window begins with.
    bench.advance(secs(1_200));
    outage(2);
    outage(3);
    assert_eq!(bench.snapshot().generation, 16);
    let window = bench.snapshot().window.unwrap();
    assert_eq!((window.calls, window.failures), (0, 0), "closing starts an empty window");
    bench.succeed(1);
    assert_eq!(bench.state(), State::Closed, "a success trips on failures of another generation");
}

/// The same by hand: eight times forced open and released.
#[test]
fn wm06_no_number_of_transitions_brings_a_window_back() {
    for cycles in 1..=40 {
        let bench = Bench::new(t0().window(Window::time(secs(3_600)).buckets(10)));
        bench.fail(4);
        // Buckets know their millisecond: what was forced and released eight times within one isn't told apart.
        bench.advance(ms(1));
        for _ in 0..cycles {
            assert!(bench.engine.force_open(T).unwrap() && bench.engine.release(T).unwrap());
        }
        let window = bench.snapshot().window.unwrap();
        assert_eq!((window.calls, window.failures), (0, 0), "after {} transitions", 2 * cycles);
    }
}

fn one_bucket() -> PolicyBuilder {
    Policy::builder().window(Window::time(secs(1)).buckets(1)).min_calls(5).jitter(0.0)
}

/// A thread's reading of the clock may be older than its neighbour's: its failure counts in the newer bucket, as a failure.
#[test]
fn wm18_a_failure_whose_reading_lags_is_not_lost() {
    let bench = Bench::new(one_bucket());
    bench.advance(ms(1_500));
    bench.succeed(1);
    bench.time.decrement(secs(1));
    bench.fail(4);
    let window = bench.engine.snapshot(T).unwrap().window.unwrap();
    // It trips at the fifth call, or holds four failures of five if it had more to wait for.
    assert!(bench.state() == State::Open || (window.calls, window.failures) == (5, 4), "{window:?}");
    assert_eq!(bench.state(), State::Open);
}

/// Failures and calls of one bucket can't come apart, whatever order the readings come in.
#[test]
fn wm18_every_failure_counts_with_its_call() {
    for buckets in [1_u32, 2, 3] {
        let length = ms(1_000 * u64::from(buckets));
        let bench = Bench::new(one_bucket().window(Window::time(length).buckets(buckets)).min_calls(1_000_000));
        bench.advance(secs(1_000));
        let mut seed = 3_u32;
        for step in 0..2_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let by = ms(u64::from(seed >> 16) % 1_500);
            if (seed >> 15) & 1 == 0 {
                bench.time.increment(by);
            } else {
                bench.time.decrement(by);
            };
            bench.fail(1);
            let window = bench.snapshot().window.unwrap();
            assert_eq!(window.failures, window.calls, "{buckets} buckets, step {step}");
            assert!(window.calls > 0, "the call that just ended isn't in the window");
        }
    }
}
