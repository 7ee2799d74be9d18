//! Runs the engine in a model of callers, gateway and upstreams.

pub mod draws;

use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the engine in a model of callers, gateway and upstreams.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The scenario.
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,
}

/// Runs the tool.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    let _ = &args.scenario;
    ExitCode::FAILURE
}
