//! One `tracing` event per transition.
#![cfg(feature = "tracing")]
#![allow(clippy::unwrap_used, reason = "clippy doesn't take helpers of tests for tests")]

mod common;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use common::{Bench, T, secs, textbook};

/// An event as it was told.
#[derive(Clone, Debug)]
struct Told {
    level: Level,
    target: String,
    name: &'static str,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.insert(field.name(), format!("u64 {value}"));
    }
}

#[derive(Clone, Default)]
struct Ear(Arc<Mutex<Vec<Told>>>);

impl<S: Subscriber> Layer<S> for Ear {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let meta = event.metadata();
        let mut told =
            Told { level: *meta.level(), target: meta.target().into(), name: meta.name(), fields: BTreeMap::new() };
        event.record(&mut told);
        self.0.lock().expect("not poisoned").push(told);
    }
}

/// All events of some work on this thread.
fn events(work: impl FnOnce()) -> Vec<Told> {
    let ear = Ear::default();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(ear.clone()), work);
    std::mem::take(&mut ear.0.lock().expect("not poisoned"))
}

#[test]
fn r20_each_transition_is_one_event_with_its_fields() {
    let mut walls = Vec::new();
    let told = events(|| {
        let bench = Bench::new(textbook());
        bench.fail(5);
        bench.advance(secs(30));
        bench.probe().success();
        bench.succeed(10);
        bench.engine.force_open(T).unwrap();
        walls = bench.log().iter().map(|transition| transition.wall).collect();
    });
    let field = |name: &str| -> Vec<&str> { told.iter().map(|event| event.fields[name].as_str()).collect() };
    assert_eq!(field("target"), [T; 4]);
    assert_eq!(field("from"), ["CLOSED", "OPEN", "HALF_OPEN", "CLOSED"]);
    assert_eq!(field("to"), ["OPEN", "HALF_OPEN", "CLOSED", "FORCED_OPEN"]);
    assert_eq!(field("cause"), ["failure_rate", "wait_elapsed", "probes_succeeded", "forced_open"]);
    assert_eq!(field("sequence"), ["u64 1", "u64 2", "u64 3", "u64 4"]);
    let walls: Vec<_> = walls
        .into_iter()
        .map(|wall| format!("u64 {}", wall.duration_since(std::time::UNIX_EPOCH).unwrap().as_millis()))
        .collect();
    assert_eq!(field("wall_ms"), walls);
    assert_eq!(field("message")[0], "core-banking: CLOSED to OPEN");
    assert!(told.iter().all(|event| event.level == Level::INFO && event.target == "portcullis"));
    assert!(told.iter().all(|event| event.name == "transition"));
}

#[test]
fn calls_and_refusals_are_no_events() {
    let told = events(|| {
        let bench = Bench::new(textbook().max_in_flight(1));
        bench.fail(4);
        let held = bench.enter();
        _ = bench.refusal();
        drop(held);
        bench.engine.sweep();
    });
    assert!(told.is_empty(), "{told:?}");
}

#[test]
fn keys_that_are_no_strings_are_shown_as_debug_does() {
    let told = events(|| {
        let engine: portcullis::Engine<(u8, char)> = portcullis::Engine::builder().build();
        engine.disable(&(7, 'x')).unwrap();
    });
    assert_eq!(told[0].fields["target"], "(7, 'x')");
}

#[test]
fn r20_a_subscriber_that_panics_hurts_nobody() {
    struct Bad;
    impl<S: Subscriber> Layer<S> for Bad {
        fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
            std::panic::resume_unwind(Box::new("a subscriber"));
        }
    }
    tracing::subscriber::with_default(tracing_subscriber::registry().with(Bad), || {
        let bench = Bench::new(textbook());
        bench.fail(5);
        assert_eq!((bench.engine.observer_panics(), bench.log().len()), (1, 1));
    });
}
