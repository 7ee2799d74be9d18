//! Tells which values of a policy no longer fit the logs.

use std::process::ExitCode;

use crate::logs::Input;

/// Tells which values of a policy no longer fit the logs.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
}

/// Runs the tool.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    let _ = &args.input;
    ExitCode::FAILURE
}
