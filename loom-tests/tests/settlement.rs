//! Settlement: what an outcome is counted in, which rule it meets, and exactly one report of every transition.

use std::time::Duration;

use loom_tests::desk::{Desk, ELAPSED, build, touchy};
use loom_tests::{model, scenes};
use portcullis::Cause::{
    ConsecutiveFailures, FailureRate, ForcedOpen, Forgotten, LeaseExpired, PolicyChanged, Released, SlowRate,
    WaitElapsed,
};
use portcullis::internals::{Counts, Ending, Glance, Now};
use portcullis::{Outcome, Policy, PolicyBuilder, State, Window};

const SUCCEEDED: Ending = Ending::Settled(Outcome::Success);
/// A lease that began at [`ELAPSED`] is over.
const LEASE_OVER: u64 = 5_000;

fn windowed() -> PolicyBuilder {
    Policy::builder().window(Window::calls(3)).min_calls(2)
}

#[test]
fn two_rules_met_at_once_are_one_change() {
    model(
        "settlement: two rules met at once are one change",
        &[
            [("recorded", None), ("recorded", Some(ConsecutiveFailures))],
            [("recorded", None), ("recorded", Some(FailureRate))],
            [("recorded", Some(ConsecutiveFailures)), ("recorded", None)],
            [("recorded", Some(FailureRate)), ("recorded", None)],
        ],
        || Desk::with_calls(build(windowed().consecutive_failures(2)), 2),
        [
            |desk: &Desk| desk.settle(desk.granted(0), Outcome::Failure),
            |desk| desk.settle(desk.granted(1), Outcome::Failure),
        ],
        |desk, said| {
            let gate = desk.gate();
            assert_eq!((gate.state(), gate.generation(), desk.in_flight()), (State::Open, 1, 0));
            said
        },
    );
}

#[test]
fn a_success_that_completes_min_calls_trips() {
    model(
        "settlement: a success that completes min_calls trips",
        &[[("recorded", None), ("recorded", Some(FailureRate))], [("recorded", Some(FailureRate)), ("recorded", None)]],
        || Desk::with_calls(build(windowed()), 2),
        [
            |desk: &Desk| desk.settle(desk.granted(0), Outcome::Failure),
            |desk| desk.settle(desk.granted(1), Outcome::Success),
        ],
        |desk, said| {
            let gate = desk.gate();
            assert_eq!((gate.state(), gate.generation(), desk.in_flight()), (State::Open, 1, 0));
            said
        },
    );
}

/// Calls and slow calls are two words, which may meet the outcomes in different orders.
#[test]
fn a_quick_call_that_completes_min_calls_trips_on_slow_ones() {
    model(
        "settlement: a quick call that completes min_calls trips on slow ones",
        &[[("recorded", None), ("recorded", Some(SlowRate))], [("recorded", Some(SlowRate)), ("recorded", None)]],
        || Desk::with_calls(build(windowed().slow_call(Duration::from_millis(500)).slow_rate(0.5)), 2),
        [|desk: &Desk| desk.end(desk.granted(0), SUCCEEDED, 600), |desk| desk.end(desk.granted(1), SUCCEEDED, 0)],
        |desk, said| {
            assert_eq!((desk.gate().state(), desk.in_flight()), (State::Open, 0));
            said
        },
    );
}

/// In a window of time calls and failures are words of their own, each of them read by whoever writes the other.
#[test]
fn a_rule_met_in_a_window_of_time_trips_with_the_last_outcome() {
    model(
        "settlement: a rule met in a window of time trips with the last outcome",
        &[[("recorded", Some(FailureRate)), ("recorded", None)], [("recorded", None), ("recorded", Some(FailureRate))]],
        || {
            let window = Window::time(Duration::from_secs(2)).buckets(2);
            Desk::with_calls(build(Policy::builder().window(window).min_calls(2).failure_rate(0.3)), 2)
        },
        [
            |desk: &Desk| desk.settle(desk.granted(0), Outcome::Failure),
            |desk| desk.settle(desk.granted(1), Outcome::Success),
        ],
        |desk, said| {
            assert_eq!(desk.gate().state(), State::Open);
            said
        },
    );
}

#[test]
fn a_straggler_cannot_count_in_a_later_window() {
    model(
        "settlement: a straggler cannot count in a later window",
        &[[("recorded", None), ("recorded", None)], [("stale", None), ("recorded", None)]],
        || Desk::with_calls(build(windowed().min_calls(3).consecutive_failures(3)), 1),
        [
            |desk: &Desk| desk.settle(desk.granted(0), Outcome::Failure),
            |desk| {
                desk.by_hand(ForcedOpen, |gate| gate.force(State::ForcedOpen, Now::default()));
                desk.by_hand(Released, |gate| gate.release(Now::default()));
                match desk.admit(0) {
                    (Ok(token), _) => desk.settle(token, Outcome::Failure),
                    (Err(reason), cause) => (reason, cause),
                }
            },
        ],
        |desk, said| {
            assert_eq!(desk.gate().generation(), 2);
            assert_eq!(desk.window(), (Counts { calls: 1, failures: 1, slow: 0 }, 1));
            said
        },
    );
}

#[test]
fn a_new_geometry_starts_an_empty_window() {
    model(
        "settlement: a new geometry starts an empty window",
        &[[("recorded", None), ("by hand", Some(PolicyChanged))], [("stale", None), ("by hand", Some(PolicyChanged))]],
        || Desk::with_calls(build(windowed().consecutive_failures(9)), 1),
        [
            |desk: &Desk| desk.settle(desk.granted(0), Outcome::Failure),
            |desk| desk.by_hand(PolicyChanged, |gate| gate.restart(Now::default())),
        ],
        |desk, said| {
            assert_eq!(desk.gate().generation(), 1);
            assert_eq!(desk.window(), (Counts::default(), 0));
            said
        },
    );
}

#[test]
fn late_outcomes_of_an_earlier_generation_change_nothing() {
    model(
        "settlement: late outcomes of an earlier generation change nothing",
        &[[("stale", None), ("stale", None), ("recorded", None)]],
        || {
            let mut desk = Desk::with_calls(build(touchy().consecutive_failures(2).successes_to_close(2)), 2);
            desk.by_hand(ForcedOpen, |gate| gate.force(State::ForcedOpen, Now::default()));
            desk.by_hand(Released, |gate| gate.release(Now::default()));
            desk.grant(0);
            desk
        },
        [
            |desk: &Desk| desk.settle(desk.granted(0), Outcome::Success),
            |desk| desk.settle(desk.granted(1), Outcome::Failure),
            |desk| desk.settle(desk.granted(2), Outcome::Failure),
        ],
        |desk, said| {
            let gate = desk.gate();
            assert_eq!((gate.state(), gate.generation()), (State::Closed, 2));
            assert_eq!(desk.window().1, 1);
            said
        },
    );
}

#[test]
fn a_recycled_slot_hears_nothing_of_its_last_tenant() {
    model(
        "settlement: a recycled slot hears nothing of its last tenant",
        &[[("recorded", None), ("by hand", Some(Forgotten))], [("recorded", None), ("stays", None)]],
        || Desk::with_calls(build(windowed().consecutive_failures(9)), 1),
        [|desk: &Desk| desk.settle(desk.granted(0), Outcome::Failure), |desk| desk.recycle()],
        |desk, said| {
            let failures = u64::from(desk.gate().generation() == 0);
            assert_eq!(desk.window(), (Counts { calls: failures, failures, slow: 0 }, failures));
            assert_eq!(desk.in_flight(), 0);
            said
        },
    );
}

/// With a window of that many calls that is full and clean, and its sign set; the next call is granted.
fn clean(size: u32, policy: PolicyBuilder) -> Desk {
    let calls = size as usize;
    let desk = Desk::with_calls(build(policy.window(Window::calls(size))), calls + 2);
    for call in 0..calls {
        desk.settle(desk.granted(call), Outcome::Success);
    }
    assert!(desk.words.glance(desk.granted(calls), SUCCEEDED) == Glance::Unchanged, "the sign isn't set");
    desk
}

#[test]
fn a_success_that_goes_by_the_sign_meets_a_trip() {
    model(
        "settlement: a success that goes by the sign meets a trip",
        &[
            [("unchanged", None), ("recorded", Some(FailureRate))],
            // The sign was taken away, and the failure not yet judged.
            [("recorded", None), ("recorded", Some(FailureRate))],
            [("stale", None), ("recorded", Some(FailureRate))],
        ],
        || clean(1, Policy::builder().failure_rate(1.0)),
        [|desk: &Desk| desk.succeed(desk.granted(1)), |desk| desk.settle(desk.granted(2), Outcome::Failure)],
        |desk, said| {
            let gate = desk.gate();
            assert_eq!((gate.state(), gate.generation(), desk.in_flight()), (State::Open, 1, 0));
            said
        },
    );
}

#[test]
fn a_policy_that_comes_while_a_success_is_judged_judges_the_next() {
    scenes::a_policy_comes_while_a_success_is_judged(
        "settlement: a policy that comes while a success is judged judges the next",
        |desk| desk.succeed(desk.granted(1)),
    );
}

/// A failure that comes while a success says that no rule is met.
#[test]
fn a_failure_that_comes_while_a_success_is_judged_is_judged() {
    model(
        "settlement: a failure that comes while a success is judged is judged",
        &[
            [("recorded", None), ("recorded", Some(FailureRate))],
            [("recorded", Some(FailureRate)), ("recorded", None)],
            [("stale", None), ("recorded", Some(FailureRate))],
        ],
        || {
            let desk =
                Desk::with_calls(build(Policy::builder().window(Window::calls(3)).min_calls(3).failure_rate(0.6)), 5);
            for outcome in [Outcome::Success, Outcome::Success, Outcome::Failure] {
                desk.settle(desk.granted(0), outcome);
            }
            desk
        },
        [|desk: &Desk| desk.succeed(desk.granted(1)), |desk| desk.settle(desk.granted(2), Outcome::Failure)],
        |desk, said| {
            assert_eq!(desk.gate().state(), State::Open);
            said
        },
    );
}

/// CLOSED when the success looked at the gate, which may be long ago.
#[test]
fn a_success_that_goes_by_the_sign_meets_a_trip_a_probe_and_a_takeover() {
    model(
        "settlement: a success that goes by the sign meets a trip, a probe and a takeover",
        &[
            [("unchanged", None), ("probes", Some(LeaseExpired))],
            [("recorded", None), ("probes", Some(LeaseExpired))],
            [("stale", None), ("probes", Some(LeaseExpired))],
        ],
        || clean(1, Policy::builder().failure_rate(1.0)),
        [
            |desk: &Desk| desk.succeed(desk.granted(1)),
            |desk| {
                assert_eq!(desk.settle(desk.granted(2), Outcome::Failure).1, Some(FailureRate));
                assert_eq!(desk.ask(ELAPSED), ("probes", Some(WaitElapsed)));
                desk.ask(LEASE_OVER)
            },
        ],
        |desk, said| {
            let gate = desk.gate();
            assert_eq!((gate.state(), gate.generation(), gate.probes()), (State::HalfOpen, 3, 1));
            said
        },
    );
}

#[test]
fn a_success_that_goes_by_the_sign_meets_a_force_and_a_release() {
    model(
        "settlement: a success that goes by the sign meets a force and a release",
        &[[("unchanged", None), ("recorded", None)], [("stale", None), ("recorded", None)]],
        || clean(2, Policy::builder().failure_rate(1.0)),
        [
            |desk: &Desk| desk.succeed(desk.granted(2)),
            |desk| {
                desk.by_hand(ForcedOpen, |gate| gate.force(State::ForcedOpen, Now::default()));
                desk.by_hand(Released, |gate| gate.release(Now::default()));
                match desk.admit(0) {
                    (Ok(token), _) => desk.succeed(token),
                    (Err(reason), cause) => (reason, cause),
                }
            },
        ],
        |desk, said| {
            assert_eq!(desk.gate().generation(), 2);
            assert_eq!(desk.window(), (Counts { calls: 1, failures: 0, slow: 0 }, 0));
            said
        },
    );
}

/// Window and streak are two words, which may meet the outcomes in different orders; but what goes by the sign comes before the failure in
/// both.
#[test]
fn a_success_that_goes_by_the_sign_leaves_the_streak_alone() {
    model(
        "settlement: a success that goes by the sign leaves the streak alone",
        // Whether the newest call in the window is the failure, and the streak.
        &[("unchanged", 1, 1), ("recorded", 1, 1), ("recorded", 1, 0), ("recorded", 0, 1), ("recorded", 0, 0)],
        || clean(2, Policy::builder().no_failure_rate().consecutive_failures(2)),
        [|desk: &Desk| desk.succeed(desk.granted(2)), |desk| desk.settle(desk.granted(3), Outcome::Failure)],
        |desk, [(said, _), _]| {
            assert_eq!((desk.gate().generation(), desk.in_flight()), (0, 0));
            (said, desk.words.calls.counts(0, 1).1, desk.window().1)
        },
    );
}
