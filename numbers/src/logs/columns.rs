//! Named fields as calls: what CSV and JSON have in common.

use std::borrow::Cow;

use super::envoy;
use super::fault::Fault;
use super::numbers::{self, Unit, Wrong};
use super::parse::{Apart, Entry, Fate};
use super::tokens;

/// What a column may tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// The start of the call.
    Time,
    /// Its end.
    End,
    /// How long the call took.
    Latency,
    /// How long the request took that the call was made for; its start is counted from this if only its end is told.
    Total,
    Status,
    Target,
    Host,
    Path,
    /// Envoy's response flags.
    Flags,
    /// portcullis' own code.
    Code,
}

/// How many fields there are.
pub(super) const FIELDS: usize = 10;

/// What no call is believed to take: 30 days, in nanoseconds.
pub(super) const LONGEST: u64 = 30 * 86_400 * 1_000_000_000;

/// The values of a record's fields, by [`Field`]; none where there is no such column.
pub(super) type Values<'a> = [Option<Cow<'a, [u8]>>; FIELDS];

/// A field's column: its name, and what its numbers count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) unit: Unit,
}

/// The column of each field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns {
    columns: [Option<Column>; FIELDS],
    /// Whether calls take no time where none is told.
    without_latency: bool,
}

impl Columns {
    pub(super) fn new(without_latency: bool) -> Self {
        Self { without_latency, ..Self::default() }
    }

    pub(super) fn set(&mut self, field: Field, column: Column) {
        self.columns[field as usize] = Some(column);
    }

    pub(super) fn has(&self, field: Field) -> bool {
        self.columns[field as usize].is_some()
    }

    /// The names of the columns, with the index of their field.
    pub(super) fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        self.columns.iter().enumerate().filter_map(|(field, column)| Some((field, column.as_ref()?.name.as_str())))
    }

    fn unit(&self, field: Field) -> Unit {
        self.columns[field as usize].as_ref().map_or(Unit::Seconds, |column| column.unit)
    }

    /// What the values of a record say.
    pub(super) fn entry<'a>(&self, mut values: Values<'a>) -> Result<Entry<'a>, Fault> {
        let mut take = |field: Field| values[field as usize].take();
        let status = status(&take(Field::Status).ok_or(Fault::Missing)?)?;
        let mut fate = take(Field::Code).map_or(Fate::Answered, |code| fate_by_code(&code));
        if fate == Fate::Answered {
            fate = envoy::fate(&take(Field::Flags).unwrap_or_default(), status);
        }
        let total = match take(Field::Total) {
            Some(text) => Some(latency(&text, self.unit(Field::Total))?),
            None => None,
        };
        let latency = match (take(Field::Latency), total) {
            // nginx: there was no upstream.
            (Some(text), Some(_)) if matches!(&*text, b"" | b"-") => {
                fate = Fate::Apart(Apart::Proxy);
                0
            }
            (Some(text), _) => latencies(&text, self.unit(Field::Latency))?,
            (None, Some(total)) => total,
            (None, None) if self.without_latency => 0,
            (None, None) => return Err(Fault::Missing),
        };
        let start = match take(Field::Time) {
            Some(start) => instant(&start, self.unit(Field::Time))?,
            None => instant(&take(Field::End).ok_or(Fault::Missing)?, self.unit(Field::End))?
                .checked_sub(total.unwrap_or(latency))
                .ok_or(Fault::TimeRange)?,
        };
        let mut text = |field| take(field).unwrap_or_default();
        let [target, host, path] = [Field::Target, Field::Host, Field::Path].map(&mut text);
        Ok(Entry { start, latency, status, fate, target, host, path: path_of(path) })
    }
}

/// What portcullis says of a call in its own codes.
fn fate_by_code(code: &[u8]) -> Fate {
    match code {
        b"E904" | b"E905" => Fate::Apart(Apart::Refused),
        b"E901" | b"E902" => Fate::NoAnswer,
        _ => Fate::Answered,
    }
}

fn path_of(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(tokens::path(text)),
        Cow::Owned(text) => Cow::Owned(tokens::path(&text).to_owned()),
    }
}

/// A status; 0 is none.
pub(super) fn status(text: &[u8]) -> Result<u16, Fault> {
    match text {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            Ok(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
        }
        b"" | b"-" | b"0" | b"000" | b"-1" => Ok(0),
        _ if text.starts_with(b"Non HTTP response code") => Ok(0), // JMeter's word for it
        _ => Err(Fault::Status),
    }
}

/// A latency within bounds.
pub(super) fn latency(text: &[u8], unit: Unit) -> Result<u64, Fault> {
    match numbers::length(text, unit) {
        Ok(nanos) if nanos <= LONGEST => Ok(nanos),
        Ok(_) | Err(Wrong::Range) => Err(Fault::LatencyRange),
        Err(Wrong::Shape) => Err(Fault::Latency),
    }
}

/// The latency of one upstream or the sum of several, as nginx lists them; `-` is one that wasn't reached.
pub(super) fn latencies(text: &[u8], unit: Unit) -> Result<u64, Fault> {
    if memchr::memchr2(b',', b' ', text).is_none() {
        return latency(text, unit);
    }
    let parts = text.split(|byte| b", :".contains(byte)).filter(|part| !matches!(*part, b"" | b"-"));
    let sum = parts.map(|part| latency(part, unit)).try_fold(0_u64, |sum, part| Ok(sum.saturating_add(part?)))?;
    if sum <= LONGEST { Ok(sum) } else { Err(Fault::LatencyRange) }
}

/// A time within bounds.
pub(super) fn instant(text: &[u8], unit: Unit) -> Result<u64, Fault> {
    numbers::instant(text, unit).map_err(time_fault)
}

pub(super) fn time_fault(wrong: Wrong) -> Fault {
    match wrong {
        Wrong::Shape => Fault::Time,
        Wrong::Range => Fault::TimeRange,
    }
}
