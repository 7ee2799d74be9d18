//! What collecting the metrics of 100,000 targets costs the calls meanwhile: `cargo bench --features metrics --bench scrape`.
//!
//! One thread asks and settles as fast as it can. Another is idle; or collects once a second; or again and again; or, for what any busy
//! neighbour costs on this machine, walks through as much memory of its own. They take turns, and what is told is the median of the rounds' ratios to
//! the idle turn of the same round. Time is the processor's for the calling thread, so that it holds while others use the machine.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use portcullis::Engine;
use portcullis::metrics::Collector;

const TARGETS: usize = 100_000;
const ROUNDS: usize = 9;
const TURN: Duration = Duration::from_secs(1);

/// What the neighbour does in a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Neighbour {
    Idle,
    Collects,
    CollectsAgainAndAgain,
    Walks,
}

use Neighbour::{Collects, CollectsAgainAndAgain, Idle, Walks};

/// The processor's time for this thread, where Linux tells; else the time of day.
fn busy(since: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

/// What came of a turn.
struct Turn {
    /// Nanoseconds of the processor's time for each call.
    call: f64,
    /// The same for each target of each collection; none if there was no collection.
    target: Option<f64>,
}

fn turn(neighbour: Neighbour, collector: &mut Collector, engine: &Engine, call: &(impl Fn(usize) + Sync)) -> Turn {
    let (is_over, collections) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (is_over, collections) = (&is_over, &collections);
        let collecting = scope.spawn(move || {
            let begun = Instant::now();
            let before = busy(begun);
            let mut own = vec![1_u64; if neighbour == Walks { TARGETS * 32 } else { 0 }];
            while !is_over.load(Ordering::Relaxed) {
                match neighbour {
                    Idle => std::thread::sleep(Duration::from_millis(1)),
                    Walks => own.iter_mut().for_each(|word| *word = black_box(*word + 1)),
                    Collects if collections.load(Ordering::Relaxed) > 0 => std::thread::sleep(Duration::from_millis(1)),
                    Collects | CollectsAgainAndAgain => {
                        black_box(collector.collect(engine, |_, _, _| true));
                        collections.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
            busy(begun) - before
        });
        let begun = Instant::now();
        let before = busy(begun);
        let mut calls = 0;
        while begun.elapsed() < TURN {
            (0..1_000).for_each(|step| call(calls + step));
            calls += 1_000;
        }
        let call = (busy(begun) - before).as_nanos() as f64 / calls as f64;
        is_over.store(true, Ordering::Relaxed);
        let collecting = collecting.join().unwrap_or_default();
        let seen = collections.load(Ordering::Relaxed) as f64 * TARGETS as f64;
        Turn { call, target: (seen > 0.0).then(|| collecting.as_nanos() as f64 / seen) }
    })
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn compare(name: &str, engine: &Engine, call: &(impl Fn(usize) + Sync)) {
    let mut collector = Collector::new(engine);
    collector.collect(engine, |_, _, _| true);
    let mut ratios = [Vec::new(), Vec::new(), Vec::new()];
    let (mut alone, mut collecting) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let idle = turn(Idle, &mut collector, engine, call).call;
        alone.push(idle);
        for (ratios, neighbour) in ratios.iter_mut().zip([Collects, CollectsAgainAndAgain, Walks]) {
            let beside = turn(neighbour, &mut collector, engine, call);
            ratios.push(beside.call / idle);
            collecting.extend(beside.target.filter(|_| neighbour == CollectsAgainAndAgain));
        }
    }
    let [once, always, walking] = ratios.map(median);
    let (alone, collecting) = (median(alone), median(collecting));
    println!("| {name} | {alone:.1} ns | {once:.3} | {always:.3} | {walking:.3} | {collecting:.0} ns |");
}

fn main() {
    let engine: Engine = Engine::builder().max_targets(TARGETS).build();
    let names: Vec<String> = (0..TARGETS).map(|number| format!("https://target-{number:06}.example.com")).collect();
    for name in &names {
        if let Ok(permit) = engine.admit(name) {
            permit.success();
        }
    }
    assert_eq!(engine.len(), TARGETS);
    let Ok(target) = engine.target(&names[0]) else { return };
    println!(
        "| asked | alone | beside a collection a second | beside one after the other | beside a walk | collecting, per target |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    compare("one target, by its handle", &engine, &|_| {
        if let Ok(permit) = target.admit() {
            permit.success();
        }
    });
    compare("a thousand targets, by their keys", &engine, &|call| {
        if let Ok(permit) = engine.admit(&names[call % 1_000]) {
            permit.success();
        }
    });
}
