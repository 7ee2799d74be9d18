//! Instructions per decision, counted under valgrind, against a budget for each path.
//!
//! `cargo bench --bench instructions` fails where a path takes more than 3 % above what it took when its budget was written down. It
//! needs valgrind, and `cargo install gungraun-runner` in the version of `Cargo.lock`. A count says less than a nanosecond: an atomic write
//! is one instruction like any other. But nothing on a busy machine moves it.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Duration;

use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind};
use portcullis::{Clock, Engine, Policy, PolicyBuilder, Target, Window};

/// Decisions in one measurement, so that what is around them doesn't count.
const DECISIONS: u64 = 1_000;
/// What a count may grow by.
const SLACK_PERCENT: u64 = 3;

const KEY: &str = "core-banking.eu-west-1.example.com:443";

/// Fails a path that takes more instructions per decision.
fn budget(instructions: u64) -> LibraryBenchmarkConfig {
    let most = instructions * DECISIONS * (100 + SLACK_PERCENT) / 100;
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(Callgrind::default().hard_limits([(EventKind::Ir, most)]).clone());
    config
}

fn engine(policy: PolicyBuilder) -> &'static Engine {
    // A standing clock: what reading one takes is its own business.
    let (clock, _) = Clock::mock();
    Box::leak(Box::new(Engine::builder().policy(policy.build().unwrap()).clock(clock).build()))
}

fn limited() -> PolicyBuilder {
    Policy::builder().max_in_flight(1_000)
}

/// A target whose window is full of successes.
fn healthy(policy: PolicyBuilder) -> Target<'static> {
    let engine = engine(policy);
    for _ in 0..200 {
        engine.admit(KEY).unwrap().success();
    }
    engine.target(KEY).unwrap()
}

fn calls() -> Target<'static> {
    healthy(limited())
}

fn streak() -> Target<'static> {
    healthy(limited().no_window().consecutive_failures(5))
}

fn time() -> Target<'static> {
    healthy(limited().window(Window::time(Duration::from_secs(10))))
}

fn few() -> Target<'static> {
    healthy(Policy::builder().max_in_flight(10))
}

/// A target whose calls are told to so many shadows.
fn shadowed(shadows: usize) -> Target<'static> {
    let target = calls();
    for name in ["a", "b", "c", "d"].iter().take(shadows) {
        target.shadow(name, limited().build().unwrap()).unwrap();
    }
    for _ in 0..200 {
        target.admit().unwrap().success();
    }
    target
}

fn stalls() -> Target<'static> {
    healthy(limited().stall_after(Duration::from_secs(1)).stalled_calls(100))
}

fn known() -> &'static Engine {
    let engine = engine(limited());
    for _ in 0..200 {
        engine.admit(KEY).unwrap().success();
    }
    engine
}

fn open() -> Target<'static> {
    let target = healthy(limited().consecutive_failures(1));
    target.admit().unwrap().failure();
    assert!(target.admit().is_err());
    target
}

fn full() -> Target<'static> {
    let target = healthy(Policy::builder().max_in_flight(1));
    std::mem::forget(target.admit());
    assert!(target.admit().is_err());
    target
}

#[library_benchmark]
#[bench::window_of_100_calls(args = (calls()), config = budget(94))]
#[bench::streak_only(args = (streak()), config = budget(88))]
#[bench::window_of_10_s(args = (time()), config = budget(182))]
#[bench::limit_of_10(args = (few()), config = budget(253))]
#[bench::window_of_100_calls_and_a_shadow(args = (shadowed(1)), config = budget(930))]
#[bench::window_of_100_calls_and_four_shadows(args = (shadowed(4)), config = budget(1_869))]
#[bench::window_of_100_calls_and_stalls(args = (stalls()), config = budget(693))]
fn admit_and_success(target: Target<'static>) -> Target<'static> {
    for _ in 0..DECISIONS {
        if let Ok(permit) = black_box(&target).admit() {
            black_box(permit.success());
        }
    }
    target
}

#[library_benchmark]
#[bench::in_a_window_of_100_calls(args = (calls()), config = budget(284))]
#[bench::in_a_window_of_10_s(args = (time()), config = budget(234))]
fn one_failure_in_a_hundred(target: Target<'static>) -> Target<'static> {
    for number in 0..DECISIONS {
        if let Ok(permit) = black_box(&target).admit() {
            black_box(if number % 100 == 0 { permit.failure() } else { permit.success() });
        }
    }
    target
}

#[library_benchmark]
#[bench::a_key_of_38_bytes(args = (known()), config = budget(241))]
fn admit_by_key_and_success(engine: &'static Engine) {
    for _ in 0..DECISIONS {
        if let Ok(permit) = engine.admit(black_box(KEY)) {
            black_box(permit.success());
        }
    }
}

#[library_benchmark]
#[bench::while_open(args = (open()), config = budget(83))]
#[bench::while_full(args = (full()), config = budget(66))]
fn refused(target: Target<'static>) -> Target<'static> {
    for _ in 0..DECISIONS {
        // What a caller is told, in full: unread, the optimizer leaves some of it out in some builds.
        let _ = black_box(black_box(&target).admit().err());
    }
    target
}

library_benchmark_group!(
    name = decisions,
    benchmarks = [admit_and_success, one_failure_in_a_hundred, admit_by_key_and_success, refused]
);

main!(library_benchmark_groups = decisions);
