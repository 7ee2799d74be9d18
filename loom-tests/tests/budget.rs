//! The retry budget: calls and retries of two periods in one word.

use loom_tests::model;
use portcullis::internals::{Allowance, Budget};

const ONE_FOR_EACH: Allowance = Allowance { share_milli: 1_000, floor: 0 };
const ONE_FOR_TWO: Allowance = Allowance { share_milli: 500, floor: 0 };
const TWO: Allowance = Allowance { share_milli: 0, floor: 2 };

fn called(times: u32) -> Budget {
    let budget = Budget::default();
    (0..times).for_each(|_| budget.called(0));
    budget
}

#[test]
fn one_retry_is_had_once() {
    model(
        "budget: one retry is had once",
        &[[true, false], [false, true]],
        || called(1),
        [|budget: &Budget| budget.take(0, ONE_FOR_EACH); 2],
        |budget, taken| {
            assert_eq!((budget.load().calls(), budget.load().retries()), (1, 1));
            taken
        },
    );
}

#[test]
fn a_floor_of_two_is_had_twice() {
    model(
        "budget: a floor of two is had twice",
        &[[true, true, false], [true, false, true], [false, true, true]],
        || called(0),
        [|budget: &Budget| budget.take(0, TWO); 3],
        |budget, taken| {
            assert_eq!(budget.load().retries(), 2);
            taken
        },
    );
}

#[test]
fn a_call_that_comes_meanwhile_is_neither_lost_nor_counted_twice() {
    model(
        "budget: a call that comes meanwhile is neither lost nor counted twice",
        // The first of both has the one retry that is earned; the other has its own if the call came before it.
        &[([true, false, false], 1), ([false, true, false], 1), ([true, true, false], 2)],
        || called(1),
        [
            |budget: &Budget| budget.take(0, ONE_FOR_EACH),
            |budget| budget.take(0, ONE_FOR_EACH),
            |budget| {
                budget.called(0);
                false
            },
        ],
        |budget, taken| {
            assert_eq!(budget.load().calls(), 2);
            (taken, budget.load().retries())
        },
    );
}

#[test]
fn a_period_that_begins_keeps_what_was_spent() {
    model(
        "budget: a period that begins keeps what was spent",
        &[[true, false], [false, true]],
        || called(2),
        [|budget: &Budget| budget.take(0, ONE_FOR_TWO), |budget| budget.take(1, ONE_FOR_TWO)],
        |budget, taken| {
            // Who is refused leaves the word as it is.
            let word = budget.load().at(1);
            assert_eq!((word.calls(), word.retries()), (2, 1));
            taken
        },
    );
}

#[test]
fn a_call_of_the_last_period_counts_in_the_one_that_began() {
    model(
        "budget: a call of the last period counts in the one that began",
        &[(1, 2)],
        || called(0),
        [
            |budget: &Budget| {
                budget.called(0);
                false
            },
            |budget| {
                budget.called(1);
                false
            },
        ],
        |budget, _| (budget.load().period(), budget.load().calls()),
    );
}
