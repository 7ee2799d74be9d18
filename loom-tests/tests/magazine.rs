//! The magazines: what moves between a stash and the pool, and a slot that is retired meanwhile.
//!
//! One stripe, limit 4: the third permit in the stash is past the high mark.

use loom_tests::model;
use loom_tests::room::{Room, Striped};
use loom_tests::scenes::{self, at_rest};

type One = Room<Striped<1>>;
type Two = Room<Striped<2>>;

fn leave<const N: usize>(room: &Room<Striped<N>>) -> bool {
    room.leave(0);
    true
}

/// Retires what is idle; somebody's next tenant takes it over at once.
fn recycle<const N: usize>(room: &Room<Striped<N>>, limit: u32) -> bool {
    let retired = room.permits.retire();
    if retired {
        room.permits.reinstate(limit);
    }
    retired
}

#[test]
fn a_spill_strands_nothing_that_another_stripe_looks_for() {
    scenes::spilling::<Striped<2>>("magazine: a spill strands nothing that another stripe looks for");
}

#[test]
fn two_spills_at_once_give_each_permit_once() {
    model(
        "magazine: two spills at once give each permit once",
        &[[true, true, true], [true, true, false]],
        || One::used(4, 0, 4, 2),
        [leave, leave, |room| room.enter(0) && room.enter(0)],
        at_rest(4),
    );
}

#[test]
fn a_spill_meets_a_lowered_limit() {
    model(
        "magazine: a spill meets a lowered limit",
        &[None, Some(true)],
        || One::used(4, 0, 4, 2),
        [
            |room: &One| {
                room.leave(0);
                room.enter_lowered(0, 2)
            },
            |room| {
                room.lower(2);
                None
            },
        ],
        |room, [first, _]| {
            room.rest(2);
            first
        },
    );
}

#[test]
fn a_spill_a_caller_and_a_lowered_limit_lose_nothing() {
    model(
        "magazine: a spill, a caller and a lowered limit lose nothing",
        &[[true, true, true], [true, false, true]],
        || Two::used(8, 0, 5, 3),
        [
            leave,
            |room| room.enter(1),
            |room| {
                room.lower(3);
                true
            },
        ],
        at_rest(3),
    );
}

#[test]
fn a_spill_meets_a_retirement() {
    model(
        "magazine: a spill meets a retirement",
        &[[true, true], [true, false]],
        || One::used(4, 0, 3, 2),
        [leave, |room| recycle(room, 4)],
        at_rest(4),
    );
}

#[test]
fn a_limit_lowered_during_a_refill_leaves_no_batch_behind() {
    scenes::lowering_during_a_refill::<Striped<2>>("magazine: a limit lowered during a refill leaves no batch behind");
}

#[test]
fn a_sweep_during_openings_and_refills_loses_nothing() {
    model(
        "magazine: a sweep during openings and refills loses nothing",
        &[[true, true]],
        || Two::new(8),
        [
            |room: &Two| room.enter(0) && room.enter(0),
            |room| {
                room.permits.sweep();
                room.pass(0)
            },
        ],
        at_rest(8),
    );
}

#[test]
fn a_retired_slot_holds_nobody() {
    model(
        "magazine: a retired slot holds nobody",
        &[[true, false], [false, true]],
        || Two::new(8),
        [|room: &Two| room.enter(0), |room| room.permits.retire()],
        |room, [entered, retired]| {
            assert!(!(entered && retired), "retired with a call in flight");
            if retired {
                room.permits.reinstate(8);
            }
            room.rest(8);
            [entered, retired]
        },
    );
}

#[test]
fn a_call_that_ends_and_the_next_meet_a_retirement() {
    model(
        "magazine: a call that ends and the next meet a retirement",
        &[[true, true], [true, false], [false, true]],
        || Two::used(8, 0, 1, 0),
        [
            |room: &Two| {
                room.leave(0);
                room.pass(1)
            },
            |room| recycle(room, 8),
        ],
        at_rest(8),
    );
}

#[test]
fn a_refill_meets_a_retirement() {
    model(
        "magazine: a refill meets a retirement",
        &[[true, true], [true, false], [false, true]],
        || Two::used(8, 0, 1, 1),
        [
            |room: &Two| {
                let entered = [room.enter(0), room.enter(0)];
                entered.into_iter().filter(|entered| *entered).for_each(|_| room.leave(0));
                entered == [true; 2]
            },
            |room| recycle(room, 8),
        ],
        at_rest(8),
    );
}
