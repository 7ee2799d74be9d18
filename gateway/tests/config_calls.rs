//! The whole call in the configuration file: what its fields mean, and what is said of those that can't work.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use portcullis_gateway::{Config, ConfigError};

/// The fields of the last table follow on line 14.
const GOOD: &str = include_str!("common/good.toml");

fn errors(text: &str) -> Vec<ConfigError> {
    match text.parse::<Config>() {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(errors) => errors.errors().to_vec(),
    }
}

#[test]
fn a_whole_call_is_read_over_the_defaults() {
    let defaults = "[defaults]\nattempts = 2\ndeadline = \"5s\"\nfallback = { stale = \"5m\" }\n";
    let text = GOOD.replace("[defaults]\n", defaults);
    let own = "connect_timeout = \"100ms\"\nprobe_timeout = \"50ms\"\nattempts = 3\nretry_backoff = \"10ms\"\n\
               retry_backoff_max = \"20ms\"\nretry_budget = \"none\"\nreplay_limit = 7\n\
               fallback = { value = { status = 203, body = \"plan B\" } }";
    let config: Config = format!("{text}{own}").parse().unwrap();
    let [claims, core] = config.targets.as_slice() else { panic!("{config:?}") };
    assert_eq!((claims.call.attempts(), claims.call.deadline()), (2, Duration::from_secs(5)));
    let stale = portcullis::call::Fallback::Stale { max_age: Duration::from_mins(5) };
    assert_eq!(*claims.call.fallback(), stale);
    assert_eq!((core.call.attempts(), core.call.deadline()), (3, Duration::from_secs(5)));
    assert_eq!((core.call.timeout(), core.call.probe_timeout()), (core.timeout, Duration::from_millis(50)));
    assert_eq!(
        (core.call.longest_backoff(1), core.call.backoff_max()),
        (Duration::from_millis(10), Duration::from_millis(20))
    );
    assert_eq!((core.call.retry_budget(), core.call.replay_limit()), (None, 7));
    assert_eq!(core.connect_timeout, Some(Duration::from_millis(100)));
    // What is printed means the same.
    assert_eq!(config.to_string().parse::<Config>().unwrap().targets, config.targets);
}

#[test]
fn what_is_wrong_with_a_whole_call_is_told_by_field() {
    for (field, value, says) in [
        ("connect_timeout", "\"1001ms\"", "\"1ms\" to \"1s\""),
        ("probe_timeout", "\"1001ms\"", "1ms to 1s"),
        ("probe_timeout", "7", "a duration from \"1ms\" to the timeout"),
        ("deadline", "\"0s\"", "1ms to 86400s"),
        ("attempts", "11", "1 to 10"),
        ("attempts", "0", "1 to 10"),
        ("attempts", "\"two\"", "a whole number from 1 to 10"),
        ("retry_backoff", "\"2h\"", "0ns to 3600s"),
        ("retry_backoff_max", "\"10ms\"", "0ns to 10ms"),
        ("retry_budget", "10.1", "0 to 10 in steps of 0.001"),
        ("retry_budget", "\"all\"", "or \"none\""),
        ("retry_floor", "1001", "0 to 1000"),
        ("retry_memory", "\"61s\"", "1s to 60s"),
        ("replay_limit", "16777217", "0 to 16777216"),
        ("fallback", "\"function\"", "\"refuse\", { stale"),
        ("fallback", "{ stale = \"5\" }", ""),
        ("fallback", "{ value = { status = 199 } }", "a status from 200 to 599"),
        ("fallback", "{ value = { headers = {} } }", "\"refuse\", { stale"),
    ] {
        let line = format!("{field} = {value}");
        // The wait that doesn't fit under its bound is the one that is told.
        let named = if field == "retry_backoff_max" { "retry_backoff" } else { field };
        let all = errors(&format!("{GOOD}{line}"));
        let [error] = all.as_slice() else { panic!("not one error but {all:?} for {line}") };
        assert!(error.field.starts_with(&format!("target.core-banking.{named}")), "{error}");
        assert!(error.message.contains(says), "{says} not in {error}");
    }
}

#[test]
fn sums_that_do_not_fit_are_told_in_their_parts_and_all_at_once() {
    let lines = "attempts = 3\nretry_backoff = \"100ms\"\ndeadline = \"3s\"\nreplay_limit = -1\nfailure_rate = 2";
    let all: Vec<String> = errors(&format!("{GOOD}{lines}")).iter().map(ToString::to_string).collect();
    assert_eq!(all.len(), 3, "{all:?}");
    assert_eq!(
        all[0],
        "line 16: target.core-banking.deadline: 3s is out of range: must be at least the worst case, \
         3 x 1s + 2 backoffs of at most 100ms + 200ms = 3.3s"
    );
    assert!(all[1].starts_with("line 17: target.core-banking.replay_limit: -1 is out of range"), "{all:?}");
    assert!(all[2].starts_with("line 18: target.core-banking.failure_rate: 2 is out of range"), "{all:?}");
    // A default that doesn't fit a target's own field is told with both places.
    let text = GOOD.replace("[defaults]\n", "[defaults]\ndeadline = \"1500ms\"\n");
    let all: Vec<String> = errors(&format!("{text}attempts = 2")).iter().map(ToString::to_string).collect();
    assert!(
        all.len() == 1 && all[0].starts_with("line 5: target.core-banking.deadline: 1.5s is out of range"),
        "{all:?}"
    );
    assert!(all[0].ends_with("(set in defaults)"), "{all:?}");
}
