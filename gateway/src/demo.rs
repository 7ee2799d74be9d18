//! The demonstration: the same outage twice over real loopback TCP, with portcullis and with only a cap on the process.
//!
//! Two upstreams, one gateway, a load at a fixed rate. Everything that is shown was measured in that run.

mod load;
mod meter;
mod report;
mod run;
mod table;
mod timeline;
pub mod upstreams;

use std::io;
use std::time::Duration;

pub use meter::Counts;
pub use report::{Change, Measured, Phase, Report, Run, Storm};
pub use run::Kind;
use timeline::Timeline;

/// The upstream that fails.
pub const SICK: &str = "core-banking";
/// The upstream that must not notice.
pub const WELL: &str = "claims";

/// The time that the load of one run takes, unless asked otherwise. Both runs stay under 40 s.
pub const DEFAULT_SECONDS: u64 = 15;
/// The least in which an outage can be noticed, probed and recovered from.
pub const LEAST_SECONDS: u64 = 6;

/// Plays both runs and returns what was measured. The timeline goes to standard error if the output is JSON.
///
/// # Errors
///
/// No loopback listener could be opened.
pub async fn play(seconds: u64, json: bool) -> io::Result<Report> {
    let length = Duration::from_secs(seconds.max(LEAST_SECONDS));
    let timeline = Timeline::new(json);
    let with = run::play(Kind::With, length, &timeline).await?;
    let without = run::play(Kind::Without, length, &timeline).await?;
    Ok(Report { with, without })
}

/// Plays one of the runs, silently.
///
/// # Errors
///
/// No loopback listener could be opened.
pub async fn play_one(kind: Kind, length: Duration) -> io::Result<Run> {
    run::play(kind, length, &Timeline::silent()).await
}

/// Both runs side by side, for people.
#[must_use]
pub fn table(report: &Report) -> String {
    table::render(report)
}
