//! The numbers of a policy, read from what it says in a file.

use std::time::Duration;

use portcullis::Policy;
use serde_json::Value;

/// What the arithmetic needs of a policy; times in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Settings {
    pub(super) limit: Option<f64>,
    pub(super) streak: Option<u32>,
    /// A window of so many calls.
    pub(super) calls: Option<u32>,
    /// A window of so long, in so many buckets.
    pub(super) time: Option<(f64, u32)>,
    pub(super) min_calls: u32,
    pub(super) failure_rate: Option<f64>,
    pub(super) failures: Option<u32>,
    /// What the wait comes to when a target stays down.
    pub(super) longest_wait: f64,
    pub(super) successes_to_close: f64,
}

impl Settings {
    pub(super) fn of(policy: &Policy) -> Self {
        let written = serde_json::to_value(policy).unwrap_or_default();
        let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
        let seconds = |value: &Value| {
            let duration = value.as_str().and_then(|text| humantime::parse_duration(text).ok());
            duration.as_ref().map(Duration::as_secs_f64)
        };
        let window = &written["window"];
        let (first, most) = (seconds(&written["open_wait"]), seconds(&written["open_wait_max"]));
        let grows = written["backoff"].as_f64().is_some_and(|factor| factor > 1.0);
        Self {
            limit: number(&written["max_in_flight"]).map(f64::from),
            streak: number(&written["consecutive_failures"]),
            calls: number(&window["calls"]),
            time: seconds(&window["time"]).map(|time| (time, number(&window["buckets"]).unwrap_or(1))),
            min_calls: number(&written["min_calls"]).unwrap_or(1),
            failure_rate: written["failure_rate"].as_f64(),
            failures: number(&written["failures"]),
            longest_wait: if grows { most.or(first) } else { first }.unwrap_or(0.0),
            successes_to_close: number(&written["successes_to_close"]).map_or(1.0, f64::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use portcullis::Window;

    use super::*;

    #[test]
    fn every_number_is_found_in_what_a_policy_says() {
        let defaults = Settings::of(&Policy::default());
        let (calls, rate) = (Some(100), Some(0.5));
        let expected = Settings {
            calls,
            min_calls: 10,
            failure_rate: rate,
            longest_wait: 60.0,
            successes_to_close: 3.0,
            ..Settings::default()
        };
        assert_eq!(defaults, expected);
        let window = Window::time(Duration::from_secs(10)).buckets(5);
        let other =
            Policy::builder().max_in_flight(7).consecutive_failures(4).window(window).failures(9).no_failure_rate();
        let other = Settings::of(&other.open_wait(Duration::from_millis(500)).backoff(1.0).build().unwrap());
        assert_eq!(
            (other.limit, other.streak, other.time, other.failures),
            (Some(7.0), Some(4), Some((10.0, 5)), Some(9))
        );
        assert_eq!((other.failure_rate, other.longest_wait), (None, 0.5));
    }
}
