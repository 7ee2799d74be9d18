//! Times and lengths of time as logs write them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::Offset;

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

const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

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
    if let Some(time) = zoned(text) {
        return since_1970(time);
    }
    let parsed = strtime::parse("%d/%b/%Y:%H:%M:%S %z", utf8(text)?).and_then(|parsed| parsed.to_timestamp());
    since_1970(parsed.map_err(|_| Wrong::Shape)?)
}

/// `06/Feb/2009:12:14:14.655`, HAProxy's: it has no zone and is taken as UTC.
pub(super) fn zoneless(text: &[u8]) -> Result<u64, Wrong> {
    let parsed = strtime::parse("%d/%b/%Y:%H:%M:%S%.f", utf8(text)?).and_then(|parsed| parsed.to_datetime());
    let date: DateTime = parsed.map_err(|_| Wrong::Shape)?;
    since_1970(Offset::UTC.to_timestamp(date).map_err(|_| Wrong::Range)?)
}

/// What [`common`] reads, as it nearly always stands: a date is on every line, and the format's interpreter is slow.
fn zoned(text: &[u8]) -> Option<Timestamp> {
    let &[d, e, b'/', ref month @ .., b'/', y, z, v, w, b':', h, i, b':', m, n, b':', s, t, b' ', sign, a, b, c, f] =
        text
    else {
        return None;
    };
    let month = (1..).zip(MONTHS).find(|(_, name)| *name == month)?.0;
    let (year, day) = (i16::from(two([y, z])?) * 100 + i16::from(two([v, w])?), two([d, e])?);
    let date = DateTime::new(year, month, day, two([h, i])?, two([m, n])?, two([s, t])?, 0).ok()?;
    let minutes = two([c, f]).filter(|minutes| *minutes < 60)?;
    let offset = i32::from(two([a, b])?) * 3600 + i32::from(minutes) * 60;
    let offset = match sign {
        b'+' => offset,
        b'-' => -offset,
        _ => return None,
    };
    Offset::from_seconds(offset).ok()?.to_timestamp(date).ok()
}

/// Two digits.
fn two(digits: [u8; 2]) -> Option<i8> {
    let [tens, ones] = digits.map(|digit| char::from(digit).to_digit(10));
    i8::try_from(tens? * 10 + ones?).ok()
}

fn since_1970(time: Timestamp) -> Result<u64, Wrong> {
    u64::try_from(time.as_nanosecond()).ok().filter(|&nanos| nanos <= LAST).ok_or(Wrong::Range)
}

fn utf8(text: &[u8]) -> Result<&str, Wrong> {
    std::str::from_utf8(text).map_err(|_| Wrong::Shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds since 1970.
    fn seconds(text: &str) -> Result<u64, Wrong> {
        instant(text.as_bytes(), Unit::Seconds).map(|nanos| nanos / 1_000_000_000)
    }

    #[test]
    fn a_date_is_the_same_by_hand_and_by_the_interpreter() {
        for (day, month) in (1..=31).flat_map(|day| MONTHS.map(|month| (day, std::str::from_utf8(month).unwrap()))) {
            for zone in ["+0000", "-0700", "+0530", "-1145"] {
                let date = format!("{day:02}/{month}/2024:13:55:36 {zone}");
                let read = strtime::parse("%d/%b/%Y:%H:%M:%S %z", &date).and_then(|parsed| parsed.to_timestamp());
                assert_eq!(zoned(date.as_bytes()), read.ok(), "{date}");
            }
        }
    }

    #[test]
    fn dates_that_are_written_otherwise_are_read_as_well() {
        let expected = seconds("10/Oct/2000:13:55:36 -0700");
        assert_eq!(expected, Ok(971_211_336));
        for other in ["10/oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"] {
            assert_eq!(seconds(other), expected, "{other}");
        }
        for wrong in ["31/Feb/2000:13:55:36 -0700", "10/Oct/2000:24:55:36 -0700", "10/Oct/2000:13:55:36"] {
            assert_eq!(seconds(wrong), Err(Wrong::Shape), "{wrong}");
        }
        assert_eq!(seconds("31/Dec/1969:23:59:59 +0000"), Err(Wrong::Range));
    }
}
