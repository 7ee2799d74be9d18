//! Metrics in the recorder that most use: what is there, what is summed up, and what goes away.
#![cfg(feature = "metrics")]

mod common;

use std::time::Duration;

use common::{Bench, T, ms, secs, textbook};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};
use metrics_util::MetricKindMask;
use portcullis::Engine;
use portcullis::metrics::{Collector, OTHER, Publisher};

/// A recorder with what was published into it.
struct Page {
    recorder: PrometheusRecorder,
    publisher: Publisher,
}

impl Page {
    fn of(engine: &Engine) -> Self {
        Self { recorder: PrometheusBuilder::new().build_recorder(), publisher: Publisher::new(engine) }
    }

    fn publish(&mut self, engine: &Engine) -> String {
        metrics::with_local_recorder(&self.recorder, || self.publisher.publish(engine));
        self.recorder.handle().render()
    }
}

/// The value of a series; none if it isn't there.
fn value(page: &str, series: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|value| value.parse().expect("a number"))
}

#[track_caller]
fn assert_shows(page: &str, expected: &[(&str, f64)]) {
    for (series, expected) in expected {
        assert_eq!(value(page, series), Some(*expected), "{series} in\n{page}");
    }
}

#[test]
fn metrics_tell_what_a_target_did() {
    let bench = Bench::new(textbook().max_in_flight(7));
    let mut page = Page::of(&bench.engine);
    bench.succeed(3);
    bench.fail(3);
    bench.refusal();
    bench.advance(secs(30));
    let probe = bench.probe();
    let shown = page.publish(&bench.engine);
    assert_shows(
        &shown,
        &[
            ("portcullis_target_state{target=\"core-banking\",state=\"HALF_OPEN\"}", 1.0),
            ("portcullis_target_state{target=\"core-banking\",state=\"CLOSED\"}", 0.0),
            ("portcullis_calls_total{target=\"core-banking\",outcome=\"failure\"}", 3.0),
            ("portcullis_calls_total{target=\"core-banking\",outcome=\"success\"}", 3.0),
            ("portcullis_refusals_total{target=\"core-banking\",reason=\"open\"}", 1.0),
            ("portcullis_admitted_total{target=\"core-banking\"}", 7.0),
            ("portcullis_in_flight{target=\"core-banking\"}", 1.0),
            ("portcullis_limit{target=\"core-banking\"}", 7.0),
            ("portcullis_probes_total{target=\"core-banking\"}", 1.0),
            ("portcullis_transitions_total{target=\"core-banking\",from=\"CLOSED\",to=\"OPEN\"}", 1.0),
            ("portcullis_transitions_total{target=\"core-banking\",from=\"HALF_OPEN\",to=\"OPEN\"}", 0.0),
            ("portcullis_targets", 1.0),
        ],
    );
    assert!(shown.contains("# HELP portcullis_limit ") && shown.contains("# TYPE portcullis_calls_total counter"));
    assert!(!shown.contains("FORCED_OPEN\",to"), "transitions that nobody made are left out");
    probe.success();
    let shown = page.publish(&bench.engine);
    let closed = "portcullis_transitions_total{target=\"core-banking\",from=\"HALF_OPEN\",to=\"CLOSED\"}";
    assert_shows(
        &shown,
        &[(closed, 1.0), ("portcullis_calls_total{target=\"core-banking\",outcome=\"success\"}", 4.0)],
    );
}

#[test]
fn metrics_of_a_target_that_is_forgotten_go_away_and_its_counters_go_on_when_it_returns() {
    let bench = Bench::with(textbook(), |builder| builder.idle_after(secs(60)));
    let recorder = PrometheusBuilder::new().idle_timeout(MetricKindMask::ALL, Some(ms(50))).build_recorder();
    let mut page = Page { recorder, publisher: Publisher::new(&bench.engine) };
    let series = "portcullis_in_flight{target=\"core-banking\"}";
    let held = bench.enter();
    bench.engine.admit("stays").unwrap().success();
    assert_shows(&page.publish(&bench.engine), &[(series, 1.0)]);
    held.success();
    bench.engine.sweep();
    bench.advance(secs(60));
    let _stays = bench.engine.admit("stays").unwrap();
    assert_eq!(bench.engine.sweep(), 1);
    let shown = page.publish(&bench.engine);
    assert!(value(&shown, series).is_none_or(|value| value == 0.0), "{shown}");
    // What is left is the recorder's: it drops what isn't written any more, and keeps what is.
    let mut shown = shown;
    for _ in 0..400 {
        if value(&shown, series).is_none() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        shown = page.publish(&bench.engine);
    }
    assert_eq!(value(&shown, series), None);
    assert_shows(&shown, &[("portcullis_in_flight{target=\"stays\"}", 1.0)]);

    bench.succeed(1);
    assert_shows(&page.publish(&bench.engine), &[(series, 0.0)]);
}

#[test]
fn metrics_of_a_target_that_returned_unseen_are_counted_on() {
    let bench = Bench::with(textbook(), |builder| builder.idle_after(secs(60)));
    let mut page = Page::of(&bench.engine);
    let series = "portcullis_calls_total{target=\"core-banking\",outcome=\"success\"}";
    bench.succeed(5);
    page.publish(&bench.engine);
    bench.engine.sweep();
    bench.advance(secs(60));
    assert_eq!(bench.engine.sweep(), 1);
    bench.succeed(2);
    assert_shows(&page.publish(&bench.engine), &[(series, 7.0)]);
}

#[test]
fn metrics_escape_names() {
    let bench = Bench::new(textbook());
    let mut page = Page::of(&bench.engine);
    bench.engine.admit("a\"b\\c\nd<script>").unwrap().success();
    let shown = page.publish(&bench.engine);
    assert_shows(&shown, &[("portcullis_admitted_total{target=\"a\\\"b\\\\c\\nd<script>\"}", 1.0)]);
}

/// Successes by label, and how many targets are CLOSED under it.
fn successes(collector: &mut Collector, engine: &Engine) -> Vec<(String, u64, f64)> {
    let rows = collector.collect(engine, |_, _, _| true);
    let row = |row: &portcullis::metrics::Row<String>| (row.label.clone(), row.total.counters[1], row.gauges[0]);
    let mut all: Vec<_> = rows.iter().map(row).collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn row(label: &str, count: u64, closed: f64) -> (String, u64, f64) {
    (label.to_owned(), count, closed)
}

#[test]
fn metrics_beyond_the_bound_are_summed_up_and_none_changes_sides() {
    let bench = Bench::with(textbook(), |builder| builder.idle_after(secs(60)));
    let succeed = |key: &str, times: usize| (0..times).for_each(|_| _ = bench.engine.admit(key).unwrap().success());
    let mut collector = Collector::new(&bench.engine).max_targets(2);
    // The unhealthy first, then the busiest; a target of the sum's own name is in the sum.
    (0..5).for_each(|_| _ = bench.engine.admit("ill").unwrap().failure());
    succeed("busy", 30);
    succeed("quiet", 3);
    succeed(OTHER, 100);
    let first = successes(&mut collector, &bench.engine);
    assert_eq!(first, [row("busy", 30, 1.0), row("ill", 0, 0.0), row(OTHER, 103, 2.0)]);

    succeed("quiet", 1_000);
    succeed("new", 4);
    let second = successes(&mut collector, &bench.engine);
    assert_eq!(second, [row("busy", 30, 1.0), row("ill", 0, 0.0), row(OTHER, 1_107, 3.0)]);

    // All go but those in flight: the sum forgets nothing, and a free place goes to the busiest, with what it does from then on.
    bench.engine.sweep();
    bench.advance(secs(60));
    let _held = [bench.engine.admit("quiet").unwrap(), bench.engine.admit("new").unwrap()];
    assert_eq!(bench.engine.sweep(), 2, "busy and {OTHER}");
    assert_eq!(successes(&mut collector, &bench.engine), [row("ill", 0, 0.0), row(OTHER, 1_107, 2.0)]);
    succeed("quiet", 1);
    let last = successes(&mut collector, &bench.engine);
    assert_eq!(last, [row("ill", 0, 0.0), row(OTHER, 1_107, 1.0), row("quiet", 1, 1.0)]);
}

#[test]
fn metrics_show_a_target_once_that_left_and_came_back_while_they_were_collected() {
    for (most, label) in [(2, "moves"), (0, OTHER)] {
        let bench = Bench::with(textbook(), |builder| builder.idle_after(secs(60)));
        let succeed = |key: &str| _ = bench.engine.admit(key).unwrap().success();
        let mut collector = Collector::new(&bench.engine).max_targets(most);
        succeed("moves");
        succeed("goes");
        successes(&mut collector, &bench.engine);
        bench.engine.sweep();
        bench.advance(secs(60));
        // Into the place that the other leaves, which comes after its own.
        let mut met = 0;
        let rows = collector.collect(&bench.engine, |_, _, _| {
            if bench.engine.sweep() == 2 {
                succeed("moves");
            }
            met += 1;
            true
        });
        let shown: Vec<_> = rows.iter().map(|row| (row.label.as_str(), row.gauges[0])).collect();
        assert_eq!((met, shown), (2, vec![(label, 1.0)]));
        // Nothing that it did after it came back is lost.
        let next = successes(&mut collector, &bench.engine);
        assert_eq!(next, [row(label, if most == 0 { 3 } else { 2 }, 1.0)]);
    }
}

#[test]
fn metrics_that_are_summed_up_count_transitions_of_targets_that_are_gone() {
    let bench = Bench::with(textbook(), |builder| builder.forget_after(secs(400)));
    let mut collector = Collector::new(&bench.engine).max_targets(0);
    let opened = |collector: &mut Collector| {
        let rows = collector.collect(&bench.engine, |_, _, _| true);
        let sum = rows.last().unwrap();
        let is_trip = |labels: &[(&str, &str)]| labels == [("from", "CLOSED"), ("to", "OPEN")];
        sum.counters(&[]).find(|(series, ..)| is_trip(series.labels)).unwrap().1
    };
    bench.fail(5);
    assert_eq!(opened(&mut collector), 1);
    (0..5).for_each(|_| _ = bench.engine.admit("gone").unwrap().failure());
    bench.engine.sweep();
    bench.advance(secs(400));
    assert_eq!(bench.engine.sweep(), 2);
    assert_eq!(bench.engine.snapshot(T).map(|snapshot| snapshot.state), None);
    assert_eq!(opened(&mut collector), 2);
}

#[cfg(feature = "call")]
#[test]
fn metrics_of_whole_calls_tell_what_became_of_them() {
    use portcullis::call::{Backup, CallPolicy, Caller, ThreadSleep, Verdict};

    let bench = Bench::new(textbook());
    let engine = std::sync::Arc::new(bench.engine);
    let policy = CallPolicy::builder().timeout(ms(200)).attempts(2).backoff(ms(1)).build();
    let caller = Caller::builder(std::sync::Arc::clone(&engine)).policy(policy.expect("it builds")).build();
    let caller = caller.expect("they fit together");
    let mut page = Page::of(&engine);
    let judge = |result: &Result<u8, ()>| if result.is_ok() { Verdict::success() } else { Verdict::failure() };
    let call = caller.to(T).idempotent(true);
    let answer = call.run_blocking_or(Backup::value(7), judge, &ThreadSleep, |_| Err(()));
    assert_eq!(*answer.expect("the fallback answers"), 7);
    metrics::with_local_recorder(&page.recorder, || page.publisher.publish_calls(&caller));
    let shown = page.recorder.handle().render();
    assert_shows(
        &shown,
        &[
            ("portcullis_whole_calls_total{target=\"core-banking\"}", 1.0),
            ("portcullis_whole_calls_failed_total{target=\"core-banking\"}", 1.0),
            ("portcullis_attempts_total{target=\"core-banking\"}", 2.0),
            ("portcullis_retries_total{target=\"core-banking\"}", 1.0),
            ("portcullis_fallbacks_total{target=\"core-banking\",kind=\"value\"}", 1.0),
            ("portcullis_calls_total{target=\"core-banking\",outcome=\"failure\"}", 2.0),
        ],
    );
}
