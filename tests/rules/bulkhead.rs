//! R17 and R21: limits, lowered and raised while calls run.

use std::sync::atomic::{AtomicUsize, Ordering};

use portcullis::{Policy, Rejection, Settled, State, UNLIMITED};

use crate::common::{Bench, T, race, secs, take, textbook};

fn limited(limit: u32) -> Bench {
    Bench::new(textbook().max_in_flight(limit))
}

#[test]
fn r21_a_lone_caller_gets_every_permit_and_not_one_more() {
    for limit in [1, 2, 3, 31, 127, 128, 129, 511, 513, 5_000] {
        let bench = limited(limit);
        for _ in 0..3 {
            let permits = take(&bench, limit as usize);
            assert_eq!(bench.refusal(), Rejection::Saturated { limit });
            assert_eq!(bench.snapshot().in_flight, limit);
            drop(permits);
            assert_eq!(bench.snapshot().in_flight, 0);
        }
    }
}

#[test]
fn r21_one_permit_given_back_admits_one() {
    let bench = limited(300);
    let mut permits = take(&bench, 300);
    for index in 0..300 {
        assert_eq!(bench.refusal(), Rejection::Saturated { limit: 300 });
        permits.swap_remove(index).success();
        permits.push(bench.enter());
    }
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 300 });
}

#[test]
fn r21_many_threads_never_exceed_the_limit() {
    for limit in [1, 3, 150] {
        let bench = limited(limit);
        let (inside, most, refused) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        race(8, |_| {
            for _ in 0..2_000 {
                match bench.admit() {
                    Ok(permit) => {
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                        permit.success();
                    }
                    Err(rejection) => {
                        assert_eq!(rejection, Rejection::Saturated { limit });
                        refused.fetch_add(1, Ordering::SeqCst);
                    }
                }
            }
        });
        assert!(most.into_inner() <= limit as usize);
        let snapshot = bench.snapshot();
        assert_eq!(snapshot.refusals.saturated, refused.into_inner() as u64);
        assert_eq!((snapshot.in_flight, snapshot.totals.admitted + snapshot.refusals.saturated), (0, 16_000));
        assert_eq!(take(&bench, limit as usize).len(), limit as usize);
    }
}

#[test]
fn r17_a_lower_limit_admits_nobody_until_the_count_is_under_it() {
    for limit in [10, 600] {
        let bench = limited(limit);
        let mut permits = take(&bench, limit as usize);
        bench.engine.set_limit(T, 3).unwrap();
        while permits.len() > 2 {
            assert_eq!(bench.snapshot().in_flight as usize, permits.len(), "calls in flight stay counted");
            assert_eq!(bench.refusal(), Rejection::Saturated { limit: 3 });
            permits.pop().map(portcullis::Permit::success);
        }
        permits.push(bench.enter());
        assert_eq!(bench.refusal(), Rejection::Saturated { limit: 3 });
    }
}

#[test]
fn r17_a_raised_limit_admits_at_once() {
    let bench = limited(2);
    let mut permits = take(&bench, 2);
    bench.engine.set_limit(T, 5).unwrap();
    permits.extend(take(&bench, 3));
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 5 });
}

#[test]
fn r17_a_limit_of_zero_stops_calls_and_spares_the_breaker() {
    let bench = limited(5);
    bench.fail(3);
    let running = bench.enter();
    bench.engine.set_limit(T, 0).unwrap();
    (0..9).for_each(|_| assert_eq!(bench.refusal(), Rejection::Saturated { limit: 0 }));
    assert_eq!(running.success(), Settled::Recorded);
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 0 });
    assert_eq!((bench.state(), bench.window(), bench.log().len()), (State::Closed, (4, 3), 0));
    bench.engine.set_limit(T, 5).unwrap();
    assert_eq!(take(&bench, 5).len(), 5);
}

#[test]
fn r17_a_limit_of_zero_spends_no_probe() {
    let bench = Bench::tripped(textbook().max_in_flight(5));
    bench.engine.set_limit(T, 0).unwrap();
    bench.advance(secs(30));
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 0 });
    assert_eq!(bench.log().len(), 1);
    bench.engine.set_limit(T, 1).unwrap();
    bench.probe().success();
}

#[test]
fn r17_a_limit_past_the_largest_is_none() {
    let bench = limited(1);
    for limit in [UNLIMITED, UNLIMITED + 1, u32::MAX] {
        bench.engine.set_limit(T, 1).unwrap();
        bench.engine.set_limit(T, limit).unwrap();
        assert!(bench.snapshot().is_unlimited());
    }
    assert_eq!(take(&bench, 1_000).len(), 1_000);
}

#[test]
fn r17_unlimited_still_counts() {
    let bench = Bench::new(Policy::builder().unlimited());
    let permits = take(&bench, 2_000);
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.limit, snapshot.is_unlimited()), (2_000, UNLIMITED, true));
    drop(permits);
    assert_eq!(bench.snapshot().in_flight, 0);
}

#[test]
fn r17_limits_that_move_under_load_lose_no_permit() {
    let bench = limited(1_000);
    let most = AtomicUsize::new(0);
    race(8, |thread| {
        let mut draw = crate::common::Draw(thread as u64);
        let mut held = Vec::new();
        for step in 0..1_500 {
            if thread == 0 && step % 10 == 0 {
                bench.engine.set_limit(T, draw.below(1_500) as u32).unwrap();
            }
            if draw.below(2) == 0 {
                held.extend(bench.admit());
                most.fetch_max(held.len(), Ordering::Relaxed);
            } else if !held.is_empty() {
                let index = draw.below(held.len() as u64) as usize;
                held.swap_remove(index).success();
            }
        }
    });
    assert!(most.into_inner() > 1, "calls overlapped");
    bench.engine.set_limit(T, 700).unwrap();
    assert_eq!(bench.snapshot().in_flight, 0);
    assert_eq!(take(&bench, 700).len(), 700);
    let permits = take(&bench, 700);
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 700 });
    drop(permits);
}

#[test]
fn r17_once_a_lowering_has_returned_nobody_starts_above_it() {
    for _ in 0..50 {
        let bench = limited(1_000);
        let lowered = AtomicUsize::new(0);
        race(4, |thread| {
            if thread == 0 {
                bench.engine.set_limit(T, 2).unwrap();
                lowered.store(1, Ordering::SeqCst);
                return;
            }
            for _ in 0..200 {
                let was_lowered = lowered.load(Ordering::SeqCst) == 1;
                let permits: Vec<_> = (0..3).filter_map(|_| bench.admit().ok()).collect();
                assert!(!was_lowered || permits.len() <= 2, "{} at once under a limit of 2", permits.len());
            }
        });
    }
}
