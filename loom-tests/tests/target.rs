//! The target: admission over all its words, probes and hands, and exactly one report of every transition.

use loom_tests::desk::{Desk, ELAPSED, build, touchy};
use loom_tests::model;
use portcullis::Cause::{ForcedOpen, LeaseExpired, ProbeFailed, ProbesSucceeded, Released, WaitElapsed};
use portcullis::internals::{Ending, Now};
use portcullis::{Outcome, Policy, State};

const FAILED: Ending = Ending::Settled(Outcome::Failure);
const IGNORED: Ending = Ending::Settled(Outcome::Ignored);

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
fn the_end_of_the_wait_makes_one_probe_and_the_loser_gives_its_permit_back() {
    model(
        "target: the end of the wait makes one probe and the loser gives its permit back",
        &[[("probes", Some(WaitElapsed)), ("probing", None)], [("probing", None), ("probes", Some(WaitElapsed))]],
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
        &[[("probes", Some(WaitElapsed)), ("saturated", None)], [("saturated", None), ("probes", Some(WaitElapsed))]],
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
        &[[("probes", Some(WaitElapsed)), ("stale", None)], [("saturated", None), ("stale", None)]],
        || {
            let desk = Desk::with_calls(build(touchy().max_in_flight(2)), 2);
            desk.record(desk.granted(1), FAILED, 0);
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
        &[[("recorded", None), ("probes", None)], [("recorded", None), ("probing", None)]],
        || probing(build(touchy()), 1),
        [|desk: &Desk| desk.end(desk.granted(1), Ending::Abandoned, ELAPSED), |desk| desk.ask(ELAPSED)],
        |desk, said| {
            let probes = u32::from(said[1].0 == "probes");
            assert_eq!((desk.gate().probes(), desk.in_flight()), (probes, probes.into()));
            said
        },
    );
}

/// Its slot is free before its permit is: a caller between the two is refused and leaves the slot alone.
#[test]
fn a_dropped_probe_that_held_the_last_permit_frees_both() {
    model(
        "target: a dropped probe that held the last permit frees both",
        &[
            [("recorded", None), ("probes", None)],
            [("recorded", None), ("saturated", None)],
            [("recorded", None), ("probing", None)],
        ],
        || probing(build(touchy().max_in_flight(1)), 1),
        [|desk: &Desk| desk.end(desk.granted(1), Ending::Abandoned, ELAPSED), |desk| desk.ask(ELAPSED)],
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
        &[[("recorded", Some(ProbeFailed)), ("open", None)], [("stale", None), ("probes", Some(LeaseExpired))]],
        || probing(build(touchy()), 1),
        [|desk: &Desk| desk.end(desk.granted(1), FAILED, 5_000), |desk| desk.ask(5_000)],
        |desk, said| {
            desk.gate();
            said
        },
    );
}

#[test]
fn a_probe_that_settles_meets_a_hand() {
    model(
        "target: a probe that settles meets a hand",
        &[
            [("recorded", Some(ProbesSucceeded)), ("by hand", Some(Released))],
            [("stale", None), ("by hand", Some(Released))],
        ],
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
        &[
            [("recorded", Some(ProbesSucceeded)), ("stale", None), ("by hand", Some(ForcedOpen))],
            [("stale", None), ("recorded", Some(ProbeFailed)), ("by hand", Some(ForcedOpen))],
            [("stale", None), ("stale", None), ("by hand", Some(ForcedOpen))],
        ],
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
        &[
            [("recorded", None), ("recorded", Some(ProbesSucceeded))],
            [("stale", None), ("recorded", Some(ProbesSucceeded))],
            [("recorded", Some(ProbesSucceeded)), ("recorded", None)],
            [("recorded", Some(ProbesSucceeded)), ("stale", None)],
        ],
        || probing(build(touchy().max_probes(2).ignored_probes(2)), 2),
        [|desk: &Desk| desk.end(desk.granted(1), IGNORED, ELAPSED), |desk| desk.end(desk.granted(2), IGNORED, ELAPSED)],
        |desk, said| {
            assert_eq!((desk.gate().state(), desk.gate().generation()), (State::Closed, 3));
            said
        },
    );
}

/// The limit falls to nothing while a probe is due. A probe slot is spent with a permit only, and none is had afterwards.
#[test]
fn a_limit_lowered_to_nothing_meets_a_probe() {
    model(
        "target: a limit lowered to nothing meets a probe",
        &[[("probes", Some(WaitElapsed)), ("saturated", None)], [("saturated", None), ("saturated", None)]],
        || tripped(build(touchy().max_in_flight(4).max_probes(2)), 0),
        [
            |desk: &Desk| desk.ask(ELAPSED),
            |desk| {
                desk.words.bulkhead.set_limit(0);
                desk.ask(ELAPSED)
            },
        ],
        |desk, said| {
            let probes = u32::from(said[0].0 == "probes");
            let state = if probes == 1 { State::HalfOpen } else { State::Open };
            assert_eq!((desk.gate().state(), desk.gate().probes(), desk.in_flight()), (state, probes, probes.into()));
            said
        },
    );
}

#[test]
fn a_limit_lowered_to_one_lets_one_of_two_probe() {
    model(
        "target: a limit lowered to one lets one of two probe",
        &[
            [("probes", Some(WaitElapsed)), ("saturated", None), ("set", None)],
            [("saturated", None), ("probes", Some(WaitElapsed)), ("set", None)],
            // Both were in before it fell.
            [("probes", Some(WaitElapsed)), ("probes", None), ("set", None)],
            [("probes", None), ("probes", Some(WaitElapsed)), ("set", None)],
        ],
        || tripped(build(touchy().max_in_flight(2).max_probes(2)), 0),
        [
            |desk: &Desk| desk.ask(ELAPSED),
            |desk| desk.ask(ELAPSED),
            |desk| {
                desk.words.bulkhead.set_limit(1);
                ("set", None)
            },
        ],
        |desk, said| {
            let probes = said.iter().filter(|(told, _)| *told == "probes").count();
            assert_eq!((u64::from(desk.gate().probes()), desk.in_flight()), (probes as u64, probes as u64));
            said
        },
    );
}

/// On words that every call finds alike: full for the one, waiting for the other.
#[test]
fn two_that_are_refused_at_once_are_both_counted() {
    model(
        "target: two that are refused at once are both counted",
        &[[("open", None), ("open", None)]],
        || tripped(build(touchy()), 0),
        [|desk: &Desk| desk.ask(0); 2],
        |desk, said| {
            assert_eq!(desk.words.bulkhead.refusals().open, 2);
            said
        },
    );
    model(
        "target: two that are turned away at once are both counted",
        &[[("saturated", None), ("saturated", None)]],
        || Desk::with_calls(build(touchy().max_in_flight(1)), 1),
        [|desk: &Desk| desk.ask(0); 2],
        |desk, said| {
            assert_eq!(desk.words.bulkhead.refusals().saturated, 2);
            said
        },
    );
}
