//! Random load on all cores for a time, and the invariants of the engine after each round. See README.md.

mod faults;
mod holding;
mod load;
mod plan;
mod round;
mod seat;
mod settle;
mod stage;
mod time;
mod witness;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;

use round::Sabotage;
use stage::Counts;

/// Random load on all cores; the invariants are checked after each round.
#[derive(Debug, Parser)]
#[command(name = "soak")]
struct Arguments {
    /// How long; the round that runs then is finished.
    #[arg(long, value_name = "N", default_value_t = 20)]
    seconds: u64,
    /// Threads of the load: as many as there are cores, and at least 2.
    #[arg(long, value_name = "T")]
    threads: Option<usize>,
    /// Decides what each thread does in each round; how they interleave is the machine's doing.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// The round to begin with, to repeat one.
    #[arg(long, value_name = "R", default_value_t = 0)]
    from: u64,
    /// Operations of each thread in each round.
    #[arg(long, value_name = "N", default_value_t = 40_000)]
    operations: u64,
    /// Spoil each round, to see that the checks find it.
    #[arg(long, value_name = "WAY")]
    sabotage: Option<Sabotage>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let cores = std::thread::available_parallelism().map_or(2, |cores| cores.get().max(2));
    let (threads, seed) = (arguments.threads.unwrap_or(cores).max(1), arguments.seed);
    faults::quieten();
    println!("seed {seed}, {threads} threads, {} operations each a round", arguments.operations);
    let (begin, whole) = (Instant::now(), Counts::default());
    let (mut rounds, mut violations, mut told) = (0, 0, Instant::now());
    while rounds == 0 || begin.elapsed() < Duration::from_secs(arguments.seconds) {
        let number = arguments.from + rounds;
        let stage = round::play(seed, number, threads, arguments.operations, arguments.sabotage);
        whole.absorb(&stage.counts);
        rounds += 1;
        let found = stage.faults.found();
        if found > 0 {
            println!("violation: seed {seed}, round {number}: {found} found");
            stage.faults.words().iter().for_each(|words| println!("  {words}"));
        }
        violations += found;
        if told.elapsed() >= Duration::from_secs(10) {
            told = Instant::now();
            let (seconds, done) = (begin.elapsed().as_secs(), Counts::get(&whole.operations));
            println!("{seconds} s: operations {done}, rounds {rounds}, violations {violations}");
        }
    }
    for (name, count) in &whole.named()[1..] {
        println!("{name} {}", Counts::get(count));
    }
    // A run that never met what it is about has shown nothing; one short round may well miss some of it.
    let missed = whole.named().into_iter().filter(|(_, count)| Counts::get(count) == 0).count();
    let looked = rounds < 20 || missed == 0;
    if !looked {
        println!("{missed} of these were never met");
    }
    println!("operations {}, rounds {rounds}, violations {violations}", Counts::get(&whole.operations));
    if violations == 0 && looked { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
