//! Times decisions of all subjects side by side, with 1, 2, ... all cores.
//!
//! Prints a table, and writes `target/cores/cores.json` and `target/cores/cores.svg`. With `--gate` it says which targets are met, and
//! ends with code 1 if one isn't.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use portcullis_peers::alloc::Counting;
use portcullis_peers::cores::gate::{self, Verdict};
use portcullis_peers::cores::report::Report;
use portcullis_peers::cores::series::Pace;
use portcullis_peers::cores::{self, plot};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const DIRECTORY: &str = "target/cores";

/// Nanoseconds per decision, side by side.
#[derive(Debug, Parser)]
struct Options {
    /// Samples of each row.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..), default_value_t = gate::SAMPLES as u16)]
    samples: u16,
    /// Runs only the paths and keys that contain this.
    #[arg(long, default_value = "", hide_default_value = true)]
    only: String,
    /// Takes few and short samples, to see that all of it runs. Its figures say nothing.
    #[arg(long, conflicts_with = "samples")]
    quick: bool,
    /// Judges the targets.
    #[arg(long, conflicts_with_all = ["only", "quick"])]
    gate: bool,
}

impl Options {
    fn pace(&self) -> Pace {
        if self.quick { Pace::quick(3) } else { Pace::full(self.samples.into()) }
    }
}

fn write(report: &Report, verdicts: &[Verdict]) -> Result<(), Box<dyn std::error::Error>> {
    let directory = Path::new(DIRECTORY);
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("cores.json"), format!("{:#}\n", report.json(verdicts)))?;
    plot::draw(report, &directory.join("cores.svg"))?;
    Ok(())
}

fn main() -> ExitCode {
    let options = Options::parse();
    let report = cores::run(options.pace(), &options.only);
    print!("{}", report.table());
    let verdicts = if options.gate { gate::judge(&report) } else { Vec::new() };
    if let Err(error) = write(&report, &verdicts) {
        eprintln!("{DIRECTORY}: {error}");
        return ExitCode::from(2);
    }
    println!("\n{DIRECTORY}/cores.json, {DIRECTORY}/cores.svg");
    if !options.gate {
        return ExitCode::SUCCESS;
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.holds()).count();
    println!("\ntargets: {} of {} met", verdicts.len() - failed, verdicts.len());
    verdicts.iter().for_each(|verdict| println!("  {verdict}"));
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
