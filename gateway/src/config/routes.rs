//! The `[[route]]` tables.

use portcullis::Priority;
use portcullis_numbers::policies::reader::{Field, Report, fields};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Route;

const KEYS: &[&str] = &["host", "path", "target", "stream", "admission", "priority", "priority_header"];
const PRIORITY: &str = "\"critical\", \"normal\" or \"sheddable\"";
const PATH: &str = "a path that begins with \"/\", without blanks, \"?\" or \"#\"";
const HOST: &str = "a host name or IP address without port, such as \"api.example.com\"";

/// Reads the routes; `targets` is only looked at for the names in it.
pub(super) fn read(report: &mut Report<'_>, routes: Option<Field<'_>>, targets: Option<Field<'_>>) -> Vec<Route> {
    let Some(routes) = routes else {
        report.missing("route", "at least one [[route]]");
        return Vec::new();
    };
    let Some(list) = routes.value.as_array() else {
        routes.refuse(report, "a list of tables, each under [[route]]");
        return Vec::new();
    };
    if list.is_empty() {
        routes.refuse(report, "at least one [[route]]");
    }
    let defined = targets.and_then(|field| field.value.as_table());
    let mut read: Vec<Route> = Vec::new();
    for (n, entry) in list.iter().enumerate() {
        let name = format!("route[{n}]");
        let Some(route) = one(report, entry, &name, defined) else { continue };
        if let Some(first) = read.iter().position(|other| other.host == route.host && other.path == route.path) {
            report.add(&entry.span(), name, format!("the same host and path as route[{first}]"));
        }
        read.push(route);
    }
    read
}

fn one<'d>(
    report: &mut Report<'_>,
    entry: &'d Spanned<DeValue<'d>>,
    name: &str,
    defined: Option<&DeTable<'_>>,
) -> Option<Route> {
    let table = Field::new(name.to_owned(), entry).table(report)?;
    let get = fields(report, table, name, KEYS);
    let host = match get("host") {
        Some(field) => Some(host(report, &field)?),
        None => None,
    };
    let missing = |report: &mut Report<'_>, key| report.add(&entry.span(), format!("{name}.{key}"), "missing");
    let (path, target) = (get("path"), get("target"));
    if path.is_none() {
        missing(report, "path");
    }
    if target.is_none() {
        missing(report, "target");
    }
    let path = path.and_then(|field| checked_path(report, &field));
    let target = target.and_then(|field| {
        let target = field.text(report, "the name of a target")?;
        if defined.is_none_or(|table| !table.contains_key(target)) {
            report.add(
                &field.span,
                field.name.clone(),
                format!("{target:?} is no target: there is no [target.{target}]"),
            );
        }
        Some(target.to_owned())
    });
    let stream = get("stream").and_then(|field| field.flag(report)).unwrap_or(false);
    let admission = get("admission").and_then(|field| field.flag(report)).unwrap_or(true);
    let priority = match get("priority") {
        Some(field) => priority(report, &field)?,
        None => Priority::Critical,
    };
    let may_lower = get("priority_header");
    let priority_header = may_lower.as_ref().and_then(|field| field.flag(report)).unwrap_or(false);
    if let Some(field) = may_lower.filter(|_| priority_header && priority == Priority::Sheddable) {
        field.refuse(report, "false where the route is sheddable: a request can't matter less");
    }
    for field in ["priority", "priority_header"].into_iter().filter_map(&get).filter(|_| !admission) {
        report.add(&field.span, field.name.clone(), "has no effect with admission = false: nobody is asked");
    }
    Some(Route { host, path: path?, target: target?, stream, admission, priority, priority_header })
}

fn priority(report: &mut Report<'_>, field: &Field<'_>) -> Option<Priority> {
    let name = field.text(report, PRIORITY)?;
    // In lower case, as the file's other words.
    let priority = Priority::from_name(name).filter(|priority| priority.name() == name);
    if priority.is_none() {
        field.refuse(report, PRIORITY);
    }
    priority
}

fn host(report: &mut Report<'_>, field: &Field<'_>) -> Option<String> {
    let text = field.text(report, HOST)?;
    let authority = text.parse::<http::uri::Authority>().ok();
    // An authority that is nothing but its host has neither port nor user.
    let Some(authority) = authority.filter(|authority| authority.host() == text) else {
        field.refuse(report, HOST);
        return None;
    };
    Some(authority.host().to_ascii_lowercase())
}

fn checked_path(report: &mut Report<'_>, field: &Field<'_>) -> Option<String> {
    let path = field.text(report, PATH)?;
    let fits = path.parse::<http::uri::PathAndQuery>().is_ok_and(|parsed| parsed.as_str() == path);
    if path.starts_with('/') && fits && !path.contains(['?', '#']) {
        return Some(path.to_owned());
    }
    field.refuse(report, PATH);
    None
}
