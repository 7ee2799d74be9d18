//! Waiting for a permit, and entering within a share: nobody sleeps while a permit is idle, nobody is overtaken, no share is exceeded.

use loom_tests::desk::{Desk, build, touchy};
use loom_tests::hall::Hall;
use loom_tests::model;
use loom_tests::room::Striped;
use loom_tests::waits;
use portcullis::internals::Ending;
use portcullis::{Cause, Outcome};

const FAILED: Ending = Ending::Settled(Outcome::Failure);

#[test]
fn a_call_that_ends_wakes_who_waits() {
    waits::a_call_ends::<Striped<1>>("waiting: a call that ends wakes who waits", 1);
}

#[test]
fn a_call_that_ends_wakes_who_waits_though_its_magazine_was_open() {
    waits::a_call_ends::<Striped<2>>("waiting: a call that ends wakes who waits, though its magazine was open", 8);
}

#[test]
fn a_magazine_that_opens_while_one_begins_to_wait_hides_nothing_from_him() {
    waits::a_magazine_opens::<Striped<2>>(
        "waiting: a magazine that opens while one begins to wait hides nothing from him",
    );
}

#[test]
fn who_leaves_the_queue_passes_on_what_he_was_granted() {
    waits::one_leaves::<Striped<1>>("waiting: who leaves the queue passes on what he was granted");
}

#[test]
fn newcomers_overtake_nobody_and_the_first_is_served_first() {
    waits::a_newcomer::<Striped<1>>("waiting: newcomers overtake nobody, and the first is served first");
}

#[test]
fn a_raised_limit_wakes_who_waits() {
    waits::a_raised_limit::<Striped<1>>("waiting: a raised limit wakes who waits");
}

#[test]
fn nobody_waits_at_a_gate_that_is_closed() {
    waits::a_trip::<Striped<1>>("waiting: nobody waits at a gate that is closed");
}

#[test]
fn two_calls_end_and_both_who_wait_get_in() {
    model(
        "waiting: two calls end and both who wait get in",
        &[2],
        || Hall::<Striped<1>>::new(2, 0, 2, 1),
        [
            |hall: &Hall<Striped<1>>| hall.room.leave(0),
            |hall| hall.room.leave(0),
            |hall| {
                hall.join();
            },
        ],
        |hall, _| {
            assert!(!hall.told().contains(&None), "somebody waits while a permit lies idle");
            let inside = hall.room.inside();
            hall.room.rest(2);
            inside
        },
    );
}

#[test]
fn a_permit_that_was_waited_for_carries_what_the_last_call_left() {
    use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
    type Left = (Hall<Striped<1>>, AtomicU32);
    model(
        "waiting: a permit that was waited for carries what the last call left",
        &[None, Some(1)],
        || (Hall::new(1, 0, 1, 1), AtomicU32::new(0)),
        [
            |(hall, left): &Left| {
                left.store(1, Relaxed);
                hall.room.leave(0);
                None
            },
            |(hall, left)| hall.is_granted().then(|| left.load(Relaxed)),
        ],
        |_, [_, seen]| {
            assert!(seen != Some(0), "a call began before the one whose permit it has had ended");
            seen
        },
    );
}

#[test]
fn a_call_waits_at_no_circuit_that_opens() {
    model(
        "waiting: a call waits at no circuit that opens",
        &["open", "turned away"],
        || Desk::with_calls(build(touchy().max_in_flight(1).max_waiting(1)), 1),
        [
            |desk: &Desk| {
                // The call's permit stays out: nothing but the trip wakes anybody.
                assert_eq!(desk.record(desk.granted(0), FAILED, 0).1, Some(Cause::ConsecutiveFailures));
                "tripped"
            },
            |desk| desk.ask_or_wait(0),
        ],
        |desk, [_, said]| if said == "waits" { desk.hear() } else { said },
    );
}

#[test]
fn the_last_permit_of_a_share_goes_to_exactly_one() {
    waits::the_last_of_a_share::<Striped<2>>("waiting: the last permit of a share goes to exactly one");
}

#[test]
fn no_share_is_exceeded_beside_a_stash() {
    waits::a_share_beside_a_stash::<Striped<2>>("waiting: no share is exceeded beside a stash");
}
