//! The page that Prometheus reads: the engine's series, and what the gateway itself sees of each target.
//!
//! The library's collector bounds the labels, and everything is read at the scrape: requests pay nothing. The text is written here, and not by
//! `prometheus-client`, which writes OpenMetrics only and wants each series kept, or its labels copied by each scrape; promtool reads it in CI.

mod shadows;
mod text;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use portcullis::Engine;
use portcullis::metrics::{
    CALLS, COUNTERS, Collector, ENGINE, Family, GAUGES, MOVES, Row, Series, TARGETS, call_counters, totals,
};

use crate::latency::Reading;
use crate::shared::Shared;
pub(crate) use text::CONTENT_TYPE;
use text::{Page, escaped};

const FAILURES: Family = Family::counter("portcullis_attempt_failures_total", "Attempts without an answer, by reason.");
/// Attempts without an answer, in the order of [`CallError::REASONS`](crate::upstream::CallError::REASONS).
const FAILED: [Series; 5] = [
    Series::new(FAILURES, &[("reason", "timeout")]),
    Series::new(FAILURES, &[("reason", "unreachable")]),
    Series::new(FAILURES, &[("reason", "broken")]),
    Series::new(FAILURES, &[("reason", "process")]),
    Series::new(FAILURES, &[("reason", "client")]),
];
const LATENCY: &str = "portcullis_latency_seconds";
const DRILL: Family = Family::gauge("portcullis_drill_remaining_seconds", "What is left of a drill; 0 if none is on.");
const BUILD: Family = Family::gauge("portcullis_build_info", "1, with the version that runs.");
const START: Family = Family::gauge("process_start_time_seconds", "When the process began, in unix time.");
const INSIDE: Family = Family::gauge("portcullis_requests_in_flight", "Requests in the process, of all targets.");
const CAP: Family = Family::gauge("portcullis_max_concurrent", "The most requests that the process works on at once.");
const REFUSED: Family =
    Family::counter("portcullis_requests_refused_total", "Requests refused since the process was at max_concurrent.");

/// Collects from one scrape to the next.
#[derive(Debug)]
pub(crate) struct Metrics {
    collector: Mutex<Collector>,
    started: SystemTime,
}

impl Metrics {
    /// At most so many targets have series of their own.
    pub(crate) fn new(engine: &Engine<String>, targets: usize) -> Self {
        let collector = Mutex::new(Collector::new(engine).max_targets(targets));
        Self { collector, started: SystemTime::now() }
    }

    pub(crate) fn set_max_targets(&self, targets: usize) {
        self.collector.lock().unwrap_or_else(PoisonError::into_inner).set_max_targets(targets);
    }

    /// A target that the configuration no longer has is left out once nobody is inside.
    fn rows(&self, shared: &Shared) -> Vec<Row<String>> {
        let live = shared.live();
        let mut collector = self.collector.lock().unwrap_or_else(PoisonError::into_inner);
        collector.collect(shared.engine(), |name, snapshot, counters| {
            let watch = shared.watch(name);
            let mut calls = shared.calls(name).unwrap_or_default();
            if let Some(watch) = &watch {
                watch.complete(&mut calls);
            }
            counters.extend(call_counters(&calls));
            match &watch {
                Some(watch) => counters.extend(watch.failures().map(|(_, count)| count)),
                None => counters.extend([0; FAILED.len()]),
            }
            let latency = watch.map_or_else(Reading::none, |watch| watch.latency().total());
            counters.extend(latency.shown());
            counters.push(latency.nanos());
            live.has_target(name) || snapshot.in_flight > 0 || snapshot.waiting > 0
        })
    }
}

/// The whole page. With thousands of targets it takes longer than a request should wait, so it isn't made on a thread that serves them.
pub(crate) fn page(shared: &Arc<Shared>) -> String {
    let metrics = shared.metrics();
    let rows = metrics.rows(shared);
    let labels: Vec<String> = rows.iter().map(|row| escaped(&row.label)).collect();
    let mut page = Page::default();
    for (at, series) in GAUGES.iter().enumerate() {
        page.begin(&series.family);
        rows.iter().zip(&labels).for_each(|(row, label)| page.series(series, label, row.gauges[at]));
    }
    let added: Vec<Series> = CALLS.iter().chain(&FAILED).copied().collect();
    for (at, series) in COUNTERS.iter().chain(&added).enumerate() {
        page.begin(&series.family);
        rows.iter().zip(&labels).for_each(|(row, label)| page.series(series, label, row.total.counters[at]));
    }
    page.begin(&MOVES[0].family);
    for (row, label) in rows.iter().zip(&labels) {
        row.counters(&[]).skip(COUNTERS.len()).for_each(|(series, count, _)| page.series(series, label, count));
    }
    page.begin_histogram(LATENCY, "From the admission of an attempt to the head of its answer, or to its timeout.");
    for (row, label) in rows.iter().zip(&labels) {
        page.histogram(LATENCY, label, &row.total.counters[COUNTERS.len() + added.len()..]);
    }
    page.begin(&DRILL);
    for (row, label) in rows.iter().zip(&labels) {
        if let Some(name) = &row.key {
            let left = shared.drills().left(name).unwrap_or_default();
            page.series(&Series::new(DRILL, &[]), label, left.as_secs_f64());
        }
    }
    let named = rows.iter().zip(&labels).filter_map(|(row, label)| Some((row.key.as_ref()?.as_str(), label.as_str())));
    shadows::write(&mut page, shared.engine(), named);
    process(&mut page, shared, metrics.started);
    page.into_text()
}

fn process(page: &mut Page, shared: &Shared, started: SystemTime) {
    page.begin(&BUILD);
    page.plain(&format!("{}{{version=\"{}\"}}", BUILD.name, env!("CARGO_PKG_VERSION")), 1);
    let cap = shared.cap();
    let since_1970 = started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    page.only(&START, since_1970.as_secs_f64());
    page.only(&INSIDE, cap.inside());
    page.only(&CAP, cap.limit());
    page.only(&REFUSED, cap.refused());
    page.only(&TARGETS, shared.engine().len());
    for (family, count) in ENGINE.iter().zip(totals(shared.engine())) {
        page.only(family, count);
    }
}
