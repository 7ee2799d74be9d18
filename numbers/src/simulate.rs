//! Runs the engine in a model of callers, gateway and upstreams.
//!
//! A scenario says who calls whom how often, what goes wrong when, and which policies are compared; the shipped ones in `numbers/scenarios` are
//! examples of every field. Events are simulated in virtual time, one by one, with the real engine on a manual clock deciding on each attempt. A
//! seed means the same bytes on every machine. A fleet that no machine could run is computed instead, and says so.

mod compare;
pub mod draws;
mod fleet;
mod model;
mod record;
pub mod scenario;
mod show;

use std::path::PathBuf;
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};

use scenario::{Model, Scenario, World};

use crate::output;

/// Runs the engine in a model of callers, gateway and upstreams.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The scenario.
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Runs each variant from so many seeds, from the scenario's on, and tells the spread.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub seeds: u32,
    /// Prints JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// Writes a page with tables and plots, without outside assets.
    #[arg(long, value_name = "OUT")]
    pub html: Option<PathBuf>,
    /// Writes the plots as one picture.
    #[arg(long, value_name = "OUT")]
    pub svg: Option<PathBuf>,
}

/// What a simulation has to say.
#[derive(Clone, Debug)]
pub struct Report {
    /// For people, in a terminal.
    pub text: String,
    /// For machines.
    pub json: serde_json::Value,
    /// For people, in a browser.
    pub html: String,
    /// The plots alone; empty for a fleet, of which there is nothing over time.
    pub svg: String,
}

/// Runs the tool. It ends with 2, and a word on standard error, if the scenario is wrong or a file can't be written.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    match told(args).and_then(|text| output::print(&text)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output::refuse(error),
    }
}

fn told(args: &Args) -> Result<String, String> {
    let path = &args.scenario;
    let scenario = Scenario::load(path).map_err(|errors| {
        let lines = errors.errors().iter().map(|error| format!("{}: {error}", path.display()));
        lines.collect::<Vec<_>>().join("\n")
    })?;
    if args.svg.is_some() && matches!(scenario.world, World::Fleet(_)) {
        return Err(format!("{}: --svg: a fleet is arithmetic and has no plots; must be left out", path.display()));
    }
    let report = simulate(&scenario, args.seeds).map_err(|error| format!("a plot can't be drawn: {error}"))?;
    for (file, text) in [(&args.html, &report.html), (&args.svg, &report.svg)] {
        file.as_deref().map_or(Ok(()), |file| output::write(file, text))?;
    }
    Ok(if args.json { format!("{:#}\n", report.json) } else { report.text })
}

/// Simulates a scenario from so many seeds; the same report each time.
///
/// # Errors
///
/// A plot can't be drawn.
pub fn simulate(scenario: &Scenario, seeds: u32) -> Result<Report, crate::report::chart::Undrawn> {
    match &scenario.world {
        World::Fleet(fleet) => Ok(fleet::report(scenario, fleet)),
        World::Model(model) => {
            let comparison = run_all(scenario, model, seeds);
            Ok(Report {
                text: format!("{}\n{}\n\n{}", scenario.title, scenario.shows, show::table(model, &comparison)),
                json: show::json(scenario, model, &comparison),
                html: show::html(scenario, model, &comparison)?,
                svg: show::svg(model, &comparison)?,
            })
        }
    }
}

/// Shows how far it is on a terminal.
fn run_all(scenario: &Scenario, model: &Model, seeds: u32) -> compare::Comparison {
    let steps = model.steps() * scenario.variants.len() as u64 * u64::from(seeds);
    // Hidden, and free, where standard error is no terminal.
    let bar = ProgressBar::new(steps).with_style(style());
    let comparison = compare::compare(model, &scenario.variants, seeds, |done| bar.set_position(done));
    bar.finish_and_clear();
    comparison
}

fn style() -> ProgressStyle {
    let template = "{bar:40} {percent} % of the virtual time, {eta} left";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
