//! Envoy's default text format, with or without what Istio adds, and its response flags.

use std::borrow::Cow;

use super::columns;
use super::fault::Fault;
use super::numbers::Unit;
use super::parse::{Apart, Entry, Fate};
use super::tokens::{self, Token, Tokens};

/// `[%START_TIME%] "%REQ(:METHOD)% ..." %RESPONSE_CODE% %RESPONSE_FLAGS% ... %BYTES_RECEIVED% %BYTES_SENT% %DURATION% ...`
pub(super) fn entry(record: &[u8]) -> Result<Entry<'_>, Fault> {
    let mut tokens = Tokens(record);
    let Some(Token::Bracketed(start)) = tokens.next() else { return Err(Fault::Shape) };
    let start = columns::instant(start, Unit::Seconds)?;
    let Some(Token::Quoted(request)) = tokens.next() else { return Err(Fault::Shape) };
    let mut text = || tokens.next().map(Token::text).ok_or(Fault::Shape);
    let status = columns::status(text()?)?;
    let fate = fate(text()?, status);
    // Istio puts three texts before the bytes.
    let mut received = text()?;
    while !received.iter().all(u8::is_ascii_digit) {
        received = text()?;
    }
    let _sent = text()?;
    let latency = columns::latency(text()?, Unit::Millis)?;
    let mut rest = tokens.skip(4);
    let host = rest.next().map(Token::text).unwrap_or_default();
    let target = match rest.nth(1) {
        Some(Token::Bare(cluster)) if cluster != b"-" => cluster,
        _ => host,
    };
    let fate = if request == b"- - -" { Fate::Apart(Apart::Proxy) } else { fate };
    let [target, host, path] = [target, host, tokens::path(request)].map(Cow::Borrowed);
    Ok(Entry { start, latency, status, fate, target, host, path })
}

/// What the flags say became of a request.
///
/// The flags are in Envoy's documentation, under access logging, `%RESPONSE_FLAGS%`. What Envoy answers itself, by its limits, filters or for want
/// of a route, was no call; where several flags stand, that counts first and then what the target did.
pub(super) fn fate(flags: &[u8], status: u16) -> Fate {
    let (mut unanswered, mut failed, mut abandoned) = (status == 0, false, false);
    for flag in flags.split(|&byte| byte == b',') {
        match flag {
            b"UO" | b"NR" | b"NC" | b"FI" | b"RL" | b"UAEX" | b"RLSE" | b"IH" | b"OM" | b"DO" | b"UDO" | b"RFCF"
            | b"NFCF" => {
                return Fate::Apart(Apart::Proxy);
            }
            b"UF" | b"UH" | b"UT" | b"UC" | b"UR" | b"LR" | b"LH" | b"URX" | b"DT" | b"SI" | b"UMSDR" | b"DF" => {
                (unanswered, failed) = (true, true);
            }
            b"UPE" => failed = true,
            b"DC" | b"DPE" | b"DR" => abandoned = true,
            _ => {}
        }
    }
    match (unanswered, failed, abandoned) {
        (true, true, _) => Fate::NoAnswer,
        (false, true, _) => Fate::Failed,
        (_, false, true) => Fate::Abandoned,
        (true, false, false) => Fate::NoAnswer,
        (false, false, false) => Fate::Answered,
    }
}
