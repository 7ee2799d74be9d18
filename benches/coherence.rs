//! Beyond two cores: how many cache lines a decision fetches from other cores, counted on a model of 1 to 128.
//!
//! `RUSTFLAGS='--cfg portcullis_trace' cargo bench --bench coherence`; about a minute. Under that cfg the facade tells of each access of
//! the real engine to a word that threads share. Prints tables, writes `target/coherence/coherence.json` and `coherence.svg`, and
//! ends with code 1 if a decision on the healthy path takes more than 0.05 transfers at up to 64 cores. Before that it checks the
//! counter where the count is known by hand. Counts, not times: a busy machine doesn't change them.
//!
//! # What it came to
//!
//! Remote line transfers per decision, an admission with its settlement or a refusal; where other cores may come between any two
//! accesses, and where only between an admission and a settlement. Seeded: another run gives the same, but for where the allocator
//! puts the buckets of failures. November 2026.
//!
//! | case | 8 cores | 64 cores | 128 cores |
//! | --- | --- | --- | --- |
//! | healthy: resolved and keyed, unlimited and with a limit of 16,384 | 0, 0 | 0, 0 | 0, 0 |
//! | healthy: a window of 10 s; a streak without a window | 0, 0 | 0, 0 | 0, 0 |
//! | refused while OPEN; while full | 0, 0 | 0, 0 | 0, 0 |
//! | healthy: calls end on any core, not on the one that they began on | 0, 0.002 | 0.003, 0.001 | 0.003, 0.001 |
//! | healthy: 0 to 100 in flight on each core | 0, 0.003 | 0.001, 0.003 | 0.001, 0.003 |
//! | 0.1 % failures, window of 100 calls | 0, 0.24 | 1.6, 0.31 | 2.4, 0.44 |
//! | 1 % failures, window of 100 calls | 2.8, 1.9 | 11, 2.6 | 15, 3.0 |
//! | 1 % failures, window of 10 s | 0.50, 0.16 | 1.7, 4.0 | 2.3, 9.0 |
//! | a limit of 1,000, too small for stashes from 8 cores on | 4.4, 2.2 | 12, 2.9 | 16, 3.0 |
//! | pattern: a single word | 6.3, 3.5 | 13, 3.9 | 16, 4.0 |
//! | pattern: DashMap + Semaphore | 7.4, 5.3 | 11, 5.9 | 13, 6.0 |
//!
//! A limit is large enough for stashes from 128 for each core on, cores rounded up to a power of two: 8,192 for 64. Near the limit, on 64
//! cores, it degrades to this:
//!
//! | in flight | 80 % | 90 % | 95 % | 99 % | 100 % | more is asked for |
//! | --- | --- | --- | --- | --- | --- | --- |
//! | of 8,192 | 0, 0.001 | 0, 0 | 14, 2.9 | 13, 2.9 | 18, 2.8 | 0, 0 |
//! | of 65,536 | 0, 0 | 0, 0 | 0.005, 0 | 0, 0 | 14, 2.8 | 0, 0 |
//!
//! # What is assumed
//!
//! - Lines of 64 bytes, none fetched with its neighbour; a cache for each core, without end. One level of sharing: a core of the
//!   same socket is as far as any.
//! - A transfer is a read of a line that another core has and this one hasn't, or a write while another core has it: to be given the
//!   line and to have other copies taken away is one. A compare-and-swap that is lost writes. A line that no core has comes from
//!   memory, and is counted apart.
//! - One access at a time, so no store waits in a buffer. Before each access the next core is drawn, all with the same chance, which
//!   is harsher than machines are: a core that has just read a word usually writes it before another is there. The other order is
//!   kinder than they are: no compare-and-swap is lost.
//! - One thread for each core, a real one, so that its stripe is the one that it would have; all ask one target all the time, each
//!   with 0 to 4 calls in flight unless the case says otherwise.
//! - The target has its stripes. It gets them by itself, from lost compare-and-swaps: on 64 cores before the first decision is through,
//!   which takes some 400 transfers. Neither that nor each core's first calls are counted.
//! - A bucket of a window of time ends after each 64 decisions of a core, far more often than in life. Of 100 calls the hundredth fails.
//! - A load of 128 bits is a load. Processors without one make it a write; the healthy path has none.
//!
//! What isn't seen: plain memory, and the atomics inside DashMap, boxcar, thread_local and the clock. A keyed decision reads its thread's
//! own table of keys and the arena's pointers, and writes nothing shared there. The map it asks only at a thread's first call to a key, or
//! where another key took its place in the table: then a shard's lock is taken and left, two writes that this doesn't count. A
//! coarse clock's word is one transfer for each core and interval. No mutex is taken on a measured path, or the run fails.
//!
//! The patterns are the least that such designs must touch, traced by the same recorder; they aren't crates.

use std::process::ExitCode;

#[cfg(portcullis_trace)]
#[path = "coherence/model.rs"]
mod model;

fn main() -> ExitCode {
    // Cargo says so where it is asked for benches, and nothing where it is asked for tests.
    run(std::env::args().any(|argument| argument == "--bench"))
}

#[cfg(portcullis_trace)]
use model::run;

#[cfg(not(portcullis_trace))]
fn run(is_bench: bool) -> ExitCode {
    let command = "RUSTFLAGS='--cfg portcullis_trace' cargo bench --bench coherence";
    eprintln!("coherence: the engine isn't traced in this build; run: {command}");
    if is_bench { ExitCode::from(2) } else { ExitCode::SUCCESS }
}
