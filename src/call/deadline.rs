//! Deadlines in headers: how much time the caller has left, in and out.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

/// How many milliseconds the caller still waits; zero or less has passed.
pub const DEADLINE_HEADER: HeaderName = HeaderName::from_static("x-request-deadline-ms");
/// The same in gRPC's own form: up to 8 digits and a unit.
pub const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The time that a caller still waits, by its headers: the shortest that any line of either says; zero if it has passed, none if no line can be
/// read.
///
/// ```
/// use std::time::Duration;
/// use portcullis::call::remaining;
///
/// let mut headers = http::HeaderMap::new();
/// assert_eq!(remaining(&headers), None);
/// headers.insert("grpc-timeout", "1S".parse()?);
/// headers.insert("x-request-deadline-ms", "250".parse()?);
/// assert_eq!(remaining(&headers), Some(Duration::from_millis(250)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn remaining(headers: &HeaderMap) -> Option<Duration> {
    let millis = headers.get_all(DEADLINE_HEADER).iter().filter_map(millis);
    millis.chain(headers.get_all(GRPC_TIMEOUT).iter().filter_map(grpc_timeout)).min()
}

/// Writes the time that is left, in whole milliseconds rounded down but at least 1: as `x-request-deadline-ms`, and as `grpc-timeout`
/// where the request is gRPC's.
pub fn write_remaining(headers: &mut HeaderMap, left: Duration) {
    // The most that eight digits hold is 27 hours.
    let millis = left.as_millis().clamp(1, 99_999_999);
    let Ok(millis) = u64::try_from(millis) else { return };
    headers.insert(DEADLINE_HEADER, millis.into());
    let is_grpc =
        headers.get(http::header::CONTENT_TYPE).is_some_and(|media| media.as_bytes().starts_with(b"application/grpc"));
    if (is_grpc || headers.contains_key(GRPC_TIMEOUT))
        && let Ok(value) = HeaderValue::try_from(format!("{millis}m"))
    {
        headers.insert(GRPC_TIMEOUT, value);
    }
}

fn millis(value: &HeaderValue) -> Option<Duration> {
    let millis: i128 = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_millis(u64::try_from(millis.max(0)).unwrap_or(u64::MAX)))
}

/// `TimeoutValue TimeoutUnit` of the gRPC protocol over HTTP/2: at most 8 digits, and one of H, M, S, m, u, n.
fn grpc_timeout(value: &HeaderValue) -> Option<Duration> {
    let (unit, digits) = value.as_bytes().split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(match unit {
        b'H' => Duration::from_secs(number * 3_600),
        b'M' => Duration::from_secs(number * 60),
        b'S' => Duration::from_secs(number),
        b'm' => Duration::from_millis(number),
        b'u' => Duration::from_micros(number),
        b'n' => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Option<Duration> {
        let mut headers = HeaderMap::new();
        headers.insert(HeaderName::try_from(name).unwrap(), value.parse().unwrap());
        remaining(&headers)
    }

    #[test]
    fn deadlines_are_read_in_both_forms() {
        let ms = Duration::from_millis;
        for (value, expected) in
            [("250", Some(ms(250))), ("0", Some(ms(0))), ("-5", Some(ms(0))), ("soon", None), ("1.5", None)]
        {
            assert_eq!(read("x-request-deadline-ms", value), expected, "{value}");
        }
        let huge = read("x-request-deadline-ms", "99999999999999999999999").unwrap();
        assert!(huge > Duration::from_hours(24));
        for (value, expected) in [
            ("2H", Some(Duration::from_hours(2))),
            ("3M", Some(Duration::from_mins(3))),
            ("4S", Some(Duration::from_secs(4))),
            ("5m", Some(ms(5))),
            ("6u", Some(Duration::from_micros(6))),
            ("7n", Some(Duration::from_nanos(7))),
            ("0S", Some(ms(0))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3_600))),
            ("123456789m", None),
            ("m", None),
            ("", None),
            ("5x", None),
            ("-1S", None),
            ("+1S", None),
        ] {
            assert_eq!(read("grpc-timeout", value), expected, "{value}");
        }
    }

    #[test]
    fn of_all_lines_the_shortest_that_can_be_read_counts() {
        let mut headers = HeaderMap::new();
        for (name, value, expected) in [
            (DEADLINE_HEADER, "soon", None),
            (DEADLINE_HEADER, "900", Some(900)),
            (DEADLINE_HEADER, "700", Some(700)),
            (DEADLINE_HEADER, "800", Some(700)),
            (GRPC_TIMEOUT, "5x", Some(700)),
            (GRPC_TIMEOUT, "600m", Some(600)),
            (GRPC_TIMEOUT, "1S", Some(600)),
        ] {
            headers.append(name, HeaderValue::from_static(value));
            assert_eq!(remaining(&headers), expected.map(Duration::from_millis), "{value}");
        }
    }

    #[test]
    fn what_is_left_is_written_in_the_requests_own_form() {
        let mut headers = HeaderMap::new();
        write_remaining(&mut headers, Duration::from_micros(1_999));
        assert_eq!((headers[DEADLINE_HEADER].as_bytes(), headers.get(GRPC_TIMEOUT)), (&b"1"[..], None));
        headers.insert("content-type", HeaderValue::from_static("application/grpc+proto"));
        write_remaining(&mut headers, Duration::from_nanos(1));
        assert_eq!((headers[DEADLINE_HEADER].as_bytes(), headers[GRPC_TIMEOUT].as_bytes()), (&b"1"[..], &b"1m"[..]));
        write_remaining(&mut headers, Duration::MAX);
        assert_eq!(headers[GRPC_TIMEOUT], "99999999m");
    }
}
