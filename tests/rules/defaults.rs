//! The defaults of the design, and the one table in the docs that lists them, against the code.

use std::collections::BTreeMap;
use std::time::Duration;

use portcullis::{Engine, OnAbandon, Policy, PolicyBuilder, Rejection, Settled, UNLIMITED, Window};

use crate::common::{Bench, ms, secs};

/// What the design promises, set by hand.
fn promised() -> PolicyBuilder {
    let bulkhead = Policy::builder().unlimited();
    let rules = bulkhead.window(Window::calls(100)).min_calls(10).failure_rate(0.5);
    let waits = rules.open_wait(secs(5)).backoff(2.0).open_wait_max(secs(60)).jitter(0.1);
    waits.max_probes(1).successes_to_close(3).probe_lease(secs(10)).ignored_probes(10)
}

#[test]
fn r18_the_defaults_are_the_design_s() {
    assert_eq!(promised().build().unwrap(), Policy::default());
    assert_eq!(Policy::builder().build().unwrap(), Policy::default());
    let engine: Engine = Engine::builder().build();
    engine.admit("a").unwrap().success();
    assert_eq!(engine.snapshot("a").unwrap().policy, Policy::default());
}

/// Setting, default and range of each row of the table in the docs of `Policy`.
fn table() -> BTreeMap<&'static str, (&'static str, &'static str)> {
    let source = include_str!("../../src/policy.rs");
    let rows = source.lines().filter_map(|line| line.strip_prefix("/// | `"));
    let rows = rows.filter_map(|row| {
        let mut cells = row.trim_end_matches('|').split('|').map(str::trim);
        let setting = cells.next()?.trim_end_matches('`');
        Some((setting, (cells.next()?, cells.next()?)))
    });
    rows.collect()
}

#[test]
fn r18_the_table_in_the_docs_says_what_the_code_does() {
    let mut table = table();
    let mut row = |setting: &str| table.remove(setting).unwrap_or_else(|| panic!("no row for {setting}"));
    // A default that is written in the table, set by hand, must change nothing.
    let same = |policy: PolicyBuilder| assert_eq!(policy.build().as_ref(), Ok(&Policy::default()));
    assert_eq!(row("max_in_flight"), ("unlimited", "1 to 16,777,214 calls, or unlimited"));
    same(Policy::builder().max_in_flight(UNLIMITED));
    assert_eq!(row("normal_share"), ("1", "above 0 to 1, in steps of 0.0001"));
    assert_eq!(row("sheddable_share"), ("`normal_share`", "above 0 to `normal_share`, in steps of 0.0001"));
    same(Policy::builder().normal_share(1.0).sheddable_share(1.0));
    assert_eq!(row("max_waiting"), ("0", "0 to 65,535 calls"));
    same(Policy::builder().max_waiting(0));
    assert_eq!(row("max_wait"), ("100 ms, once `max_waiting` is set", "1 ms to 1 h"));
    assert_eq!(row("consecutive_failures"), ("none", "1 to 4,294,967,295 failures"));
    assert_eq!(row("window"), ("100 calls", "1 to 100 calls; 1 ms to 24 h in 1 to 64 buckets; or none"));
    same(Policy::builder().window(Window::calls(100)));
    assert_eq!(row("min_calls"), ("10, or the whole window if that is less", "1 to the window's calls"));
    same(Policy::builder().min_calls(10));
    assert_eq!(row("failure_rate"), ("0.5", "above 0 to 1, in steps of 0.0001; or none"));
    same(Policy::builder().failure_rate(0.5));
    assert_eq!(row("failures"), ("none", "1 to the window's calls"));
    assert_eq!(row("slow_call"), ("none", "above 0"));
    assert_eq!(row("slow_rate"), ("1, once `slow_call` is set", "above 0 to 1, in steps of 0.0001"));
    assert_eq!(row("stall_after"), ("none", "50 ms to 24 h"));
    assert_eq!(row("stalled_calls"), ("none", "1 to `max_in_flight` calls"));
    let share = "above 0 to 1, in steps of 0.0001; with a `max_in_flight`";
    assert_eq!(row("stalled_share"), ("none", share));
    assert_eq!(row("open_wait"), ("5 s", "1 ms to 365 d"));
    same(Policy::builder().open_wait(secs(5)));
    assert_eq!(row("backoff"), ("2", "1 to 1,000, in steps of 0.001"));
    same(Policy::builder().backoff(2.0));
    assert_eq!(row("open_wait_max"), ("60 s, or `open_wait` and its jitter if that is more", "`open_wait` to 365 d"));
    same(Policy::builder().open_wait_max(secs(60)));
    assert_eq!(row("jitter"), ("0.1", "0 to 1, in steps of 0.0001"));
    same(Policy::builder().jitter(0.1));
    assert_eq!(row("max_probes"), ("1", "1 to 31 probes"));
    same(Policy::builder().max_probes(1));
    assert_eq!(row("successes_to_close"), ("3", "1 to 31 successes"));
    same(Policy::builder().successes_to_close(3));
    assert_eq!(row("probe_lease"), ("10 s, or `open_wait` if that is more", "1 s to 365 d"));
    same(Policy::builder().probe_lease(secs(10)));
    let abandon = ("ignore; `failure_after` 500 ms for async calls", "ignore, failure, failure after a time");
    assert_eq!(row("on_abandon"), abandon);
    assert_eq!(row("ignored_probes"), ("10", "1 to 1,000,000 probes"));
    same(Policy::builder().ignored_probes(10));
    assert_eq!(row("adaptive"), ("none", "a limit that follows latency, see [`Adaptive`](crate::Adaptive); or none"));
    same(Policy::builder().no_adaptive());
    assert_eq!(row("ramp"), ("none", "1 ms to 24 h, with a limit in `max_in_flight`"));
    assert_eq!(row("ramp_failures"), ("3, once `ramp` is set", "1 to 1,000 failures"));
    assert!(table.is_empty(), "rows that this test doesn't know: {table:?}");
}

#[test]
fn r18_defaults_that_depend_on_other_settings() {
    let equal = |one: PolicyBuilder, other: PolicyBuilder| assert_eq!(one.build().unwrap(), other.build().unwrap());
    let p = Policy::builder;
    equal(p().window(Window::calls(4)), p().window(Window::calls(4)).min_calls(4));
    equal(p().normal_share(0.5), p().normal_share(0.5).sheddable_share(0.5));
    equal(p().max_waiting(9), p().max_waiting(9).max_wait(ms(100)));
    equal(p().slow_call(secs(1)), p().slow_call(secs(1)).slow_rate(1.0));
    equal(p().open_wait(secs(90)), p().open_wait(secs(90)).open_wait_max(secs(99)).probe_lease(secs(90)));
    equal(p().open_wait(ms(10_001)), p().open_wait(ms(10_001)).probe_lease(secs(11)));
    equal(p().open_wait(secs(90)).jitter(0.0), p().open_wait(secs(90)).jitter(0.0).open_wait_max(secs(90)));
    equal(p().backoff(1.0).jitter(0.0), p().backoff(1.0).jitter(0.0).open_wait_max(secs(5)));
    let ramp = || p().max_in_flight(9).ramp(secs(1));
    equal(ramp(), ramp().ramp_failures(3));
    // 5 s grown 31 times by 1.01, as far as it gets without jitter.
    let reach = p().backoff(1.01).jitter(0.0).build().unwrap().wait(31, u64::MAX);
    assert!(reach > secs(6) && reach < secs(7), "{reach:?}");
}

#[test]
fn r18_durations_are_rounded_up_as_the_docs_say() {
    let micros = Duration::from_micros;
    let policy = |policy: PolicyBuilder| policy.build().unwrap();
    assert_eq!(policy(Policy::builder().open_wait(micros(1_001))), policy(Policy::builder().open_wait(ms(2))));
    let max = |max| policy(Policy::builder().open_wait(ms(1)).open_wait_max(max));
    assert_eq!(max(micros(59_999_001)), max(secs(60)));
    let lease = |lease| policy(Policy::builder().probe_lease(lease));
    assert_eq!(lease(micros(2_000_001)), lease(secs(3)));
}

#[test]
fn r18_abandoned_is_ignored_unless_async() {
    assert_ne!(Policy::default(), Policy::builder().on_abandon(OnAbandon::Ignore).build().unwrap());
    let bench = Bench::new(Policy::builder().min_calls(1));
    let permit = bench.enter();
    bench.advance(secs(3_600));
    drop(permit);
    assert_eq!(bench.window(), (0, 0));
}

#[test]
fn r18_the_engine_s_defaults() {
    let bench = Bench::new(Policy::builder());
    for key in 0..10_000 {
        assert_eq!(bench.engine.admit(key.to_string().as_str()).unwrap().failure(), Settled::Recorded);
    }
    assert_eq!(bench.engine.admit("one more").unwrap_err(), Rejection::Exhausted { max_targets: 10_000 });
}
