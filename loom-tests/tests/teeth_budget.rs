//! Broken twins of the retry budget.

use loom_tests::model;
use loom_tests::twins::{Purse, Waste};

fn one_retry_is_had_once(name: &str, setup: fn() -> Purse, racers: [fn(&Purse) -> bool; 2]) {
    model(name, &[[true, false], [false, true]], setup, racers, |_, taken| {
        assert!(taken != [true; 2], "one retry was had twice");
        taken
    });
}

#[test]
#[should_panic(expected = "one retry was had twice")]
fn a_budget_that_is_judged_and_then_taken_from() {
    let setup = || Purse::new(Waste::JudgedThenTaken);
    one_retry_is_had_once("teeth: a budget that is judged and then taken from", setup, [|purse| purse.take(0); 2]);
}

#[test]
#[should_panic(expected = "one retry was had twice")]
fn a_period_that_is_stored_over_what_came_meanwhile() {
    let setup = || Purse::new(Waste::PeriodStored);
    let racers: [fn(&Purse) -> bool; 2] = [|purse| purse.take(0), |purse| purse.take(1)];
    one_retry_is_had_once("teeth: a period that is stored over what came meanwhile", setup, racers);
}
