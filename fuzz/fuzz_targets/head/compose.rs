//! Requests composed of pieces that fit and pieces that don't.

use arbitrary::{Result, Unstructured};

use super::PAUSE;
use super::upstream::OWN_HOST;

const METHODS: &[&str] =
    &["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get", "M~!", "", "G T", "PRI"];
const TARGETS: &[&str] = &[
    "/",
    "/core/",
    "/core/x?y=%20z",
    "/core/early/",
    "/core/../x",
    "//core/",
    "/%63ore/",
    "/?",
    "*",
    "",
    "x",
    "a:80",
    "http://named.test/core/",
    "http://other/core/early/x",
    "http://named.test",
    "http://named.test?x",
    "https://u:p@named.test:8/",
    "/a#b",
    "/a b",
    "/\t",
    "/\u{e9}",
    "/\"<>\\^`{|}",
    "/x HTTP/1.1\r\nhost: a\r\n\r\n",
];
const VERSIONS: &[&str] = &["HTTP/1.1", "HTTP/1.0", "HTTP/1.2", "HTTP/2.0", "http/1.1", "", "HTTP/1.1 "];
const HOSTS: &[&str] = &["a", OWN_HOST, "NAMED.test:80", "u@named.test", "[::1]:80", "a b", "a, named.test", "", "a/b"];
const NAMES: &[&str] = &[
    "Host",
    "Content-Length",
    "Transfer-Encoding",
    "Connection",
    "Keep-Alive",
    "Proxy-Connection",
    "Proxy-Authorization",
    "TE",
    "Trailer",
    "Upgrade",
    "HTTP2-Settings",
    "Expect",
    "Via",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "Cookie",
    "X-Own",
    "x own",
    "x\u{0}",
    "",
];
const COLONS: &[&str] = &[": ", ":", " : ", ":\t ", "\t:", ":\r\n ", "", ":\u{b}"];
const VALUES: &[&str] = &[
    "chunked",
    "Chunked ",
    "gzip, chunked",
    "chunked, chunked",
    "chunked;x",
    "identity",
    "xchunked",
    ",chunked",
    "0",
    "5",
    "+5",
    "05",
    "5, 5",
    "5,6",
    "0x5",
    "-1",
    "18446744073709551615",
    "99999999999999999999",
    "close",
    "keep-alive",
    "close, X-Own, Cookie",
    "Content-Length",
    "Transfer-Encoding, Host",
    "X-Forwarded-For, Via",
    "upgrade, HTTP2-Settings",
    "h2c",
    "websocket",
    "100-continue",
    "trailers",
    "X-Own, Via",
    "192.0.2.1",
    "a, b",
    "",
    "\u{e9}",
    "\u{7f}",
    "a\rb",
    "a\nb",
    "a\u{0}b",
];
const ENDS: &[&str] = &["\r\n", "\n", "\r", "\r\n ", "\n\t", "\r\r\n"];
const BODIES: &[&str] = &["", "hello", "0\r\n\r\n", "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n", "\r\n"];
const CHUNKS: &[&str] =
    &["5\r\nhello\r\n", "5;x=y\r\nhello\r\n", "05\r\nhello\r\n", "5\nhello\n", "6\r\nhello\r\n", "0x5\r\nhello\r\n"];
const LASTS: &[&str] = &[
    "0\r\n\r\n",
    "000\r\n\r\n",
    "0\r\nX-Own: 1\r\n\r\n",
    "0\r\nVia: x\r\nX-Forwarded-For: 1\r\nConnection: close\r\n\r\n",
    "0\n\n",
    "0\r\n",
];

/// Some requests on one connection, for as long as there are bytes to choose by.
pub fn compose(bytes: &[u8]) -> Vec<u8> {
    let mut source = Unstructured::new(bytes);
    let mut composed = Vec::new();
    while !source.is_empty() && request(&mut source, &mut composed).is_ok() {}
    composed
}

fn request(source: &mut Unstructured<'_>, to: &mut Vec<u8>) -> Result<()> {
    for pieces in [METHODS, &[" "], TARGETS, &[" "], VERSIONS, ENDS] {
        put(pick(source, pieces)?, source, to)?;
    }
    // Mostly one.
    for _ in 0..*source.choose(&[1, 1, 1, 1, 1, 1, 0, 2])? {
        field("Host", pick(source, HOSTS)?, source, to)?;
    }
    for _ in 0..source.int_in_range(0..=5)? {
        field(source.choose(NAMES)?, source.choose(VALUES)?, source, to)?;
    }
    match source.int_in_range(0..=3)? {
        0 => put(pick(source, ENDS)?, source, to),
        1 => {
            let body = *source.choose(BODIES)?;
            field("Content-Length", &body.len().to_string(), source, to)?;
            put(pick(source, ENDS)?, source, to)?;
            put(body, source, to)
        }
        2 => {
            field("Transfer-Encoding", pick(source, VALUES)?, source, to)?;
            put(pick(source, ENDS)?, source, to)?;
            for _ in 0..source.int_in_range(0..=2)? {
                put(pick(source, CHUNKS)?, source, to)?;
            }
            put(pick(source, LASTS)?, source, to)
        }
        _ => {
            put(pick(source, ENDS)?, source, to)?;
            put(source.choose(BODIES)?, source, to)
        }
    }
}

fn field(name: &str, value: &str, source: &mut Unstructured<'_>, to: &mut Vec<u8>) -> Result<()> {
    put(name, source, to)?;
    put(pick(source, COLONS)?, source, to)?;
    put(value, source, to)?;
    put(pick(source, ENDS)?, source, to)
}

/// Adds a piece, and now and then a pause.
fn put(piece: &str, source: &mut Unstructured<'_>, to: &mut Vec<u8>) -> Result<()> {
    to.extend_from_slice(piece.as_bytes());
    if !source.ratio(49, 50)? {
        to.push(PAUSE);
    }
    Ok(())
}

/// Mostly the first one, which is as it should be.
fn pick<'a>(source: &mut Unstructured<'_>, from: &[&'a str]) -> Result<&'a str> {
    if source.ratio(3, 4)? { Ok(from[0]) } else { source.choose(from).copied() }
}
