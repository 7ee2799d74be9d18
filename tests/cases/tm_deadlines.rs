use std::time::Duration;

use portcullis::{Clock, Engine, Permit, PolicyBuilder, Rejection, State};

use super::kit::{c0, done, opened, t0};
use crate::common::{Bench, T, ms, secs};

fn retry_after(bench: &Bench) -> Duration {
    match bench.engine.admit(T) {
        Err(Rejection::Open { retry_after }) => retry_after,
        other => panic!("{other:?}"),
    }
}

/// A script with every kind of step, as text: to compare runs.
fn script(origin: u64, policy: &PolicyBuilder) -> Vec<String> {
    let (clock, time) = Clock::mock();
    time.increment(origin);
    let engine: Engine = Engine::builder().policy(policy.clone().build().unwrap()).clock(clock).seed(7).build();
    let mut said = Vec::new();
    for step in 0..200_u64 {
        let answer = engine.admit(T);
        said.push(format!("{:?}", answer.as_ref().map(Permit::is_probe)));
        time.increment(ms(step * 37 % 900));
        if let Ok(permit) = answer {
            match step % 7 {
                0 | 1 => drop(permit.success()),
                2 => drop(permit.ignore()),
                3 => drop(permit),
                _ => drop(permit.failure()),
            }
        }
        let snapshot = engine.snapshot(T).unwrap();
        said.push(format!("{snapshot} {:?} {:?}", snapshot.reopen_in, snapshot.totals));
    }
    said.extend(engine.transitions().iter().map(|it| format!("{:?} {} {} {}", it.at, it.from, it.to, it.cause)));
    said
}

/// Invariant 10.
#[test]
fn tm09_any_origin_of_the_clock_gives_the_same_run() {
    for policy in [t0().jitter(0.1).backoff(2.0).open_wait(ms(800)), c0().open_wait(ms(700)).slow_call(ms(300))] {
        let first = script(0, &policy);
        assert!(first.iter().any(|line| line.contains("OPEN")), "the script opens something");
        for origin in [1, u64::from(u32::MAX), 1 << 40, i64::MAX as u64, u64::MAX - 3_600_000_000_000] {
            assert_eq!(script(origin, &policy), first, "origin {origin}");
        }
    }
}

#[test]
fn tm12_the_hint_falls_and_ends_with_the_wait() {
    let bench = Bench::new(c0().backoff(2.0));
    bench.fail(5);
    bench.advance(secs(30));
    bench.fail(1);
    let mut hints = Vec::new();
    for by in [secs(1), secs(9), secs(49)] {
        bench.advance(by);
        hints.push(retry_after(&bench));
    }
    assert_eq!(hints, [secs(59), secs(50), secs(1)]);
    bench.advance(secs(1));
    assert_eq!(bench.snapshot().reopen_in, Some(Duration::ZERO));
    assert!(bench.engine.admit(T).is_ok());
}

#[test]
fn tm12_with_jitter_the_hint_is_the_deadline_itself() {
    let mut waits = Vec::new();
    for seed in 0..50 {
        let (clock, time) = Clock::mock();
        let policy = c0().jitter(0.5).build().unwrap();
        let engine: Engine = Engine::builder().policy(policy).clock(clock).seed(seed).build();
        (0..5).for_each(|_| done(engine.admit(T).unwrap().failure()));
        let Err(Rejection::Open { retry_after }) = engine.admit(T) else { panic!("open") };
        time.increment(retry_after - Duration::from_nanos(1));
        assert!(matches!(engine.admit(T), Err(Rejection::Open { .. })));
        time.increment(1_u64);
        assert!(engine.admit(T).unwrap().is_probe());
        waits.push(retry_after);
    }
    waits.sort();
    waits.dedup();
    assert!(waits.len() > 10 && waits[0] >= secs(15) && waits.last() <= Some(&secs(45)), "{waits:?}");
}

#[test]
fn tm13_a_refusal_never_says_now() {
    // Deadlines between two ticks of a millisecond, approached by nanoseconds.
    for offset in [0_u64, 1, 499_999, 999_999] {
        let bench = Bench::new(c0().open_wait(ms(3)).open_wait_max(ms(3)));
        bench.time.increment(offset);
        bench.fail(5);
        let mut refused = 0;
        while let Err(Rejection::Open { retry_after }) = bench.engine.admit(T) {
            assert!(!retry_after.is_zero());
            bench.time.increment(retry_after.as_nanos().div_ceil(2) as u64);
            refused += 1;
        }
        assert!(refused > 10);
    }
}

#[test]
fn tm13_exactly_at_the_deadline_the_probe_enters() {
    let bench = opened(c0());
    bench.advance(secs(30) - Duration::from_nanos(1));
    assert_eq!(retry_after(&bench), Duration::from_nanos(1));
    bench.time.increment(1_u64);
    assert!(bench.engine.admit(T).is_ok());
}

#[test]
fn tm16_the_wait_grows_to_its_maximum_and_starts_again_after_recovery() {
    let bench = Bench::new(c0().backoff(2.0).open_wait_max(secs(300)));
    bench.fail(5);
    let mut waits = vec![retry_after(&bench)];
    for _ in 0..5 {
        bench.advance(*waits.last().unwrap());
        bench.fail(1);
        waits.push(retry_after(&bench));
    }
    assert_eq!(waits, [30, 60, 120, 240, 300, 300].map(secs));
    bench.advance(secs(300));
    bench.succeed(1);
    assert_eq!((bench.state(), bench.snapshot().reopens), (State::Closed, 0));
    bench.advance(secs(3_600));
    bench.fail(5);
    assert_eq!(retry_after(&bench), secs(30));
}

/// Sixty failed probes in a row: the exponent stands still, the wait stays at its maximum.
#[test]
fn tm16_a_long_outage_wraps_nothing() {
    let bench = Bench::new(c0().backoff(2.0).open_wait_max(secs(300)));
    bench.fail(5);
    for reopens in 0..100_u32 {
        let wait = retry_after(&bench);
        assert_eq!(bench.snapshot().reopens, reopens.min(31));
        assert_eq!(wait, secs((30 << reopens.min(4)).min(300)));
        bench.advance(wait);
        bench.fail(1);
    }
}

/// A fleet at the longest wait still spreads its probes, within the jitter that was asked for.
#[test]
fn tm16_jitter_spreads_the_longest_wait_too() {
    let policy = c0().backoff(2.0).open_wait_max(secs(60)).jitter(0.1).build().unwrap();
    let waits: Vec<_> = (0..1_000_u64).map(|draw| policy.wait(20, draw * (u64::MAX / 1_000))).collect();
    assert!(waits.iter().all(|wait| (secs(54)..=secs(60)).contains(wait)));
    let at_most = waits.iter().filter(|wait| **wait == secs(60)).count();
    assert!(at_most < 50, "{at_most} of 1,000 come back at exactly the maximum");
}
