//! Runs the engine over logs, and tells what a policy would have done.

use std::process::ExitCode;

use crate::logs::Input;

/// Runs the engine over logs, and tells what a policy would have done.
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
