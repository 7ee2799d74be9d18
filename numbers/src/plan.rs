//! Writes a policy from logs, each value with its derivation.

use std::process::ExitCode;

use crate::logs::Input;

/// Writes a policy from logs, each value with its derivation.
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
