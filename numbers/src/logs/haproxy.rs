//! HAProxy's HTTP log (`option httplog`), with whatever syslog puts before it.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memrchr};

use super::columns;
use super::fault::Fault;
use super::numbers;
use super::parse::{Apart, Entry, Fate};
use super::tokens;

/// `... [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc ... "%r"`
pub(super) fn entry(record: &[u8]) -> Result<Entry<'_>, Fault> {
    let (accepted, rest) = date(record)?;
    let mut words = rest.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let mut word = || words.next().ok_or(Fault::Shape);
    let _frontend = word()?;
    let place = word()?;
    let timers = timers(word()?)?;
    let status = columns::status(word()?)?;
    let _bytes = word()?;
    let (_sent, _kept) = (word()?, word()?);
    let termination = word()?;
    let slash = memchr(b'/', place).ok_or(Fault::Shape)?;
    let fate = fate(termination, &place[slash + 1..], status).ok_or(Fault::Shape)?;
    // The call begins when the request is there, and so its time is what is left of all of it.
    let received = timers[0].max(0);
    let total = timers[4];
    if total < received {
        return Err(Fault::LatencyRange);
    }
    let millis = |millis: i64| u64::try_from(millis).ok().and_then(|millis| millis.checked_mul(1_000_000));
    let latency = millis(total - received).filter(|&time| time <= columns::LONGEST).ok_or(Fault::LatencyRange)?;
    let start = millis(received).and_then(|received| accepted.checked_add(received)).ok_or(Fault::TimeRange)?;
    let [target, path] = [&place[..slash], tokens::path(request(rest))].map(Cow::Borrowed);
    Ok(Entry { start, latency, status, fate, target, host: Cow::Borrowed(b""), path })
}

/// The date in the first brackets that hold one, and what follows them.
fn date(record: &[u8]) -> Result<(u64, &[u8]), Fault> {
    for open in memchr_iter(b'[', record) {
        let inner = &record[open + 1..];
        let Some(close) = memchr(b']', inner) else { break };
        if inner.get(2) == Some(&b'/') {
            let date = numbers::zoneless(&inner[..close]).map_err(columns::time_fault)?;
            return Ok((date, &inner[close + 1..]));
        }
    }
    Err(Fault::Shape)
}

/// Five timers in milliseconds, -1 for what didn't come to pass; a plus says that the log was written before the end.
fn timers(text: &[u8]) -> Result<[i64; 5], Fault> {
    let mut parts = text.split(|&byte| byte == b'/');
    let mut timers = [0; 5];
    for timer in &mut timers {
        let text = std::str::from_utf8(parts.next().ok_or(Fault::Shape)?).map_err(|_| Fault::Shape)?;
        *timer = text.parse().map_err(|_| Fault::Shape)?;
    }
    if parts.next().is_some() { Err(Fault::Shape) } else { Ok(timers) }
}

/// The request, in the line's last quotes.
fn request(rest: &[u8]) -> &[u8] {
    let Some(close) = memrchr(b'"', rest) else { return b"" };
    memrchr(b'"', &rest[..close]).map_or(b"", |open| &rest[open + 1..close])
}

/// What the first two letters of the termination state say: who ended it, and in which phase.
///
/// They are in section 8.5 of HAProxy's configuration manual.
fn fate(termination: &[u8], server: &[u8], status: u16) -> Option<Fate> {
    let [by, phase, ..] = termination else { return None };
    Some(match (by, phase) {
        // The request never came whole, or never left the queue.
        (b'C' | b'c' | b'S' | b's', b'R' | b'Q') => Fate::Apart(Apart::Proxy),
        (b'C' | b'c' | b'K' | b'U', _) => Fate::Abandoned,
        (b'S' | b's', b'C' | b'H') => Fate::NoAnswer,
        (b'S' | b's' | b'D', _) | (b'P', b'H' | b'D') => Fate::Failed,
        (b'P' | b'L' | b'R' | b'I', _) => Fate::Apart(Apart::Proxy),
        (b'-', _) if server == b"<NOSRV>" => Fate::Apart(Apart::Proxy),
        (b'-', _) if status == 0 => Fate::NoAnswer,
        (b'-', _) => Fate::Answered,
        _ => return None,
    })
}
