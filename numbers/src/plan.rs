//! Writes a policy from logs, each value with its derivation.
//!
//! The derivations are in [`derive`](crate::derive); here they are put into a file: one policy for all targets whose p99 are within a factor of
//! three, in `[defaults]`, else one for each target. The file is a policy file: the gateway takes it once `route` and `upstream` are added,
//! `portcullis replay` and `portcullis audit` as it is.

mod shared;
mod write;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::derive::timeout::CALLS;
use crate::derive::{Aims, Derived, derive};
use crate::logs::{self, Input};
use crate::observe::{Observed, Observer};
use crate::output::{self, refuse};

/// Writes a policy from logs, each value with its derivation.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    aims: Aims,
    /// Retries of a call that failed, 0 to 9.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=9))]
    retries: u32,
    /// Where to write it; standard output unless given.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A target with what was seen of it and what follows.
#[derive(Debug)]
struct Planned {
    seen: Observed,
    derived: Derived,
}

impl Planned {
    /// Whether its latencies are known well enough for others to share what follows.
    fn is_known(&self) -> bool {
        self.seen.calm.latency.weight() >= CALLS && self.derived.value("timeout").is_some()
    }
}

/// Writes the policy of the targets that were seen; the same bytes for the same calls.
#[must_use]
pub fn write(seen: Vec<Observed>, aims: &Aims) -> String {
    let planned = seen.into_iter().map(|seen| Planned { derived: derive(&seen, aims), seen }).collect();
    write::policy(planned, aims)
}

/// Runs the tool.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    let mut observer = Observer::new();
    let summary = match logs::read(&args.input, |call, _| observer.call(call)) {
        Ok(summary) => summary,
        Err(error) => return refuse(error),
    };
    output::aside(&summary);
    let seen = observer.finish(&summary.names);
    if seen.is_empty() {
        return refuse("there is no call in the log");
    }
    let text = write(seen, &Aims { retries: args.retries, ..args.aims.clone() });
    let written = match &args.out {
        Some(out) => output::write(out, &text),
        None => output::print(&text),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(error),
    }
}
