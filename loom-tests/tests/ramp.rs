//! Recovery without a flood: the limit is low before the gate is closed, and rises only to what is due.

use std::time::Duration;

use loom_tests::desk::{Desk, ELAPSED, Said, build, touchy};
use loom_tests::model;
use loom_tests::twins::{Pace, close_at_first_sight, close_then_lower, lower_without_a_sweep};
use portcullis::Cause::{ConsecutiveFailures, ForcedOpen, ProbesSucceeded, Released};
use portcullis::internals::{Ending, GateWord, Now, ProbeRules};
use portcullis::{Outcome, Policy, PolicyBuilder, State};

const GOOD: Ending = Ending::Settled(Outcome::Success);
const BAD: Ending = Ending::Settled(Outcome::Failure);
/// When the ramp of a target that closed at [`ELAPSED`] is over: one call more each millisecond.
const OVER: u64 = ELAPSED + 3;
const RULES: ProbeRules = ProbeRules { max_probes: 1, successes_to_close: 1, lease_s: 1 };

/// From one call to four in three milliseconds.
fn ramping() -> PolicyBuilder {
    touchy().max_in_flight(4).ramp(Duration::from_millis(3)).ramp_failures(1)
}

/// HALF_OPEN with `probes` in flight: granted 1 and up.
fn probing(policy: Policy, probes: usize) -> Desk {
    let mut desk = Desk::with_calls(policy, 1);
    desk.settle(desk.granted(0), Outcome::Failure);
    for _ in 0..probes {
        desk.grant(ELAPSED);
    }
    desk
}

/// CLOSED at [`ELAPSED`], with one call in flight that began after that: granted 2.
fn recovered() -> Desk {
    let mut desk = probing(build(ramping()), 1);
    desk.end(desk.granted(1), GOOD, ELAPSED);
    desk.grant(ELAPSED);
    desk
}

fn limit(desk: &Desk) -> u32 {
    desk.words.bulkhead.limit()
}

/// What a caller is told who asks twice and keeps what it gets.
fn ask_twice(desk: &Desk) -> [Said; 2] {
    [desk.ask(ELAPSED), desk.ask(ELAPSED)]
}

#[test]
fn who_meets_the_closed_gate_meets_the_low_limit() {
    let told = |one, other| [(one, None), (other, None)];
    model(
        "ramp: who meets the closed gate meets the low limit",
        &[
            told("probing", "probing"),
            told("probing", "saturated"),
            told("probing", "enters"),
            told("saturated", "saturated"),
            told("saturated", "enters"),
            told("enters", "saturated"),
        ],
        || probing(build(ramping()), 1),
        [
            |desk: &Desk| {
                assert_eq!(desk.end(desk.granted(1), GOOD, ELAPSED), ("recorded", Some(ProbesSucceeded)));
                told_nothing()
            },
            ask_twice,
        ],
        |desk, said| {
            assert!(desk.gate().is_ramping());
            assert!(desk.in_flight() <= 1, "more calls than the ramp allows");
            assert_eq!(limit(desk), 1);
            said[1]
        },
    );
}

fn told_nothing() -> [Said; 2] {
    [("", None); 2]
}

#[test]
#[should_panic(expected = "more calls than the ramp allows")]
fn a_limit_lowered_after_the_gate_closed() {
    model(
        "teeth: a limit lowered after the gate closed",
        &[()],
        || probing(build(ramping()), 1),
        [
            |desk: &Desk| {
                close_then_lower(&desk.words, 2, Now::from_millis(ELAPSED), RULES);
                told_nothing()
            },
            ask_twice,
        ],
        |desk, _| assert!(desk.in_flight() <= 1, "more calls than the ramp allows"),
    );
}

/// HALF_OPEN, with two permits in a magazine that was opened before the outage, and the gate as it was then.
fn stashed() -> (Desk, GateWord) {
    let mut desk = Desk::with_calls(build(ramping()), 3);
    let before = desk.gate();
    for index in 0..3 {
        desk.end(desk.granted(index), if index == 2 { BAD } else { GOOD }, 0);
    }
    desk.grant(ELAPSED);
    (desk, before)
}

/// A caller that stalled since before the outage, and only looked for a permit now: whether it saw the gate closed again before that, and
/// whether it got one.
fn stale_caller((desk, before): &(Desk, GateWord)) -> (bool, bool) {
    let is_after = desk.words.gate.load().is_ramping();
    (is_after, desk.words.enter(*before, false, Now::default).is_some())
}

#[test]
fn no_permit_of_before_the_outage_lets_a_call_past_the_ramp() {
    model(
        "ramp: no permit of before the outage lets a call past the ramp",
        &[[None, Some((true, false))], [None, Some((false, true))], [None, Some((false, false))]],
        || {
            let (desk, before) = stashed();
            assert!(desk.words.enter(before, false, Now::default).is_some(), "a permit lies in the stash");
            desk.words.release();
            (desk, before)
        },
        [
            |world: &(Desk, GateWord)| {
                world.0.end(world.0.granted(3), GOOD, ELAPSED);
                None
            },
            |world| Some(stale_caller(world)),
        ],
        |_, told| {
            assert_ne!(told[1], Some((true, true)), "a permit of before the outage passed the ramp");
            told
        },
    );
}

#[test]
#[should_panic(expected = "a permit of before the outage passed the ramp")]
fn a_limit_lowered_without_a_sweep() {
    model(
        "teeth: a limit lowered without a sweep",
        &[()],
        stashed,
        [
            |(desk, _): &(Desk, GateWord)| {
                lower_without_a_sweep(&desk.words, 2, Now::from_millis(ELAPSED), RULES);
                None
            },
            |world| Some(stale_caller(world)),
        ],
        |_, told| {
            assert_ne!(told[1], Some((true, true)), "a permit of before the outage passed the ramp");
        },
    );
}

#[test]
fn of_two_last_successes_one_closes_at_the_low_limit() {
    model(
        "ramp: of two last successes one closes at the low limit",
        &[
            [("recorded", Some(ProbesSucceeded)), ("recorded", None)],
            [("recorded", None), ("recorded", Some(ProbesSucceeded))],
        ],
        || probing(build(ramping().max_probes(2).successes_to_close(2)), 2),
        [|desk: &Desk| desk.end(desk.granted(1), GOOD, ELAPSED), |desk| desk.end(desk.granted(2), GOOD, ELAPSED)],
        |desk, said| {
            assert!(desk.gate().is_ramping());
            assert_eq!((limit(desk), desk.in_flight()), (2, 0));
            said
        },
    );
}

#[test]
#[should_panic(expected = "closed at the full limit")]
fn a_success_that_judges_the_word_once() {
    model(
        "teeth: a success that judges the word once",
        &[()],
        || probing(build(ramping().max_probes(2).successes_to_close(2)), 2),
        [|desk: &Desk| {
            let rules = ProbeRules { max_probes: 2, successes_to_close: 2, ..RULES };
            close_at_first_sight(&desk.words, 2, Now::from_millis(ELAPSED), rules);
        }; 2],
        |desk, _| {
            let is_low = limit(desk) == 1;
            assert!(!desk.words.gate.load().is_ramping() || is_low, "closed at the full limit");
        },
    );
}

#[test]
fn a_limit_set_by_hand_meets_one_that_rises() {
    model(
        "ramp: a limit set by hand meets one that rises",
        &[[("enters", None), ("set", None)], [("saturated", None), ("set", None)]],
        recovered,
        [|desk: &Desk| desk.ask(ELAPSED + 2), |desk| desk.set_limit(1, ELAPSED + 2)],
        |desk, said| {
            assert_eq!(limit(desk), 1, "a limit that rose past the hand's");
            assert_eq!(desk.ask(ELAPSED + 2), ("saturated", None));
            said
        },
    );
}

#[test]
#[should_panic(expected = "a limit that rose past the hand's")]
fn a_limit_raised_on_what_was_read_before() {
    model(
        "teeth: a limit raised on what was read before",
        &[()],
        || Pace::new(4),
        [|pace: &Pace| pace.raise(3), |pace| pace.set_by_hand(1)],
        |pace, _| assert_eq!(pace.bulkhead.limit(), 1, "a limit that rose past the hand's"),
    );
}

#[test]
fn two_that_ask_later_share_what_is_due() {
    model(
        "ramp: two that ask later share what is due",
        &[
            [("enters", None), ("enters", None)],
            // The other was at it.
            [("enters", None), ("saturated", None)],
            [("saturated", None), ("enters", None)],
        ],
        recovered,
        [|desk: &Desk| desk.ask(ELAPSED + 2), |desk| desk.ask(ELAPSED + 2)],
        |desk, said| {
            assert_eq!(limit(desk), 3);
            assert!(desk.in_flight() <= 3 && desk.gate().is_ramping());
            said
        },
    );
}

#[test]
fn the_end_of_the_ramp_is_found_once_and_is_no_transition() {
    model(
        "ramp: the end of the ramp is found once and is no transition",
        &[
            [("enters", None), ("enters", None)],
            [("enters", None), ("saturated", None)],
            [("saturated", None), ("enters", None)],
        ],
        recovered,
        [|desk: &Desk| desk.ask(OVER), |desk| desk.ask(OVER)],
        |desk, said| {
            let gate = desk.gate();
            assert_eq!(
                (gate.state(), gate.is_ramping(), gate.lets_pass(), limit(desk)),
                (State::Closed, false, true, 4)
            );
            said
        },
    );
}

#[test]
fn a_relapse_meets_a_limit_that_rises() {
    model(
        "ramp: a relapse meets a limit that rises",
        &[
            [("recorded", Some(ConsecutiveFailures)), ("enters", None)],
            [("recorded", Some(ConsecutiveFailures)), ("saturated", None)],
            [("recorded", Some(ConsecutiveFailures)), ("open", None)],
        ],
        recovered,
        [|desk: &Desk| desk.end(desk.granted(2), BAD, ELAPSED + 2), |desk| desk.ask(ELAPSED + 2)],
        |desk, said| {
            let gate = desk.gate();
            assert_eq!((gate.state(), gate.reopens(), limit(desk)), (State::Open, 1, 4), "no state but CLOSED ramps");
            said
        },
    );
}

#[test]
fn a_hand_meets_the_probe_that_closes() {
    model(
        "ramp: a hand meets the probe that closes",
        &[
            [("recorded", Some(ProbesSucceeded)), ("by hand", Some(Released))],
            [("stale", None), ("by hand", Some(Released))],
        ],
        || probing(build(ramping()), 1),
        [
            |desk: &Desk| desk.end(desk.granted(1), GOOD, ELAPSED),
            |desk| {
                let forced = desk.by_hand(ForcedOpen, |gate| gate.force(State::ForcedOpen, Now::default()));
                assert_eq!(forced.1, Some(ForcedOpen));
                desk.by_hand(Released, |gate| gate.release(Now::default()))
            },
        ],
        |desk, said| {
            let gate = desk.gate();
            assert_eq!((gate.is_ramping(), limit(desk)), (false, 4), "a limit stays low");
            said
        },
    );
}
