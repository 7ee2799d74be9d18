//! Runs the engine over logs, and tells what a policy would have done.

mod candidate;
mod columns;
mod facts;
mod html;
mod lane;
mod latencies;
mod play;
mod plots;
pub mod report;
mod series;
mod table;
mod timeline;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::logs::{self, Input};
use crate::output;
use crate::policies::Policies;

pub use play::Replay;

/// Runs the engine over logs, and tells what a policy would have done.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// A policy file, or a gateway's configuration; several are shown side by side. Named by the file unless a name is given.
    #[arg(long = "policy", value_name = "[NAME=]FILE", required = true)]
    policies: Vec<String>,
    /// Print one JSON object and nothing else to standard output.
    #[arg(long)]
    json: bool,
    /// Write a page with timelines and plots, all in one file.
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// How many targets are told of in detail: the worst ones.
    #[arg(long, value_name = "N", default_value_t = 20)]
    worst: usize,
    #[command(flatten)]
    input: Input,
}

/// Runs the tool.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    match try_run(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::refuse(error),
    }
}

fn try_run(args: &Args) -> Result<(), Box<dyn std::error::Error>> {
    let mut replay = Replay::new(load(&args.policies)?);
    let summary = logs::read(&args.input, |call, names| replay.take(call, names))?;
    output::aside(&summary);
    if summary.names.is_empty() {
        return Err("there is no call in the log".into());
    }
    let mut report = replay.finish(args.worst);
    report.log.lines = Some(summary.lines);
    if let Some(out) = &args.html {
        output::write(out, &html::html(&report)?)?;
    }
    let text = if args.json { serde_json::to_string(&report)? + "\n" } else { table::text(&report) };
    Ok(output::print(&text)?)
}

/// Reads the policies, each with a name of its own.
fn load(given: &[String]) -> Result<Vec<(String, Policies)>, Box<dyn std::error::Error>> {
    let mut read: Vec<(String, Policies)> = Vec::new();
    for one in given {
        let (name, file) = one.split_once('=').map_or((None, one.as_str()), |(name, file)| (Some(name), file));
        let path = PathBuf::from(file);
        let stem = || path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = name.map(str::to_owned).or_else(stem).unwrap_or_default();
        if read.iter().any(|(other, _)| *other == name) {
            return Err(format!("--policy {one}: there is one named {name} already: must be NAME={file}").into());
        }
        read.push((name, Policies::load(&path)?));
    }
    Ok(read)
}
