//! All of it: the twins, the cases, what is written and judged.

mod caches;
mod cases;
mod patterns;
mod plot;
mod report;
mod subject;
mod tally;
mod twins;
mod world;

use std::path::Path;
use std::process::ExitCode;

use report::Report;

const DIRECTORY: &str = "target/coherence";

/// Checks the counter; if that is not all that is asked for, counts, writes and judges.
pub(crate) fn run(is_bench: bool) -> ExitCode {
    println!("{} twins whose count is known agree", twins::check());
    if !is_bench {
        return ExitCode::SUCCESS;
    }
    let rows = cases::CASES.iter().flat_map(|case| cases::CORES.map(|cores| case.run(cores))).collect();
    let report = Report { rows, near: cases::near_the_limit() };
    print!("{}", report.table());
    println!("\n{} decisions simulated", report.decisions());
    if let Err(error) = write(&report) {
        eprintln!("{DIRECTORY}: {error}");
        return ExitCode::from(2);
    }
    println!("{DIRECTORY}/coherence.json, {DIRECTORY}/coherence.svg");
    let misses = report.misses();
    misses.iter().for_each(|miss| println!("missed: {miss}"));
    if misses.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn write(report: &Report) -> Result<(), Box<dyn std::error::Error>> {
    let directory = Path::new(DIRECTORY);
    std::fs::create_dir_all(directory)?;
    std::fs::write(directory.join("coherence.json"), format!("{:#}\n", report.json()))?;
    plot::draw(report, &directory.join("coherence.svg"))?;
    Ok(())
}
