//! nginx's text formats: combined with times behind it, as people append them, and that of ingress-nginx.

use std::borrow::Cow;

use super::columns;
use super::fault::Fault;
use super::numbers::{self, Unit};
use super::parse::{Apart, Entry, Fate};
use super::tokens::{self, Token, Tokens};

/// The times behind the status, and whom they are of.
#[derive(Debug, Default)]
struct Tail<'a> {
    /// `$msec`, the end to the millisecond.
    end: Option<&'a [u8]>,
    request_time: Option<&'a [u8]>,
    upstream_time: Option<&'a [u8]>,
    /// `-` where an upstream would be.
    own: bool,
    upstream: &'a [u8],
    host: &'a [u8],
}

/// `$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent ...`
pub(super) fn entry(record: &[u8], without_latency: bool) -> Result<Entry<'_>, Fault> {
    let (end, rest) = time(record)?;
    let mut tokens = Tokens(rest);
    let Some(Token::Quoted(request)) = tokens.next() else { return Err(Fault::Shape) };
    let status = columns::status(tokens.next().ok_or(Fault::Shape)?.text())?;
    let tail = Tail::read(tokens);
    let end = tail.end.map_or(Ok(end), |end| columns::instant(end, Unit::Seconds))?;
    let total = match tail.request_time {
        Some(time) => columns::latency(time, Unit::Seconds)?,
        None if without_latency => 0,
        None => return Err(Fault::Missing),
    };
    let latency = tail.upstream_time.map_or(Ok(total), |times| columns::latencies(times, Unit::Seconds))?;
    let fate = match tail {
        Tail { own: true, upstream_time: None, .. } => Fate::Apart(Apart::Proxy),
        _ if status == 0 => Fate::NoAnswer,
        _ => Fate::Answered,
    };
    let start = end.checked_sub(total).ok_or(Fault::TimeRange)?;
    let [target, host, path] = [tail.upstream, tail.host, tokens::path(request)].map(Cow::Borrowed);
    Ok(Entry { start, latency, status, fate, target, host, path })
}

/// The date in the line's first brackets that hold one, and what follows them.
pub(super) fn time(record: &[u8]) -> Result<(u64, &[u8]), Fault> {
    let mut fault = Fault::Shape;
    // A user's name may have brackets in it, a request comes behind the date.
    for open in memchr::memchr_iter(b'[', record).take(3) {
        let inner = &record[open + 1..];
        let Some(close) = memchr::memchr(b']', inner) else { break };
        match numbers::instant(&inner[..close], Unit::Seconds) {
            Ok(time) => return Ok((time, &inner[close + 1..])),
            Err(wrong) if fault == Fault::Shape => fault = columns::time_fault(wrong),
            Err(_) => {}
        }
    }
    Err(fault)
}

impl<'a> Tail<'a> {
    fn read(tokens: Tokens<'a>) -> Self {
        let mut tail = Self::default();
        for token in tokens {
            match token {
                Token::Named(b"rt" | b"request_time", time) => tail.request_time = Some(time),
                Token::Named(b"urt" | b"upstream_response_time", b"-" | b"") => tail.own = true,
                Token::Named(b"urt" | b"upstream_response_time", times) => tail.upstream_time = Some(times),
                Token::Named(b"host", host) => tail.host = host,
                Token::Bracketed(upstream) if tail.upstream.is_empty() => tail.upstream = upstream,
                Token::Bare(b"-") if tail.request_time.is_some() => tail.own = true,
                Token::Bare(text) | Token::Quoted(text) if is_time(text) => tail.take(text),
                _ => {}
            }
        }
        tail
    }

    /// Takes a time by its place: the request's comes before the upstream's.
    fn take(&mut self, time: &'a [u8]) {
        // Nine digits before the point are a date.
        if time.len() >= 13 && time[..9].iter().all(u8::is_ascii_digit) {
            self.end = Some(time);
        } else if self.request_time.is_none() {
            self.request_time = Some(time);
        } else if self.upstream_time.is_none() {
            self.upstream_time = Some(time);
        }
    }
}

/// Whether this is a time as nginx writes it, with three digits behind the point, or a list of them.
fn is_time(text: &[u8]) -> bool {
    let first = text.split(|&byte| byte == b',' || byte == b' ').next().unwrap_or_default();
    match first.iter().position(|&byte| byte == b'.') {
        Some(point) if point > 0 && point + 4 == first.len() => {
            first.iter().enumerate().all(|(at, byte)| at == point || byte.is_ascii_digit())
        }
        _ => false,
    }
}
