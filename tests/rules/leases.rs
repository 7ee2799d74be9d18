//! R4: a probe slot is a lease, so that HALF_OPEN can't be wedged.

use portcullis::{Cause, OnAbandon, Outcome, Permit, Policy, Rejection, Settled, State};

use crate::common::{Bench, ms, race, secs, textbook};

fn leased(lease: u64, probes: u32) -> Bench {
    let bench = Bench::tripped(textbook().probe_lease(secs(lease)).max_probes(probes).successes_to_close(3));
    bench.advance(secs(30));
    bench
}

#[test]
fn r04_a_forgotten_probe_is_replaced_when_its_lease_ends() {
    let bench = leased(10, 1);
    std::mem::forget(bench.probe());
    bench.advance(ms(9_999));
    assert_eq!(bench.refusal(), Rejection::Probing { retry_after: ms(1) });
    bench.advance(ms(1));
    let probe = bench.probe();
    let last = bench.log().last().cloned().unwrap();
    assert_eq!((last.from, last.to, last.cause), (State::HalfOpen, State::HalfOpen, Cause::LeaseExpired));
    assert_eq!(probe.generation(), last.generation);
    probe.success();
    bench.succeed(2);
    assert_eq!(bench.state(), State::Closed);
    assert_eq!(bench.snapshot().in_flight, 1, "the leaked permit holds its bulkhead slot");
}

#[test]
fn r04_the_late_holder_of_a_lost_slot_is_stale_whatever_it_says() {
    for outcome in [Outcome::Success, Outcome::Failure, Outcome::Ignored] {
        let bench = leased(10, 1);
        let late = bench.probe();
        bench.advance(secs(10));
        let probe = bench.probe();
        assert_eq!(late.settle(outcome), Settled::Stale);
        let snapshot = bench.snapshot();
        assert_eq!((snapshot.state, snapshot.probes_in_flight, snapshot.probe_successes), (State::HalfOpen, 1, 0));
        assert_eq!((snapshot.totals.stale, snapshot.in_flight), (1, 1));
        assert_eq!(probe.success(), Settled::Recorded);
        assert_eq!(bench.snapshot().probe_successes, 1);
    }
}

#[test]
fn r04_a_dropped_late_holder_frees_nothing() {
    let bench = leased(10, 1);
    let late = bench.probe();
    bench.advance(secs(10));
    let _probe = bench.probe();
    drop(late);
    assert!(matches!(bench.refusal(), Rejection::Probing { .. }), "the slot is the new probe's");
}

#[test]
fn r04_each_grant_extends_the_lease() {
    let bench = leased(10, 2);
    std::mem::forget(bench.probe());
    bench.advance(secs(9));
    std::mem::forget(bench.probe());
    bench.advance(secs(9));
    assert_eq!(bench.refusal(), Rejection::Probing { retry_after: secs(1) });
    bench.advance(secs(1));
    bench.probe().ignore();
}

#[test]
fn r04_a_healthy_target_slower_than_a_third_of_the_lease_closes() {
    let bench = leased(10, 1);
    for _ in 0..3 {
        let probe = bench.probe();
        bench.advance(secs(9));
        assert_eq!(probe.success(), Settled::Recorded);
    }
    assert_eq!(bench.state(), State::Closed);
    assert!(bench.log().iter().all(|transition| transition.cause != Cause::LeaseExpired));
}

#[test]
fn r04_a_free_slot_is_taken_before_a_lease_is_taken_over() {
    let bench = leased(10, 2);
    let early = bench.probe();
    bench.advance(secs(60));
    let second = bench.probe();
    assert_eq!(second.generation(), early.generation(), "no takeover while a slot is free");
    assert_eq!(bench.log().len(), 2);
    assert_eq!(early.success(), Settled::Recorded);
}

#[test]
fn r04_a_dropped_and_an_ignored_probe_hand_their_slot_back_at_once() {
    let hand_back: [fn(Permit<'_>); 2] = [|probe| drop(probe), |probe| assert_eq!(probe.ignore(), Settled::Recorded)];
    for end in hand_back {
        let bench = leased(10, 1);
        end(bench.probe());
        assert_eq!(bench.snapshot().probes_in_flight, 0);
        bench.probe().success();
        assert_eq!(bench.snapshot().probe_successes, 1);
        assert_eq!(bench.log().len(), 2);
    }
}

#[test]
fn r04_ten_ignored_in_a_row_are_one_success_and_nine_are_none() {
    let bench = leased(10, 1);
    (0..9).for_each(|_| assert_eq!(bench.probe().ignore(), Settled::Recorded));
    assert_eq!(bench.snapshot().probe_successes, 0);
    bench.probe().ignore();
    assert_eq!(bench.snapshot().probe_successes, 1);
    (0..19).for_each(|_| assert_eq!(bench.probe().ignore(), Settled::Recorded));
    assert_eq!(bench.snapshot().probe_successes, 2);
    bench.probe().ignore();
    assert_eq!(bench.state(), State::Closed);
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.totals.ignored, snapshot.totals.success), (30, 0));
}

#[test]
fn r04_how_many_ignored_count_is_settable() {
    let bench = Bench::tripped(textbook().ignored_probes(1));
    bench.advance(secs(30));
    bench.probe().ignore();
    assert_eq!(bench.state(), State::Closed);
    let bench = Bench::tripped(textbook().ignored_probes(25));
    bench.advance(secs(30));
    (0..24).for_each(|_| assert_eq!(bench.probe().ignore(), Settled::Recorded));
    assert_eq!(bench.last_state(), State::HalfOpen);
    bench.probe().ignore();
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn r04_a_success_starts_the_row_of_ignored_again() {
    let bench = leased(10, 1);
    (0..9).for_each(|_| assert_eq!(bench.probe().ignore(), Settled::Recorded));
    bench.probe().success();
    (0..9).for_each(|_| assert_eq!(bench.probe().ignore(), Settled::Recorded));
    assert_eq!(bench.snapshot().probe_successes, 1);
}

#[test]
fn r04_the_row_of_ignored_belongs_to_its_generation() {
    let bench = leased(10, 1);
    (0..9).for_each(|_| assert_eq!(bench.probe().ignore(), Settled::Recorded));
    bench.probe().failure();
    bench.advance(secs(60));
    (0..9).for_each(|_| assert_eq!(bench.probe().ignore(), Settled::Recorded));
    assert_eq!(bench.snapshot().probe_successes, 0);
}

#[test]
fn r04_dropped_probes_are_never_a_success() {
    let bench = Bench::tripped(textbook().ignored_probes(2));
    bench.advance(secs(30));
    (0..100).for_each(|_| drop(bench.probe()));
    assert_eq!(bench.last_state(), State::HalfOpen);
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.probe_successes, snapshot.totals.abandoned, snapshot.in_flight), (0, 100, 0));
}

#[test]
fn r04_an_abandoned_probe_is_first_judged_by_the_policy() {
    let bench = Bench::tripped(textbook().on_abandon(OnAbandon::Failure));
    bench.advance(secs(30));
    drop(bench.probe());
    assert_eq!((bench.state(), bench.log().last().unwrap().cause), (State::Open, Cause::ProbeFailed));
    let bench = Bench::tripped(textbook().on_abandon(OnAbandon::FailureAfter(secs(1))));
    bench.advance(secs(30));
    let probe = bench.probe();
    bench.advance(ms(999));
    drop(probe);
    assert_eq!(bench.last_state(), State::HalfOpen);
    let probe = bench.probe();
    bench.advance(secs(1));
    drop(probe);
    assert_eq!(bench.last_state(), State::Open);
}

#[test]
fn r04_the_default_lease_is_the_larger_of_ten_seconds_and_the_wait() {
    for (wait, lease) in [(5, 10), (10, 10), (30, 30)] {
        let bench = Bench::tripped(Policy::builder().min_calls(5).open_wait(secs(wait)).jitter(0.0));
        bench.advance(secs(wait));
        std::mem::forget(bench.probe());
        assert_eq!(bench.refusal(), Rejection::Probing { retry_after: secs(lease) }, "wait {wait}");
    }
}

#[test]
fn r04_a_lease_is_rounded_up_to_whole_seconds() {
    let bench = Bench::tripped(textbook().probe_lease(ms(1_001)));
    bench.advance(ms(30_500));
    std::mem::forget(bench.probe());
    // 30.5 s + 2 s, at the second after.
    assert_eq!(bench.refusal(), Rejection::Probing { retry_after: ms(2_500) });
}

#[test]
fn r04_one_of_sixteen_threads_takes_a_lease_over() {
    for _ in 0..100 {
        let bench = leased(1, 1);
        std::mem::forget(bench.probe());
        bench.advance(secs(1));
        let admitted = race(16, |_| bench.admit()).into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(admitted.len(), 1);
        assert_eq!(bench.log().iter().filter(|transition| transition.cause == Cause::LeaseExpired).count(), 1);
    }
}

#[test]
fn r04_nothing_that_callers_omit_wedges_half_open() {
    let bench = leased(1, 3);
    for _ in 0..50 {
        while let Ok(probe) = bench.admit() {
            std::mem::forget(probe);
        }
        bench.advance(secs(2));
    }
    (0..3).for_each(|_| assert_eq!(bench.probe().success(), Settled::Recorded));
    assert_eq!(bench.state(), State::Closed);
}
