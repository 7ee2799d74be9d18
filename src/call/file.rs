//! How call policies are written in TOML and JSON; each error names its field.

use std::fmt::Display;
use std::time::Duration;

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::fallback::{Fallback, FallbackValue};
use crate::policy::file;

fn named<T, E: Error>(field: &str, read: Result<T, impl Display>) -> Result<T, E> {
    read.map_err(|error| E::custom(format_args!("{field}: {error}")))
}

macro_rules! fields {
    ($($field:ident: $value:ty = $read:path,)*) => {$(
        pub(super) fn $field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<$value>, D::Error> {
            named(stringify!($field), $read(deserializer))
        }
    )*};
}

fields! {
    timeout: Duration = file::duration::deserialize,
    probe_timeout: Duration = file::duration::deserialize,
    deadline: Duration = file::duration::deserialize,
    attempts: u32 = Option::deserialize,
    backoff: Duration = file::duration::deserialize,
    backoff_max: Duration = file::duration::deserialize,
    retry_budget: Option<f64> = file::rate::deserialize,
    retry_floor: u32 = Option::deserialize,
    retry_memory: Duration = file::duration::deserialize,
    replay_limit: u32 = Option::deserialize,
    fallback: Fallback = read_fallback,
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
pub(super) fn duration<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    file::duration::serialize(value, serializer)
}

#[expect(
    clippy::ref_option,
    clippy::option_option,
    reason = "serde passes the field by reference; unset differs from none"
)]
pub(super) fn share<S: Serializer>(value: &Option<Option<f64>>, serializer: S) -> Result<S::Ok, S::Error> {
    file::rate::serialize(value, serializer)
}

const EXPECTED: &str = "\"refuse\", \"function\", { stale = \"5m\" } or { value = { status = 200, content_type = \"text/plain\", body = \"...\" } }";

/// Either a word or a table with one key.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Word(String),
    Stale(Stale),
    Value(Value),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stale {
    stale: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Value {
    value: FallbackValue,
}

fn read_fallback<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Fallback>, D::Error> {
    let written = Written::deserialize(deserializer).map_err(|_| D::Error::custom(format!("expected {EXPECTED}")))?;
    Ok(Some(match written {
        Written::Word(word) => match &*word {
            "refuse" => Fallback::Refuse,
            "function" => Fallback::Function,
            other => return Err(D::Error::invalid_value(Unexpected::Str(other), &EXPECTED)),
        },
        Written::Stale(Stale { stale }) => Fallback::Stale { max_age: file::duration::parse(&stale)? },
        Written::Value(Value { value }) => Fallback::Value(value),
    }))
}

#[expect(clippy::ref_option, reason = "serde passes the field by reference")]
pub(super) fn fallback_out<S: Serializer>(value: &Option<Fallback>, serializer: S) -> Result<S::Ok, S::Error> {
    let written = value.as_ref().map(|fallback| match fallback {
        Fallback::Refuse => Written::Word("refuse".to_owned()),
        Fallback::Function => Written::Word("function".to_owned()),
        Fallback::Stale { max_age } => {
            Written::Stale(Stale { stale: humantime::format_duration(*max_age).to_string() })
        }
        Fallback::Value(value) => Written::Value(Value { value: value.clone() }),
    });
    written.serialize(serializer)
}
