use std::time::Duration;

use portcullis::{Clock, Engine, OnAbandon, Policy, Rejection, State, Window};

use super::kit::{c0, done, elapsed, opened, t0};
use crate::common::{Bench, T, ms, secs};

#[test]
fn tm03_a_clock_that_steps_back_panics_nowhere_and_counts_nothing_down() {
    let bench = Bench::new(t0().slow_call(ms(1)).on_abandon(OnAbandon::FailureAfter(ms(1))));
    let mut before = (0, 0);
    for (up, step) in [(true, 100), (true, 0), (false, 1), (true, 2), (false, 3), (false, 98), (true, 7)] {
        let permit = bench.engine.admit(T).unwrap();
        let step = Duration::from_nanos(step);
        if up {
            bench.time.increment(step);
        } else {
            bench.time.decrement(step);
        };
        permit.success();
        drop(bench.engine.admit(T).unwrap());
        let totals = bench.snapshot().totals;
        assert!((totals.admitted, totals.success) > before);
        before = (totals.admitted, totals.success);
        assert_eq!(totals.slow, 0, "a call that ended before it began took no time");
    }
    assert_eq!(bench.state(), State::Closed);
}

#[test]
fn tm03_a_clock_that_falls_behind_the_start_reads_zero() {
    let (clock, time) = Clock::mock();
    time.increment(secs(100));
    let engine: Engine = Engine::builder().policy(t0().build().unwrap()).clock(clock).build();
    (0..5).for_each(|_| done(engine.admit(T).unwrap().failure()));
    time.decrement(secs(100));
    assert_eq!(engine.now(), Duration::ZERO);
    assert_eq!(engine.admit(T).unwrap_err(), Rejection::Open { retry_after: secs(30) });
    time.increment(secs(130));
    assert!(engine.admit(T).unwrap().is_probe());
}

#[test]
fn tm04_a_standing_clock_keeps_the_wait_and_a_leap_is_elapsed_time() {
    // Eight hours asleep on a clock that stands: the wait goes on where it stopped.
    let bench = opened(c0());
    for _ in 0..100 {
        assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Open { retry_after: secs(30) });
    }
    bench.advance(secs(30));
    assert!(bench.engine.admit(T).unwrap().is_probe());

    // A leap with 100 calls in flight.
    let bench = Bench::new(t0().probe_lease(secs(30)));
    let flying: Vec<_> = (0..100).map(|_| bench.engine.admit(T).unwrap()).collect();
    bench.fail(4);
    bench.advance(secs(8 * 3_600));
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.window.unwrap().calls, snapshot.state), (100, 0, State::Closed));
    bench.fail(5);
    let events = bench.log().len();
    bench.advance(secs(8 * 3_600));
    assert_eq!(bench.log().len(), events, "time alone makes no event");
    std::mem::forget(bench.engine.admit(T).unwrap());
    assert!(matches!(bench.engine.admit(T), Err(Rejection::Probing { .. })));
    bench.advance(secs(8 * 3_600));
    std::mem::forget(bench.engine.admit(T).unwrap());
    assert!(matches!(bench.engine.admit(T), Err(Rejection::Probing { .. })), "reclaimed once");
    assert_eq!((bench.log().len(), bench.snapshot().in_flight), (events + 2, 102));
    drop(flying);
    assert_eq!(bench.snapshot().in_flight, 2);
}

#[test]
fn tm06_settings_without_end_are_refused_or_work() {
    for long in [Duration::MAX, Duration::from_nanos(u64::MAX), secs(u64::MAX)] {
        assert_eq!(c0().open_wait(long).build().unwrap_err().field(), "open_wait");
        assert_eq!(c0().open_wait_max(long).build().unwrap_err().field(), "open_wait_max");
        assert_eq!(c0().probe_lease(long).build().unwrap_err().field(), "probe_lease");
        assert_eq!(c0().window(Window::time(long)).build().unwrap_err().field(), "window.time");
        // "Never slow" and "never abandoned" are sensible.
        let bench = Bench::new(c0().slow_call(long).slow_rate(0.1).on_abandon(OnAbandon::FailureAfter(long)));
        for _ in 0..10 {
            let permit = bench.engine.admit(T).unwrap();
            bench.advance(secs(86_400));
            permit.success();
            let permit = bench.engine.admit(T).unwrap();
            bench.advance(secs(86_400));
            drop(permit);
        }
        assert_eq!((bench.state(), bench.snapshot().totals.slow), (State::Closed, 0));
    }
    let engine: Engine = Engine::builder().idle_after(Duration::MAX).forget_after(Duration::MAX).build();
    engine.admit(T).unwrap().success();
    assert_eq!((engine.sweep(), engine.sweep(), engine.len()), (0, 0, 1));
}

#[test]
fn tm06_the_longest_settings_run_a_full_cycle() {
    let year = secs(365 * 86_400);
    let bench = Bench::new(c0().open_wait(year).open_wait_max(year).probe_lease(year));
    bench.fail(5);
    bench.advance(year - ms(1));
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Open { retry_after: ms(1) });
    bench.advance(ms(1));
    std::mem::forget(bench.engine.admit(T).unwrap());
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Probing { retry_after: year });
    bench.advance(year);
    bench.succeed(1);
    assert_eq!(bench.state(), State::Closed);
}

/// The fields' ends: 2.18 years of milliseconds, 2.13 of seconds. Past them waits and leases are over at once, and nothing wedges.
#[test]
fn tm07_the_last_tick_is_no_sentinel() {
    let last = (1_u64 << 36) - 1;
    for before in [30_001_u64, 30_000, 29_999, 2, 1, 0] {
        let bench = Bench::new(c0());
        bench.advance(ms(last - before));
        bench.fail(5);
        let wait = before.min(30_000);
        if wait > 0 {
            assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Open { retry_after: ms(wait) });
            bench.advance(ms(wait));
        }
        assert_eq!(bench.state(), State::HalfOpen);
        bench.fail(1);
        bench.advance(ms(before - wait));
        bench.succeed(1);
        assert_eq!(bench.state(), State::Closed, "{before} ms before the end");
    }
    // Leases end earlier than waits; a forgotten probe is replaced there, too.
    let bench = Bench::new(c0());
    bench.advance(secs((1 << 26) - 1));
    bench.fail(5);
    bench.advance(secs(30));
    std::mem::forget(bench.engine.admit(T).unwrap());
    bench.succeed(1);
    assert_eq!(bench.state(), State::Closed);
}

/// For two years of its engine a window slides; past the last tick (2.18 years, as the word says) nothing panics or wedges.
#[test]
fn tm09_a_window_slides_for_two_years_and_never_wedges() {
    for years in [1_u64, 2, 3, 10] {
        let bench = Bench::new(t0().min_calls(50));
        bench.advance(secs(years * 365 * 86_400));
        for _ in 0..100 {
            bench.succeed(1);
            bench.advance(secs(100));
        }
        assert!(years > 2 || bench.snapshot().window.unwrap().calls <= 1, "a window of 10 s after {years} years");
        while bench.state() == State::Closed {
            bench.fail(1);
        }
        bench.advance(secs(30));
        bench.succeed(1);
        assert_eq!(bench.state(), State::Closed, "after {years} years");
    }
}

#[test]
fn tm10_the_wait_is_counted_from_the_trip_not_from_the_call() {
    let bench = Bench::new(c0().no_failure_rate().consecutive_failures(1));
    let slow = bench.engine.admit(T).unwrap();
    bench.advance(secs(60));
    slow.failure();
    bench.advance(secs(1));
    assert_eq!(bench.engine.admit(T).unwrap_err(), Rejection::Open { retry_after: secs(29) });
    bench.advance(secs(29));
    assert!(bench.engine.admit(T).unwrap().is_probe());
    // The same for a probe that takes its time.
    let bench = elapsed(c0());
    let slow = bench.engine.admit(T).unwrap();
    bench.advance(secs(20));
    slow.failure();
    assert_eq!(bench.snapshot().reopen_in, Some(secs(30)));
}

#[test]
fn tm01_only_the_engines_clock_decides() {
    // Wall time is in the report of a transition and nowhere else: two trips of one mock moment have one `at` each.
    let bench = opened(c0());
    let log = bench.log();
    assert_eq!(log[0].at, Duration::ZERO);
    assert!(log[0].wall > std::time::SystemTime::UNIX_EPOCH);
    bench.advance(secs(1));
    assert!(bench.engine.admit(T).is_err());
    bench.advance(secs(29));
    assert!(bench.engine.admit(T).is_ok());
    assert_eq!(bench.log()[1].at, secs(30));
    // TM-15: a clock belongs to an engine; there is no way to ask a target with another.
    let policy = Policy::builder().build().unwrap();
    let _: Engine = Engine::builder().policy(policy).clock(Clock::precise()).build();
}
