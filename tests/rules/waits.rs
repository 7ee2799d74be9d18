//! R6 and R7: the deadline of OPEN, and how it grows.

use std::sync::Mutex;
use std::time::Duration;

use portcullis::{Clock, Engine, Policy, PolicyBuilder, Settled, State, Window};
use proptest::prelude::*;

use crate::common::{Bench, T, ms, race, secs, take, textbook};

/// The wait that the target was just opened for.
fn wait(bench: &Bench) -> Duration {
    bench.snapshot().reopen_in.expect("the target is open")
}

/// Opens, then fails every probe: the waits in turn.
fn waits(bench: &Bench, times: usize) -> Vec<Duration> {
    let mut waits = Vec::new();
    bench.fail(5);
    for _ in 0..times {
        let now = wait(bench);
        waits.push(now);
        bench.advance(now);
        bench.probe().failure();
    }
    waits
}

#[test]
fn r06_later_failures_do_not_move_the_deadline() {
    let bench = Bench::new(textbook());
    let mut old = take(&bench, 25);
    old.drain(..5).for_each(|permit| assert_eq!(permit.failure(), Settled::Recorded));
    for (passed, permit) in (1..).zip(old) {
        bench.advance(secs(1));
        assert_eq!(permit.failure(), Settled::Stale);
        assert_eq!(wait(&bench), secs(30 - passed));
    }
    bench.advance(secs(10));
    bench.probe().success();
}

#[test]
fn r06_a_trip_that_lost_its_race_is_no_second_event_and_no_second_step() {
    for _ in 0..100 {
        let bench = Bench::new(textbook());
        // Each thread settles one; more than one may see the window past its threshold.
        let permits: Vec<_> = take(&bench, 16).into_iter().map(|permit| Mutex::new(Some(permit))).collect();
        race(16, |index| permits[index].lock().unwrap().take().map(portcullis::Permit::failure));
        assert_eq!(bench.log().len(), 1);
        let snapshot = bench.snapshot();
        assert_eq!((snapshot.state, snapshot.reopens, snapshot.generation), (State::Open, 0, 1));
        assert_eq!(snapshot.totals.failure + snapshot.totals.stale, 16);
        assert_eq!(wait(&bench), secs(30));
    }
}

#[test]
fn r06_probes_that_fail_together_are_one_step_of_backoff() {
    for _ in 0..100 {
        let bench = Bench::tripped(textbook().max_probes(8));
        bench.advance(secs(30));
        let probes: Vec<_> = (0..8).map(|_| Mutex::new(Some(bench.probe()))).collect();
        let settled = race(8, |index| probes[index].lock().unwrap().take().unwrap().failure());
        assert_eq!(settled.iter().filter(|settled| **settled == Settled::Recorded).count(), 1);
        assert_eq!((bench.snapshot().reopens, wait(&bench), bench.log().len()), (1, secs(60), 3));
    }
}

#[test]
fn r07_waits_double_up_to_their_maximum() {
    let bench = Bench::new(textbook());
    assert_eq!(waits(&bench, 6), [30, 60, 120, 240, 300, 300].map(secs));
}

#[test]
fn r07_closing_resets_the_exponent() {
    let bench = Bench::new(textbook());
    waits(&bench, 3);
    bench.advance(wait(&bench));
    bench.probe().success();
    assert_eq!((bench.state(), bench.snapshot().reopens), (State::Closed, 0));
    assert_eq!(waits(&bench, 2), [secs(30), secs(60)]);
}

#[test]
fn r07_a_success_that_does_not_close_resets_nothing() {
    let bench = Bench::new(textbook().successes_to_close(2));
    waits(&bench, 1);
    bench.advance(wait(&bench));
    bench.probe().success();
    bench.probe().failure();
    assert_eq!(wait(&bench), secs(120));
}

#[test]
fn r07_a_lease_taken_over_is_no_step_of_backoff() {
    let bench = Bench::tripped(textbook().probe_lease(secs(1)));
    bench.advance(secs(30));
    for _ in 0..5 {
        std::mem::forget(bench.probe());
        bench.advance(secs(2));
    }
    bench.probe().failure();
    assert_eq!(wait(&bench), secs(60));
}

#[test]
fn r07_a_hundred_reopenings_neither_wrap_nor_shrink() {
    let bench = Bench::new(textbook().open_wait(ms(1)).open_wait_max(secs(86_400)).backoff(1_000.0));
    let all = waits(&bench, 100);
    assert!(all.is_sorted() && all[0] == ms(1) && all[99] == secs(86_400), "{all:?}");
    let bench = Bench::new(textbook().backoff(1.5));
    let all = waits(&bench, 100);
    assert!(all.iter().skip(10).all(|wait| *wait == secs(300)));
    assert_eq!(bench.snapshot().reopens, 31);
}

#[test]
fn r07_a_backoff_of_one_keeps_the_wait() {
    let bench = Bench::new(textbook().backoff(1.0).open_wait_max(secs(30)));
    assert_eq!(waits(&bench, 5), [secs(30); 5]);
}

#[test]
fn r07_a_wait_is_rounded_up_to_a_millisecond_and_the_trip_to_the_next() {
    let bench = Bench::new(textbook().open_wait(Duration::from_micros(1_200)).open_wait_max(secs(1)));
    bench.advance(Duration::from_nanos(500));
    bench.fail(5);
    // 2 ms from the next whole millisecond, never less than the wait.
    assert_eq!(wait(&bench), Duration::from_nanos(3_000_000 - 500));
}

fn jittered(seed: u64, key: &str, policy: PolicyBuilder) -> Vec<Duration> {
    let (clock, time) = Clock::mock();
    let engine: Engine = Engine::builder().policy(policy.build().unwrap()).clock(clock).seed(seed).build();
    (0..5).for_each(|_| assert_eq!(engine.admit(key).unwrap().failure(), Settled::Recorded));
    let mut waits = Vec::new();
    for _ in 0..8 {
        let wait = engine.snapshot(key).unwrap().reopen_in.unwrap();
        waits.push(wait);
        time.increment(wait);
        engine.admit(key).unwrap().failure();
    }
    waits
}

#[test]
fn r07_jitter_is_the_same_in_every_run_with_a_seed_and_differs_between_seeds_and_targets() {
    let policy = || textbook().jitter(0.5);
    let first = jittered(7, T, policy());
    assert_eq!(first, jittered(7, T, policy()));
    assert_ne!(first, jittered(8, T, policy()));
    assert_ne!(first, jittered(7, "claims", policy()));
}

#[test]
fn r07_jitter_is_on_by_default() {
    let policy =
        || Policy::builder().window(Window::calls(10)).min_calls(5).open_wait(secs(100)).open_wait_max(secs(100_000));
    let drawn: std::collections::BTreeSet<_> = (0..20).map(|seed| jittered(seed, T, policy())[0]).collect();
    assert!(drawn.len() > 10, "{drawn:?}");
    assert!(drawn.iter().all(|wait| (secs(90)..=secs(110)).contains(wait)), "{drawn:?}");
}

#[test]
fn r07_jitter_spreads_over_its_whole_range_and_never_past_the_maximum() {
    let policy = || textbook().open_wait(secs(100)).open_wait_max(secs(1_600)).jitter(0.2);
    let runs: Vec<_> = (0..200).map(|seed| jittered(seed, T, policy())).collect();
    for (step, base) in [100_u64, 200, 400, 800, 1_600, 1_600].into_iter().enumerate() {
        let drawn: Vec<_> = runs.iter().map(|run| run[step]).collect();
        let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
        // The maximum cuts the range; what is left is drawn from evenly.
        let range = secs(base) * 4 / 5..=(secs(base) * 6 / 5).min(secs(1_600));
        assert!(range.contains(least) && range.contains(most), "step {step}: {least:?} to {most:?}");
        let edge = secs(base) / 20;
        assert!(*least < *range.start() + edge, "step {step}: the low end is drawn too");
        assert!(*most > *range.end() - edge, "step {step}: and the high end");
        assert!(drawn.iter().filter(|wait| *wait == most).count() < 5, "step {step}: waits meet at the maximum");
    }
}

#[test]
fn r07_jitter_is_drawn_once_per_trip() {
    let bench = Bench::tripped(textbook().jitter(1.0));
    let deadline = wait(&bench);
    for _ in 0..5 {
        assert_eq!(wait(&bench), deadline);
        assert_eq!(bench.refusal().retry_after(), Some(deadline));
    }
}

proptest! {
    /// Whatever the settings: never zero, never past the maximum, never shorter than the step before by more than the jitter.
    #[test]
    fn r07_every_wait_is_in_its_bounds(
        wait_ms in 1_u64..10_000_000,
        more_ms in 0_u64..10_000_000,
        backoff in 2_000_u32..1_000_000,
        jitter in 0_u32..=10_000,
        reopens in any::<u32>(),
        draw in any::<u64>(),
    ) {
        let (backoff, jitter) = (f64::from(backoff) / 1_000.0, f64::from(jitter) / 10_000.0);
        let policy = Policy::builder().open_wait(ms(wait_ms)).open_wait_max(ms(wait_ms + more_ms)).backoff(backoff).jitter(jitter);
        let policy = policy.build().unwrap();
        for reopens in [0, 1, 2, 31, 32, reopens] {
            let wait = policy.wait(reopens, draw);
            prop_assert!(wait >= ms(1) && wait <= ms(wait_ms + more_ms), "{wait:?}");
            let base = (wait_ms as f64 * backoff.powf(f64::from(reopens))).min((wait_ms + more_ms) as f64);
            let (wait, most) = (wait.as_millis() as f64, (wait_ms + more_ms) as f64);
            let (span, slack) = (base * jitter, base * 1e-3 + 3.0);
            let in_range = wait <= (base + span).min(most) + slack && wait >= base - span - slack;
            prop_assert!(in_range, "{wait} of {base} ms with {jitter}");
        }
    }
}
