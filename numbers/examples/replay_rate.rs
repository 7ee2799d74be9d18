//! How many calls a second are replayed: `RAYON_NUM_THREADS=1 cargo run --release -p portcullis-numbers --example replay_rate` is on one core.

use std::time::Instant;

use portcullis::Outcome;
use portcullis_numbers::logs::{Call, Names, TargetId};
use portcullis_numbers::policies::{ConfigErrors, Policies};
use portcullis_numbers::replay::Replay;

const CALLS: u64 = 3_000_000;
const TARGETS: u64 = 10;
const NAMED: [(&str, &str); 3] = [
    ("the defaults", ""),
    ("a limit and a timeout", "[defaults]\nmax_in_flight = 64\ntimeout = \"1s\"\n"),
    ("a window of time, slow calls", "[defaults]\nwindow = { time = \"10s\", buckets = 10 }\nslow_call = \"1s\"\n"),
];

fn main() -> Result<(), ConfigErrors> {
    let names: Names = (0..TARGETS).map(|n| format!("target-{n}.example.com")).collect();
    for (name, text) in NAMED {
        let policies: Policies = text.parse()?;
        let mut replay = Replay::new(vec![("p".to_owned(), policies)]);
        let begin = Instant::now();
        (0..CALLS).for_each(|n| replay.take(&call(n), &names));
        let report = replay.finish(20);
        let rate = CALLS as f64 / begin.elapsed().as_secs_f64() / 1e6;
        let sums = &report.policies[0].sums;
        println!("{name}: {rate:.2} million calls/s, {} of them refused, {} trips", sums.refused, sums.trips);
    }
    Ok(())
}

/// A thousand calls a second, of 20 to 84 ms; one in a hundred fails, and all of a target's in the first minute of each ten.
fn call(n: u64) -> Call {
    let (target, at) = (n % TARGETS, n * 1_000_000);
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let is_down = (at / 60_000_000_000 + target).is_multiple_of(TARGETS);
    Call {
        start: 1_700_000_000_000_000_000 + at,
        latency: 20_000_000 + mixed % 64_000_000,
        target: TargetId(target as u32),
        status: 0,
        outcome: if is_down || mixed.is_multiple_of(100) { Outcome::Failure } else { Outcome::Success },
    }
}
