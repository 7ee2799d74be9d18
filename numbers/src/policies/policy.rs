//! A target's policy: its own fields over the defaults', each error with the line of the field that caused it.

use std::time::Duration;

use portcullis::{Policy, PolicyBuilder, PolicyError};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::reader::{Field, Report, join};
use super::{OWN, call};

/// What to say of a value that isn't even of the right kind. The engine tells the range of those that are.
const ALLOWED: &[(&str, &str)] = &[
    ("max_in_flight", "a whole number from 1 to 16777214, or \"unlimited\""),
    ("normal_share", "a number above 0 and at most 1"),
    ("sheddable_share", "a number above 0 and at most normal_share"),
    ("max_waiting", "a whole number from 0 to 65535"),
    ("max_wait", "a duration from \"1ms\" to \"1h\""),
    ("consecutive_failures", "a whole number from 1 to 4294967295"),
    ("window", "{ calls = 1 to 100 }, { time = \"10s\", buckets = 1 to 64 } or \"none\""),
    ("min_calls", "a whole number from 1 to the window's calls"),
    ("failure_rate", "a number above 0 and at most 1, or \"none\""),
    ("failures", "a whole number from 1 to the window's calls"),
    ("slow_call", "a duration above 0, such as \"3s\""),
    ("slow_rate", "a number above 0 and at most 1"),
    ("stall_after", "a duration from \"50ms\" to \"24h\""),
    ("stalled_calls", "a whole number from 1 to max_in_flight"),
    ("stalled_share", "a number above 0 and at most 1"),
    ("open_wait", "a duration from \"1ms\" to \"365d\""),
    ("backoff", "a number from 1 to 1000"),
    ("open_wait_max", "a duration from open_wait to \"365d\""),
    ("jitter", "a number from 0 to 1"),
    ("max_probes", "a whole number from 1 to 31"),
    ("successes_to_close", "a whole number from 1 to 31"),
    ("probe_lease", "a duration from \"1s\" to \"365d\""),
    ("on_abandon", "\"ignore\", \"failure\" or { failure_after = \"500ms\" }"),
    ("ignored_probes", "a whole number from 1 to 1000000"),
    ("adaptive", "{ algorithm = \"gradient\" }, { algorithm = \"aimd\", latency = \"200ms\" } or \"none\""),
    ("ramp", "a duration from \"1ms\" to \"24h\""),
    ("ramp_failures", "a whole number from 1 to 1000"),
];

/// Reports the fields of a table that are unknown or can't be read, and returns those of the policy.
pub(super) fn check_keys<'d>(report: &mut Report<'_>, path: &str, table: &'d DeTable<'d>) -> DeTable<'d> {
    let mut fit = DeTable::new();
    for (key, value) in table.iter().filter(|(key, _)| !OWN.contains(&key.get_ref().as_ref())) {
        let name = key.get_ref().as_ref();
        if call::is_field(name) {
            continue;
        }
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            let ours = OWN.iter().copied().chain(call::names());
            let known: Vec<&str> = ours.chain(ALLOWED.iter().map(|(name, _)| *name)).collect();
            let message = format!("unknown field: must be one of {}", known.join(", "));
            report.add(&key.span(), join(path, name), message);
            continue;
        };
        let mut alone = DeTable::new();
        alone.insert(key.clone(), value.clone());
        match builder(alone.clone()) {
            Ok(_) => fit.extend(alone),
            Err(error) => refuse(report, &Field::new(join(path, name), value), error.message(), allowed),
        }
    }
    fit
}

/// Reports a value that can't be read: in the engine's own words if it has judged the value, in ours if it couldn't read one.
pub(super) fn refuse(report: &mut Report<'_>, field: &Field<'_>, error: &str, allowed: &str) {
    match error.trim().split_once(" is out of range: ") {
        Some((_, must)) => field.refuse(report, must.trim_start_matches("must be ")),
        None => field.refuse(report, allowed),
    }
}

/// Merges the fields and builds the policy, with what is set `from` elsewhere.
pub(super) fn read(
    report: &mut Report<'_>,
    target: &Field<'_>,
    own: &DeTable<'_>,
    (defaults, from): (&DeTable<'_>, &str),
    timeout: Duration,
) -> Option<Policy> {
    let own = check_keys(report, &target.name, own);
    // The defaults are reported once, where they stand, not with every target.
    let defaults = check_keys(&mut Report::new(""), "defaults", defaults);
    built(report, target, &own, (defaults, from), |merged| {
        let builder = builder(merged.clone()).map_err(|error| unread(&error))?;
        let policy = builder.build().map_err(|error| refused(&error))?;
        outlasting(policy, timeout, merged.contains_key(LEASE))
    })
}

/// A table that can't be read as a whole, though each of its fields can.
pub(super) fn unread(error: &toml::de::Error) -> (String, String) {
    (String::new(), error.message().trim().to_owned())
}

/// The field that a policy refuses, and why.
pub(super) fn refused(error: &PolicyError) -> (String, String) {
    (error.field().to_owned(), format!("{} is out of range: must be {}", error.value(), error.expected()))
}

/// Builds something of a target's own fields over the defaults'. Each field is judged, not only up to the first that is refused: that one is
/// left out, and the rest built again.
pub(super) fn built<'d, T>(
    report: &mut Report<'_>,
    target: &Field<'_>,
    own: &DeTable<'d>,
    (mut merged, from): (DeTable<'d>, &str),
    build: impl Fn(&DeTable<'d>) -> Result<T, (String, String)>,
) -> Option<T> {
    for (key, value) in own {
        merged.remove(key.get_ref().as_ref());
        merged.insert(key.clone(), value.clone());
    }
    let mut sound = true;
    loop {
        let (field, message) = match build(&merged) {
            Ok(built) => return sound.then_some(built),
            Err(error) => error,
        };
        sound = false;
        // A part of a field, such as `window.calls`, is reported under its name and left out with the whole.
        let (key, part) = field.split_once('.').map_or((field.as_str(), None), |(key, part)| (key, Some(part)));
        let inherited = !own.contains_key(key) && merged.contains_key(key);
        let from = if inherited { format!(" (set in {from})") } else { String::new() };
        let culprit = merged.remove(key);
        let whole = culprit.as_ref().map_or(target.span.clone(), Spanned::span);
        let inner = culprit.as_ref().and_then(|value| value.get_ref().get(part?));
        let name = part.map_or_else(|| join(&target.name, key), |part| format!("{}.{part}", join(&target.name, key)));
        let (span, message) = (inner.map_or(whole, Spanned::span), format!("{message}{from}"));
        // One default that is wrong is one error, however many targets have it.
        if !(inherited && report.has(&span, &message)) {
            report.add(&span, name, message);
        }
        culprit?;
    }
}

const LEASE: &str = "probe_lease";

/// A probe must be able to time out before its slot is given to another: the lease has to be longer than the timeout.
fn outlasting(policy: Policy, timeout: Duration, is_set: bool) -> Result<Policy, (String, String)> {
    let written = toml::Table::try_from(&policy).ok();
    let written = written.as_ref().and_then(|fields| fields.get(LEASE)?.as_str());
    let lease = written.and_then(|text| humantime::parse_duration(text).ok());
    match lease {
        Some(lease) if lease > timeout => Ok(policy),
        Some(lease) if is_set => {
            let (lease, timeout) = (humantime::format_duration(lease), humantime::format_duration(timeout));
            Err((
                LEASE.to_owned(),
                format!("{lease} is out of range: must be more than the timeout, which is {timeout}"),
            ))
        }
        _ => {
            let longer = policy.to_builder().probe_lease(timeout + Duration::from_secs(1)).build();
            longer.map_err(|error| (LEASE.to_owned(), error.to_string()))
        }
    }
}

fn builder(table: DeTable<'_>) -> Result<PolicyBuilder, toml::de::Error> {
    PolicyBuilder::deserialize(Deserializer::from(Spanned::new(0..0, table)))
}
