//! Finds out what a log is by its first lines.

use memchr::memchr_iter;
use regex::bytes::Regex;

use super::choose::Choose;
use super::csv::{self, Csv};
use super::fault::Fault;
use super::fields::{Mapping, Needs};
use super::input::{Format, Input};
use super::json::{self, Json};
use super::parse::{Lines, Parser};
use super::record::{End, Records};
use crate::routes;

/// How many lines are looked at.
const LOOK: usize = 100;

/// What a log turned out to be.
#[derive(Debug)]
pub(super) struct Sniffed {
    pub(super) parser: Parser,
    /// How many bytes of the head are no records: a byte order mark, and the names of columns.
    pub(super) skip: usize,
    /// How many lines these are.
    pub(super) lines: u64,
}

/// What was asked for, once for all logs.
#[derive(Debug)]
pub(super) struct Sniffer<'i> {
    input: &'i Input,
    mapping: Mapping,
}

impl<'i> Sniffer<'i> {
    pub(super) fn new(input: &'i Input) -> Result<Self, String> {
        Ok(Self { input, mapping: Mapping::read(input.fields.as_deref(), &input.map)? })
    }

    /// What the log with this head is, or what is wrong with it. A target that isn't told is called by the log's `name`.
    pub(super) fn sniff(&self, head: &[u8], name: &str) -> Result<Sniffed, String> {
        let skip = if head.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
        let text = &head[skip..];
        let format = match self.input.format {
            Format::Auto => guess(text),
            format => format,
        };
        let (lines, skip, taken) = match format {
            Format::Json => (self.json(text)?, skip, 0),
            Format::Nginx => (Lines::Nginx { without_latency: self.input.without_latency }, skip, 0),
            Format::Envoy => (Lines::Envoy, skip, 0),
            Format::Haproxy => (Lines::Haproxy, skip, 0),
            Format::Csv | Format::Auto => {
                let (csv, header, taken) = self.csv(text)?;
                (Lines::Csv(csv), skip + header, taken)
            }
        };
        if let Lines::Nginx { .. } = lines {
            let mut entries = first_lines(text).map(|line| lines.entry(line));
            if entries.clone().all(|entry| entry.is_err()) && entries.any(|entry| entry.err() == Some(Fault::Missing)) {
                return Err("its lines end without a request time: nginx writes it with $request_time at the end of log_format, best \
                            followed by $upstream_response_time; --without-latency takes calls as instantaneous"
                    .to_owned());
            }
        }
        Ok(Sniffed { parser: Parser { lines, choose: self.choose(name)? }, skip, lines: taken })
    }

    fn choose(&self, name: &str) -> Result<Choose, String> {
        Ok(match (&self.input.target_regex, &self.input.config) {
            (Some(regex), _) => Choose::Regex(Regex::new(regex).map_err(|error| format!("--target-regex: {error}"))?),
            (_, Some(file)) => {
                Choose::Routes(routes::read(file).map_err(|error| format!("{}: {error}", file.display()))?)
            }
            (None, None) => Choose::Told(name.to_owned()),
        })
    }

    fn needs(&self) -> Needs {
        let Input { target_regex, config, without_latency, .. } = self.input;
        Needs { path: target_regex.is_some() || config.is_some(), without_latency: *without_latency }
    }

    fn json(&self, text: &[u8]) -> Result<Lines, String> {
        let mut names: Vec<String> = Vec::new();
        for name in first_lines(text).filter_map(json::names).flatten() {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        if names.is_empty() {
            return Err("none of its first lines is a JSON object".to_owned());
        }
        Ok(Lines::Json(Json::new(self.mapping.columns(&names, self.needs())?)))
    }

    /// The columns, and how many bytes and lines the header takes.
    fn csv(&self, text: &[u8]) -> Result<(Csv, usize, u64), String> {
        let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
        // What stands most often; a comma, if it is a draw.
        let count = |between: &u8| memchr_iter(*between, line).count();
        let between = [b'\t', b';', b','].into_iter().max_by_key(count).unwrap_or(b',');
        let end = match Records::Quoted(between).end(text) {
            End::Newline(newline) => newline,
            End::Line => text.len(),
            End::Quote => return Err("a quote in its header is never closed".to_owned()),
        };
        let header = text[..end].strip_suffix(b"\r").unwrap_or(&text[..end]);
        let header = csv::fields(header, between).map_err(|fault| format!("its header: {fault}"))?;
        if let Some(twice) = header.iter().enumerate().find(|(at, name)| header[..*at].contains(name)) {
            return Err(format!("its header names {:?} twice", twice.1));
        }
        let columns = self.mapping.columns(&header, self.needs()).map_err(|error| match self.input.format {
            Format::Auto => format!("taken as CSV (--format says what else it may be), {error}"),
            _ => error,
        })?;
        Ok((
            Csv::new(between, &header, columns),
            (end + 1).min(text.len()),
            memchr_iter(b'\n', &text[..end]).count() as u64 + 1,
        ))
    }
}

/// The format of which most of the first lines are; CSV if they are of no other.
fn guess(text: &[u8]) -> Format {
    let formats = [
        (Format::Haproxy, Lines::Haproxy),
        (Format::Nginx, Lines::Nginx { without_latency: true }),
        (Format::Envoy, Lines::Envoy),
    ];
    if first_lines(text).next().is_some_and(|line| line.first() == Some(&b'{')) {
        return Format::Json;
    }
    let fits = |lines: &Lines| first_lines(text).filter(|line| lines.entry(line).is_ok()).count();
    let best = formats.into_iter().map(|(format, lines)| (fits(&lines), format)).max_by_key(|&(fits, _)| fits);
    best.filter(|&(fits, _)| fits > 0).map_or(Format::Csv, |(_, format)| format)
}

/// The first lines that are whole and not empty.
fn first_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).take(LOOK)
}
