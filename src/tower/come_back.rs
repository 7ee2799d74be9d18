//! When a failed answer says to come back: `Retry-After` of HTTP, and what gRPC has for it.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderMap, header};

/// With padding or without: a gRPC peer must take both.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// What `Retry-After` says by now.
pub(super) fn http(headers: &HeaderMap) -> Option<Duration> {
    retry_after(headers, SystemTime::now())
}

/// What `Retry-After` says (RFC 9110, 10.2.3): seconds, or a date; zero if that has passed.
///
/// A date is read against the answer's own `Date`, so that the two machines' clocks needn't agree; without one, against `now`.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // More digits than fit are a long time, too.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = |value: &str| httpdate::parse_http_date(value).ok();
    let said_at = || headers.get(header::DATE)?.to_str().ok().and_then(date);
    Some(date(value)?.duration_since(said_at().unwrap_or(now)).unwrap_or_default())
}

/// What the headers or trailers of a gRPC answer say: `grpc-retry-pushback-ms` (gRFC A6), or the `google.rpc.RetryInfo` in
/// `grpc-status-details-bin`; the longer, if they say both.
pub(crate) fn grpc(headers: &HeaderMap) -> Option<Duration> {
    pushback(headers).max(retry_info(headers))
}

/// A negative number means never to retry this call, which says nothing about others.
fn pushback(headers: &HeaderMap) -> Option<Duration> {
    let millis: i32 = headers.get("grpc-retry-pushback-ms")?.to_str().ok()?.trim().parse().ok()?;
    u64::try_from(millis).ok().map(Duration::from_millis)
}

/// ```text
/// google.rpc.Status      { int32 code = 1; string message = 2; repeated google.protobuf.Any details = 3; }
/// google.protobuf.Any    { string type_url = 1; bytes value = 2; }
/// google.rpc.RetryInfo   { google.protobuf.Duration retry_delay = 1; }
/// google.protobuf.Duration { int64 seconds = 1; int32 nanos = 2; }
/// ```
fn retry_info(headers: &HeaderMap) -> Option<Duration> {
    let status = BASE64.decode(headers.get("grpc-status-details-bin")?.as_bytes()).ok()?;
    let details = Fields(&status).filter_map(|field| field.bytes(3));
    let mut infos = details.filter_map(|any| {
        let type_url = Fields(any).find_map(|field| field.bytes(1))?;
        type_url.ends_with(b"/google.rpc.RetryInfo").then_some(())?;
        Fields(any).find_map(|field| field.bytes(2))
    });
    let delay = Fields(infos.next()?).find_map(|field| field.bytes(1))?;
    // A number that is left out is 0.
    let number = |number| Fields(delay).find_map(|field| field.varint(number)).unwrap_or(0).cast_signed();
    let nanos = u32::try_from(number(2)).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    Some(Duration::new(u64::try_from(number(1)).ok()?, nanos))
}

/// The fields of a protobuf message in turn; they end where it can't be read.
struct Fields<'a>(&'a [u8]);

struct Field<'a> {
    number: u64,
    value: Value<'a>,
}

enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// Of a fixed width, which nothing here has.
    Fixed,
}

impl<'a> Field<'a> {
    fn bytes(&self, number: u64) -> Option<&'a [u8]> {
        match self.value {
            Value::Bytes(bytes) if self.number == number => Some(bytes),
            _ => None,
        }
    }

    fn varint(&self, number: u64) -> Option<u64> {
        match self.value {
            Value::Varint(value) if self.number == number => Some(value),
            _ => None,
        }
    }
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return None,
        };
        Some(Field { number: tag >> 3, value })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn said(value: &str) -> Option<Duration> {
        http(&headers(&[("retry-after", value), ("date", "Sun, 06 Nov 1994 08:49:37 GMT")]))
    }

    #[test]
    fn seconds_and_dates_are_read_and_nothing_else() {
        let secs = Duration::from_secs;
        assert_eq!([said("0"), said("120"), said(" 7 ")], [Some(secs(0)), Some(secs(120)), Some(secs(7))]);
        assert_eq!(said("99999999999999999999"), Some(secs(u64::MAX)));
        assert_eq!(said("Sun, 06 Nov 1994 08:51:37 GMT"), Some(secs(120)));
        // The older forms, which a recipient must take.
        assert_eq!(said("Sunday, 06-Nov-94 08:51:37 GMT"), Some(secs(120)));
        assert_eq!(said("Sun Nov  6 08:51:37 1994"), Some(secs(120)));
        for nonsense in ["", " ", "-1", "+1", "1.5", "soon", "1994-11-06T08:51:37Z"] {
            assert_eq!(said(nonsense), None, "{nonsense}");
        }
        assert_eq!(said("Sun, 06 Nov 1994 08:48:37 GMT"), Some(secs(0)));
        assert_eq!(http(&HeaderMap::new()), None);
    }

    #[test]
    fn a_date_without_the_answer_s_own_is_read_against_the_wall_clock() {
        let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3_600));
        for other in [("x-none", ""), ("date", "yesterday")] {
            let wait = http(&headers(&[("retry-after", &date), other])).unwrap();
            // The header has whole seconds, and this test no clock of its own.
            assert!(wait <= Duration::from_secs(3_600) && wait > Duration::from_secs(3_000), "{wait:?}");
        }
    }

    #[test]
    fn grpc_pushback_is_milliseconds() {
        let said = |value: &str| grpc(&headers(&[("grpc-retry-pushback-ms", value)]));
        assert_eq!([said("0"), said("1500")], [0, 1_500].map(|millis| Some(Duration::from_millis(millis))));
        assert_eq!([said("-1"), said("soon"), said("99999999999")], [None; 3]);
    }

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()][..], bytes].concat()
    }

    /// A status with these details, and something before each that must be skipped.
    fn status(details: &[(&str, &[u8])]) -> Vec<u8> {
        let any = |(name, value): &(&str, &[u8])| field(3, &[field(1, name.as_bytes()), field(2, value)].concat());
        let fixed = [&[4 << 3 | 1][..], &[9; 8], &[5 << 3 | 5], &[9; 4]].concat();
        [vec![1 << 3, 14], fixed, field(2, b"come back"), details.iter().flat_map(any).collect()].concat()
    }

    fn info(seconds: &[u8], nanos: &[u8]) -> Vec<u8> {
        field(1, &[&[1 << 3][..], seconds, &[2 << 3], nanos].concat())
    }

    const INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

    fn told(status: &[u8]) -> Option<Duration> {
        grpc(&headers(&[("grpc-status-details-bin", &BASE64.encode(status))]))
    }

    #[test]
    fn grpc_retry_info_is_found_among_the_details() {
        // 300 s and 500,000,000 ns.
        let delay = info(&[0xac, 0x02], &[0x80, 0xca, 0xb5, 0xee, 0x01]);
        let other = ("type.googleapis.com/google.rpc.ErrorInfo", &delay[..]);
        let expected = Some(Duration::from_millis(300_500));
        assert_eq!(told(&status(&[(INFO, &delay)])), expected);
        assert_eq!(told(&status(&[other, (INFO, &delay)])), expected);
        assert_eq!(told(&status(&[other])), None);
        assert_eq!(told(&status(&[(INFO, &field(1, &[1 << 3, 5]))])), Some(Duration::from_secs(5)));
        assert_eq!(told(&status(&[(INFO, &field(1, &[]))])), Some(Duration::ZERO));
        let minus = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(
            [told(&status(&[(INFO, &info(&minus, &[0]))])), told(&status(&[(INFO, &info(&[1], &minus))]))],
            [None; 2]
        );
        // Without padding, and with the longer word beside it.
        let value = BASE64.encode(status(&[(INFO, &delay)]));
        let bare = headers(&[("grpc-status-details-bin", value.trim_end_matches('='))]);
        assert_eq!(grpc(&bare), expected);
        let both = headers(&[("grpc-status-details-bin", &value), ("grpc-retry-pushback-ms", "300501")]);
        assert_eq!(grpc(&both), Some(Duration::from_millis(300_501)));
    }

    #[test]
    fn a_message_cut_anywhere_is_read_without_a_panic() {
        let whole = status(&[(INFO, &info(&[0xac, 0x02], &[0x05]))]);
        let read = (0..whole.len()).filter(|end| told(&whole[..*end]).is_some()).count();
        assert_eq!(read, 0, "the details are its last field");
        for wire in [3, 4, 6, 7] {
            assert_eq!(told(&[&[9 << 3 | wire], &whole[..]].concat()), None);
        }
        assert_eq!(told(&[0xff; 40]), None);
        assert_eq!(grpc(&headers(&[("grpc-status-details-bin", "not base64!")])), None);
    }
}
