//! As `teeth.rs`, for calls that run: each of these is broken, and caught by the model that the engine passes.

use loom_tests::running::{self, in_one_generation, unless_closed};
use loom_tests::twins::{Drift, Drifting};

#[test]
#[should_panic(expected = "a call that ended still runs")]
fn other_ticks_in_one_generation() {
    running::a_call_meets_other_ticks("teeth: other ticks in one generation", in_one_generation, &["recorded"]);
}

#[test]
#[should_panic(expected = "a call that ended still runs")]
fn other_ticks_for_a_gate_that_is_left_alone() {
    running::a_closing_meets_other_ticks(
        "teeth: other ticks for a gate that is left alone",
        unless_closed,
        &["recorded", "stale"],
    );
}

#[test]
fn a_ring_that_does_not_drift_holds() {
    type Sound = Drifting<{ Drift::NONE }>;
    running::moving::<Sound>("teeth: a ring that doesn't drift, moving");
    running::ending::<Sound>("teeth: a ring that doesn't drift, ending");
    running::opening::<Sound>("teeth: a ring that doesn't drift, opening");
    running::restarting::<Sound>("teeth: a ring that doesn't drift, restarting");
}

#[test]
#[should_panic(expected = "a call was counted twice")]
fn a_reader_that_looks_at_the_older_ones_last() {
    running::moving::<Drifting<{ Drift::OLDER_LAST }>>("teeth: a reader that looks at the older ones last");
}

#[test]
#[should_panic(expected = "a call was counted twice")]
fn a_call_added_before_it_is_taken_out() {
    running::moving::<Drifting<{ Drift::ADDED_FIRST }>>("teeth: a call added before it is taken out");
}

#[test]
#[should_panic(expected = "a call that ended still runs")]
fn a_call_taken_out_of_whichever_tick() {
    running::ending::<Drifting<{ Drift::ENDS_BLINDLY }>>("teeth: a call taken out of whichever tick");
}

#[test]
#[should_panic(expected = "a call is lost")]
fn a_tick_opened_in_one_step_and_counted_in_another() {
    running::opening::<Drifting<{ Drift::SPLIT }>>("teeth: a tick opened in one step and counted in another");
}

#[test]
#[should_panic(expected = "a straggler spoiled the next generation")]
fn a_bucket_reset_on_a_gate_read_before_it() {
    running::restarting::<Drifting<{ Drift::GATE_FIRST }>>("teeth: a bucket reset on a gate read before it");
}
