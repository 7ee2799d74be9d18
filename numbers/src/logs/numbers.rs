//! Times and lengths of time as logs write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

/// What a bare number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl Unit {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "s" => Self::Seconds,
            "ms" => Self::Millis,
            "us" => Self::Micros,
            "ns" => Self::Nanos,
            _ => return None,
        })
    }

    fn nanos(self) -> u64 {
        match self {
            Self::Seconds => 1_000_000_000,
            Self::Millis => 1_000_000,
            Self::Micros => 1_000,
            Self::Nanos => 1,
        }
    }
}

/// Why a text is no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    Shape,
    /// Negative, or more than can be.
    Range,
}

/// The end of time: 2262-04-11, where nanoseconds since 1970 leave 63 bits.
const LAST: u64 = i64::MAX as u64;

/// A decimal number of units in nanoseconds, cut to whole ones.
pub(super) fn length(text: &[u8], unit: Unit) -> Result<u64, Wrong> {
    let unit = unit.nanos();
    let mut value: u64 = 0;
    let mut place = 0;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'0'..=b'9' if place == 0 => {
                value =
                    value.checked_mul(10).and_then(|v| v.checked_add(u64::from(byte - b'0'))).ok_or(Wrong::Range)?;
            }
            b'0'..=b'9' => {
                value += u64::from(byte - b'0') * place / 10;
                place = (place / 10).max(1);
            }
            b'.' if place == 0 && text.len() > 1 => {
                value = value.checked_mul(unit).ok_or(Wrong::Range)?;
                place = unit.max(1);
            }
            b'+' if at == 0 && text.len() > 1 => {}
            _ => return floating(text, unit),
        }
    }
    if text.is_empty() {
        return Err(Wrong::Shape);
    }
    let value = if place == 0 { value.checked_mul(unit).ok_or(Wrong::Range)? } else { value };
    if value > LAST { Err(Wrong::Range) } else { Ok(value) }
}

/// What is rare: exponents, signs, and what is no number.
#[cold]
fn floating(text: &[u8], unit: u64) -> Result<u64, Wrong> {
    let number: f64 = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(Wrong::Shape)?;
    #[allow(clippy::cast_precision_loss, reason = "a bound, and a power of ten")]
    let (nanos, last) = (number * unit as f64, LAST as f64);
    match nanos {
        _ if number.is_nan() => Err(Wrong::Shape),
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the bounds just checked")]
        0.0.. if nanos < last => Ok(nanos as u64),
        _ => Err(Wrong::Range),
    }
}

/// A point in time in nanoseconds since 1970: a number of units, RFC 3339, or the date of nginx and Apache.
pub(super) fn instant(text: &[u8], unit: Unit) -> Result<u64, Wrong> {
    match text {
        [_, _, _, _, b'-', ..] => since_1970(utf8(text)?.parse().map_err(|_| Wrong::Shape)?),
        [_, _, b'/', ..] => common(text),
        _ => length(text, unit),
    }
}

/// `10/Oct/2000:13:55:36 -0700`.
fn common(text: &[u8]) -> Result<u64, Wrong> {
    let parsed = strtime::parse("%d/%b/%Y:%H:%M:%S %z", utf8(text)?).and_then(|parsed| parsed.to_timestamp());
    since_1970(parsed.map_err(|_| Wrong::Shape)?)
}

/// `06/Feb/2009:12:14:14.655`, HAProxy's: it has no zone and is taken as UTC.
pub(super) fn zoneless(text: &[u8]) -> Result<u64, Wrong> {
    let parsed = strtime::parse("%d/%b/%Y:%H:%M:%S%.f", utf8(text)?).and_then(|parsed| parsed.to_datetime());
    let date: DateTime = parsed.map_err(|_| Wrong::Shape)?;
    since_1970(TimeZone::UTC.to_timestamp(date).map_err(|_| Wrong::Range)?)
}

fn since_1970(time: Timestamp) -> Result<u64, Wrong> {
    u64::try_from(time.as_nanosecond()).ok().filter(|&nanos| nanos <= LAST).ok_or(Wrong::Range)
}

fn utf8(text: &[u8]) -> Result<&str, Wrong> {
    std::str::from_utf8(text).map_err(|_| Wrong::Shape)
}
