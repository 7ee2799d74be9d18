use std::collections::VecDeque;

use portcullis::{Policy, PolicyBuilder, Settled, State, Window};

use super::kit::{Overlap, race, t0};
use crate::common::{Bench, T, ms, secs};

/// Counts and never trips.
fn watching(window: Window) -> PolicyBuilder {
    Policy::builder().window(window).min_calls(1_000_000).slow_call(secs(1)).slow_rate(1.0).jitter(0.0)
}

fn counts(bench: &Bench) -> (u64, u64, u64) {
    let window = bench.snapshot().window.unwrap();
    (window.calls, window.failures, window.slow)
}

#[test]
fn wm06_any_idle_gap_empties_the_whole_window() {
    let bench = Bench::new(t0());
    for _ in 0..4 {
        bench.fail(1);
        bench.advance(secs(1));
    }
    assert_eq!(bench.snapshot().window.unwrap().failures, 4);
    for gap in [ms(9_500), ms(86_500), secs(1_000_000), secs(31_000_000)] {
        bench.advance(gap);
        bench.fail(1);
        assert_eq!((bench.state(), counts(&bench)), (State::Closed, (1, 1, 0)), "after {gap:?}");
    }
}

/// Invariant 6: each field against a recount of the calls whose bucket is in the window.
#[test]
fn wm07_every_field_of_a_time_window_is_recounted() {
    for (width, buckets) in [(1_000_u64, 10_u32), (1_000, 3), (1_000, 1), (250, 64), (7, 5)] {
        let bench = Bench::new(watching(Window::time(ms(width * u64::from(buckets))).buckets(buckets)));
        let (mut queue, mut seed, mut now) = (VecDeque::new(), 7_u32, 0_u64);
        for step in 0..500 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (failed, slow, gap) = (seed >> 31 == 0, (seed >> 30) & 1 == 0, u64::from(seed >> 16) % (2 * width));
            let permit = bench.engine.admit(T).unwrap();
            let ran = if slow { 1_000 } else { 0 };
            bench.advance(ms(ran));
            now += ran;
            assert_eq!(if failed { permit.failure() } else { permit.success() }, Settled::Recorded);
            queue.push_back((now, failed, slow));
            bench.advance(ms(gap));
            now += gap;
            let newest = now / width;
            let is_in = |call: &&(u64, bool, bool)| call.0 / width + u64::from(buckets) > newest;
            let count = |part: fn(&(u64, bool, bool)) -> bool| {
                queue.iter().filter(is_in).filter(|call| part(call)).count() as u64
            };
            let expected = (count(|_| true), count(|call| call.1), count(|call| call.2));
            assert_eq!(counts(&bench), expected, "{buckets} x {width} ms, step {step}");
        }
    }
}

#[test]
fn wm09_a_success_empties_no_window() {
    let bench = Bench::new(t0());
    for (call, failed) in [true, true, false, true, true].into_iter().enumerate() {
        assert!(bench.engine.transitions().is_empty(), "before call {call}");
        if failed {
            bench.fail(1);
        } else {
            bench.succeed(1);
        }
        bench.advance(ms(400));
    }
    assert_eq!(bench.state(), State::Open);
    assert_eq!(bench.log()[0].evidence.as_ref().map(|evidence| (evidence.failures, evidence.calls)), Some((4, 5)));
}

#[test]
fn wm10_a_burst_counts_the_same_wherever_the_edges_are() {
    for phase in 0..10 {
        let bench = Bench::new(t0());
        bench.advance(ms(100 * phase));
        for _ in 0..100 {
            bench.succeed(100);
            bench.advance(ms(100));
        }
        for _ in 0..9 {
            bench.fail(100);
            bench.advance(ms(100));
        }
        assert_eq!(bench.state(), State::Closed, "900 of about 10,000, phase {phase}");
        let (calls, failures, _) = counts(&bench);
        assert!((9_000..=10_900).contains(&calls) && failures == 900, "{failures} of {calls}");
    }
    let bench = Bench::new(t0());
    bench.advance(ms(9_900));
    bench.fail(3);
    bench.advance(ms(200));
    bench.fail(2);
    assert_eq!(bench.state(), State::Open, "rotation is no reset");
}

#[test]
fn wm15_an_outcome_on_the_edge_is_counted_once_and_leaves_on_the_edge() {
    let bench = Bench::new(t0());
    bench.advance(secs(10));
    bench.fail(1);
    assert_eq!(counts(&bench), (1, 1, 0));
    let bench = Bench::new(t0());
    bench.fail(1);
    bench.advance(ms(9_999));
    assert_eq!(counts(&bench), (1, 1, 0));
    bench.advance(ms(1));
    assert_eq!(counts(&bench), (0, 0, 0));
    bench.advance(ms(1));
    assert_eq!(counts(&bench), (0, 0, 0));
    // R18: a window that its buckets don't divide isn't built.
    assert!(t0().window(Window::time(secs(10)).buckets(3)).build().is_err());
}

#[test]
fn wm16_the_smallest_windows_work() {
    let bench = Bench::new(watching(Window::time(secs(1)).buckets(1)));
    for _ in 0..4 {
        bench.fail(1);
        assert_eq!(counts(&bench), (1, 1, 0));
        bench.advance(secs(1));
        assert_eq!(counts(&bench), (0, 0, 0));
    }
    let bench = Bench::new(watching(Window::time(ms(1)).buckets(1)));
    bench.fail(2);
    assert_eq!(counts(&bench), (2, 2, 0));
    bench.advance(ms(1));
    assert_eq!(counts(&bench), (0, 0, 0));
    let bench = Bench::new(t0().window(Window::calls(1)).min_calls(1));
    bench.succeed(3);
    bench.fail(1);
    assert_eq!(bench.state(), State::Open);
}

#[test]
fn wm18_threads_that_cross_an_edge_together_lose_nothing() {
    let overlap = Overlap::default();
    for _ in 0..500 {
        let bench = Bench::new(watching(Window::time(secs(2)).buckets(2)));
        bench.fail(100);
        bench.advance(secs(1));
        race(2, |_| overlap.during(|| bench.fail(3)));
        assert_eq!(counts(&bench), (106, 106, 0));
        bench.advance(secs(1));
        race(2, |_| overlap.during(|| bench.fail(1)));
        assert_eq!(counts(&bench), (8, 8, 0));
    }
    overlap.assert_met();
}

#[test]
fn wm19_a_reader_never_sees_more_than_was_written() {
    let overlap = Overlap::default();
    let bench = Bench::new(watching(Window::time(secs(10)).buckets(10)));
    assert!(bench.engine.admit(T).is_ok_and(|permit| permit.ignore() == Settled::Recorded));
    race(2, |number| {
        for step in 0..4_000_u64 {
            if number == 0 {
                // A write per bucket, ten in a window: the writer turns the ring under the reader's eyes.
                overlap.during(|| bench.fail(1));
                bench.advance(secs(1));
            } else {
                let (calls, failures, slow) = overlap.during(|| counts(&bench));
                assert!(calls <= 10 && failures <= calls && slow == 0, "{failures} of {calls} at step {step}");
            }
        }
    });
    overlap.assert_met();
}

#[test]
fn wm24_admissions_before_a_trip_are_bounded_by_what_is_in_flight() {
    // 10 calls a second that fail after 15 s: 150 in flight when the first is heard of, then five outcomes trip.
    let bench = Bench::new(t0());
    let (mut flying, mut admitted) = (VecDeque::new(), 0);
    for _ in 0..200 {
        if let Ok(permit) = bench.engine.admit(T) {
            flying.push_back(permit);
            admitted += 1;
        }
        bench.advance(ms(100));
        if flying.len() > 150 {
            flying.pop_front().unwrap().failure();
        }
    }
    assert_eq!((bench.state(), admitted), (State::Open, 155));
    // A bulkhead bounds it lower.
    let bench = Bench::new(t0().max_in_flight(20));
    let flying: Vec<_> = (0..200).filter_map(|_| bench.engine.admit(T).ok()).collect();
    assert_eq!(flying.len(), 20);
    // Outcomes are stamped when they come: a call longer than the window still counts.
    bench.advance(secs(60));
    flying.into_iter().take(5).for_each(|permit| assert_eq!(permit.failure(), Settled::Recorded));
    assert_eq!(bench.state(), State::Open);
}
