//! The `[defaults]` and `[target.NAME]` tables.

use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use portcullis_numbers::policies::reader::{Field, Report, join};
use portcullis_numbers::policies::{TIMEOUT, check_fields, read_shadows, read_terms};
use toml::de::DeTable;

use super::Target;

/// More would not be a file that somebody reads.
const MOST_TARGETS: usize = 10_000;
const URL: &str = "an http:// URL of a host, and a port if it isn't 80, with nothing after it";

/// Reads the targets; each field that a target doesn't set comes from the defaults.
pub(super) fn read(report: &mut Report<'_>, targets: Option<Field<'_>>, defaults: Option<Field<'_>>) -> Vec<Target> {
    let empty = DeTable::new();
    let defaults = defaults.and_then(|field| field.table(report)).unwrap_or(&empty);
    check_defaults(report, defaults);
    let Some(targets) = targets else {
        report.missing("target", "at least one [target.NAME]");
        return Vec::new();
    };
    let Some(table) = targets.table(report) else { return Vec::new() };
    if table.len() > MOST_TARGETS {
        targets.refuse(report, &format!("at most {MOST_TARGETS} targets"));
        return Vec::new();
    }
    let mut read = Vec::new();
    for (key, value) in table {
        let name = key.get_ref().as_ref();
        let field = Field::new(join("target", name), value);
        if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
            let message = "the name is out of range: must be 1 to 200 bytes without control characters";
            report.add(&key.span(), "target", message);
            continue;
        }
        if let Some(table) = field.table(report) {
            read.extend(one(report, name, &field, table, defaults));
        }
    }
    read
}

fn one(
    report: &mut Report<'_>,
    name: &str,
    whole: &Field<'_>,
    table: &DeTable<'_>,
    defaults: &DeTable<'_>,
) -> Option<Target> {
    let get = |key: &str| table.get(key).map(|value| Field::new(join(&whole.name, key), value));
    let default = |key: &str| defaults.get(key).map(|value| Field::new(join("defaults", key), value));
    let upstream = match get("upstream") {
        Some(field) => upstreams(report, &field),
        None => {
            report.add(&whole.span, join(&whole.name, "upstream"), format!("missing: must be a list of {URL}"));
            Vec::new()
        }
    };
    // A default that is out of range has been reported where it stands.
    let mut unheard = Report::new("");
    let timeout = match get("timeout") {
        Some(field) => field.duration(report, TIMEOUT),
        None => default("timeout").and_then(|field| field.duration(&mut unheard, TIMEOUT)),
    };
    let stream = match get("stream") {
        Some(field) => field.flag(report),
        None => default("stream").and_then(|field| field.flag(&mut unheard)),
    };
    let timeout = timeout.unwrap_or(Duration::from_secs(1));
    let connect_timeout = connect_timeout(report, get("connect_timeout"), default("connect_timeout"), timeout);
    let terms = read_terms(report, whole, table, defaults, timeout);
    let (policy, call) = terms?;
    let shadows = read_shadows(report, whole, table, defaults, (timeout, &call));
    Some(Target {
        name: name.to_owned(),
        upstream,
        connect_timeout,
        timeout,
        stream: stream.unwrap_or(false),
        policy,
        shadows,
        call,
    })
}

/// Within the timeout, or it would never be the one that ends an attempt. A default that is longer than a target's own timeout is that one's
/// fault, and simply has no effect.
fn connect_timeout(
    report: &mut Report<'_>,
    own: Option<Field<'_>>,
    default: Option<Field<'_>>,
    timeout: Duration,
) -> Option<Duration> {
    match own {
        Some(field) => field.duration(report, *TIMEOUT.start()..=timeout),
        None => default.and_then(|field| field.duration(&mut Report::new(""), TIMEOUT)),
    }
}

fn check_defaults(report: &mut Report<'_>, defaults: &DeTable<'_>) {
    let get = |key: &str| defaults.get(key).map(|value| Field::new(join("defaults", key), value));
    for key in ["connect_timeout", "timeout"] {
        if let Some(field) = get(key) {
            field.duration(report, TIMEOUT);
        }
    }
    if let Some(field) = get("stream") {
        field.flag(report);
    }
    for field in ["upstream", "shadow"].into_iter().filter_map(get) {
        report.add(&field.span, field.name.clone(), "belongs to a target: must be under [target.NAME]");
    }
    check_fields(report, "defaults", defaults);
}

fn upstreams(report: &mut Report<'_>, field: &Field<'_>) -> Vec<Authority> {
    let Some(list) = field.value.as_array().filter(|list| (1..=64).contains(&list.len())) else {
        field.refuse(report, &format!("a list of 1 to 64 strings, each {URL}"));
        return Vec::new();
    };
    let mut read = Vec::new();
    for (n, value) in list.iter().enumerate() {
        let entry = Field::new(format!("{}[{n}]", field.name), value);
        let Some(url) = entry.text(report, URL) else { continue };
        match authority(url) {
            Ok(authority) if read.contains(&authority) => {
                report.add(&entry.span, entry.name, format!("{url:?} is listed twice"));
            }
            Ok(authority) => read.push(authority),
            Err(why) => report.add(&entry.span, entry.name, format!("{url:?} is refused: {why}")),
        }
    }
    read
}

/// The part of an upstream's URL that is connected to.
fn authority(url: &str) -> Result<Authority, String> {
    let must = || format!("must be {URL}");
    if url.contains('#') {
        return Err(must());
    }
    let uri: Uri = url.parse().map_err(|error| format!("{error}; {}", must()))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err("https to upstreams is not supported yet: must be http://".to_owned()),
        _ => return Err(must()),
    }
    let authority = uri.authority().ok_or_else(must)?;
    let plain = uri.path().trim_start_matches('/').is_empty() && uri.query().is_none();
    // The number of a port is only read when it is asked for.
    let port_fits = authority.port().is_none_or(|port| port.as_u16() > 0) && !authority.as_str().ends_with(':');
    let after_host = authority.as_str().strip_prefix(authority.host());
    let named = !authority.host().is_empty()
        && after_host.is_some_and(|rest| rest.is_empty() || (rest.starts_with(':') && authority.port_u16().is_some()));
    if plain && port_fits && named { Ok(authority.clone()) } else { Err(must()) }
}
