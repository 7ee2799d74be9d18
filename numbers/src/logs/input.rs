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
#[command(next_help_heading = "Logs")]
pub struct Input {
    /// The logs, plain or gzip, in any order; `-` is standard input.
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The logs' format; `auto` looks at the first lines of each.
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    pub format: Format,
    /// Which columns of CSV and JSON are meant, as in `time=ts,latency_ms=duration:s`: the fields `time` (the start) or `end`, `latency`, `total` (the
    /// request's, if the call's is another), `status`, `target`, `host`, `path`, `flags` (Envoy's) and `code`. A unit (s, ms, us, ns) may follow a
    /// colon: times are in s and latencies in ms otherwise.
    #[arg(long, value_name = "FIELD=COLUMN", value_delimiter = ',')]
    pub map: Vec<String>,
    /// The same in a TOML file, as in `latency = "duration:s"`; `--map` counts before it.
    #[arg(long, value_name = "FILE")]
    pub fields: Option<PathBuf>,
    /// Take the target out of the path: the expression's first group, or all that it finds.
    #[arg(long, value_name = "REGEX", conflicts_with = "config")]
    pub target_regex: Option<String>,
    /// Take the target that the routes of this gateway configuration choose by host and path.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Take calls as instantaneous where the log has no latencies.
    #[arg(long)]
    pub without_latency: bool,
    /// How far out of order calls may start, as in `5s`. What starts later than that is counted and reported as late.
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = humantime::parse_duration)]
    pub reorder: Duration,
    /// How many targets are told apart, that one included which all further ones are: `other`.
    #[arg(long, value_name = "N", default_value_t = MAX_TARGETS, value_parser = clap::value_parser!(u32).range(2..))]
    pub max_targets: u32,
}

impl Input {
    /// These logs, with every option as it is on the command line if it isn't given.
    #[must_use]
    pub fn new(logs: Vec<PathBuf>) -> Self {
        Self {
            logs,
            format: Format::Auto,
            map: Vec::new(),
            fields: None,
            target_regex: None,
            config: None,
            without_latency: false,
            reorder: REORDER,
            max_targets: MAX_TARGETS,
        }
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
    /// One JSON object a line, nginx's and Envoy's among them.
    Json,
    /// nginx's `combined` with `$request_time` behind it, or that of ingress-nginx.
    Nginx,
    /// Envoy's default text format, or Istio's.
    Envoy,
    /// HAProxy's `option httplog`.
    Haproxy,
}
