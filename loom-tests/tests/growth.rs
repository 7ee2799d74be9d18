//! A second stripe, made once threads have met: what lies in the first is found, and what comes to the second is counted.
//!
//! A racer that says `meet` stands for one that lost a CAS; `threads_that_meet_...` really lose it. With one stripe a limit of 4 has
//! stashes, with two one of 8.

use loom_tests::model;
use loom_tests::room::{Growing, Room};
use loom_tests::scenes::{self, Refuses, at_rest};
use portcullis::internals::Bulkhead;

type Sprout = Room<Growing>;

#[test]
fn threads_that_meet_make_a_stripe_and_lose_nothing() {
    model(
        "growth: threads that meet make a stripe and lose nothing",
        &[([true; 2], 1), ([true; 2], 2)],
        || Sprout::new(8),
        [|room: &Sprout| room.pass(0) && room.pass(0), |room| room.pass(1) && room.pass(1)],
        |room, passed| {
            let stripes = room.permits.stripes();
            room.rest(8);
            (passed, stripes)
        },
    );
}

#[test]
fn three_threads_make_a_stripe_and_lose_nothing() {
    model(
        "growth: three threads make a stripe and lose nothing",
        &[([true; 3], 1), ([true; 3], 2)],
        || Sprout::used(8, 0, 1, 0),
        [|room: &Sprout| room.pass(0), |room| room.pass(1), |room| room.pass(1)],
        |room, passed| {
            let stripes = room.permits.stripes();
            room.rest(8);
            (passed, stripes)
        },
    );
}

#[test]
fn a_permit_stashed_before_is_found_from_the_new_stripe() {
    scenes::a_stash_from_before::<Growing>("growth: a permit stashed before is found from the new stripe");
}

#[test]
fn a_caller_that_makes_a_stripe_finds_what_lay_in_the_first() {
    scenes::a_caller_that_makes_a_stripe::<Growing>("growth: a caller that makes a stripe finds what lay in the first");
}

#[test]
fn the_last_permit_goes_to_exactly_one_while_a_stripe_comes() {
    model(
        "growth: the last permit goes to exactly one while a stripe comes",
        &[[true, false], [false, true]],
        || Sprout::used(8, 0, 7, 0),
        [
            |room: &Sprout| {
                room.permits.meet();
                room.enter(1)
            },
            |room| room.enter(0),
        ],
        at_rest(8),
    );
}

#[test]
fn a_permit_given_back_to_the_new_stripe_is_had_by_at_most_one() {
    model(
        "growth: a permit given back to the new stripe is had by at most one",
        &[[true, true, false], [true, false, true], [true, false, false]],
        || Sprout::used(8, 0, 8, 0),
        [
            |room: &Sprout| {
                room.permits.meet();
                room.leave(1);
                true
            },
            |room| room.enter(0),
            |room| room.enter(1),
        ],
        at_rest(8),
    );
}

/// It came in by the first stripe and leaves by the second, or the other way round.
#[test]
fn a_call_leaves_by_another_stripe_than_it_came_by() {
    model(
        "growth: a call leaves by another stripe than it came by",
        &[[true, true], [true, false], [false, true]],
        || Sprout::used(8, 0, 7, 0),
        [
            |room: &Sprout| {
                let entered = room.enter(1);
                room.permits.meet();
                if entered {
                    room.leave(1);
                }
                entered
            },
            |room| room.pass(0),
        ],
        at_rest(8),
    );
}

/// Large enough for stashes with one stripe and too small with two: a batch is on its way to the first as the second comes.
#[test]
fn a_refill_meets_a_stripe_with_which_the_limit_is_small() {
    model(
        "growth: a refill meets a stripe with which the limit is small",
        // A batch in hand is missed.
        &[[2, 2], [2, 1]],
        || Sprout::new(4),
        [
            |room: &Sprout| (0..2).filter(|_| room.enter(0)).count(),
            |room| {
                room.permits.meet();
                (0..2).filter(|_| room.enter(1)).count()
            },
        ],
        at_rest(4),
    );
}

#[test]
fn a_limit_lowered_while_a_stripe_comes_admits_nobody_above_it() {
    scenes::lowering_while_growing::<Growing>("growth: a limit lowered while a stripe comes admits nobody above it");
}

#[test]
fn a_limit_lowered_below_a_stash_meets_a_stripe() {
    model(
        "growth: a limit lowered below a stash meets a stripe",
        &[[true, true], [false, true]],
        || Sprout::used(8, 0, 4, 3),
        [
            |room: &Sprout| {
                room.permits.meet();
                room.pass(1)
            },
            |room| {
                room.lower(1);
                true
            },
        ],
        at_rest(1),
    );
}

#[test]
fn a_retirement_meets_a_stripe() {
    model(
        "growth: a retirement meets a stripe",
        &[[true, true], [true, false], [false, true]],
        || Sprout::used(8, 0, 1, 1),
        [
            |room: &Sprout| {
                room.permits.meet();
                room.pass(1)
            },
            |room| {
                let retired = room.permits.retire();
                if retired {
                    room.permits.reinstate(8);
                }
                retired
            },
        ],
        at_rest(8),
    );
}

#[test]
fn refusals_of_threads_that_meet_are_all_counted() {
    scenes::two_refusals_each::<Bulkhead>("growth: refusals of threads that meet are all counted");
}

#[test]
fn refusals_of_three_threads_are_all_counted() {
    model(
        "growth: refusals of three threads are all counted",
        &[false, true],
        <Bulkhead as Refuses>::new,
        [|words: &Bulkhead| words.refuse(0), |words| words.refuse(1), |words| words.refuse(2)],
        |words, _| {
            assert_eq!(words.refused(), 3, "a refusal is lost");
            words.has_grown()
        },
    );
}

/// Whoever looks twice never sees fewer, and never more than there were.
#[test]
fn refusals_that_were_seen_stay_while_a_stripe_comes() {
    model(
        "growth: refusals that were seen stay while a stripe comes",
        &[(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)],
        <Bulkhead as Refuses>::new,
        [
            |words: &Bulkhead| {
                words.refuse(0);
                words.meet();
                words.refuse(1);
                (0, 0)
            },
            |words| {
                let seen = (words.refused(), words.refused());
                assert!(seen.0 <= seen.1, "a refusal was seen and isn't any more");
                seen
            },
        ],
        |words, [_, seen]| {
            assert_eq!(words.refused(), 2);
            seen
        },
    );
}
