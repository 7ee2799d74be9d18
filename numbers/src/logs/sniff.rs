//! Finds out what a log is by its first lines.

use super::columns::{Columns, Field};
use super::csv::{self, Csv};
use super::input::{Format, Input};
use super::json::{self, Json};
use super::numbers::Unit;
use super::parse::Parser;
use super::record::{End, Records};

/// What a log turned out to be.
#[derive(Debug)]
pub(super) struct Sniffed {
    pub(super) parser: Parser,
    /// How many bytes of the head are no records: a byte order mark, and the names of columns.
    pub(super) skip: usize,
    /// How many lines these are.
    pub(super) lines: u64,
}

/// What the log with this head is, or what is wrong with it.
pub(super) fn sniff(head: &[u8], input: &Input) -> Result<Sniffed, String> {
    let bom = if head.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let text = &head[bom..];
    let first = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty()).unwrap_or(b"");
    let json = match input.format {
        Format::Auto => first.first() == Some(&b'{'),
        Format::Csv => false,
        Format::Json => true,
    };
    if json { sniff_json(text, bom) } else { sniff_csv(text, bom) }
}

fn sniff_json(text: &[u8], skip: usize) -> Result<Sniffed, String> {
    let names = text.split(|&byte| byte == b'\n').find_map(json::names).ok_or("no line of it is a JSON object")?;
    let parser = Parser::Json(Json::new(columns(&names)?));
    Ok(Sniffed { parser, skip, lines: 0 })
}

fn sniff_csv(text: &[u8], bom: usize) -> Result<Sniffed, String> {
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or(b"");
    let count = |between: u8| memchr::memchr_iter(between, line).count();
    let between = [b',', b';', b'\t'].into_iter().rev().max_by_key(|&between| count(between)).unwrap_or(b',');
    let end = match Records::Quoted(between).end(text) {
        End::Newline(newline) => newline,
        End::Line => text.len(),
        End::Quote => return Err("a quote in its header is never closed".to_owned()),
    };
    let header = text[..end].strip_suffix(b"\r").unwrap_or(&text[..end]);
    let header = csv::fields(header, between).map_err(|fault| format!("its header: {fault}"))?;
    let lines = memchr::memchr_iter(b'\n', &text[..end]).count() as u64 + 1;
    let parser = Parser::Csv(Csv::new(between, &header, columns(&header)?));
    Ok(Sniffed { parser, skip: bom + (end + 1).min(text.len()), lines })
}

/// The columns by the names that are used without any flag.
fn columns(names: &[String]) -> Result<Columns, String> {
    const EXPECTED: [(Field, &str, Option<Unit>, bool); 8] = [
        (Field::Time, "time", None, true),
        (Field::Target, "target", None, true),
        (Field::Latency, "latency_ms", None, true),
        (Field::Status, "status", None, true),
        (Field::Host, "host", None, false),
        (Field::Path, "path", None, false),
        (Field::Flags, "response_flags", None, false),
        (Field::Code, "code", None, false),
    ];
    let mut columns = Columns::default();
    let mut missing = Vec::new();
    for (field, name, unit, needed) in EXPECTED {
        if names.iter().any(|found| found == name) {
            columns.set(field, name, unit);
        } else if needed {
            missing.push(name);
        }
    }
    if missing.is_empty() {
        return Ok(columns);
    }
    Err(format!(
        "it has no {}; expected are time, target, latency_ms and status, found {}",
        missing.join(", "),
        names.join(", ")
    ))
}
