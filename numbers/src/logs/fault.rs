//! What is wrong with a line, and what would be right.

use std::fmt;

/// Why a line is no call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fault {
    /// The line doesn't fit a block of 1 MiB.
    TooLong,
    /// There is a NUL byte in it.
    Nul,
    /// A quote is opened and never closed, or something follows its end.
    Quote,
    /// It hasn't the format's shape.
    Shape,
    /// A field isn't there.
    Missing,
    /// The time is none.
    Time,
    /// The time is before 1970 or after 2262.
    TimeRange,
    /// The latency is no number.
    Latency,
    /// The latency is negative or longer than 30 days.
    LatencyRange,
    /// The status is none.
    Status,
    /// The target is empty.
    Target,
    /// The target isn't UTF-8.
    Utf8,
    /// The call started before others that were handed over already.
    Late,
}

impl Fault {
    /// What is wrong.
    fn wrong(self) -> &'static str {
        match self {
            Self::TooLong => "longer than 1 MiB",
            Self::Nul => "a NUL byte",
            Self::Quote => "a quote that is never closed, or text behind its end",
            Self::Shape => "not of this format",
            Self::Missing => "a field is missing",
            Self::Time => "the time can't be read",
            Self::TimeRange => "a time before 1970 or after 2262",
            Self::Latency => "the latency is no number",
            Self::LatencyRange => "a latency that is negative or over 30 days",
            Self::Status => "the status can't be read",
            Self::Target => "the target is empty",
            Self::Utf8 => "the target is not UTF-8",
            Self::Late => "started before calls that were handed over already",
        }
    }

    /// What would be right.
    fn right(self) -> &'static str {
        match self {
            Self::TooLong => "a line ends within 1 MiB",
            Self::Nul => "text; NULs are what a crash leaves in a file",
            Self::Quote => "\"...\" around the whole field, with each quote in it doubled",
            Self::Shape => "a line like the log's first ones, or another --format",
            Self::Missing => "every field that is mapped, in each line",
            Self::Time => "seconds since 1970, or RFC 3339 with its zone, as in 2026-01-31T12:00:00.5Z",
            Self::TimeRange => "seconds unless --map says another unit, as in time=ts:ms",
            Self::Latency => "a decimal number",
            Self::LatencyRange => "0 to 30 days; --map may give the unit, as in latency_ms=duration:s",
            Self::Status => "100 to 999; 0, \"-\" or nothing if there was no answer",
            Self::Target => "a name in each line",
            Self::Utf8 => "names in UTF-8",
            Self::Late => "calls out of order by no more than --reorder",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; right: {}", self.wrong(), self.right())
    }
}

/// A line that was no call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which of [`Input::logs`](super::Input::logs), from 0.
    pub log: usize,
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub fault: Fault,
    /// Its beginning, with what can't be printed escaped.
    pub text: String,
}
