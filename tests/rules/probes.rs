//! R3: what probes make of HALF_OPEN.

use portcullis::{Cause, Outcome, Policy, Rejection, Settled, State, Window};

use crate::common::{Bench, ms, secs, textbook};

fn half_open(successes: u32, probes: u32) -> Bench {
    let bench = Bench::tripped(textbook().successes_to_close(successes).max_probes(probes));
    bench.advance(secs(30));
    bench
}

#[test]
fn r03_exactly_so_many_successes_close() {
    for successes in [1, 2, 3, 31] {
        let bench = half_open(successes, 1);
        for so_far in 0..successes {
            assert_eq!(bench.state(), State::HalfOpen);
            let probe = bench.probe();
            assert_eq!(bench.snapshot().probe_successes, so_far);
            probe.success();
        }
        assert_eq!(bench.state(), State::Closed);
        assert_eq!(bench.log().last().unwrap().cause, Cause::ProbesSucceeded);
    }
}

#[test]
fn r03_one_failure_reopens_whatever_succeeded_before() {
    let bench = half_open(31, 1);
    (0..30).for_each(|_| assert_eq!(bench.probe().success(), Settled::Recorded));
    assert_eq!(bench.snapshot().probe_successes, 30);
    bench.probe().failure();
    assert_eq!(bench.state(), State::Open);
    assert_eq!(bench.log().last().unwrap().cause, Cause::ProbeFailed);
    // And the next try counts from nothing.
    bench.advance(secs(60));
    let probe = bench.probe();
    assert_eq!(bench.snapshot().probe_successes, 0);
    drop(probe);
}

#[test]
fn r03_thirty_one_probes_fly_at_once_and_close_together() {
    let bench = half_open(31, 31);
    let probes: Vec<_> = (0..31).map(|_| bench.probe()).collect();
    assert!(matches!(bench.refusal(), Rejection::Probing { .. }));
    assert_eq!(bench.snapshot().probes_in_flight, 31);
    probes.into_iter().for_each(|probe| assert_eq!(probe.success(), Settled::Recorded));
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn r03_the_first_failure_of_many_probes_decides_and_the_rest_are_stale() {
    let bench = half_open(3, 5);
    let mut probes: Vec<_> = (0..5).map(|_| bench.probe()).collect();
    assert_eq!(probes.remove(1).success(), Settled::Recorded);
    assert_eq!(probes.remove(0).failure(), Settled::Recorded);
    let deadline = bench.snapshot().reopen_in;
    for outcome in [Outcome::Success, Outcome::Failure, Outcome::Ignored] {
        assert_eq!(probes.remove(0).settle(outcome), Settled::Stale);
    }
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.state, snapshot.reopen_in, snapshot.reopens), (State::Open, deadline, 1));
    assert_eq!((snapshot.totals.stale, snapshot.in_flight), (3, 0));
    assert_eq!(bench.log().len(), 3);
}

#[test]
fn r03_a_success_frees_its_slot_for_the_next_probe() {
    let bench = half_open(3, 2);
    let (first, second) = (bench.probe(), bench.probe());
    assert!(matches!(bench.refusal(), Rejection::Probing { .. }));
    first.success();
    let third = bench.probe();
    assert!(matches!(bench.refusal(), Rejection::Probing { .. }));
    second.success();
    third.success();
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn r03_min_calls_and_windows_play_no_part() {
    let policy = textbook().min_calls(10).consecutive_failures(5).failures(9).max_probes(2);
    let bench = Bench::tripped(policy);
    bench.advance(secs(30));
    bench.probe().failure();
    assert_eq!(bench.state(), State::Open, "one failure, far from min_calls");
    assert_eq!(bench.window(), (0, 0));
}

#[test]
fn r03_a_probe_of_exactly_slow_call_reopens_and_one_just_under_does_not() {
    for (took, to, cause) in [
        (ms(2_999), State::Closed, Cause::ProbesSucceeded),
        (secs(3), State::Open, Cause::ProbeSlow),
        (secs(9), State::Open, Cause::ProbeSlow),
    ] {
        let bench = Bench::tripped(textbook().slow_call(secs(3)));
        bench.advance(secs(30));
        let probe = bench.probe();
        bench.advance(took);
        probe.success();
        assert_eq!((bench.state(), bench.log().last().unwrap().cause), (to, cause), "{took:?}");
    }
}

#[test]
fn r03_a_slow_failure_is_a_failure_and_a_slow_ignored_probe_is_nothing() {
    let bench = Bench::tripped(textbook().slow_call(secs(3)));
    bench.advance(secs(30));
    let probe = bench.probe();
    bench.advance(secs(4));
    probe.ignore();
    assert_eq!(bench.last_state(), State::HalfOpen);
    assert_eq!(bench.snapshot().totals.slow, 0);
    let probe = bench.probe();
    bench.advance(secs(4));
    probe.failure();
    assert_eq!(bench.log().last().unwrap().cause, Cause::ProbeFailed);
}

#[test]
fn r03_without_a_slow_rule_no_probe_is_slow() {
    let bench = half_open(1, 1);
    let probe = bench.probe();
    bench.advance(secs(8));
    probe.success();
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn r03_probes_are_no_calls_of_the_window_that_follows() {
    for window in [Window::calls(10), Window::time(secs(10))] {
        let bench = Bench::tripped(textbook().window(window).successes_to_close(3));
        bench.advance(secs(30));
        (0..3).for_each(|_| assert_eq!(bench.probe().success(), Settled::Recorded));
        assert_eq!((bench.state(), bench.window()), (State::Closed, (0, 0)));
    }
}

#[test]
fn r03_a_policy_of_streaks_only_probes_alike() {
    let policy = Policy::builder().no_window().consecutive_failures(5).open_wait(secs(30)).jitter(0.0);
    let bench = Bench::tripped(policy);
    bench.advance(secs(30));
    (0..3).for_each(|_| assert_eq!(bench.probe().success(), Settled::Recorded));
    assert_eq!(bench.state(), State::Closed);
    assert_eq!(bench.snapshot().streak, 0);
}

#[test]
fn r03_calls_of_the_old_closed_state_are_no_probes() {
    let bench = Bench::new(textbook());
    let old = bench.enter();
    bench.fail(5);
    bench.advance(secs(30));
    let probe = bench.probe();
    assert_eq!(old.success(), Settled::Stale);
    assert_eq!(bench.last_state(), State::HalfOpen, "an old success must not close");
    assert_eq!(probe.success(), Settled::Recorded);
}
