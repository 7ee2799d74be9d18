//! `{ algorithm = "gradient", min = 4 }`, `{ algorithm = "aimd", latency = "200ms" }`, or "none".

use std::fmt;
use std::time::Duration;

use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::adaptive::{Adaptive, Algorithm};

const EXPECTED: &str = "{ algorithm = \"gradient\" }, { algorithm = \"aimd\", latency = \"200ms\" } or \"none\"";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    algorithm: Name,
    #[serde(default, with = "super::duration", skip_serializing_if = "Option::is_none")]
    latency: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tolerance: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Name {
    Gradient,
    Aimd,
}

#[expect(
    clippy::ref_option,
    clippy::option_option,
    reason = "serde passes the field by reference; unset differs from none"
)]
pub(crate) fn serialize<S: Serializer>(adaptive: &Option<Option<Adaptive>>, serializer: S) -> Result<S::Ok, S::Error> {
    let Adaptive { algorithm, tolerance, min, start } = match adaptive {
        None => return serializer.serialize_none(),
        Some(None) => return serializer.serialize_str("none"),
        Some(Some(adaptive)) => *adaptive,
    };
    let (algorithm, latency) = match algorithm {
        Algorithm::Gradient => (Name::Gradient, None),
        Algorithm::Aimd(latency) => (Name::Aimd, Some(latency)),
    };
    Fields { algorithm, latency, tolerance, min, start }.serialize(serializer)
}

#[expect(clippy::option_option, reason = "unset differs from none")]
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Adaptive>>, D::Error> {
    deserializer.deserialize_any(AdaptiveVisitor)
}

struct AdaptiveVisitor;

impl<'de> Visitor<'de> for AdaptiveVisitor {
    type Value = Option<Option<Adaptive>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        if text == "none" { Ok(Some(None)) } else { Err(E::invalid_value(Unexpected::Str(text), &self)) }
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<Self::Value, M::Error> {
        let fields = Fields::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        let algorithm = match (fields.algorithm, fields.latency) {
            (Name::Gradient, None) => Algorithm::Gradient,
            (Name::Aimd, Some(latency)) => Algorithm::Aimd(latency),
            (Name::Gradient, Some(_)) => return Err(M::Error::custom("latency: only aimd has one")),
            (Name::Aimd, None) => return Err(M::Error::custom(format!("needs a latency: expected {EXPECTED}"))),
        };
        let Fields { tolerance, min, start, .. } = fields;
        Ok(Some(Some(Adaptive { algorithm, tolerance, min, start })))
    }
}
