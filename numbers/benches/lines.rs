//! Instructions per line of a log, counted under valgrind, against a budget for each format.
//!
//! `cargo bench -p portcullis-numbers --bench lines` fails where a line takes more than 3 % above what it took when its budget was written
//! down: unpacking aside, all that is between a log's bytes and calls in order. It needs what the engine's instruction budgets need.

use std::hint::black_box;
use std::path::Path;

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use portcullis_numbers::logs::{self, Input};

/// Lines in one measurement, so that what is around them doesn't count for much.
const LINES: u64 = 20_000;
/// What a count may grow by.
const SLACK_PERCENT: u64 = 3;

/// Fails a format that takes more instructions per line.
fn budget(instructions: u64) -> LibraryBenchmarkConfig {
    let most = instructions * LINES * (100 + SLACK_PERCENT) / 100;
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(Callgrind::default().hard_limits([(EventKind::Ir, most)]).clone());
    config
}

/// A log of calls that end a millisecond after each other.
fn log(header: &str, line: fn(u64) -> String) -> String {
    let lines: String = (0..LINES).map(line).collect();
    format!("{header}{lines}")
}

fn csv() -> String {
    log("time,target,latency_ms,status,id\n", |n| {
        let (millis, target) = (1_700_000_000_000 + n, n % 40);
        format!("{}.{:03},backend-{target:02},{}.25,200,{n:020x}\n", millis / 1000, millis % 1000, n * 7919 % 977)
    })
}

fn json() -> String {
    log("", |n| {
        let (millis, target, latency) = (1_700_000_000_000 + n, n % 40, n * 7919 % 977);
        let time = format!("{}.{:03}", millis / 1000, millis % 1000);
        format!("{{\"time\":{time},\"target\":\"backend-{target:02}\",\"latency_ms\":{latency}.25,\"status\":200}}\n")
    })
}

fn nginx() -> String {
    log("", |n| {
        let (second, target, time) = (n / 1000, n % 40, n * 7919 % 977);
        format!(
            "192.0.2.1 - - [31/Jan/2026:12:00:{second:02} +0000] \"GET /a/{n} HTTP/1.1\" 200 512 \"-\" \"curl/8.5\" 90 0.{time:03} \
             [backend-{target:02}] [] 10.0.0.1:80 512 0.{time:03} 200 {n:032x}\n"
        )
    })
}

#[library_benchmark]
#[bench::csv(args = (csv()), config = budget(2_600))]
#[bench::json(args = (json()), config = budget(4_840))]
#[bench::nginx(args = (nginx()), config = budget(7_600))]
fn read(log: String) -> u64 {
    let mut sum = 0;
    let input = Input::new(Vec::new());
    let read = logs::read_from(black_box(log.as_bytes()), Path::new("bench"), &input, |call, _| sum += call.latency);
    assert!(read.is_ok_and(|summary| summary.calls == LINES));
    sum
}

library_benchmark_group!(name = lines, benchmarks = [read]);

main!(library_benchmark_groups = lines);
