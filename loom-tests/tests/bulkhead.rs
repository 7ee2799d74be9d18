//! The bulkhead: never more inside than the limit, no permit lost, none made.
//!
//! Stashes are used from a limit of 4 per stripe. Under the cfg a batch is 1 and the high mark 2, so that they are opened, refilled
//! and spilled within a few steps. `magazine.rs` looks at spills, refills and retirement.

use loom_tests::model;
use loom_tests::room::{Room, Striped};
use loom_tests::scenes::{self, at_rest};

type One = Room<Striped<1>>;
type Two = Room<Striped<2>>;

#[test]
fn the_last_permit_goes_to_exactly_one() {
    model(
        "bulkhead: the last permit goes to exactly one",
        &[[true, false], [false, true]],
        || One::new(1),
        [|room: &One| room.enter(0); 2],
        at_rest(1),
    );
}

#[test]
fn the_last_permit_of_many_goes_to_exactly_one() {
    model(
        "bulkhead: the last permit of many goes to exactly one",
        &[[true, false], [false, true]],
        || Two::used(8, 0, 7, 0),
        [|room: &Two| room.enter(0), |room| room.enter(1)],
        at_rest(8),
    );
}

#[test]
fn two_permits_go_to_two_of_three() {
    model(
        "bulkhead: two permits go to two of three",
        &[[true, true, false], [true, false, true], [false, true, true]],
        || One::new(2),
        [|room: &One| room.enter(0); 3],
        at_rest(2),
    );
}

#[test]
fn a_permit_given_back_is_had_by_at_most_one() {
    model(
        "bulkhead: a permit given back is had by at most one",
        &[[true, true, false], [true, false, true], [true, false, false]],
        || Two::used(8, 0, 8, 0),
        [
            |room: &Two| {
                room.leave(0);
                true
            },
            |room| room.enter(0),
            |room| room.enter(1),
        ],
        at_rest(8),
    );
}

#[test]
fn a_permit_stashed_elsewhere_is_found_before_saturated() {
    scenes::a_stash_elsewhere::<Striped<2>>("bulkhead: a permit stashed elsewhere is found before saturated");
}

#[test]
fn two_openers_of_a_magazine_leave_one_announcement() {
    scenes::two_openers::<Striped<2>>("bulkhead: two openers of a magazine leave one announcement");
}

#[test]
fn three_calls_come_and_go_and_nothing_is_lost() {
    model(
        "bulkhead: three calls come and go and nothing is lost",
        &[[true; 3]],
        || Two::new(8),
        [|room: &Two| room.pass(0), |room| room.pass(0), |room| room.pass(1)],
        at_rest(8),
    );
}

#[test]
fn a_lowered_limit_admits_nobody_above_it() {
    scenes::lowering::<Striped<2>>("bulkhead: a lowered limit admits nobody above it");
}

#[test]
fn a_lowered_limit_of_one_stripe_is_reached_by_calls_that_end() {
    model(
        "bulkhead: a lowered limit of one stripe is reached by calls that end",
        &[None, Some(false)],
        || One::used(4, 0, 2, 0),
        [
            |room: &One| {
                room.leave(0);
                room.enter_lowered(0, 1)
            },
            |room| {
                room.lower(1);
                room.enter_lowered(0, 1)
            },
        ],
        |room, [first, _]| {
            room.rest(1);
            first
        },
    );
}

#[test]
fn two_openers_meet_a_lowered_limit() {
    model(
        "bulkhead: two openers meet a lowered limit",
        &[[true, true], [true, false], [false, true], [false, false]],
        || Two::used(8, 1, 1, 0),
        [
            |room: &Two| room.enter(0),
            |room| room.pass(0),
            |room| {
                room.lower(1);
                true
            },
        ],
        |room, [first, second, _]| {
            room.rest(1);
            [first, second]
        },
    );
}

#[test]
fn a_limit_of_zero_admits_nobody_once_it_is_set() {
    model(
        "bulkhead: a limit of zero admits nobody once it is set",
        &[[true, false], [false, false]],
        || One::new(4),
        [
            |room: &One| room.pass(0),
            |room| {
                room.lower(0);
                room.enter(0)
            },
        ],
        at_rest(0),
    );
}

#[test]
fn a_raised_limit_is_usable_at_once() {
    model(
        "bulkhead: a raised limit is usable at once",
        &[[true, true], [false, true]],
        || Two::used(1, 0, 1, 0),
        [
            |room: &Two| room.pass(0),
            |room| {
                room.raise(8);
                room.enter(1)
            },
        ],
        at_rest(8),
    );
}
