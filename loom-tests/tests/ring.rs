//! The window of time over two stripes: what one writes, the other reads, and the other way round.

use loom_tests::twins::{
    Slack, a_failure_after_the_judgement, a_failure_and_the_last_call, a_policy_after_the_judgement, two_last_calls,
};

#[test]
fn of_a_failure_and_the_success_that_completes_min_calls_one_sees_both() {
    a_failure_and_the_last_call::<{ Slack::NONE }>(
        "ring: of a failure and the success that completes min_calls one sees both",
    );
}

#[test]
fn of_two_successes_that_complete_min_calls_one_sees_both() {
    two_last_calls::<{ Slack::NONE }>("ring: of two successes that complete min_calls one sees both");
}

#[test]
fn a_failure_after_a_judgement_is_judged() {
    a_failure_after_the_judgement::<{ Slack::NONE }>("ring: a failure after a judgement is judged");
}

#[test]
fn a_policy_after_a_judgement_is_judged_by() {
    a_policy_after_the_judgement::<{ Slack::NONE }>("ring: a policy after a judgement is judged by");
}
