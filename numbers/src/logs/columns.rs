//! Named fields as calls: what CSV and JSON have in common.

use std::borrow::Cow;

use super::fault::Fault;
use super::numbers::{self, Unit, Wrong};
use super::parse::{Apart, Entry, Fate};

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

/// Where nothing longer is believed: 30 days, in nanoseconds.
const LONGEST: u64 = 30 * 86_400 * 1_000_000_000;

/// The values of a record's fields, by [`Field`]; none where there is no such column.
pub(super) type Values<'a> = [Option<Cow<'a, [u8]>>; FIELDS];

/// The name and unit of the column for each field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Columns([Option<(String, Option<Unit>)>; FIELDS]);

impl Columns {
    pub(super) fn set(&mut self, field: Field, name: &str, unit: Option<Unit>) {
        self.0[field as usize] = Some((name.to_owned(), unit));
    }

    pub(super) fn has(&self, field: Field) -> bool {
        self.0[field as usize].is_some()
    }

    /// The names of the columns, with the index of their field.
    pub(super) fn names(&self) -> impl Iterator<Item = (usize, &str)> {
        self.0.iter().enumerate().filter_map(|(field, column)| Some((field, column.as_ref()?.0.as_str())))
    }

    fn unit(&self, field: Field, otherwise: Unit) -> Unit {
        self.0[field as usize].as_ref().and_then(|(_, unit)| *unit).unwrap_or(otherwise)
    }

    /// What the values of a record say.
    pub(super) fn entry<'a>(&self, values: &mut Values<'a>) -> Result<Entry<'a>, Fault> {
        let mut take = |field: Field| values[field as usize].take();
        let mut fate = Fate::Answered;
        if let Some(code) = take(Field::Code) {
            fate = fate_by_code(&code);
        }
        let status = status(&take(Field::Status).ok_or(Fault::Missing)?)?;
        let latency_unit = self.unit(Field::Latency, Unit::Millis);
        let latency = latency(&take(Field::Latency).ok_or(Fault::Missing)?, latency_unit)?;
        let time = take(Field::Time).ok_or(Fault::Missing)?;
        let start = instant(&time, self.unit(Field::Time, Unit::Seconds))?;
        if status == 0 && fate == Fate::Answered {
            fate = Fate::NoAnswer;
        }
        let mut text = |field| take(field).unwrap_or_default();
        Ok(Entry {
            start,
            latency,
            status,
            fate,
            target: text(Field::Target),
            host: text(Field::Host),
            path: text(Field::Path),
        })
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

/// A status; 0 is none.
pub(super) fn status(text: &[u8]) -> Result<u16, Fault> {
    match text {
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            Ok(u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
        }
        b"" | b"-" | b"0" | b"000" | b"-1" => Ok(0),
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
