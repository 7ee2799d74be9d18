//! The target: admission and settlement over all its words, and exactly one report of every transition.

use std::time::Duration;

use loom_tests::desk::{Desk, Said};
use loom_tests::model;
use portcullis::Cause::{FailureRate, ForcedOpen, LeaseExpired, PolicyChanged, ProbeFailed, ProbesSucceeded, Released, WaitElapsed};
use portcullis::internals::{Counts, Ending, Now};
use portcullis::{Cause, Outcome, Policy, PolicyBuilder, State, Window};

const ABANDONED: Ending = Ending::Abandoned;
const IGNORED: Ending = Ending::Settled(Outcome::Ignored);
/// When the wait of a trip at 0 is over.
const ELAPSED: u64 = 10;

fn build(policy: PolicyBuilder) -> Policy {
    let policy = policy.open_wait(Duration::from_millis(ELAPSED)).jitter(0.0).probe_lease(Duration::from_secs(1));
    policy.build().unwrap_or_else(|error| panic!("{error}"))
}

/// Trips at the first failure, closes at the first success.
fn touchy() -> PolicyBuilder {
    Policy::builder().no_window().consecutive_failures(1).successes_to_close(1)
}

fn windowed() -> PolicyBuilder {
    Policy::builder().window(Window::calls(3)).min_calls(2)
}

/// OPEN with its wait over at [`ELAPSED`]; `held` calls of before are in flight still.
fn tripped(policy: Policy, held: usize) -> Desk {
    let mut desk = Desk::with_calls(policy, held);
    desk.grant(0);
    desk.settle(desk.granted(held), Outcome::Failure);
    desk
}

/// HALF_OPEN with `probes` in flight: granted 1 and up.
fn probing(policy: Policy, probes: usize) -> Desk {
    let mut desk = tripped(policy, 0);
    for _ in 0..probes {
        desk.grant(ELAPSED);
    }
    desk
}

#[test]
fn two_rules_met_at_once_are_one_change() {
    model(
        "target: two rules met at once are one change",
        &[[("", None); 2]],
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
        "target: a success that completes min_calls trips",
        &[[("", None); 2]],
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

#[test]
fn time_window_min_calls() {
    model(
        "target: time window",
        &[[("", None); 2]],
        || {
            let window = Window::time(Duration::from_secs(2)).buckets(2);
            Desk::with_calls(build(Policy::builder().window(window).min_calls(2)), 2)
        },
        [
            |desk: &Desk| desk.settle(desk.granted(0), Outcome::Failure),
            |desk| desk.settle(desk.granted(1), Outcome::Success),
        ],
        |desk, said| {
            assert_eq!(desk.gate().state(), State::Open, "missed trip {said:?}");
            said
        },
    );
}

#[test]
fn slow_window_min_calls() {
    model(
        "target: slow window",
        &[[("", None); 2]],
        || Desk::with_calls(build(windowed().slow_call(Duration::from_millis(500)).slow_rate(0.5)), 2),
        [
            |desk: &Desk| desk.end(desk.granted(0), Ending::Settled(Outcome::Success), 600),
            |desk| desk.end(desk.granted(1), Ending::Settled(Outcome::Success), 0),
        ],
        |desk, said| {
            assert_eq!(desk.gate().state(), State::Open, "missed trip {said:?}");
            said
        },
    );
}

#[test]
fn a_straggler_cannot_count_in_a_later_window() {
    model(
        "target: a straggler cannot count in a later window",
        &[[("", None); 2]],
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
        "target: a new geometry starts an empty window",
        &[[("", None); 2]],
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
fn the_end_of_the_wait_makes_one_probe_and_the_loser_gives_its_permit_back() {
    model(
        "target: the end of the wait makes one probe and the loser gives its permit back",
        &[[("", None); 2]],
        || tripped(build(touchy().max_in_flight(2)), 0),
        [|desk: &Desk| desk.ask(ELAPSED); 2],
        |desk, said| {
            assert_eq!((desk.gate().probes(), desk.in_flight()), (1, 1));
            said
        },
    );
}

#[test]
fn a_full_bulkhead_never_spends_a_probe() {
    model(
        "target: a full bulkhead never spends a probe",
        &[[("", None); 2]],
        || tripped(build(touchy().max_in_flight(2).max_probes(2)), 1),
        [|desk: &Desk| desk.ask(ELAPSED); 2],
        |desk, said| {
            assert_eq!((desk.gate().probes(), desk.in_flight()), (1, 2));
            said
        },
    );
}

#[test]
fn a_call_that_ends_makes_room_for_the_probe() {
    model(
        "target: a call that ends makes room for the probe",
        &[[("", None); 2]],
        || {
            let mut desk = Desk::with_calls(build(touchy().max_in_flight(2)), 2);
            desk.record(desk.granted(1), Ending::Settled(Outcome::Failure), 0);
            desk
        },
        [|desk: &Desk| desk.ask(ELAPSED), |desk| desk.settle(desk.granted(0), Outcome::Success)],
        |desk, said| {
            let (state, probes) = if said[0].0 == "probes" { (State::HalfOpen, 1) } else { (State::Open, 0) };
            assert_eq!((desk.gate().state(), desk.in_flight()), (state, 1 + probes));
            said
        },
    );
}

#[test]
fn a_dropped_probe_hands_its_slot_to_the_next_caller() {
    model(
        "target: a dropped probe hands its slot to the next caller",
        &[[("", None); 2]],
        || probing(build(touchy()), 1),
        [|desk: &Desk| desk.end(desk.granted(1), ABANDONED, ELAPSED), |desk| desk.ask(ELAPSED)],
        |desk, said| {
            let probes = u32::from(said[1].0 == "probes");
            assert_eq!((desk.gate().probes(), desk.in_flight()), (probes, probes.into()));
            said
        },
    );
}

#[test]
fn a_probe_fails_while_its_lease_ends() {
    model(
        "target: a probe fails while its lease ends",
        &[[("", None); 2]],
        || probing(build(touchy()), 1),
        [|desk: &Desk| desk.end(desk.granted(1), Ending::Settled(Outcome::Failure), 5_000), |desk| desk.ask(5_000)],
        |desk, said| {
            desk.gate();
            said
        },
    );
}

#[test]
fn late_outcomes_of_an_earlier_generation_change_nothing() {
    model(
        "target: late outcomes of an earlier generation change nothing",
        &[[("", None); 3]],
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
fn a_probe_that_settles_meets_a_hand() {
    model(
        "target: a probe that settles meets a hand",
        &[[("", None); 2]],
        || probing(build(touchy()), 1),
        [
            |desk: &Desk| desk.settle(desk.granted(1), Outcome::Success),
            |desk| {
                let forced = desk.by_hand(ForcedOpen, |gate| gate.force(State::ForcedOpen, Now::default()));
                assert_eq!(forced.1, Some(ForcedOpen));
                desk.by_hand(Released, |gate| gate.release(Now::default()))
            },
        ],
        |desk, said| {
            assert_eq!((desk.gate().state(), desk.in_flight()), (State::Closed, 0));
            said
        },
    );
}

#[test]
fn a_forced_state_is_left_by_hand_only() {
    model(
        "target: a forced state is left by hand only",
        &[[("", None); 3]],
        || probing(build(touchy().max_probes(2)), 2),
        [
            |desk: &Desk| desk.settle(desk.granted(1), Outcome::Success),
            |desk| desk.settle(desk.granted(2), Outcome::Failure),
            |desk| desk.by_hand(ForcedOpen, |gate| gate.force(State::ForcedOpen, Now::default())),
        ],
        |desk, said| {
            assert_eq!(desk.gate().state(), State::ForcedOpen);
            said
        },
    );
}

#[test]
fn two_ignored_probes_count_as_one_success() {
    model(
        "target: two ignored probes count as one success",
        &[[("", None); 2]],
        || probing(build(touchy().max_probes(2).ignored_probes(2)), 2),
        [
            |desk: &Desk| desk.end(desk.granted(1), IGNORED, ELAPSED),
            |desk| desk.end(desk.granted(2), IGNORED, ELAPSED),
        ],
        |desk, said| {
            assert_eq!((desk.gate().state(), desk.gate().generation()), (State::Closed, 3));
            said
        },
    );
}

#[test]
fn a_recycled_slot_hears_nothing_of_its_last_tenant() {
    model(
        "target: a recycled slot hears nothing of its last tenant",
        &[[("", None); 2]],
        || Desk::with_calls(build(windowed().consecutive_failures(9)), 1),
        [
            |desk: &Desk| desk.settle(desk.granted(0), Outcome::Failure),
            |desk| {
                if !desk.words.bulkhead.retire() {
                    return ("stays", None);
                }
                let said = desk.by_hand(Cause::Forgotten, |gate| gate.forget(Now::default()));
                desk.words.bulkhead.reinstate(8);
                said
            },
        ],
        |desk, said| {
            let failures = u64::from(desk.gate().generation() == 0);
            assert_eq!(desk.window(), (Counts { calls: failures, failures, slow: 0 }, failures));
            assert_eq!(desk.in_flight(), 0);
            said
        },
    );
}
