//! One target as the feed tells it: what is seen at a glance, and of that only what changed.

use std::time::{Instant, SystemTime};

use portcullis::{Refusals, Snapshot, Totals, UNLIMITED, WindowSnapshot};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::shared::Shared;
use crate::story::wall_ms;

/// A target at a glance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Tile {
    configured: bool,
    state: &'static str,
    since_ms: Option<u64>,
    cause: Option<&'static str>,
    reopen_at_ms: Option<u64>,
    drill_until_ms: Option<u64>,
    reopens: u32,
    probes_in_flight: u32,
    probe_successes: u32,
    in_flight: u32,
    limit: Option<u32>,
    full_limit: Option<u32>,
    waiting: u32,
    stalled: u64,
    window: Option<WindowSnapshot>,
    totals: Totals,
    refusals: Refusals,
    latency: Option<Latency>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Latency {
    count: u64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
}

impl Tile {
    pub(super) fn of(shared: &Shared, name: &str, snapshot: &Snapshot) -> Self {
        let now = SystemTime::now();
        let watch = shared.watch(name);
        let story = watch.as_ref().map(|watch| watch.story()).unwrap_or_default();
        let limited = |limit| (limit != UNLIMITED).then_some(limit);
        // By the transition where that is known: a moment stays the same, what is left until then doesn't.
        let reopens_at = snapshot.reopen_in.and_then(|left| story.reopens_at().or_else(|| now.checked_add(left)));
        let drill_until = shared.drills().ends(name);
        Self {
            configured: shared.live().has_target(name),
            state: snapshot.state.as_str(),
            since_ms: story.last().map(|last| wall_ms(last.wall)),
            cause: story.last().map(|last| last.cause.as_str()),
            reopen_at_ms: reopens_at.map(wall_ms),
            drill_until_ms: drill_until.map(wall_ms),
            reopens: snapshot.reopens,
            probes_in_flight: snapshot.probes_in_flight,
            probe_successes: snapshot.probe_successes,
            in_flight: snapshot.in_flight,
            limit: limited(snapshot.limit),
            full_limit: limited(snapshot.full_limit),
            waiting: snapshot.waiting,
            stalled: snapshot.stalled,
            window: snapshot.window,
            totals: snapshot.totals,
            refusals: snapshot.refusals,
            latency: watch.map(|watch| {
                let (recent, _) = watch.latency().recent(Instant::now());
                let quantile = |part| recent.quantile(part).map(|latency| latency.as_secs_f64() * 1e3);
                Latency { count: recent.count(), p50_ms: quantile(0.5), p99_ms: quantile(0.99) }
            }),
        }
    }

    /// All of it, with the name.
    pub(super) fn whole(&self, name: &str) -> Value {
        named(name, self.fields())
    }

    /// The fields that aren't as they were, with the name.
    pub(super) fn changed(&self, name: &str, before: &Self) -> Value {
        let before = before.fields();
        let fields = self.fields().into_iter().filter(|(field, value)| before.get(field) != Some(value));
        named(name, fields.collect())
    }

    fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        }
    }
}

fn named(name: &str, fields: Map<String, Value>) -> Value {
    let mut all = Map::from_iter([("name".to_owned(), name.into())]);
    all.extend(fields);
    Value::Object(all)
}
