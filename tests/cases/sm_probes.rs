use std::sync::atomic::{AtomicUsize, Ordering};

use portcullis::{Rejection, Settled, State};

use super::kit::{Overlap, c0, elapsed, opened, race, t0};
use crate::common::{Bench, T, ms, secs};

#[test]
fn sm01_half_open_admits_one_while_the_probe_runs() {
    let bench = elapsed(c0());
    let probe = bench.engine.admit(T).unwrap();
    bench.advance(ms(1));
    let refused = AtomicUsize::new(0);
    race(16, |_| {
        for _ in 0..63 {
            assert!(matches!(bench.engine.admit(T), Err(Rejection::Probing { .. })));
            refused.fetch_add(1, Ordering::Relaxed);
        }
    });
    let snapshot = bench.snapshot();
    assert_eq!((refused.into_inner(), snapshot.refusals.probing, snapshot.probes_in_flight), (16 * 63, 16 * 63, 1));
    bench.advance(secs(30) - ms(1));
    assert_eq!(probe.failure(), Settled::Recorded);
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Open { retry_after: secs(30) });
    bench.advance(secs(30));
    assert!(bench.engine.admit(T).unwrap().is_probe());
}

#[test]
fn sm03_the_loser_of_the_race_for_the_first_probe_is_refused() {
    let (overlap, mut rounds) = (Overlap::default(), 0);
    while rounds < 300 {
        let bench = elapsed(c0());
        let answers = race(12, |_| overlap.during(|| bench.engine.admit(T)));
        let (admitted, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert_eq!((admitted.len(), refused.len()), (1, 11));
        assert!(refused.iter().all(|answer| matches!(answer, Err(Rejection::Probing { .. }))));
        assert_eq!(bench.snapshot().probes_in_flight, 1);
        rounds += 1;
    }
    overlap.assert_met();
}

#[test]
fn sm04_an_ignored_probe_gives_its_slot_back() {
    // Two successes close, so that the success of p1 leaves the verdict open.
    let bench = elapsed(c0().max_probes(2).successes_to_close(2));
    let (first, second) = (bench.engine.admit(T).unwrap(), bench.engine.admit(T).unwrap());
    first.success();
    second.ignore();
    bench.advance(secs(1));
    let third = bench.engine.admit(T).unwrap();
    assert!(third.is_probe());
    third.success();
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn sm06_no_evidence_is_neither_good_nor_bad() {
    let bench = Bench::new(c0().no_failure_rate().consecutive_failures(3));
    bench.fail(2);
    bench.engine.admit(T).unwrap().ignore();
    assert_eq!((bench.state(), bench.snapshot().streak), (State::Closed, 2));
    bench.fail(1);
    assert_eq!(bench.state(), State::Open);
    bench.advance(secs(30));
    bench.engine.admit(T).unwrap().ignore();
    assert_eq!((bench.state(), bench.snapshot().probes_in_flight), (State::HalfOpen, 0));
    assert_eq!(bench.path().len(), 2);
}

#[test]
fn sm07_a_forgotten_probe_is_replaced_when_its_lease_ends() {
    let bench = elapsed(c0().probe_lease(secs(30)));
    let lost = bench.engine.admit(T).unwrap();
    let lost_generation = lost.generation();
    bench.advance(secs(29));
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Probing { retry_after: secs(1) });
    bench.advance(secs(1));
    let next = bench.engine.admit(T).unwrap();
    assert_ne!(next.generation(), lost_generation);
    bench.advance(secs(1));
    assert_eq!(next.success(), Settled::Recorded);
    assert_eq!(bench.state(), State::Closed);
    assert_eq!(lost.failure(), Settled::Stale);
    assert_eq!((bench.state(), bench.snapshot().totals.stale), (State::Closed, 1));

    // The same with a permit that never comes back: its bulkhead slot is lost, its probe slot isn't.
    let bench = elapsed(c0().max_in_flight(2));
    std::mem::forget(bench.engine.admit(T).unwrap());
    bench.advance(secs(30));
    bench.engine.admit(T).unwrap().success();
    assert_eq!((bench.state(), bench.snapshot().in_flight), (State::Closed, 1));
}

#[test]
fn sm09_a_probe_dropped_before_its_call_gives_back_its_own_slot_only() {
    let bench = elapsed(c0());
    drop(bench.engine.admit(T).unwrap());
    let second = bench.engine.admit(T).unwrap();
    assert!(second.is_probe());

    // Second variant: the old guard goes only when another half-open period runs.
    let bench = elapsed(c0().max_probes(2));
    let (late, failing) = (bench.engine.admit(T).unwrap(), bench.engine.admit(T).unwrap());
    failing.failure();
    bench.advance(secs(30));
    let (_one, _two) = (bench.engine.admit(T).unwrap(), bench.engine.admit(T).unwrap());
    drop(late);
    assert!(matches!(bench.engine.admit(T), Err(Rejection::Probing { .. })));
    assert_eq!(bench.snapshot().probes_in_flight, 2);
}

#[test]
fn sm12_a_full_bulkhead_never_spends_a_probe() {
    let bench = Bench::new(c0().max_in_flight(1));
    bench.fail(4);
    let trip = bench.engine.admit(T).unwrap();
    trip.failure();
    // A permit of the closed era can't hold the bulkhead here without hindering the trip: a kill switch fills it instead.
    bench.engine.set_limit(T, 0).unwrap();
    bench.advance(secs(30));
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 0 });
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.state, snapshot.probes_in_flight, snapshot.refusals.saturated), (State::HalfOpen, 0, 1));
    assert_eq!(bench.path(), [(State::Closed, State::Open)], "nothing was rolled back, for nothing was done");
    bench.engine.set_limit(T, 1).unwrap();
    bench.advance(secs(1));
    bench.engine.admit(T).unwrap().success();
    assert_eq!(bench.state(), State::Closed);
    use State::{Closed, HalfOpen, Open};
    assert_eq!(bench.path(), [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed)]);
}

#[test]
fn sm12_a_permit_of_the_closed_era_that_fills_the_bulkhead_never_spends_a_probe() {
    let bench = Bench::new(c0().max_in_flight(2));
    let old = bench.engine.admit(T).unwrap();
    bench.fail(5);
    bench.engine.set_limit(T, 1).unwrap();
    bench.advance(secs(30));
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 1 });
    assert_eq!(bench.path(), [(State::Closed, State::Open)]);
    drop(old);
    bench.engine.admit(T).unwrap().success();
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn sm18_probes_that_fail_together_open_once() {
    let overlap = Overlap::default();
    for _ in 0..300 {
        let bench = elapsed(c0().max_probes(8).successes_to_close(8).backoff(2.0).open_wait_max(secs(300)));
        let probes: Vec<_> = (0..8).map(|_| std::sync::Mutex::new(bench.engine.admit(T).ok())).collect();
        bench.advance(secs(1));
        let settled = race(8, |number| {
            let probe = probes[number].lock().unwrap().take().unwrap();
            overlap.during(|| probe.failure())
        });
        assert_eq!(settled.iter().filter(|settled| **settled == Settled::Recorded).count(), 1);
        let snapshot = bench.snapshot();
        assert_eq!((snapshot.reopens, snapshot.reopen_in), (1, Some(secs(60))));
        use State::{Closed, HalfOpen, Open};
        assert_eq!(bench.path(), [(Closed, Open), (Open, HalfOpen), (HalfOpen, Open)]);
        assert_eq!((snapshot.in_flight, snapshot.totals.stale), (0, 7));
    }
    overlap.assert_met();
}

#[test]
fn sm22_a_failed_probe_reopens_whatever_the_window_holds() {
    let bench = elapsed(t0());
    bench.fail(1);
    assert_eq!(bench.state(), State::Open);
    bench.advance(secs(1));
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Open { retry_after: secs(29) });
    bench.advance(secs(29));
    assert!(bench.engine.admit(T).unwrap().is_probe());
}

#[test]
fn sm24_each_half_open_period_counts_its_own_successes() {
    let bench = elapsed(c0().successes_to_close(3));
    bench.succeed(2);
    bench.fail(1);
    assert_eq!(bench.state(), State::Open);
    bench.advance(secs(30));
    bench.succeed(1);
    assert_eq!((bench.state(), bench.snapshot().probe_successes), (State::HalfOpen, 1));
    bench.succeed(1);
    assert_eq!(bench.state(), State::HalfOpen);
    bench.succeed(1);
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn sm43_only_the_holder_gives_a_slot_back() {
    // That `ignore` takes the permit by value is the compiler's to check: there is no way to name the guard again.
    let bench = elapsed(c0());
    bench.engine.admit(T).unwrap().ignore();
    let _holder = bench.engine.admit(T).unwrap();
    assert!(matches!(bench.engine.admit(T), Err(Rejection::Probing { .. })));
    assert_eq!((bench.snapshot().probes_in_flight, bench.snapshot().in_flight), (1, 1));
}

/// An envelope of the above: the slot count after any mix of endings, in threads.
#[test]
fn sm43_slots_given_back_in_a_race_are_neither_lost_nor_doubled() {
    let overlap = Overlap::default();
    let bench = opened(c0().max_probes(4).successes_to_close(31).ignored_probes(1_000_000));
    bench.advance(secs(30));
    let _held = [bench.engine.admit(T).unwrap(), bench.engine.admit(T).unwrap()];
    race(4, |number| {
        for _ in 0..500 {
            let Ok(probe) = overlap.during(|| bench.engine.admit(T)) else { continue };
            assert!(bench.snapshot().probes_in_flight <= 4);
            if number % 2 == 0 { drop(probe) } else { assert_eq!(probe.ignore(), Settled::Recorded) }
        }
    });
    overlap.assert_met();
    assert_eq!((bench.snapshot().probes_in_flight, bench.snapshot().in_flight), (2, 2));
}
