//! One decision on one thread, beside its floor: two uncontended read-modify-writes, measured in the same run.
//!
//! `cargo bench --bench decision`; compare ratios, a nanosecond doesn't travel.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use portcullis::{Clock, Engine, Policy, PolicyBuilder, Rejection, Window};

const KEY: &str = "core-banking.eu-west-1.example.com:443";

fn engine(policy: PolicyBuilder) -> Engine {
    // A standing clock: the price of reading one is a row of its own.
    engine_by(Clock::mock().0, policy)
}

fn engine_by(clock: Clock, policy: PolicyBuilder) -> Engine {
    let policy = policy.build().unwrap_or_else(|error| panic!("the policy of a bench builds: {error}"));
    Engine::builder().policy(policy).clock(clock).build()
}

fn limited() -> PolicyBuilder {
    Policy::builder().max_in_flight(1_000)
}

fn floor(c: &mut Criterion) {
    let word = AtomicU64::new(0);
    c.bench_function("floor: two uncontended RMWs", |b| {
        b.iter(|| {
            black_box(&word).fetch_add(1, Ordering::AcqRel);
            black_box(&word).fetch_add(1, Ordering::AcqRel);
        });
    });
    let clock = quanta::Clock::new();
    c.bench_function("floor: one clock reading", |b| b.iter(|| black_box(clock.raw())));
}

fn admitted(c: &mut Criterion) {
    let coarse = || Clock::coarse(Duration::from_millis(1)).unwrap_or_else(|error| panic!("{error}"));
    let standing = || Clock::mock().0;
    let rows = [
        ("window of 100 calls", limited(), standing()),
        // Time must pass here: a bucket counts 16 million calls, which is less than a bench makes.
        ("window of 1 s, coarse clock", limited().window(Window::time(Duration::from_secs(1))), coarse()),
        ("streak only", limited().no_window().consecutive_failures(5), standing()),
        ("small limit, window of 100 calls", Policy::builder().max_in_flight(10), standing()),
    ];
    for (name, policy, clock) in rows {
        let engine = engine_by(clock, policy);
        let target = engine.target(KEY).unwrap_or_else(|rejection| panic!("there is room: {rejection}"));
        c.bench_function(&format!("admit + success, resolved: {name}"), |b| {
            b.iter(|| match target.admit() {
                Ok(permit) => black_box(permit.success()),
                Err(rejection) => panic!("a healthy target admits: {rejection}"),
            });
        });
    }
    for shadows in [1, 4] {
        let engine = engine(limited());
        let target = engine.target(KEY).unwrap_or_else(|rejection| panic!("there is room: {rejection}"));
        for name in ["a", "b", "c", "d"].iter().take(shadows) {
            let shadow = limited().build().map(|policy| target.shadow(name, policy));
            assert_eq!(shadow, Ok(Ok(true)));
        }
        c.bench_function(&format!("admit + success, resolved: window of 100 calls, shadows: {shadows}"), |b| {
            b.iter(|| match target.admit() {
                Ok(permit) => black_box(permit.success()),
                Err(rejection) => panic!("a healthy target admits: {rejection}"),
            });
        });
    }
    let engine = engine(limited());
    c.bench_function("admit + success, keyed: window of 100 calls", |b| {
        b.iter(|| match engine.admit(black_box(KEY)) {
            Ok(permit) => black_box(permit.success()),
            Err(rejection) => panic!("a healthy target admits: {rejection}"),
        });
    });
}

fn refused(c: &mut Criterion) {
    let open = engine(limited().consecutive_failures(1));
    let target = open.target(KEY).unwrap_or_else(|rejection| panic!("there is room: {rejection}"));
    if let Ok(permit) = target.admit() {
        permit.failure();
    }
    assert!(matches!(target.admit(), Err(Rejection::Open { .. })));
    c.bench_function("refused while OPEN, resolved", |b| b.iter(|| black_box(target.admit().is_err())));

    let full = engine(Policy::builder().max_in_flight(1));
    let target = full.target(KEY).unwrap_or_else(|rejection| panic!("there is room: {rejection}"));
    let permit = target.admit();
    assert!(permit.is_ok() && matches!(target.admit(), Err(Rejection::Saturated { .. })));
    c.bench_function("refused while full, resolved", |b| b.iter(|| black_box(target.admit().is_err())));
}

criterion_group!(decisions, floor, admitted, refused);
criterion_main!(decisions);
