//! How settings are written in TOML and JSON: durations as "3s", alternatives by name, each error with its field and what would be right.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::time::Duration;

pub(crate) mod adaptive;

/// Reads a field so that an error names it, whatever the format.
pub(crate) mod named {
    use super::*;
    use crate::adaptive::Adaptive;
    use crate::policy::OnAbandon;
    use crate::window::Window;

    macro_rules! fields {
        ($($field:ident: $value:ty = $read:path,)*) => {$(
            pub(crate) fn $field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<$value>, D::Error> {
                $read(deserializer).map_err(|error| D::Error::custom(format_args!("{}: {error}", stringify!($field))))
            }
        )*};
    }

    fields! {
        max_in_flight: u32 = limit::deserialize,
        normal_share: f64 = Option::deserialize,
        sheddable_share: f64 = Option::deserialize,
        max_waiting: u32 = Option::deserialize,
        max_wait: Duration = duration::deserialize,
        consecutive_failures: u32 = Option::deserialize,
        window: Option<Window> = window::deserialize,
        min_calls: u32 = Option::deserialize,
        failure_rate: Option<f64> = rate::deserialize,
        failures: u32 = Option::deserialize,
        slow_call: Duration = duration::deserialize,
        slow_rate: f64 = Option::deserialize,
        stall_after: Duration = duration::deserialize,
        stalled_calls: u32 = Option::deserialize,
        stalled_share: f64 = Option::deserialize,
        open_wait: Duration = duration::deserialize,
        backoff: f64 = Option::deserialize,
        open_wait_max: Duration = duration::deserialize,
        jitter: f64 = Option::deserialize,
        max_probes: u32 = Option::deserialize,
        successes_to_close: u32 = Option::deserialize,
        probe_lease: Duration = duration::deserialize,
        on_abandon: OnAbandon = abandon::deserialize,
        ignored_probes: u32 = Option::deserialize,
        adaptive: Option<Adaptive> = adaptive::deserialize,
        ramp: Duration = duration::deserialize,
        ramp_failures: u32 = Option::deserialize,
    }
}

/// "1h 30m", "3s", "250ms".
pub(crate) mod duration {
    use super::*;

    #[expect(clippy::ref_option, reason = "serde passes the field by reference")]
    pub(crate) fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        duration.map(|duration| humantime::format_duration(duration).to_string()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse(&text).map(Some)
    }

    pub(crate) fn parse<E: Error>(text: &str) -> Result<Duration, E> {
        humantime::parse_duration(text).map_err(|error| {
            let expected = format!("a duration such as \"3s\", \"250ms\" or \"1h 30m\" ({error})");
            E::invalid_value(Unexpected::Str(text), &expected.as_str())
        })
    }
}

/// A number, or a word for having none.
struct OrWord<T> {
    word: &'static str,
    expected: &'static str,
    none: T,
    number: fn(f64) -> Option<T>,
}

impl<T> Visitor<'_> for OrWord<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        if text == self.word { Ok(self.none) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        (self.number)(number as f64).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        (self.number)(number as f64).ok_or_else(|| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        (self.number)(number).ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }
}

/// `64` or "unlimited".
pub(crate) mod limit {
    use super::*;
    use crate::policy::UNLIMITED;

    #[expect(clippy::ref_option, reason = "serde passes the field by reference")]
    pub(crate) fn serialize<S: Serializer>(limit: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
        match limit {
            Some(UNLIMITED) => serializer.serialize_str("unlimited"),
            other => other.serialize(serializer),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
        let visitor = OrWord {
            word: "unlimited",
            expected: "a whole number from 1 to 16777214, or \"unlimited\"",
            none: Some(UNLIMITED),
            // Numbers that stand for "unlimited" by chance are out of range; the builder refuses 0.
            number: |number| {
                (number.fract() == 0.0 && (0.0..f64::from(UNLIMITED)).contains(&number)).then_some(Some(number as u32))
            },
        };
        deserializer.deserialize_any(visitor)
    }
}

/// `0.5` or "none".
pub(crate) mod rate {
    use super::*;

    #[expect(
        clippy::ref_option,
        clippy::option_option,
        reason = "serde passes the field by reference; unset differs from none"
    )]
    pub(crate) fn serialize<S: Serializer>(rate: &Option<Option<f64>>, serializer: S) -> Result<S::Ok, S::Error> {
        match rate {
            Some(None) => serializer.serialize_str("none"),
            other => other.flatten().serialize(serializer),
        }
    }

    #[expect(clippy::option_option, reason = "unset differs from none")]
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<f64>>, D::Error> {
        let visitor = OrWord {
            word: "none",
            expected: "a share above 0 and at most 1, or \"none\"",
            none: Some(None),
            number: |number| Some(Some(Some(number))),
        };
        deserializer.deserialize_any(visitor)
    }
}

/// `{ calls = 100 }`, `{ time = "10s", buckets = 10 }`, or "none".
pub(crate) mod window {
    use serde::de::MapAccess;

    use super::*;
    use crate::window::{Shape, Window};

    const EXPECTED: &str = "{ calls = 100 }, { time = \"10s\", buckets = 10 } or \"none\"";

    #[derive(Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Fields {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        calls: Option<u32>,
        #[serde(default, with = "super::duration", skip_serializing_if = "Option::is_none")]
        time: Option<Duration>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        buckets: Option<u32>,
    }

    #[expect(
        clippy::ref_option,
        clippy::option_option,
        reason = "serde passes the field by reference; unset differs from none"
    )]
    pub(crate) fn serialize<S: Serializer>(window: &Option<Option<Window>>, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = match window.map(|window| window.map(Window::shape)) {
            None => return serializer.serialize_none(),
            Some(None) => return serializer.serialize_str("none"),
            Some(Some(Shape::Calls(calls))) => Fields { calls: Some(calls), time: None, buckets: None },
            Some(Some(Shape::Time(time, buckets))) => Fields { calls: None, time: Some(time), buckets },
        };
        fields.serialize(serializer)
    }

    #[expect(clippy::option_option, reason = "unset differs from none")]
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Window>>, D::Error> {
        deserializer.deserialize_any(WindowVisitor)
    }

    struct WindowVisitor;

    impl<'de> Visitor<'de> for WindowVisitor {
        type Value = Option<Option<Window>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(EXPECTED)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            if text == "none" { Ok(Some(None)) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
        }

        fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
            let fields = Fields::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
            let window = match fields {
                Fields { calls: Some(calls), time: None, buckets: None } => Window::calls(calls),
                Fields { calls: Some(calls), time: None, buckets: Some(buckets) } => {
                    Window::calls(calls).buckets(buckets)
                }
                Fields { calls: None, time: Some(time), buckets: None } => Window::time(time),
                Fields { calls: None, time: Some(time), buckets: Some(buckets) } => Window::time(time).buckets(buckets),
                Fields { time: None, calls: None, .. } | Fields { time: Some(_), calls: Some(_), .. } => {
                    return Err(M::Error::custom(format!("needs either calls or time: expected {EXPECTED}")));
                }
            };
            Ok(Some(Some(window)))
        }
    }
}

/// "ignore", "failure", or `{ failure_after = "500ms" }`.
pub(crate) mod abandon {
    use super::*;
    use crate::policy::OnAbandon;

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case", deny_unknown_fields)]
    enum Choice {
        Ignore,
        Failure,
        FailureAfter(#[serde(with = "after")] Duration),
    }

    mod after {
        use super::*;

        pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
            duration::serialize(&Some(*duration), serializer)
        }

        pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
            duration::parse(&String::deserialize(deserializer)?)
        }
    }

    #[expect(clippy::ref_option, reason = "serde passes the field by reference")]
    pub(crate) fn serialize<S: Serializer>(meaning: &Option<OnAbandon>, serializer: S) -> Result<S::Ok, S::Error> {
        let choice = meaning.map(|meaning| match meaning {
            OnAbandon::Ignore => Choice::Ignore,
            OnAbandon::Failure => Choice::Failure,
            OnAbandon::FailureAfter(duration) => Choice::FailureAfter(duration),
        });
        choice.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<OnAbandon>, D::Error> {
        Ok(Some(match Choice::deserialize(deserializer)? {
            Choice::Ignore => OnAbandon::Ignore,
            Choice::Failure => OnAbandon::Failure,
            Choice::FailureAfter(duration) => OnAbandon::FailureAfter(duration),
        }))
    }
}
