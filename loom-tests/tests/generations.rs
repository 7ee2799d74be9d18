//! Late outcomes: a success and a failure of every earlier generation, against every state and what is under way in it.

use loom_tests::desk::{Desk, ELAPSED, Said, build, touchy};
use loom_tests::model;
use portcullis::Cause::{self, Disabled, ForcedOpen, ProbesSucceeded, Released, WaitElapsed};
use portcullis::internals::{Counts, Ending, GateWord, Now, Step, Token};
use portcullis::{Outcome, Policy, State, Window};

/// A lease that began at [`ELAPSED`] is over.
const LEASE_OVER: u64 = 5_000;
/// The generations that grant calls before the last: CLOSED, HALF_OPEN, HALF_OPEN after a takeover, CLOSED, DISABLED, CLOSED.
const EARLIER: usize = 6;

/// With two calls or probes of each earlier generation in flight, granted 2n and 2n + 1, in CLOSED of generation 7.
fn aged() -> Desk {
    let mut desk = Desk::new(policy());
    let trip = |gate: GateWord| gate.trip(0, ELAPSED);
    desk.grant(0);
    desk.grant(0);
    desk.by_hand(Cause::FailureRate, trip);
    // The first takes the wait's end, the second a slot; then the lease is over, and so on.
    desk.grant(ELAPSED);
    desk.grant(ELAPSED);
    desk.grant(LEASE_OVER);
    desk.grant(LEASE_OVER);
    let closes = |gate: GateWord| Step::Move(GateWord::closed(gate.generation() + 1, 0));
    desk.by_hand(ProbesSucceeded, closes);
    desk.grant(0);
    desk.grant(0);
    desk.by_hand(Disabled, |gate| gate.force(State::Disabled, Now::default()));
    desk.grant(0);
    desk.grant(0);
    desk.by_hand(Released, |gate| gate.release(Now::default()));
    desk.grant(0);
    desk.grant(0);
    let generations: Vec<u32> = (0..EARLIER).map(|index| desk.granted(2 * index).generation()).collect();
    assert_eq!(generations, [0, 2, 3, 4, 5, 6]);
    // The generation after is the earliest that they're all late for.
    desk.by_hand(Cause::PolicyChanged, |gate| gate.restart(Now::default()));
    desk
}

fn policy() -> Policy {
    build(touchy().window(Window::calls(3)).min_calls(3).consecutive_failures(2).max_probes(2))
}

fn late(desk: &Desk, which: usize, outcome: Outcome) -> Said {
    for index in 0..EARLIER {
        let said = desk.record(desk.granted(2 * index + which), Ending::Settled(outcome), LEASE_OVER);
        assert_eq!(said, ("stale", None), "an outcome of an earlier generation counted");
    }
    ("all stale", None)
}

/// Races them with what a caller does in the state that `enter` brings about.
fn against(
    name: &str,
    expected: &[(Said, State, u32, u64)],
    enter: impl Fn(&mut Desk) + Send + Sync + 'static,
    meanwhile: fn(&Desk) -> Said,
) {
    // A racer is a plain function.
    model(
        name,
        expected,
        move || {
            let mut desk = aged();
            enter(&mut desk);
            Scene { desk, meanwhile }
        },
        [
            |scene: &Scene| late(&scene.desk, 0, Outcome::Success),
            |scene| late(&scene.desk, 1, Outcome::Failure),
            |scene| (scene.meanwhile)(&scene.desk),
        ],
        |scene, [_, _, said]| {
            let (gate, (counts, streak)) = (scene.desk.gate(), scene.desk.window());
            assert_eq!(counts, Counts { calls: streak, failures: streak, slow: 0 });
            (said, gate.state(), gate.probes(), streak)
        },
    );
}

#[derive(Debug)]
struct Scene {
    desk: Desk,
    meanwhile: fn(&Desk) -> Said,
}

/// The first that the last generation granted.
fn latest(desk: &Desk) -> Token {
    desk.granted(2 * EARLIER)
}

#[test]
fn late_outcomes_meet_a_failure_in_closed() {
    against(
        "generations: late outcomes meet a failure in CLOSED",
        &[(("recorded", None), State::Closed, 0, 1)],
        |desk| desk.grant(0),
        |desk| desk.settle(latest(desk), Outcome::Failure),
    );
}

#[test]
fn late_outcomes_meet_a_caller_at_the_end_of_open() {
    against(
        "generations: late outcomes meet a caller at the end of OPEN",
        &[(("probes", Some(WaitElapsed)), State::HalfOpen, 1, 0)],
        |desk| {
            let generation = desk.words.gate.load().generation();
            desk.by_hand(Cause::FailureRate, |gate| gate.trip(generation, ELAPSED));
        },
        |desk| desk.ask(ELAPSED),
    );
}

#[test]
fn late_outcomes_meet_a_caller_during_open() {
    against(
        "generations: late outcomes meet a caller during OPEN",
        &[(("open", None), State::Open, 0, 0)],
        |desk| {
            let generation = desk.words.gate.load().generation();
            desk.by_hand(Cause::FailureRate, |gate| gate.trip(generation, ELAPSED));
        },
        |desk| desk.ask(0),
    );
}

#[test]
fn late_outcomes_meet_a_probe_that_succeeds() {
    against(
        "generations: late outcomes meet a probe that succeeds",
        &[(("recorded", Some(ProbesSucceeded)), State::Closed, 0, 0)],
        probed,
        |desk| desk.settle(latest(desk), Outcome::Success),
    );
}

#[test]
fn late_outcomes_meet_a_probe_that_is_dropped() {
    against(
        "generations: late outcomes meet a probe that is dropped",
        &[(("recorded", None), State::HalfOpen, 0, 0)],
        probed,
        |desk| desk.end(latest(desk), Ending::Abandoned, ELAPSED),
    );
}

fn probed(desk: &mut Desk) {
    let generation = desk.words.gate.load().generation();
    desk.by_hand(Cause::FailureRate, |gate| gate.trip(generation, ELAPSED));
    desk.grant(ELAPSED);
}

#[test]
fn late_outcomes_meet_a_caller_in_forced_open() {
    against(
        "generations: late outcomes meet a caller in FORCED_OPEN",
        &[(("forced", None), State::ForcedOpen, 0, 0)],
        |desk| {
            desk.by_hand(ForcedOpen, |gate| gate.force(State::ForcedOpen, Now::default()));
        },
        |desk| desk.ask(0),
    );
}

#[test]
fn late_outcomes_meet_a_failure_in_disabled() {
    against(
        "generations: late outcomes meet a failure in DISABLED",
        &[(("recorded", None), State::Disabled, 0, 0)],
        |desk| {
            desk.by_hand(Disabled, |gate| gate.force(State::Disabled, Now::default()));
            desk.grant(0);
        },
        |desk| desk.settle(latest(desk), Outcome::Failure),
    );
}

#[test]
fn late_outcomes_meet_a_trip() {
    against(
        "generations: late outcomes meet a trip",
        &[(("recorded", Some(Cause::ConsecutiveFailures)), State::Open, 0, 0)],
        |desk| {
            desk.grant(0);
            desk.grant(0);
            let first = desk.granted(2 * EARLIER + 1);
            desk.settle(first, Outcome::Failure);
        },
        |desk| desk.settle(latest(desk), Outcome::Failure),
    );
}
