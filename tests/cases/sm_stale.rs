use portcullis::{Permit, Rejection, Settled, State};

use super::kit::{Overlap, c0, elapsed, opened, race};
use crate::common::{Bench, T, ms, secs};

#[test]
fn sm10_cancelling_an_old_call_does_not_move_half_open() {
    let bench = Bench::new(c0());
    let old = bench.engine.admit(T).unwrap();
    bench.advance(secs(1));
    bench.fail(5);
    bench.advance(secs(30));
    let probe = bench.engine.admit(T).unwrap();
    bench.advance(ms(500));
    drop(old);
    assert_eq!((bench.state(), bench.snapshot().probes_in_flight), (State::HalfOpen, 1));
    bench.advance(ms(500));
    assert_eq!(probe.success(), Settled::Recorded);
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn sm13_a_success_admitted_while_closed_does_not_close() {
    let bench = Bench::new(c0());
    let slow = bench.engine.admit(T).unwrap();
    bench.advance(secs(2));
    bench.fail(5);
    bench.advance(secs(1));
    assert_eq!(slow.success(), Settled::Stale);
    bench.advance(ms(100));
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Open { retry_after: ms(28_900) });
    bench.advance(ms(28_900));
    bench.succeed(1);
    assert_eq!((bench.state(), bench.snapshot().window.unwrap().calls), (State::Closed, 0));
}

#[test]
fn sm15_late_failures_neither_move_the_deadline_nor_report_again() {
    let bench = Bench::new(c0());
    let mut late: Vec<_> = (0..20).map(|_| bench.engine.admit(T).unwrap()).collect();
    bench.advance(secs(1));
    bench.fail(5);
    for second in (2..30).step_by(2) {
        bench.advance(secs(2));
        assert_eq!(late.pop().unwrap().failure(), Settled::Stale);
        assert_eq!(bench.snapshot().reopen_in, Some(secs(30 - second)));
    }
    bench.advance(secs(2));
    let probe = bench.engine.admit(T).unwrap();
    for permit in late {
        bench.advance(secs(1));
        assert_eq!(permit.failure(), Settled::Stale);
    }
    assert!(probe.is_probe());
    assert_eq!(bench.path(), [(State::Closed, State::Open), (State::Open, State::HalfOpen)]);
}

#[test]
fn sm16_a_probe_of_an_earlier_period_counts_in_no_later_one() {
    let bench = elapsed(c0().max_probes(2).successes_to_close(2));
    let (first, second) = (bench.engine.admit(T).unwrap(), bench.engine.admit(T).unwrap());
    second.failure();
    bench.advance(secs(30));
    let (_q1, _q2) = (bench.engine.admit(T).unwrap(), bench.engine.admit(T).unwrap());
    assert_eq!(first.success(), Settled::Stale);
    assert!(matches!(bench.engine.admit(T), Err(Rejection::Probing { .. })));
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.state, snapshot.probes_in_flight, snapshot.probe_successes), (State::HalfOpen, 2, 0));
}

#[test]
fn sm19_two_who_move_the_same_word_never_collide() {
    // No timer drives a transition here; what is done by hand and what calls do are the two drivers that there are.
    let overlap = Overlap::default();
    for _ in 0..300 {
        let bench = elapsed(c0());
        race(2, |number| {
            overlap.during(|| match number {
                0 => {
                    if let Ok(probe) = bench.engine.admit(T) {
                        probe.success();
                    }
                }
                _ => {
                    bench.engine.force_open(T).unwrap();
                    bench.engine.release(T).unwrap();
                }
            });
        });
        assert_eq!((bench.state(), bench.snapshot().in_flight), (State::Closed, 0));
        let path = bench.path();
        assert!(path.windows(2).all(|two| two[0].1 == two[1].0), "a broken chain: {path:?}");
        assert_eq!(path.len(), bench.snapshot().generation as usize);
    }
    overlap.assert_met();
}

#[test]
fn sm21_the_failure_after_the_trip_changes_nothing() {
    let bench = Bench::new(c0());
    let permits: Vec<_> = (0..6).map(|_| bench.engine.admit(T).unwrap()).collect();
    let settled: Vec<_> = permits.into_iter().map(Permit::failure).collect();
    assert_eq!(settled.iter().filter(|settled| **settled == Settled::Stale).count(), 1);
    assert_eq!(bench.path(), [(State::Closed, State::Open)]);
    bench.advance(secs(30));
    assert!(bench.engine.admit(T).unwrap().is_probe());
}

#[test]
fn sm27_reading_the_state_starts_nothing_and_hides_nothing() {
    let bench = opened(c0());
    bench.advance(secs(30));
    let target = bench.engine.target(T).unwrap();
    for _ in 0..100 {
        assert_eq!((target.state(), bench.state()), (State::HalfOpen, State::HalfOpen));
    }
    assert_eq!((bench.path().len(), bench.snapshot().generation), (1, 1), "nothing has moved");
    bench.advance(secs(1));
    assert_ne!(target.state(), State::Open, "a balancer that filters on OPEN asks again");
    assert!(target.admit().unwrap().is_probe());
}

#[test]
fn sm39_an_outcome_that_does_not_count_says_so() {
    let bench = Bench::new(c0());
    let slow = bench.engine.admit(T).unwrap();
    let held = bench.engine.admit(T).unwrap();
    bench.fail(5);
    assert_eq!(slow.success(), Settled::Stale);
    assert_eq!(held.record(portcullis::Outcome::Success).settled(), Settled::Stale);
    assert_eq!(bench.snapshot().totals.stale, 2);
}

#[test]
fn sm40_making_another_handle_does_not_move_the_deadline() {
    let bench = opened(c0());
    let first = bench.engine.target(T).unwrap();
    for second in 1..=30 {
        bench.advance(secs(1));
        let (_handle, _clone) = (bench.engine.target(T).unwrap(), first.clone());
        assert_eq!(bench.snapshot().reopen_in, Some(secs(30 - second)));
    }
    assert!(first.admit().unwrap().is_probe());
}

/// Invariant 13: a permit held across round numbers of transitions is never taken for one of the present.
#[test]
fn sm13_a_permit_held_across_many_transitions_stays_stale() {
    for policy in [c0(), super::kit::t0(), c0().consecutive_failures(5)] {
        for transitions in [2_u32, 4, 8, 16, 32, 64, 128, 256, 4_096, 65_536] {
            let bench = Bench::new(policy.clone());
            let permits: Vec<_> = (0..6).map(|_| bench.engine.admit(T).unwrap()).collect();
            let target = bench.engine.target(T).unwrap();
            for _ in 0..transitions / 2 {
                assert!(target.force_open() && target.release());
            }
            for permit in permits {
                assert_eq!(permit.failure(), Settled::Stale, "after {transitions} transitions");
            }
            assert_eq!((target.state(), target.snapshot().window.unwrap().calls), (State::Closed, 0));
        }
    }
}
