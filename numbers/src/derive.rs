//! Values of a policy from what was seen of a target, each with its reason: what `plan` writes and `audit` compares with.

pub mod limit;
pub mod rule;
pub mod say;
pub mod timeout;
pub mod wait;

use std::fmt;
use std::time::Duration;

use crate::observe::Observed;

/// What the values should achieve.
#[derive(Clone, Debug, clap::Args)]
pub struct Aims {
    /// What a whole call may take, retries and backoffs included, such as 1s.
    #[arg(long, value_name = "DURATION", value_parser = budget)]
    pub budget: Option<Duration>,
    /// Retries of a call that failed.
    #[arg(skip)]
    pub retries: u32,
    /// How often normal failures may open the circuit of a target.
    #[arg(long, value_name = "N/PERIOD", default_value = "1/week", value_parser = frequency)]
    pub false_trips: Frequency,
    /// The outages a year from which on a breaker is worth its upkeep.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub upkeep: u32,
}

impl Default for Aims {
    fn default() -> Self {
        Self { budget: None, retries: 0, false_trips: Frequency { times: 1, period: Period::Week }, upkeep: 4 }
    }
}

/// So many times in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequency {
    times: u32,
    period: Period,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Period {
    Hour,
    Day,
    Week,
    Year,
}

impl Period {
    const ALL: [(Self, &str, f64); 4] = [
        (Self::Hour, "hour", 3_600.0),
        (Self::Day, "day", 86_400.0),
        (Self::Week, "week", 7.0 * 86_400.0),
        (Self::Year, "year", 365.0 * 86_400.0),
    ];

    fn told(self) -> (&'static str, f64) {
        Self::ALL
            .iter()
            .find(|(period, ..)| *period == self)
            .map_or(("", f64::NAN), |(_, name, length)| (name, *length))
    }
}

impl Frequency {
    /// Times per second.
    #[must_use]
    pub fn per_second(self) -> f64 {
        f64::from(self.times) / self.period.told().1
    }
}

impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.times, self.period.told().0)
    }
}

fn frequency(text: &str) -> Result<Frequency, String> {
    let wrong = || format!("{text:?} must be a whole number above 0 per hour, day, week or year, such as 1/week");
    let (times, name) = text.split_once('/').ok_or_else(wrong)?;
    let times = times.parse().ok().filter(|times| *times > 0).ok_or_else(wrong)?;
    let (period, ..) = Period::ALL.into_iter().find(|(_, period, _)| *period == name).ok_or_else(wrong)?;
    Ok(Frequency { times, period })
}

fn budget(text: &str) -> Result<Duration, String> {
    let budget = humantime::parse_duration(text).map_err(|error| format!("{error}: must be a duration such as 1s"))?;
    let range = Duration::from_millis(2)..=Duration::from_hours(1);
    if range.contains(&budget) { Ok(budget) } else { Err("must be from 2ms to 1h".to_owned()) }
}

/// A setting of a policy file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A number of calls.
    Count(u32),
    /// A share of calls.
    Share(f64),
    /// A length of time.
    Time(Duration),
    /// A window of the last so many calls.
    Calls(u32),
    /// "none".
    Off,
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Share(share) => write!(f, "{share}"),
            Self::Time(time) => write!(f, "\"{}\"", humantime::format_duration(*time)),
            Self::Calls(calls) => write!(f, "{{ calls = {calls} }}"),
            Self::Off => f.write_str("\"none\""),
        }
    }
}

/// A field with its value, or without one if the log says too little about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The field's name in a policy file.
    pub field: &'static str,
    /// Its value.
    pub value: Option<Value>,
    /// Where the value comes from, or what is missing for one.
    pub why: String,
}

impl Entry {
    fn new(field: &'static str, value: Value, why: String) -> Self {
        Self { field, value: Some(value), why }
    }

    fn missing(field: &'static str, why: String) -> Self {
        Self { field, value: None, why }
    }
}

/// What follows from what was seen of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    /// The fields, in the order in which they are written.
    pub entries: Vec<Entry>,
    /// The rule that opens it, if there should be one; none where that can't be said yet.
    pub rule: Option<rule::Rule>,
}

impl Derived {
    /// The value of a field, if there is one.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<Value> {
        self.entry(field)?.value
    }

    /// A field.
    #[must_use]
    pub fn entry(&self, field: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.field == field)
    }

    /// The value of a field that is a length of time.
    #[must_use]
    pub fn time(&self, field: &str) -> Option<Duration> {
        match self.value(field)? {
            Value::Time(time) => Some(time),
            _ => None,
        }
    }
}

/// Derives what can be derived.
#[must_use]
pub fn derive(seen: &Observed, aims: &Aims) -> Derived {
    let mut entries = timeout::derive(seen, aims);
    entries.push(limit::derive(seen));
    let timeout = entries.iter().find_map(|entry| match (entry.field, entry.value) {
        ("timeout", Some(Value::Time(timeout))) => Some(timeout),
        _ => None,
    });
    let (rule, rules) = rule::derive(seen, timeout, aims);
    entries.extend(rules);
    if matches!(rule, Some(rule::Rule::Window { .. })) {
        entries.extend(timeout.into_iter().flat_map(|timeout| timeout::slow(seen, timeout)));
    }
    if !matches!(rule, Some(rule::Rule::None)) {
        entries.extend(wait::derive(seen));
    }
    Derived { entries, rule }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequency_is_read_as_it_is_shown() {
        for text in ["1/week", "3/day", "10/hour", "2/year"] {
            assert_eq!(frequency(text).unwrap().to_string(), text);
        }
        assert!((frequency("1/day").unwrap().per_second() * 86_400.0 - 1.0).abs() < 1e-12);
        for text in ["", "1", "0/day", "-1/day", "1/month", "x/day"] {
            assert!(frequency(text).unwrap_err().contains("1/week"), "{text}");
        }
    }

    #[test]
    fn a_budget_is_a_sensible_duration() {
        assert_eq!(budget("333ms"), Ok(Duration::from_millis(333)));
        for text in ["", "0s", "1ms", "2h", "fast"] {
            assert!(budget(text).is_err(), "{text}");
        }
    }
}
