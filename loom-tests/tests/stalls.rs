//! Calls that run: counted by tick while others begin, end and look; judged once; forgotten with their generation and their policy.

use loom_tests::desk::{Desk, Said};
use loom_tests::model;
use loom_tests::running::{self, Lanes, NARROW, Running, hung, in_order};
use portcullis::internals::{Ending, Now};
use portcullis::{Cause, Outcome};

#[test]
fn a_call_that_moves_to_the_older_ones_is_counted_once_at_most() {
    running::moving::<Lanes>("stalls: a call that moves to the older ones is counted once at most");
}

#[test]
fn a_call_that_ends_as_its_bucket_is_needed_is_counted_out() {
    running::ending::<Lanes>("stalls: a call that ends as its bucket is needed is counted out");
}

#[test]
fn two_that_need_a_bucket_move_what_is_in_it_once() {
    running::opening::<Lanes>("stalls: two that need a bucket move what is in it once");
}

#[test]
fn a_call_of_an_earlier_generation_takes_nothing_of_the_next() {
    running::restarting::<Lanes>("stalls: a call of an earlier generation takes nothing of the next");
}

/// It came in by one stripe and ends by another, as others begin there and somebody looks.
#[test]
fn a_call_that_ends_on_another_stripe_leaves_nothing() {
    model(
        "stalls: a call that ends on another stripe leaves nothing",
        &[Some(0), Some(1)],
        || {
            let lanes = Lanes::new();
            assert_eq!((lanes.begin(0, 0), lanes.begin(1, 0)), (Some(0), Some(0)));
            lanes.end(1, 0, 0);
            lanes
        },
        [
            |lanes: &Lanes| {
                lanes.end(1, 0, 0);
                None
            },
            |lanes| {
                assert_eq!(lanes.begin(1, 2), Some(0));
                None
            },
            |lanes| Some(lanes.stalled(2)),
        ],
        |lanes, [_, _, seen]| {
            assert_eq!((lanes.stalled(2), lanes.stalled(4)), (0, 1), "a call that ended still runs");
            seen
        },
    );
}

const TRIPS: Said = ("open", Some(Cause::StalledCalls));

#[test]
fn two_callers_find_a_stall_and_one_trips() {
    model(
        "stalls: two callers find a stall and one trips",
        &[[TRIPS, ("open", None)], [("open", None), TRIPS]],
        hung,
        [|desk: &Desk| desk.ask(2 * NARROW); 2],
        |desk, said| {
            assert_eq!((desk.gate().generation(), desk.in_flight()), (1, 1));
            said
        },
    );
}

#[test]
fn a_call_ends_as_a_caller_judges_it() {
    model(
        "stalls: a call ends as a caller judges it",
        &[[("recorded", None), ("enters", None)], [("recorded", None), TRIPS], [("stale", None), TRIPS]],
        hung,
        [
            |desk: &Desk| desk.end(desk.granted(0), Ending::Settled(Outcome::Success), 2 * NARROW),
            |desk| desk.ask(2 * NARROW),
        ],
        |desk, said| {
            let gate = desk.gate();
            assert_eq!(desk.words.stalled(gate, Now::from_millis(100 * NARROW)), u64::from(said[1].0 == "enters"));
            said
        },
    );
}

#[test]
fn a_call_that_meets_other_ticks_leaves_nothing() {
    running::a_call_meets_other_ticks(
        "stalls: a call that meets other ticks leaves nothing",
        in_order,
        &["recorded", "stale"],
    );
}

#[test]
fn a_closing_that_meets_other_ticks_leaves_nothing() {
    running::a_closing_meets_other_ticks(
        "stalls: a closing that meets other ticks leaves nothing",
        in_order,
        &["recorded", "stale"],
    );
}
