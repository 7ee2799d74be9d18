//! `google.rpc.Status` with a `google.rpc.RetryInfo` in it, as `grpc-status-details-bin` carries it.
//!
//! Three small messages of fixed shape, written by hand: whoever only refuses needs no protobuf.
//!
//! ```text
//! Status    { 1: code (int32), 2: message (string), 3: details (Any) }
//! Any       { 1: type_url (string), 2: value (bytes) }
//! RetryInfo { 1: retry_delay (Duration) }
//! Duration  { 1: seconds (int64), 2: nanos (int32) }
//! ```

use std::time::Duration;

use http::HeaderValue;

const TYPE: &str = "type.googleapis.com/google.rpc.RetryInfo";
/// The most that `google.protobuf.Duration` may hold: 10,000 years.
const MOST_SECONDS: u64 = 315_576_000_000;

/// The header's value; none only if it can't be one.
pub(crate) fn details(code: u8, message: &str, retry_after: Duration) -> Option<HeaderValue> {
    let mut delay = Vec::new();
    number(&mut delay, 1, retry_after.as_secs().min(MOST_SECONDS));
    number(&mut delay, 2, retry_after.subsec_nanos().into());
    let mut info = Vec::new();
    bytes(&mut info, 1, &delay);
    let mut any = Vec::new();
    bytes(&mut any, 1, TYPE.as_bytes());
    bytes(&mut any, 2, &info);
    let mut status = Vec::new();
    number(&mut status, 1, code.into());
    bytes(&mut status, 2, message.as_bytes());
    bytes(&mut status, 3, &any);
    HeaderValue::try_from(base64(&status)).ok()
}

/// A field that is a number: wire type 0. Zero is left out, as proto3 does.
fn number(out: &mut Vec<u8>, field: u8, value: u64) {
    if value > 0 {
        out.push(field << 3);
        varint(out, value);
    }
}

/// A field with a length: wire type 2.
fn bytes(out: &mut Vec<u8>, field: u8, value: &[u8]) {
    out.push((field << 3) | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The standard alphabet without padding, as gRPC asks for binary headers.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |index: usize| u32::from(three.get(index).copied().unwrap_or(0));
        let bits = (at(0) << 16) | (at(1) << 8) | at(2);
        for place in 0..=three.len() {
            let index = (bits >> (18 - 6 * place)) & 63;
            text.push(char::from(ALPHABET[index as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_without_padding() {
        // RFC 4648, 10.
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg"),
            ("fo", "Zm8"),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg"),
            ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn numbers_are_varints_and_zero_is_left_out() {
        let encoded = |value| {
            let mut out = Vec::new();
            number(&mut out, 1, value);
            out
        };
        assert_eq!(encoded(0), []);
        assert_eq!(encoded(127), [8, 127]);
        assert_eq!(encoded(300), [8, 0xac, 2]);
        assert_eq!(encoded(u64::MAX).len(), 11);
    }
}
