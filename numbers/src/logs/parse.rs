//! Blocks as calls: the part of a reading that runs side by side.

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::{memchr, memchr_iter};
use portcullis::Outcome;

use super::blocks::Block;
use super::call::{self, Call};
use super::choose::Choose;
use super::csv::Csv;
use super::fault::Fault;
use super::json::Json;
use super::names::TargetId;
use super::record::{End, Records};
use super::{envoy, haproxy, nginx};

/// The longest name of a target, in bytes; what is longer is cut.
const LONGEST_NAME: usize = 256;

/// What a line says.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) start: u64,
    pub(super) latency: u64,
    pub(super) status: u16,
    pub(super) fate: Fate,
    pub(super) target: Cow<'a, [u8]>,
    pub(super) host: Cow<'a, [u8]>,
    pub(super) path: Cow<'a, [u8]>,
}

/// What became of a request, as far as the status doesn't say it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Answered,
    NoAnswer,
    /// The target failed, whatever its status.
    Failed,
    /// The client went away.
    Abandoned,
    /// It was no call of a target.
    Apart(Apart),
}

/// Why a request was no call of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Apart {
    /// portcullis refused it.
    Refused,
    /// The proxy answered it by itself: by its limits and filters, or for want of a route.
    Proxy,
}

/// How a log's lines are read.
#[derive(Debug)]
pub(super) enum Lines {
    Csv(Csv),
    Json(Json),
    Nginx { without_latency: bool },
    Envoy,
    Haproxy,
}

/// How a log's blocks are read.
#[derive(Debug)]
pub(super) struct Parser {
    pub(super) lines: Lines,
    pub(super) choose: Choose,
}

/// A call, and the line within its block, from 0; its target is a number within the block.
pub(super) type Found = (u32, Call);

/// A line that is no call: its number within the block, and where its text is.
#[derive(Debug)]
pub(super) struct Bad {
    pub(super) line: u32,
    pub(super) fault: Fault,
    pub(super) text: std::ops::Range<usize>,
}

/// What a block comes to.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) data: Vec<u8>,
    pub(super) lines: u32,
    pub(super) calls: Vec<Found>,
    pub(super) names: Vec<String>,
    pub(super) bad: Vec<Bad>,
    pub(super) refused: u64,
    pub(super) answered_by_proxy: u64,
    pub(super) unmatched: u64,
}

impl Lines {
    pub(super) fn records(&self) -> Records {
        if let Self::Csv(csv) = self { Records::Quoted(csv.between) } else { Records::Lines }
    }

    pub(super) fn entry<'a>(&self, record: &'a [u8]) -> Result<Entry<'a>, Fault> {
        match self {
            Self::Csv(csv) => csv.entry(record),
            Self::Json(json) => json.entry(record),
            Self::Nginx { without_latency } => nginx::entry(record, *without_latency),
            Self::Envoy => envoy::entry(record),
            Self::Haproxy => haproxy::entry(record),
        }
    }
}

impl Parser {
    /// Parses a block.
    pub(super) fn parse(&self, block: Block) -> Parsed {
        let Block { data, too_long } = block;
        let mut parsed = Parsed::default();
        if too_long {
            parsed.lines = 1;
            parsed.bad.push(Bad { line: 0, fault: Fault::TooLong, text: 0..data.len() });
            return Parsed { data, ..parsed };
        }
        let nul = memchr(0, &data).is_some();
        let mut names = HashMap::default();
        let mut at = 0;
        while at < data.len() {
            let line = parsed.lines;
            let (end, next, lines, open) = bounds(self.lines.records(), &data, at);
            let record = data[at..end].strip_suffix(b"\r").unwrap_or(&data[at..end]);
            parsed.lines += lines;
            if !record.trim_ascii().is_empty() {
                let entry = match record {
                    _ if open => Err(Fault::Quote),
                    _ if nul && memchr(0, record).is_some() => Err(Fault::Nul),
                    _ => self.lines.entry(record),
                };
                if let Err(fault) = entry.and_then(|entry| parsed.take(line, &entry, &self.choose, &mut names)) {
                    parsed.bad.push(Bad { line, fault, text: at..end });
                }
            }
            at = next;
        }
        Parsed { data, ..parsed }
    }
}

/// Where the record at `at` ends, where the next one begins, how many lines it has, and whether a quote in it is never closed. Such a record is
/// one line.
fn bounds(records: Records, data: &[u8], at: usize) -> (usize, usize, u32, bool) {
    let rest = &data[at..];
    let (end, open) = match records.end(rest) {
        End::Newline(newline) => (newline, false),
        End::Line => (rest.len(), false),
        End::Quote => (memchr(b'\n', rest).unwrap_or(rest.len()), true),
    };
    let lines = 1 + if records == Records::Lines { 0 } else { memchr_iter(b'\n', &rest[..end]).count() };
    // 32 bits: a block is no larger than a mebibyte.
    #[allow(clippy::cast_possible_truncation, reason = "no more lines than bytes in a block")]
    (at + end, (at + end + 1).min(data.len()), lines as u32, open)
}

type Numbers = HashMap<Vec<u8>, u32, ahash::RandomState>;

impl Parsed {
    /// Takes what a line says.
    fn take(&mut self, line: u32, entry: &Entry<'_>, choose: &Choose, numbers: &mut Numbers) -> Result<(), Fault> {
        let apart = match entry.fate {
            Fate::Apart(Apart::Refused) => Some(&mut self.refused),
            Fate::Apart(Apart::Proxy) => Some(&mut self.answered_by_proxy),
            _ => None,
        };
        if let Some(count) = apart {
            *count += 1;
            return Ok(());
        }
        let Some(target) = choose.target(entry) else {
            self.unmatched += 1;
            return Ok(());
        };
        let (status, outcome) = match entry.fate {
            Fate::NoAnswer => (0, Outcome::Failure),
            Fate::Failed => (entry.status, Outcome::Failure),
            Fate::Abandoned => (entry.status, Outcome::Ignored),
            Fate::Answered | Fate::Apart(_) => (entry.status, call::outcome(entry.status)),
        };
        let target = self.number(target, numbers)?;
        let Entry { start, latency, .. } = *entry;
        self.calls.push((line, Call { start, latency, target, status, outcome }));
        Ok(())
    }

    fn number(&mut self, name: &[u8], numbers: &mut Numbers) -> Result<TargetId, Fault> {
        let name = cut(name);
        if let Some(&number) = numbers.get(name) {
            return Ok(TargetId(number));
        }
        if name.is_empty() {
            return Err(Fault::Target);
        }
        let text = std::str::from_utf8(name).map_err(|_| Fault::Utf8)?;
        #[allow(clippy::cast_possible_truncation, reason = "no more names than bytes in a block")]
        let number = self.names.len() as u32;
        self.names.push(text.to_owned());
        numbers.insert(name.to_vec(), number);
        Ok(TargetId(number))
    }
}

/// A name as long as it may be, cut where a character ends.
fn cut(name: &[u8]) -> &[u8] {
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let mut end = LONGEST_NAME;
    while end > 0 && name[end] & 0b1100_0000 == 0b1000_0000 {
        end -= 1;
    }
    &name[..end]
}
