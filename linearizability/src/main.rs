//! `linearizability [--histories N] [--seed N] [--shape TEXT] [--twins]`

use std::process::ExitCode;
use std::time::Instant;

use linearizability::campaign::{self, Tally};
use linearizability::drive;
use linearizability::shape::SHAPES;
use linearizability::twins::TWINS;

/// With overlap, in one run. Also what a twin has to be caught in.
const HISTORIES: usize = 24_000;

struct Options {
    histories: usize,
    seed: u64,
    shape: String,
    twins: bool,
}

fn options() -> Result<Options, String> {
    let mut options = Options { histories: HISTORIES, seed: 1, shape: String::new(), twins: false };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word}: a value is missing"));
        match word.as_str() {
            "--histories" => options.histories = value()?.parse().map_err(|error| format!("{word}: {error}"))?,
            "--seed" => options.seed = value()?.parse().map_err(|error| format!("{word}: {error}"))?,
            "--shape" => options.shape = value()?,
            "--twins" => options.twins = true,
            _ => return Err(format!("{word}: not one of --histories, --seed, --shape, --twins")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if if options.twins { twins(&options) } else { shapes(&options) } { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn shapes(options: &Options) -> bool {
    let begun = Instant::now();
    let shapes: Vec<_> = SHAPES.iter().filter(|shape| shape.name.contains(&options.shape)).collect();
    let each = options.histories.div_ceil(shapes.len().max(1));
    let (mut total, mut held) = (Tally::default(), true);
    for shape in shapes {
        let tally = campaign::run(shape, drive::honest, each, options.seed);
        print(shape.name, &tally);
        if let Some(history) = &tally.rejected {
            println!("NOT LINEARIZABLE:\n{history}");
        }
        held &= tally.rejected.is_none() && tally.counted >= each;
        total.add(&tally);
    }
    println!("\nacts of the histories that count:");
    for (kind, times) in &total.kinds {
        println!("{times:>9} {kind}");
    }
    print("total", &total);
    let end = if held { "linearizable" } else { "NOT ALL LINEARIZABLE" };
    println!("{} histories with overlap, {end}, in {:.1} s", total.counted, begun.elapsed().as_secs_f64());
    held
}

fn print(name: &str, tally: &Tally) {
    let Tally { counted, run, .. } = tally;
    println!(
        "{name}: {counted} histories with overlap of {run} run ({:.1} %), {:.1} acts at once, {} outcomes, {:.1} s run, {:.1} s checked, slowest {:.1} ms",
        100.0 * *counted as f64 / (*run).max(1) as f64,
        tally.widths as f64 / (*counted).max(1) as f64,
        tally.outcomes.len(),
        tally.driving.as_secs_f64(),
        tally.checking.as_secs_f64(),
        1_000.0 * tally.slowest.as_secs_f64(),
    );
}

fn twins(options: &Options) -> bool {
    let mut caught = 0;
    for twin in TWINS {
        let shape = SHAPES.iter().find(|shape| shape.name == twin.shape);
        let tally = shape.map(|shape| campaign::run(shape, twin.make, options.histories, options.seed));
        match tally {
            Some(Tally { rejected: Some(history), counted, .. }) => {
                caught += 1;
                println!("caught in history {counted}: {}\n{history}", twin.name);
            }
            _ => println!("NOT CAUGHT: {}", twin.name),
        }
    }
    println!("{caught} of {} twins caught", TWINS.len());
    caught == TWINS.len()
}
