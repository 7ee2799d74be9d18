//! A target's whole call: timeouts, deadline, retries and fallback, its own fields over the defaults'.
//!
//! The names are those of a call policy's own file, but for two: `backoff` is a factor of the open wait in this one, and so the wait before a
//! retry is `retry_backoff` here, and its bound `retry_backoff_max`.

use std::time::Duration;

use portcullis::PolicyError;
use portcullis::call::{CallPolicy, CallPolicyBuilder};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::policy::{built, refuse, refused, unread};
use super::reader::{Field, Report, join};

const FALLBACK: &str =
    "\"refuse\", { stale = \"5m\" } or { value = { status = 200, content_type = \"text/plain\", body = \"...\" } }";

/// Each field's name, its name in a call policy, and what to say of a value that isn't even of the right kind.
const FIELDS: &[(&str, &str, &str)] = &[
    ("probe_timeout", "probe_timeout", "a duration from \"1ms\" to the timeout, such as \"100ms\""),
    ("deadline", "deadline", "a duration that holds every attempt and backoff, such as \"2s\""),
    ("attempts", "attempts", "a whole number from 1 to 10"),
    ("retry_backoff", "backoff", "a duration from \"0s\" to retry_backoff_max, such as \"50ms\""),
    ("retry_backoff_max", "backoff_max", "a duration from retry_backoff to \"1h\""),
    ("retry_budget", "retry_budget", "a number from 0 to 10 in steps of 0.001, or \"none\""),
    ("retry_floor", "retry_floor", "a whole number from 0 to 1000"),
    ("retry_memory", "retry_memory", "a duration from \"1s\" to \"60s\""),
    ("replay_limit", "replay_limit", "a whole number of bytes from 0 to 16777216"),
    ("fallback", "fallback", FALLBACK),
];

/// The names of the fields.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().map(|(name, _, _)| *name)
}

pub(super) fn is_field(name: &str) -> bool {
    names().any(|field| field == name)
}

/// The name in this file of a call policy's field.
#[must_use]
pub fn name_here(field: &str) -> &str {
    FIELDS.iter().find(|(_, there, _)| *there == field).map_or(field, |(here, _, _)| here)
}

/// Reports the fields that can't be read, and returns the others.
pub(super) fn check_keys<'d>(report: &mut Report<'_>, path: &str, table: &'d DeTable<'d>) -> DeTable<'d> {
    let mut fit = DeTable::new();
    for (key, value) in table {
        let Some((here, _, allowed)) = FIELDS.iter().find(|(here, _, _)| here == key.get_ref()) else { continue };
        let mut alone = DeTable::new();
        alone.insert(key.clone(), value.clone());
        let read = builder(&alone).map_err(|error| error.message().to_owned());
        // There is nobody here to answer by a function.
        let is_function = *here == "fallback" && value.get_ref().as_str() == Some("function");
        match read {
            Ok(_) if !is_function => fit.extend(alone),
            Ok(_) => Field::new(join(path, here), value).refuse(report, allowed),
            Err(error) => refuse(report, &Field::new(join(path, here), value), &error, allowed),
        }
    }
    fit
}

/// Merges the fields and builds the policy, with the sums of its times checked.
pub(super) fn read(
    report: &mut Report<'_>,
    target: &Field<'_>,
    own: &DeTable<'_>,
    defaults: &DeTable<'_>,
    timeout: Duration,
) -> Option<CallPolicy> {
    let own = check_keys(report, &target.name, own);
    let defaults = check_keys(&mut Report::new(""), "defaults", defaults);
    built(report, target, &own, (defaults, "defaults"), |merged| {
        let builder = builder(merged).map_err(|error| unread(&error))?;
        builder.timeout(timeout).build().map_err(|error| here(&error))
    })
}

/// Reports what a call policy refuses beside the engine's, where the field stands.
pub(super) fn refuse_sum(
    report: &mut Report<'_>,
    target: &Field<'_>,
    own: &DeTable<'_>,
    defaults: &DeTable<'_>,
    error: &PolicyError,
) {
    let (key, message) = here(error);
    let span = own.get(key.as_str()).or_else(|| defaults.get(key.as_str())).map_or(target.span.clone(), Spanned::span);
    let from =
        if !own.contains_key(key.as_str()) && defaults.contains_key(key.as_str()) { " (set in defaults)" } else { "" };
    report.add(&span, join(&target.name, &key), format!("{message}{from}"));
}

/// What a call policy refuses, in the names of this file.
fn here(error: &PolicyError) -> (String, String) {
    let (field, message) = refused(error);
    (name_here(&field).to_owned(), message)
}

fn builder(table: &DeTable<'_>) -> Result<CallPolicyBuilder, toml::de::Error> {
    let mut renamed = DeTable::new();
    for (key, value) in table {
        let there = FIELDS.iter().find(|(here, _, _)| here == key.get_ref()).map(|(_, there, _)| *there);
        renamed.insert(Spanned::new(key.span(), there.unwrap_or_default().into()), value.clone());
    }
    CallPolicyBuilder::deserialize(Deserializer::from(Spanned::new(0..0, renamed)))
}
