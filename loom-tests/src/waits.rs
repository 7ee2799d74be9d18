//! The models of queues and shares, which the protocol passes and its twins don't.

use loom::sync::atomic::AtomicBool;
use portcullis::internals::{Gate, GateWord, Told};

use crate::hall::{Hall, Queued, Shares};
use crate::model;
use crate::room::Room;

const GRANTED: Option<Told> = Some(Told::Granted);

/// Nobody waits while permits lie idle: asserts it, and that nothing is lost.
fn at_rest<P: Queued>(hall: &Hall<P>, limit: u32) -> Vec<Option<Told>> {
    let idle = limit.saturating_sub(u32::try_from(hall.room.permits.in_flight()).unwrap_or(u32::MAX));
    let told = hall.told();
    assert!(idle == 0 || !told.contains(&None), "somebody waits while a permit lies idle");
    hall.room.rest(limit);
    told
}

/// All of `limit` are inside, one of them goes, and another begins to wait.
pub fn a_call_ends<P: Queued>(name: &str, limit: u32) {
    // Where stashes are in use what is given back lies in one, and is had by waiting for it.
    let at_once = if limit < 8 { vec![vec![]] } else { vec![] };
    model(
        name,
        &[at_once, vec![vec![GRANTED]]].concat(),
        move || (Hall::<P>::new(limit, 0, limit, 0), limit),
        [
            |(hall, _): &(Hall<P>, u32)| hall.room.leave(0),
            |(hall, _)| {
                hall.join();
            },
        ],
        |(hall, limit), _| at_rest(hall, *limit),
    );
}

/// Of 8 permits 3 are left. One call opens a magazine, comes in and goes out again; others take what there is, and the last of them waits.
pub fn a_magazine_opens<P: Queued>(name: &str) {
    model(
        name,
        // It comes too late, or is out again by the time that there is nothing left.
        &[(vec![], true), (vec![GRANTED], true), (vec![None], true), (vec![None], false)],
        || Hall::<P>::new(8, 1, 5, 0),
        [
            |hall: &Hall<P>| hall.room.pass(0),
            |hall| {
                while hall.room.enter(1) {}
                hall.join();
                true
            },
        ],
        |hall, [passed, _]| (at_rest(hall, 8), passed),
    );
}

/// Two wait; a call ends and the first of them leaves.
pub fn one_leaves<P: Queued>(name: &str) {
    model(
        name,
        &[vec![GRANTED]],
        || Hall::<P>::new(1, 0, 1, 2),
        [|hall: &Hall<P>| hall.room.leave(0), |hall| hall.leave_queue(0)],
        |hall, _| at_rest(hall, 1),
    );
}

/// Two wait; a call ends and another comes.
pub fn a_newcomer<P: Queued>(name: &str) {
    model(
        name,
        &[vec![GRANTED, None]],
        || Hall::<P>::new(1, 0, 1, 2),
        [
            |hall: &Hall<P>| hall.room.leave(0),
            |hall| assert!(!hall.room.enter(0), "a newcomer overtook those who wait"),
        ],
        |hall, _| {
            let told = at_rest(hall, 1);
            assert!(told != [None, GRANTED], "the second was served before the first");
            told
        },
    );
}

/// One waits; the limit of 1 is raised to 2, or another call ends.
pub fn a_raised_limit<P: Queued>(name: &str) {
    model(
        name,
        &[vec![], vec![GRANTED]],
        || Hall::<P>::new(1, 0, 1, 0),
        [
            |hall: &Hall<P>| hall.room.raise(2),
            |hall| {
                hall.join();
            },
        ],
        |hall, _| at_rest(hall, 2),
    );
}

/// A gate that closes to calls while one begins to wait behind it: in the queue first, then a look at the gate.
pub fn a_trip<P: Queued>(name: &str) {
    model(
        name,
        // Who saw the gate closed has left.
        &[(true, vec![]), (false, vec![Some(Told::TurnedAway)])],
        || {
            let gate = Gate::from_bits(GateWord::closed(1, 0).bits());
            (Hall::<P>::new(1, 0, 1, 0), gate, AtomicBool::new(false))
        },
        [
            |(hall, gate, _): &(Hall<P>, Gate, AtomicBool)| {
                let _ = gate.apply(|word| word.trip(1, 9));
                hall.room.permits.turn_away();
                false
            },
            |(hall, gate, _)| {
                hall.join();
                let is_closed = !gate.load().lets_pass();
                if is_closed {
                    hall.leave_queue(0);
                }
                is_closed
            },
        ],
        |(hall, ..), [_, saw]| {
            let told = hall.told();
            assert!(!told.contains(&None), "somebody waits at a gate that is closed");
            hall.room.rest(1);
            (saw, told)
        },
    );
}

/// Of a limit of 8, 3 are inside, and a fourth permit lies in the stash of stripe 0. Two ask within one half: there is room for one.
pub fn the_last_of_a_share<P: Shares>(name: &str) {
    model(
        name,
        &[[true, false], [false, true]],
        || Room::<P>::used(8, 0, 4, 1),
        [|room: &Room<P>| enter_half(room, 0), |room| enter_half(room, 1)],
        |room, told| {
            room.rest(8);
            told
        },
    );
}

/// 3 are inside and 3 permits lie in the stash of stripe 0. One that may use all comes and goes there; two ask within one half.
pub fn a_share_beside_a_stash<P: Shares>(name: &str) {
    model(
        name,
        // While the first is inside there is no room for the others.
        &[[true, true, false], [true, false, true], [true, false, false]],
        || Room::<P>::used(8, 0, 6, 3),
        [|room: &Room<P>| room.pass(0), |room| enter_half(room, 0), |room| enter_half(room, 1)],
        |room, told| {
            room.rest(8);
            told
        },
    );
}

/// Asks within one half of 8. Nobody but those who ask within a share comes in meanwhile, so the count from outside is no less than at
/// the moment of admission.
fn enter_half<P: Shares>(room: &Room<P>, stripe: usize) -> bool {
    let entered = room.permits.acquire_half(stripe);
    if entered {
        assert!(room.count_in() <= 4, "a call entered beyond its share");
    }
    entered
}
