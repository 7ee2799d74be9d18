//! R1 and R2: the bulkhead before the probe, and one winner of the race for it.

use portcullis::{Policy, Rejection, State};

use crate::common::{Bench, ms, race, secs, take, textbook};

#[test]
fn r03_the_textbook_cycle() {
    let bench = Bench::new(Policy::builder().min_calls(5).open_wait(secs(30)).jitter(0.0));
    bench.fail(5);
    assert_eq!(bench.state(), State::Open);
    assert_eq!(bench.refusal(), Rejection::Open { retry_after: secs(30) });
    bench.advance(secs(30));
    let probe = bench.probe();
    assert!(matches!(bench.refusal(), Rejection::Probing { .. }));
    probe.success();
    bench.succeed(2);
    assert_eq!(bench.state(), State::Closed);
    use State::{Closed, HalfOpen, Open};
    assert_eq!(bench.path(), [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed)]);
}

/// A target with a limit of `limit` that is OPEN, its wait over, and full with calls from before.
fn full_at_the_end_of_the_wait(limit: u32, max_probes: u32) -> (Bench, usize) {
    (Bench::new(textbook().max_in_flight(limit).max_probes(max_probes)), limit as usize)
}

#[test]
fn r01_a_full_bulkhead_at_the_end_of_the_wait_spends_no_probe() {
    let (bench, limit) = full_at_the_end_of_the_wait(6, 1);
    let mut old = take(&bench, limit);
    (0..5).for_each(|_| assert!(old.pop().is_some_and(|permit| permit.failure() == portcullis::Settled::Recorded)));
    // One is left; five more can't enter an open target, so the limit comes down to it.
    bench.engine.set_limit(crate::common::T, 1).unwrap();
    bench.advance(secs(30));
    let before = bench.snapshot();
    for _ in 0..3 {
        assert_eq!(bench.refusal(), Rejection::Saturated { limit: 1 });
    }
    let after = bench.snapshot();
    assert_eq!(after.generation, before.generation);
    assert_eq!((after.probes_in_flight, after.in_flight), (0, 1));
    assert_eq!((after.refusals.saturated, after.refusals.open, after.refusals.probing), (3, 0, 0));
    assert_eq!(bench.path(), [(State::Closed, State::Open)]);
    // Room again: the probe that nobody spent is still there.
    drop(old);
    bench.probe().success();
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn r01_a_full_bulkhead_in_half_open_leaves_the_free_probe_slot_alone() {
    let (bench, _) = full_at_the_end_of_the_wait(1, 2);
    bench.fail(5);
    bench.advance(secs(30));
    let probe = bench.probe();
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 1 });
    assert_eq!(bench.snapshot().probes_in_flight, 1);
    probe.ignore();
    bench.probe().success();
}

#[test]
fn r01_a_full_bulkhead_at_the_end_of_the_lease_leaves_the_lease_alone() {
    let bench = Bench::new(textbook().max_in_flight(1).probe_lease(secs(10)));
    bench.fail(5);
    bench.advance(secs(30));
    let probe = bench.probe();
    bench.advance(secs(11));
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 1 });
    assert_eq!(bench.log().len(), 2, "no takeover without a bulkhead slot");
    assert_eq!(probe.success(), portcullis::Settled::Recorded);
}

#[test]
fn r01_an_open_target_refuses_as_open_even_if_it_is_full() {
    let (bench, limit) = full_at_the_end_of_the_wait(6, 1);
    let mut old = take(&bench, limit);
    old.drain(..5).for_each(|permit| assert_eq!(permit.failure(), portcullis::Settled::Recorded));
    bench.engine.set_limit(crate::common::T, 1).unwrap();
    bench.advance(ms(29_999));
    assert_eq!(bench.refusal(), Rejection::Open { retry_after: ms(1) });
}

#[test]
fn r01_a_refused_probe_gives_its_bulkhead_permit_back() {
    let bench = Bench::tripped(textbook().max_in_flight(2));
    bench.advance(secs(30));
    let probe = bench.probe();
    for _ in 0..10 {
        assert!(matches!(bench.refusal(), Rejection::Probing { .. }));
    }
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.totals.admitted), (1, 6));
    probe.success();
    assert_eq!(take(&bench, 2).len(), 2);
}

#[test]
fn r02_sixteen_threads_at_the_end_of_the_wait_are_one_probe() {
    for round in 0..200 {
        let bench = Bench::tripped(textbook());
        bench.advance(secs(30));
        let answers = race(16, |_| bench.admit());
        let (admitted, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert_eq!(admitted.len(), 1, "round {round}");
        assert!(admitted.iter().flatten().all(portcullis::Permit::is_probe));
        assert!(refused.iter().all(|answer| matches!(answer, Err(Rejection::Probing { .. }))), "{refused:?}");
        assert_eq!(bench.log().len(), 2, "one trip, one HALF_OPEN");
        let snapshot = bench.snapshot();
        assert_eq!((snapshot.probes_in_flight, snapshot.in_flight, snapshot.refusals.probing), (1, 1, 15));
    }
}

#[test]
fn r02_sixteen_threads_never_exceed_max_probes() {
    for max_probes in [2, 5, 31] {
        let bench = Bench::tripped(textbook().max_probes(max_probes));
        bench.advance(secs(30));
        let answers = race(16, |_| bench.admit());
        let admitted = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(admitted, 16.min(max_probes as usize));
        assert_eq!(bench.snapshot().probes_in_flight as usize, admitted);
        assert_eq!(bench.log().len(), 2);
    }
}

#[test]
fn r02_a_lost_race_is_decided_again_and_leaves_no_permit_behind() {
    let mut decided = 0;
    for _ in 0..100 {
        let bench = Bench::tripped(textbook().max_in_flight(8));
        bench.advance(secs(30));
        let settled = race(8, |_| bench.admit().map(portcullis::Permit::success));
        // Whoever came after the closing success entered as a caller of CLOSED; nobody else.
        decided += settled.iter().filter(|answer| answer.is_ok()).count();
        let snapshot = bench.snapshot();
        assert_eq!((snapshot.in_flight, snapshot.probes_in_flight, snapshot.state), (0, 0, State::Closed));
        assert_eq!(bench.log().len(), 3);
        let refused = snapshot.refusals.total();
        assert_eq!(snapshot.totals.admitted + refused, 5 + 8);
    }
    assert!(decided >= 100);
}

#[test]
fn r02_the_winner_belongs_to_the_new_generation() {
    let bench = Bench::tripped(textbook());
    let open = bench.snapshot().generation;
    bench.advance(secs(30));
    let probe = bench.probe();
    assert_eq!(probe.generation(), open + 1);
    assert_eq!(bench.snapshot().generation, open + 1);
}
