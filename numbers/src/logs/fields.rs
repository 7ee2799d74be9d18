//! Which column is which field: by the names that are in use, by flags, by a file.

use std::path::Path;

use super::columns::{Column, Columns, Field};
use super::numbers::Unit;

/// The fields as they are called on the command line and in files, with the unit of their numbers.
const NAMES: [(&str, Field, Unit); 12] = [
    ("time", Field::Time, Unit::Seconds),
    ("end", Field::End, Unit::Seconds),
    ("latency_ms", Field::Latency, Unit::Millis),
    ("latency", Field::Latency, Unit::Millis),
    ("total_ms", Field::Total, Unit::Millis),
    ("total", Field::Total, Unit::Millis),
    ("status", Field::Status, Unit::Seconds),
    ("target", Field::Target, Unit::Seconds),
    ("host", Field::Host, Unit::Seconds),
    ("path", Field::Path, Unit::Seconds),
    ("flags", Field::Flags, Unit::Seconds),
    ("code", Field::Code, Unit::Seconds),
];

/// Columns that are called so by somebody: the fields it needs, and all names of each in the order in which they are looked for.
type Usage = &'static [(Field, Unit, bool, &'static [&'static str])];

const PLAIN: Usage = &[
    (Field::Time, Unit::Seconds, true, &["time"]),
    (Field::Target, Unit::Seconds, true, &["target"]),
    (Field::Latency, Unit::Millis, true, &["latency_ms"]),
    (Field::Status, Unit::Seconds, true, &["status"]),
    (Field::Host, Unit::Seconds, false, &["host"]),
    (Field::Path, Unit::Seconds, false, &["path"]),
    (Field::Code, Unit::Seconds, false, &["code"]),
];

const ENVOY: Usage = &[
    (Field::Time, Unit::Seconds, true, &["start_time"]),
    (Field::Latency, Unit::Millis, true, &["duration"]),
    (Field::Status, Unit::Seconds, true, &["response_code"]),
    (Field::Flags, Unit::Seconds, false, &["response_flags"]),
    (Field::Target, Unit::Seconds, false, &["upstream_cluster"]),
    (Field::Host, Unit::Seconds, false, &["authority", ":authority"]),
    (Field::Path, Unit::Seconds, false, &["path", "x-envoy-original-path"]),
];

/// Whatever it is called, nginx's clock tells the end of a request.
const NGINX: Usage = &[
    (Field::End, Unit::Seconds, true, &["msec", "time_iso8601", "time_local", "time", "timestamp", "@timestamp"]),
    (Field::Total, Unit::Seconds, true, &["request_time"]),
    (Field::Latency, Unit::Seconds, false, &["upstream_response_time"]),
    (Field::Status, Unit::Seconds, true, &["status"]),
    (Field::Target, Unit::Seconds, false, &["target", "proxy_upstream_name", "upstream_name", "proxy_host"]),
    (Field::Host, Unit::Seconds, false, &["host", "http_host", "server_name"]),
    (Field::Path, Unit::Seconds, false, &["uri", "request_uri", "request"]),
];

/// The results of a load test.
const JMETER: Usage = &[
    (Field::Time, Unit::Millis, true, &["timeStamp"]),
    (Field::Latency, Unit::Millis, true, &["elapsed"]),
    (Field::Status, Unit::Seconds, true, &["responseCode"]),
    (Field::Target, Unit::Seconds, true, &["label"]),
    (Field::Path, Unit::Seconds, false, &["URL"]),
];

/// Columns that were named by hand.
#[derive(Clone, Debug, Default)]
pub(super) struct Mapping(Vec<(Field, Column)>);

impl Mapping {
    /// The columns of a file, and those of flags instead of them.
    pub(super) fn read(file: Option<&Path>, flags: &[String]) -> Result<Self, String> {
        let mut mapping = Self::default();
        if let Some(path) = file {
            mapping.add_file(path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        for flag in flags {
            let (name, column) = flag.split_once('=').ok_or_else(|| format!("--map {flag}: expected FIELD=COLUMN"))?;
            mapping.add(name, column).map_err(|error| format!("--map {flag}: {error}"))?;
        }
        Ok(mapping)
    }

    fn add_file(&mut self, path: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        for (name, column) in &table {
            let column = column.as_str().ok_or_else(|| format!("{name}: expected the name of a column in quotes"))?;
            self.add(name, column).map_err(|error| format!("{name}: {error}"))?;
        }
        Ok(())
    }

    /// `column` may end with a unit, as in `duration:s`.
    fn add(&mut self, name: &str, column: &str) -> Result<(), String> {
        let Some(&(_, field, unit)) = NAMES.iter().find(|(known, ..)| *known == name) else {
            let known: Vec<_> = NAMES.iter().map(|(known, ..)| *known).collect();
            return Err(format!("there is no field {name:?}, but {}", known.join(", ")));
        };
        let with_unit = column.rsplit_once(':').and_then(|(column, unit)| Some((column, Unit::named(unit)?)));
        let (column, unit) = with_unit.unwrap_or((column, unit));
        if column.is_empty() {
            return Err(
                "expected the name of a column, and s, ms, us or ns behind a colon if it needs another unit".to_owned()
            );
        }
        self.0.retain(|(other, _)| *other != field);
        // The start may be told or the end, not both.
        let other_time = if field == Field::Time { Field::End } else { Field::Time };
        if matches!(field, Field::Time | Field::End) {
            self.0.retain(|(other, _)| *other != other_time);
        }
        self.0.push((field, Column { name: column.to_owned(), unit }));
        Ok(())
    }

    /// The columns of a log that has these.
    pub(super) fn columns(&self, found: &[String], needs: Needs) -> Result<Columns, String> {
        if let Some((_, column)) = self.0.iter().find(|(_, column)| !found.contains(&column.name)) {
            return Err(format!("it has no column {:?}, found {}", column.name, list(found)));
        }
        let mut missing = Vec::new();
        for usage in [PLAIN, ENVOY, NGINX, JMETER] {
            let mut columns = Columns::new(needs.without_latency);
            let lacking = self.fill(&mut columns, usage, found, needs);
            if lacking.is_empty() {
                return Ok(columns);
            }
            missing.push(lacking.join(", "));
        }
        Err(format!(
            "it lacks {} (or {} as of Envoy, or {} as of nginx, or {} as of JMeter); --map says which columns are meant; found {}",
            missing[0],
            missing[1],
            missing[2],
            missing[3],
            list(found)
        ))
    }

    /// Fills in the columns, and tells the names that are missing.
    fn fill(&self, columns: &mut Columns, usage: Usage, found: &[String], needs: Needs) -> Vec<&'static str> {
        for (field, column) in &self.0 {
            columns.set(*field, column.clone());
        }
        let told = columns.has(Field::Time) || columns.has(Field::End);
        let mut missing = Vec::new();
        for &(field, unit, needed, names) in usage {
            let time = matches!(field, Field::Time | Field::End);
            if columns.has(field) || time && told {
                continue;
            }
            match names.iter().find(|name| found.iter().any(|found| found == *name)) {
                Some(&name) => columns.set(field, Column { name: name.to_owned(), unit }),
                None if needed && needs.field(field, columns) => missing.push(names[0]),
                None => {}
            }
        }
        if needs.path && !columns.has(Field::Path) {
            missing.push("path");
        }
        missing
    }
}

/// The names that were found, as far as a message can hold them: the first line of a log that isn't CSV may be anything.
fn list(found: &[String]) -> String {
    const SHOWN: usize = 200;
    let names = found.join(", ");
    let end = names.char_indices().nth(SHOWN).map_or(names.len(), |(end, _)| end);
    let cut = if end < names.len() { "..." } else { "" };
    format!("{}{cut}", names[..end].escape_debug())
}

/// What a log must tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    /// The target is found by the path.
    pub(super) path: bool,
    pub(super) without_latency: bool,
}

impl Needs {
    fn field(self, field: Field, columns: &Columns) -> bool {
        match field {
            Field::Target => !self.path,
            Field::Latency | Field::Total => {
                !self.without_latency && !columns.has(Field::Latency) && !columns.has(Field::Total)
            }
            _ => true,
        }
    }
}
