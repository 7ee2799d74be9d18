//! One JSON object a line.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::columns::{Columns, FIELDS, Values};
use super::fault::Fault;
use super::parse::Entry;

/// Which members of an object are which fields.
#[derive(Debug)]
pub(super) struct Json(Columns);

impl Json {
    pub(super) fn new(columns: Columns) -> Self {
        Self(columns)
    }

    pub(super) fn entry<'a>(&self, record: &'a [u8]) -> Result<Entry<'a>, Fault> {
        // The whole line at once: the strings in it need no further look.
        let text = std::str::from_utf8(record).map_err(|_| Fault::Utf8)?;
        let mut json = serde_json::Deserializer::from_str(text);
        let values = Members(&self.0).deserialize(&mut json).map_err(|_| Fault::Shape)?;
        json.end().map_err(|_| Fault::Shape)?;
        self.0.entry(values)
    }
}

/// The names of an object's members.
pub(super) fn names(record: &[u8]) -> Option<Vec<String>> {
    let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(record).ok()?;
    Some(object.into_iter().map(|(name, _)| name).collect())
}

/// Takes the members that are fields out of an object.
struct Members<'c>(&'c Columns);

impl<'de> DeserializeSeed<'de> for Members<'_> {
    type Value = Values<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_> {
    type Value = Values<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut values: Values<'de> = [const { None }; FIELDS];
        while let Some(field) = members.next_key_seed(FieldOf(self.0))? {
            match field {
                Some(field) => values[field] = Some(text(members.next_value()?).map_err(serde::de::Error::custom)?),
                None => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        Ok(values)
    }
}

/// Which field a member's name is of.
struct FieldOf<'c>(&'c Columns);

impl<'de> DeserializeSeed<'de> for FieldOf<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FieldOf<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.names().find(|&(_, column)| column == name).map(|(field, _)| field))
    }
}

/// A value as text: numbers as they were written, so that no digit of a time gets lost; null is empty.
fn text(value: &RawValue) -> Result<Cow<'_, [u8]>, serde_json::Error> {
    let raw = value.get();
    match raw.as_bytes() {
        b"null" => Ok(Cow::Borrowed(b"")),
        [b'"', ..] => match serde_json::from_str::<Cow<'_, str>>(raw) {
            Ok(_) if !raw.contains('\\') => Ok(Cow::Borrowed(&raw.as_bytes()[1..raw.len() - 1])),
            Ok(text) => Ok(Cow::Owned(text.into_owned().into_bytes())),
            Err(error) => Err(error),
        },
        bytes => Ok(Cow::Borrowed(bytes)),
    }
}
