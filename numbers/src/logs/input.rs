//! Which logs to read, and how: the command line that the tools share.

use std::path::PathBuf;
use std::time::Duration;

/// How far out of order calls may be, unless said otherwise: logs are written at the end of a call, so a call that is cut by a usual timeout of
/// 60 s is a minute late by its start.
const REORDER: Duration = Duration::from_secs(90);

/// How many targets are told apart, unless said otherwise.
const MAX_TARGETS: u32 = 10_000;

/// Which logs to read, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Input {
    /// The logs, plain or gzip, in any order; `-` is standard input.
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The logs' format; `auto` looks at the first lines of each.
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    pub format: Format,
    /// How far out of order calls may start, as in `5s`. What starts later than that is counted and reported as late.
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = humantime::parse_duration)]
    pub reorder: Duration,
    /// How many targets are told apart; all further ones are one, called `other`.
    #[arg(long, value_name = "N", default_value_t = MAX_TARGETS, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_targets: u32,
}

impl Input {
    /// These logs, with every option as it is on the command line if it isn't given.
    #[must_use]
    pub fn new(logs: Vec<PathBuf>) -> Self {
        Self { logs, format: Format::Auto, reorder: REORDER, max_targets: MAX_TARGETS }
    }
}

/// The format of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[non_exhaustive]
pub enum Format {
    /// Whatever the first lines look like.
    Auto,
    /// Comma, semicolon or tab between fields, with their names in the first line.
    Csv,
    /// One JSON object a line.
    Json,
}
