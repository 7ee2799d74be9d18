//! The collected series on their way into the recorder of the `metrics` facade.

use std::collections::HashSet;
use std::fmt;

use metrics::{Gauge, Key as Name, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};

use super::collector::{Collector, Row};
use super::series::{COUNTERS, ENGINE, Family, GAUGES, Kind, MOVES, Series, TARGETS};
use crate::engine::{Engine, Key};
use crate::snapshot::Snapshot;

static METADATA: Metadata<'static> = Metadata::new("portcullis", Level::INFO, Some("portcullis"));

/// Puts an engine's numbers into the recorder of the [`metrics`](::metrics) facade, whenever it is asked to.
///
/// Calls pay nothing for it: [`publish`](Self::publish) reads what the engine counts anyway. Call it on the interval at which the exporter is
/// read. Counters are raised by what is new since the last time, so install the recorder first.
///
/// A target that the engine has let go of is published no more. The facade has no way to take a series back; its gauges are set to 0, and
/// whether they go away is the recorder's business: `metrics-exporter-prometheus` drops what wasn't written for its `idle_timeout`. Choose that longer than
/// the interval: whatever is still there is written each time.
///
/// ```
/// use portcullis::Engine;
/// use portcullis::metrics::Publisher;
///
/// let engine: Engine = Engine::builder().build();
/// let mut publisher = Publisher::new(&engine).max_targets(200);
/// engine.admit("core-banking")?.success();
/// publisher.publish(&engine);
/// # Ok::<(), portcullis::Rejection>(())
/// ```
pub struct Publisher<K: Key = String> {
    collector: Collector<K>,
    published: HashSet<String>,
    engine: [u64; ENGINE.len()],
    is_described: bool,
}

impl<K: Key> Publisher<K> {
    /// Publishes what `engine` does, transitions from now on.
    #[must_use]
    pub fn new(engine: &Engine<K>) -> Self {
        let collector = Collector::new(engine);
        Self { collector, published: HashSet::new(), engine: [0; ENGINE.len()], is_described: false }
    }

    /// Sets how many targets have series of their own; see [`Collector::max_targets`].
    #[must_use]
    pub fn max_targets(mut self, most: usize) -> Self {
        self.collector.set_max_targets(most);
        self
    }

    /// Writes all numbers of the engine that it was made for into the recorder that is in force.
    pub fn publish(&mut self, engine: &Engine<K>) {
        self.publish_as(engine, &[], |_, _, _| {});
    }

    /// The same, with what became of whole calls: those of the [`Caller`](crate::call::Caller) of the same engine.
    #[cfg(feature = "call")]
    pub fn publish_calls(&mut self, caller: &crate::call::Caller<K>)
    where
        K: Clone,
    {
        use super::series::calls::{CALLS, call_counters};
        self.publish_as(caller.engine(), &CALLS, |key, _, counters| {
            counters.extend(call_counters(&caller.counts(key).unwrap_or_default()));
        });
    }

    fn publish_as(&mut self, engine: &Engine<K>, added: &[Series], mut more: impl FnMut(&K, &Snapshot, &mut Vec<u64>)) {
        let rows = self.collector.collect(engine, |key, snapshot, counters| {
            more(key, snapshot, counters);
            true
        });
        metrics::with_recorder(|recorder| {
            if !std::mem::replace(&mut self.is_described, true) {
                let all = GAUGES.iter().chain(&COUNTERS).chain(added).chain(&MOVES[..1]).map(|series| series.family);
                all.chain(ENGINE).chain([TARGETS]).for_each(|family| describe(recorder, family));
            }
            let labels = rows.iter().map(|row| row.label.clone()).collect();
            for gone in self.published.difference(&labels) {
                GAUGES.iter().for_each(|series| gauge(recorder, series, gone).set(0.0));
            }
            self.published = labels;
            rows.iter().for_each(|row| write(recorder, row, added));
            self.write_engine(recorder, engine);
        });
    }

    fn write_engine(&mut self, recorder: &dyn Recorder, engine: &Engine<K>) {
        for ((family, now), last) in ENGINE.iter().zip(totals(engine)).zip(&mut self.engine) {
            let counter = recorder.register_counter(&Name::from_static_name(family.name), &METADATA);
            counter.increment(now.saturating_sub(*last));
            *last = now;
        }
        recorder.register_gauge(&Name::from_static_name(TARGETS.name), &METADATA).set(engine.len() as f64);
    }
}

/// The readings of [`ENGINE`].
#[must_use]
pub fn totals<K: Key>(engine: &Engine<K>) -> [u64; ENGINE.len()] {
    [engine.exhausted(), engine.observer_panics(), engine.transitions_dropped()]
}

fn describe(recorder: &dyn Recorder, family: Family) {
    let (name, help) = (KeyName::from_const_str(family.name), SharedString::const_str(family.help));
    match family.kind {
        Kind::Counter => recorder.describe_counter(name, Some(Unit::Count), help),
        Kind::Gauge if family.name.ends_with("_seconds") => recorder.describe_gauge(name, Some(Unit::Seconds), help),
        Kind::Gauge => recorder.describe_gauge(name, Some(Unit::Count), help),
    }
}

/// Asked for anew each time: a recorder that dropped an idle series wouldn't show what is written to its old handle.
fn name(series: &Series, target: &str) -> Name {
    let own = series.labels.iter().map(|&(name, value)| Label::from_static_parts(name, value));
    let labels: Vec<_> = std::iter::once(Label::new("target", target.to_owned())).chain(own).collect();
    Name::from_parts(series.family.name, labels)
}

fn gauge(recorder: &dyn Recorder, series: &Series, target: &str) -> Gauge {
    recorder.register_gauge(&name(series, target), &METADATA)
}

fn write<K>(recorder: &dyn Recorder, row: &Row<K>, added: &[Series]) {
    for (series, value) in row.gauges() {
        gauge(recorder, series, &row.label).set(value);
    }
    for (series, _, fresh) in row.counters(added) {
        recorder.register_counter(&name(series, &row.label), &METADATA).increment(fresh);
    }
}

impl<K: Key> fmt::Debug for Publisher<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("collector", &self.collector).finish_non_exhaustive()
    }
}
