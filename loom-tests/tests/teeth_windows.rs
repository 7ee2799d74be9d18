//! As `teeth.rs`, for the windows: each of these is broken, and caught by the model that the engine passes.

use loom_tests::twins::{self, Fault, Signed, Slack};
use loom_tests::{ledger, scenes};

#[test]
fn a_signed_window_without_a_fault_holds() {
    type Sound = Signed<{ Fault::NONE }>;
    ledger::a_failure_and_two_successes::<Sound>("teeth: a signed window without a fault, two successes");
    ledger::a_failure_and_a_success_that_signs::<Sound>("teeth: a signed window without a fault, one that signs");
    ledger::a_failure_that_is_seen::<Sound>("teeth: a signed window without a fault, a failure that is seen");
    ledger::a_sign_of_an_earlier_generation::<Sound>("teeth: a signed window without a fault, an earlier generation");
}

#[test]
#[should_panic(expected = "a failure is hidden by the sign")]
fn a_sign_set_while_a_failure_is_on_its_way() {
    ledger::a_failure_and_a_success_that_signs::<Signed<{ Fault::SET_WHILE_MARKING }>>(
        "teeth: a sign set while a failure is on its way",
    );
}

#[test]
#[should_panic(expected = "a failure is hidden by the sign")]
fn a_sign_set_on_whatever_stands_there() {
    ledger::a_failure_and_a_success_that_signs::<Signed<{ Fault::SET_BLINDLY }>>(
        "teeth: a sign set on whatever stands there",
    );
}

#[test]
#[should_panic(expected = "a failure is hidden by the sign")]
fn a_failure_that_came_and_went_unseen() {
    ledger::a_failure_and_a_success_that_signs::<Signed<{ Fault::UNCOUNTED }>>(
        "teeth: a failure that came and went unseen",
    );
}

#[test]
#[should_panic(expected = "a failure is hidden by the sign")]
fn a_sign_set_by_one_of_two_while_a_failure_is_on_its_way() {
    ledger::a_failure_and_two_successes::<Signed<{ Fault::SET_WHILE_MARKING }>>(
        "teeth: a sign set by one of two while a failure is on its way",
    );
}

#[test]
#[should_panic(expected = "a success came before the failure that it followed")]
fn a_sign_taken_away_after_the_failure_is_written() {
    ledger::a_failure_that_is_seen::<Signed<{ Fault::MARKED_LATE }>>(
        "teeth: a sign taken away after the failure is written",
    );
}

#[test]
#[should_panic(expected = "a sign of an earlier generation counts")]
fn a_sign_of_whichever_generation() {
    ledger::a_sign_of_an_earlier_generation::<Signed<{ Fault::OF_ANY_GENERATION }>>(
        "teeth: a sign of whichever generation",
    );
}

#[test]
#[should_panic(expected = "a rule was met and nobody saw it")]
fn a_sign_read_before_the_call_is_counted() {
    twins::a_failure_and_the_last_call::<{ Slack::SIGN_FIRST }>("teeth: a sign read before the call is counted");
}

#[test]
#[should_panic(expected = "a rule was met and nobody saw it")]
fn a_failure_marked_after_its_look_at_the_calls() {
    twins::a_failure_and_the_last_call::<{ Slack::MARKED_LAST }>("teeth: a failure marked after its look at the calls");
}

#[test]
#[should_panic(expected = "a failure was taken for judged")]
fn a_judgement_noted_under_a_later_sign() {
    twins::a_failure_after_the_judgement::<{ Slack::NOTED_LATE }>("teeth: a judgement noted under a later sign");
}

#[test]
#[should_panic(expected = "a policy was taken for judged by")]
fn a_policy_read_before_the_sign() {
    twins::a_policy_after_the_judgement::<{ Slack::POLICY_FIRST }>("teeth: a policy read before the sign");
}

#[test]
#[should_panic(expected = "a policy is in force and judges nothing")]
fn a_calm_sign_by_a_policy_read_before_it() {
    scenes::a_policy_comes_while_a_success_is_judged("teeth: a calm sign by a policy read before it", |desk| {
        desk.succeed_by_the_policy_before(desk.granted(1))
    });
}
