//! The sign that a window is clean, over all words that an outcome meets: no failure is hidden by it.

use loom_tests::ledger::{self, Real};

#[test]
fn a_failure_between_two_successes_is_hidden_from_neither() {
    ledger::a_failure_and_two_successes::<Real>("clean: a failure between two successes is hidden from neither");
}

#[test]
fn a_success_that_finds_the_window_clean_hides_no_failure_on_its_way() {
    ledger::a_failure_and_a_success_that_signs::<Real>(
        "clean: a success that finds the window clean hides no failure on its way",
    );
}

#[test]
fn a_success_hides_neither_of_two_failures_on_their_way() {
    ledger::two_failures_and_a_success_that_signs::<Real>(
        "clean: a success hides neither of two failures on their way",
    );
}

#[test]
fn a_failure_that_was_seen_is_never_skipped() {
    ledger::a_failure_that_is_seen::<Real>("clean: a failure that was seen is never skipped");
}

#[test]
fn a_sign_of_an_earlier_generation_is_none() {
    ledger::a_sign_of_an_earlier_generation::<Real>("clean: a sign of an earlier generation is none");
}

#[test]
fn a_late_failure_leaves_the_new_window_clean() {
    ledger::a_late_failure::<Real>("clean: a late failure leaves the new window clean");
}
