//! Single values.

use std::time::Duration;

use portcullis_numbers::derive::rule::Rule;
use portcullis_numbers::derive::{Aims, Derived, Value, derive};

use crate::made::Made;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn of(made: Made) -> Derived {
    derive(&made.seen(1), &Aims::default())
}

fn count(derived: &Derived, field: &str) -> u32 {
    match derived.value(field) {
        Some(Value::Count(count)) => count,
        other => panic!("{field}: {other:?}"),
    }
}

#[test]
fn a_limit_is_littles_number_doubled() {
    // 100/s x 0.2 s doubled is 40.
    let made = Made { is_even: true, latency: 0.2, sigma: 0.0, ..Made::default() };
    let derived = of(made);
    assert_eq!(derived.value("max_in_flight"), Some(Value::Count(40)));
    let why = &derived.entry("max_in_flight").unwrap().why;
    assert!(
        why.starts_with(
            "Little's law: 100 calls in the busiest second of a thousand x 200 ms mean latency = 20 in flight"
        ),
        "{why}"
    );
}

#[test]
fn a_small_limit_is_what_erlang_b_asks_for() {
    // 1 erlang: 7 places refuse 7e-5, 6 refuse 5e-4.
    let made = Made { rate: 10.0, is_even: true, latency: 0.1, sigma: 0.0, ..Made::default() };
    assert_eq!(count(&of(made), "max_in_flight"), 7);
}

#[test]
fn a_timeout_is_twice_p99_and_cuts_what_it_says() {
    // Lognormal, sigma 0.5, mean 50 ms: p99 is 50 ms x exp(2.326 x 0.5 - 0.125) = 141 ms.
    let derived = of(Made::default());
    let timeout = derived.time("timeout").unwrap();
    assert!((ms(270)..=ms(300)).contains(&timeout), "{timeout:?}");
    let why = &derived.entry("timeout").unwrap().why;
    assert!(why.contains("x 2; it cuts 0.0"), "{why}");
}

#[test]
fn a_heavy_tail_takes_its_timeout_from_p999() {
    let made = Made { sigma: 1.5, ..Made::default() };
    let seen = made.seen(1);
    let derived = derive(&seen, &Aims::default());
    assert!(seen.calm.latency_at(0.999) > seen.calm.latency_at(0.99) * 2);
    assert!(derived.time("timeout").unwrap() >= seen.calm.latency_at(0.999));
    assert!(derived.entry("timeout").unwrap().why.contains("but p99.9 is"));
}

#[test]
fn a_timeout_and_its_retry_fit_the_budget() {
    // p99 of 141 ms twice would be 290 ms: within 333 ms two attempts have 160 ms each.
    let aims = Aims { budget: Some(ms(333)), retries: 1, ..Aims::default() };
    let derived = derive(&Made { latency: 0.04, ..Made::default() }.seen(1), &aims);
    assert_eq!(derived.time("timeout"), Some(ms(160)));
    assert_eq!(derived.value("attempts"), Some(Value::Count(2)));
    assert_eq!(derived.time("retry_backoff"), Some(ms(13)));
    assert_eq!(derived.time("deadline"), Some(ms(333)));
    assert!(derived.entry("deadline").unwrap().why.contains("2 x 160 ms + backoffs of 13 ms at most = 333 ms"));
}

#[test]
fn a_retry_is_given_up_before_good_calls_are_cut() {
    let aims = Aims { budget: Some(ms(200)), retries: 2, ..Aims::default() };
    let derived = derive(&Made::default().seen(1), &aims);
    assert_eq!(derived.value("attempts"), Some(Value::Count(1)));
    assert_eq!(derived.time("timeout"), Some(ms(200)));
    assert!(derived.entry("timeout").unwrap().why.contains("2 of 2 given up as retries"));
}

#[test]
fn a_budget_that_is_too_small_is_said_so() {
    let aims = Aims { budget: Some(ms(50)), ..Aims::default() };
    let derived = derive(&Made::default().seen(1), &aims);
    assert_eq!(derived.time("timeout"), Some(ms(50)));
    assert!(derived.entry("timeout").unwrap().why.contains("MORE THAN 1 %"), "{:?}", derived.entry("timeout"));
}

#[test]
fn the_threshold_that_opens_a_healthy_circuit_is_never_planned() {
    // 1,000 calls/s of which 10 % fail: five in a row come 36 times an hour.
    let made = Made { rate: 1_000.0, failing: 0.1, latency: 0.01, seconds: 600, ..Made::default() };
    let derived = of(made);
    assert_eq!(derived.value("consecutive_failures"), None);
    let Some(Rule::Window { calls, min_calls, tenths }) = derived.rule else { panic!("{:?}", derived.rule) };
    assert!(calls == 100 && tenths == 5 && (30..=60).contains(&min_calls), "{:?}", derived.rule);
}

#[test]
fn a_rule_is_sterner_the_more_often_calls_fail() {
    let rule = |failing| of(Made { failing, ..Made::default() }).rule;
    let least = |failing| match rule(failing) {
        Some(Rule::Window { min_calls, .. }) => min_calls,
        other => panic!("{other:?}"),
    };
    assert!(least(0.001) <= least(0.02) && least(0.02) < least(0.1), "{:?}", [0.001, 0.02, 0.1].map(least));
    assert!(matches!(rule(0.35), Some(Rule::Window { tenths: 8, .. })), "{:?}", rule(0.35));
}

#[test]
fn where_most_calls_fail_no_rule_tells_an_outage() {
    // Not before the log began: the target is that way.
    let mut seen = Made { failing: 0.3, ..Made::default() }.seen(1);
    seen.calm.failures = seen.calm.calls * 6 / 10;
    let derived = derive(&seen, &Aims::default());
    assert_eq!(derived.rule, Some(Rule::None));
    assert!(derived.entry("failure_rate").unwrap().why.contains("no threshold tells an outage from this"));
}

#[test]
fn few_calls_are_judged_by_a_streak() {
    let made = Made { rate: 0.05, seconds: 86_400, ..Made::default() };
    let derived = of(made);
    let Some(Rule::Streak(failures)) = derived.rule else { panic!("{:?}", derived.rule) };
    assert!((3..=5).contains(&failures));
    assert_eq!(derived.value("failure_rate"), Some(Value::Off));
}

#[test]
fn a_target_that_is_hardly_ever_called_has_no_breaker() {
    // One call in 10 minutes: three failures take half an hour.
    let derived = of(Made { rate: 1.0 / 600.0, seconds: 30 * 86_400, ..Made::default() });
    assert_eq!(derived.rule, Some(Rule::None));
    assert!(derived.entry("failure_rate").unwrap().why.contains("no rule sees an outage in time"));
}

#[test]
fn a_target_that_is_never_out_has_no_breaker_once_the_log_is_long_enough_to_tell() {
    let derived = |days: u64| of(Made { rate: 0.05, failing: 0.0, seconds: days * 86_400, ..Made::default() });
    // None in d days are 3.7 x 365 / d a year at most (95 %, two-sided): under 4 after 337 days.
    assert_ne!(derived(330).rule, Some(Rule::None));
    let quiet = derived(345);
    assert_eq!(quiet.rule, Some(Rule::None));
    assert!(quiet.entry("failure_rate").unwrap().why.contains("--upkeep"));
    assert!(quiet.entry("open_wait").is_none());
}

#[test]
fn waits_are_parts_of_the_median_outage() {
    const OUTAGES: &[(u64, u64)] = &[(200, 260), (500, 620), (900, 1_100)];
    let derived = of(Made { outages: OUTAGES, ..Made::default() });
    let (first, longest) = (derived.time("open_wait").unwrap(), derived.time("open_wait_max").unwrap());
    // The median is 120 s, to a second.
    assert!((ms(5_800)..=ms(6_000)).contains(&first), "{first:?}");
    assert!((ms(11_000)..=ms(12_000)).contains(&longest), "{longest:?}");
    let two = of(Made { outages: &OUTAGES[..2], ..Made::default() });
    assert_eq!(two.value("open_wait"), None);
    assert!(two.entry("open_wait").unwrap().why.contains("the wait needs 3, so a log of about 30 min"), "{two:?}");
}

#[test]
fn clumps_of_failures_ask_for_more_than_chance_does() {
    let mut seen = Made::default().seen(1);
    seen.calm.noise.stretch[0] = 24;
    let Some(Rule::Window { min_calls, .. }) = derive(&seen, &Aims::default()).rule else { panic!() };
    assert_eq!(min_calls, 37);
}
