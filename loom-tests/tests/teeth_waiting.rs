//! The broken twins of queues and shares, each caught by the model that the protocol passes.

use loom_tests::twins::{Neglect, Usher};
use loom_tests::waits;

#[test]
fn a_twin_without_neglect_holds() {
    type Sound = Usher<{ Neglect::NONE }>;
    waits::a_call_ends::<Sound>("teeth: a queue without neglect, as a call ends", 1);
    waits::a_call_ends::<Sound>("teeth: a queue without neglect, as a call ends with its magazine open", 8);
    waits::a_magazine_opens::<Sound>("teeth: a queue without neglect, as a magazine opens");
    waits::one_leaves::<Sound>("teeth: a queue without neglect, as one leaves");
    waits::a_newcomer::<Sound>("teeth: a queue without neglect, as another comes");
    waits::a_raised_limit::<Sound>("teeth: a queue without neglect, as the limit rises");
    waits::a_trip::<Sound>("teeth: a queue without neglect, as the circuit opens");
    waits::the_last_of_a_share::<Sound>("teeth: a share without neglect");
    waits::a_share_beside_a_stash::<Sound>("teeth: a share without neglect, beside a stash");
}

#[test]
#[should_panic(expected = "somebody waits while a permit lies idle")]
fn a_release_that_looks_before_it_gives() {
    waits::a_call_ends::<Usher<{ Neglect::LOOKED_FIRST }>>("teeth: a release that looks before it gives", 1);
}

#[test]
#[should_panic(expected = "somebody waits while a permit lies idle")]
fn a_wait_that_begins_on_a_word_with_a_permit_in_it() {
    waits::a_call_ends::<Usher<{ Neglect::SET_BLINDLY }>>("teeth: a wait that begins on a word with a permit in it", 1);
}

#[test]
#[should_panic(expected = "somebody waits while a permit lies idle")]
fn a_wait_that_leaves_magazines_open() {
    waits::a_call_ends::<Usher<{ Neglect::NO_SWEEP }>>("teeth: a wait that leaves magazines open", 8);
}

#[test]
#[should_panic(expected = "somebody waits while a permit lies idle")]
fn a_magazine_that_opens_unconfirmed() {
    waits::a_magazine_opens::<Usher<{ Neglect::UNCONFIRMED }>>("teeth: a magazine that opens unconfirmed");
}

#[test]
#[should_panic(expected = "somebody waits while a permit lies idle")]
fn a_magazine_that_opens_confirmed_by_a_load() {
    waits::a_magazine_opens::<Usher<{ Neglect::CONFIRMED_BY_LOAD }>>(
        "teeth: a magazine that opens confirmed by a load",
    );
}

#[test]
#[should_panic(expected = "in flight at rest")]
fn a_place_that_is_left_with_what_it_was_granted() {
    waits::one_leaves::<Usher<{ Neglect::GRANT_KEPT }>>("teeth: a place that is left with what it was granted");
}

#[test]
#[should_panic(expected = "a newcomer overtook those who wait")]
fn a_newcomer_that_overlooks_those_who_wait() {
    waits::a_newcomer::<Usher<{ Neglect::OVERTAKEN }>>("teeth: a newcomer that overlooks those who wait");
}

#[test]
#[should_panic(expected = "the second was served before the first")]
fn a_queue_served_from_its_end() {
    waits::a_newcomer::<Usher<{ Neglect::LAST_FIRST }>>("teeth: a queue served from its end");
}

#[test]
#[should_panic(expected = "somebody waits while a permit lies idle")]
fn a_limit_raised_silently() {
    waits::a_raised_limit::<Usher<{ Neglect::RAISED_SILENTLY }>>("teeth: a limit raised silently");
}

#[test]
#[should_panic(expected = "somebody waits at a gate that is closed")]
fn a_trip_that_looks_by_a_load() {
    waits::a_trip::<Usher<{ Neglect::TURNED_AWAY_BY_LOAD }>>("teeth: a trip that looks by a load");
}

#[test]
#[should_panic(expected = "a call entered beyond its share")]
fn a_share_taken_from_a_stash() {
    waits::a_share_beside_a_stash::<Usher<{ Neglect::SHARE_FROM_STASH }>>("teeth: a share taken from a stash");
}

#[test]
#[should_panic(expected = "never reached")]
fn a_call_shed_before_a_sweep() {
    waits::the_last_of_a_share::<Usher<{ Neglect::SHED_UNSWEPT }>>("teeth: a call shed before a sweep");
}
