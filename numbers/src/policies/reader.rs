//! Reads values out of a parsed file and keeps the place of each, so that no error comes without its line.
//!
//! Reading goes on after an error: a value that can't be used is reported and left out.

use std::net::SocketAddr;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ConfigError;

/// The text of the file and what was found wrong with it so far.
#[derive(Debug)]
pub struct Report<'s> {
    text: &'s str,
    /// In no order; [`ConfigErrors`](super::ConfigErrors) has one.
    pub errors: Vec<ConfigError>,
}

impl<'s> Report<'s> {
    /// Starts without errors.
    #[must_use]
    pub fn new(text: &'s str) -> Self {
        Self { text, errors: Vec::new() }
    }

    fn line(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
    }

    /// The value as it stands in the file, cut where it gets long.
    fn written(&self, span: Range<usize>) -> String {
        let text = self.text.get(span).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let short: String = line.chars().take(60).collect();
        if short.len() < text.len() { format!("{short}...") } else { short }
    }

    /// Whether the same has been reported of the same line.
    pub(super) fn has(&self, span: &Range<usize>, message: &str) -> bool {
        let line = Some(self.line(span.start));
        self.errors.iter().any(|error| error.line == line && error.message == message)
    }

    /// Reports a part of the file that isn't there.
    pub fn missing(&mut self, field: &str, needed: &str) {
        let message = format!("missing: {needed} is needed");
        self.errors.push(ConfigError { line: None, field: field.to_owned(), message });
    }

    /// Reports what is wrong at a place.
    pub fn add(&mut self, span: &Range<usize>, field: impl Into<String>, message: impl Into<String>) {
        let line = Some(self.line(span.start));
        self.errors.push(ConfigError { line, field: field.into(), message: message.into() });
    }
}

/// A value with its full name and its place.
#[derive(Clone, Debug)]
pub struct Field<'d> {
    /// With the tables that it is in.
    pub name: String,
    /// Its bytes in the file.
    pub span: Range<usize>,
    /// What the file says.
    pub value: &'d DeValue<'d>,
}

impl<'d> Field<'d> {
    /// A value of that name.
    #[must_use]
    pub fn new(name: String, value: &'d Spanned<DeValue<'d>>) -> Self {
        Self { name, span: value.span(), value: value.get_ref() }
    }

    /// Reports this value as refused.
    pub fn refuse(&self, report: &mut Report<'_>, allowed: &str) {
        let written = report.written(self.span.clone());
        report.add(&self.span, self.name.clone(), format!("{written} is out of range: must be {allowed}"));
    }

    /// Reads a string; `allowed` tells what would be right.
    pub fn text(&self, report: &mut Report<'_>, allowed: &str) -> Option<&'d str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.refuse(report, allowed);
        }
        text
    }

    /// Reads a flag.
    pub fn flag(&self, report: &mut Report<'_>) -> Option<bool> {
        let flag = self.value.as_bool();
        if flag.is_none() {
            self.refuse(report, "true or false");
        }
        flag
    }

    /// Reads a whole number within a range.
    pub fn whole(&self, report: &mut Report<'_>, range: RangeInclusive<u32>) -> Option<u32> {
        let number = self.value.as_integer().and_then(|n| u32::from_str_radix(n.as_str(), n.radix()).ok());
        let number = number.filter(|n| range.contains(n));
        if number.is_none() {
            self.refuse(report, &format!("a whole number from {} to {}", range.start(), range.end()));
        }
        number
    }

    /// Reads a duration within a range.
    pub fn duration(&self, report: &mut Report<'_>, range: RangeInclusive<Duration>) -> Option<Duration> {
        let duration = self.value.as_str().and_then(|text| humantime::parse_duration(text).ok());
        let duration = duration.filter(|d| range.contains(d));
        if duration.is_none() {
            let (least, most) = (humantime::format_duration(*range.start()), humantime::format_duration(*range.end()));
            self.refuse(report, &format!("a duration from \"{least}\" to \"{most}\", such as \"1s\" or \"250ms\""));
        }
        duration
    }

    /// Reads an address with its port.
    pub fn address(&self, report: &mut Report<'_>) -> Option<SocketAddr> {
        let address = self.value.as_str().and_then(|text| text.parse().ok());
        if address.is_none() {
            self.refuse(report, "an IP address with a port from 0 to 65535, such as \"127.0.0.1:8080\"");
        }
        address
    }

    /// Reads a table.
    pub fn table(&self, report: &mut Report<'_>) -> Option<&'d DeTable<'d>> {
        let table = self.value.as_table();
        if table.is_none() {
            self.refuse(report, "a table");
        }
        table
    }
}

/// The fields of a table, by name; refuses the ones that nobody knows.
pub fn fields<'d>(
    report: &mut Report<'_>,
    table: &'d DeTable<'d>,
    path: &str,
    known: &[&str],
) -> impl Fn(&str) -> Option<Field<'d>> + use<'d> {
    for (key, _) in table {
        if !known.contains(&key.get_ref().as_ref()) {
            let name = join(path, key.get_ref());
            report.add(&key.span(), name, format!("unknown field: must be one of {}", known.join(", ")));
        }
    }
    let path = path.to_owned();
    move |key| table.get(key).map(|value| Field::new(join(&path, key), value))
}

/// The full name of a key in a table; a name with dots or blanks is quoted as in the file.
#[must_use]
pub fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    let key = if bare { key.to_owned() } else { toml::Value::from(key).to_string() };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}
