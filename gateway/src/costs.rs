//! What options cost, for the table in the README: `cargo test --release -p portcullis-gateway --lib costs -- --ignored --nocapture --test-threads 1`.

use std::hint::black_box;
use std::io;
use std::time::{Duration, Instant};

use http::uri::Authority;
use http::{Request, Response};
use portcullis::Engine;
use tracing::level_filters::LevelFilter;

use crate::latency::Latency;
use crate::shared::Shared;
use crate::trace::{self, Traced};
use crate::webhook::Webhooks;
use crate::{Config, metrics};

const ROUNDS: usize = 9;

/// Prints the median of the rounds: what one of `times` takes.
pub(crate) fn price(what: &str, times: u32, mut each: impl FnMut(u32)) {
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            (0..times).for_each(&mut each);
            begun.elapsed()
        })
        .collect();
    rounds.sort();
    println!("{what}: {:.1} ns", rounds[ROUNDS / 2].as_nanos() as f64 / f64::from(times));
}

fn tables(count: u32) -> String {
    let table = |n| {
        format!("[[route]]\npath = \"/{n}\"\ntarget = \"t{n}\"\n[target.t{n}]\nupstream = [\"http://127.0.0.1:1\"]\n")
    };
    (0..count).map(table).collect()
}

/// So many targets, each on a route of its own.
pub(crate) fn targets(count: u32) -> Config {
    tables(count).parse().unwrap()
}

#[test]
#[ignore = "prints figures, in a release build"]
fn costs_of_a_latency() {
    let latency = Latency::new(Instant::now());
    let took = |call: u32| Duration::from_micros(u64::from(call % 50_000));
    price("a latency, counted", 500_000, |call| latency.record(black_box(took(call))));
    price("a latency, measured and counted", 500_000, |_| latency.record(black_box(Instant::now()).elapsed()));
}

#[test]
#[ignore = "prints figures, in a release build"]
fn costs_of_spans() {
    let upstream = Authority::from_static("127.0.0.1:8080");
    for level in [LevelFilter::INFO, LevelFilter::DEBUG] {
        let log = tracing_subscriber::fmt().with_max_level(level).with_writer(io::sink).finish();
        let mut request = Request::get("/path").body(()).unwrap();
        tracing::subscriber::with_default(log, || {
            price(&format!("spans of a request and its attempt, at {level}"), 20_000, |_| {
                let traced = Traced::begin(black_box(&request));
                if traced.span().is_some() {
                    request.extensions_mut().insert(traced.clone());
                }
                let span = trace::attempt(&mut request, &upstream);
                let answer = Ok(Response::new(()));
                if let Some(span) = span {
                    trace::attempted(&span, &answer);
                }
                if let Ok(answer) = answer {
                    traced.answered(&answer);
                }
            });
        });
    }
}

#[tokio::test]
#[ignore = "prints figures, in a release build"]
async fn costs_of_webhooks() {
    for count in [0, 1, 16] {
        let engine: Engine<String> = Engine::builder().build();
        let hooks: String = (0..count).map(|n| format!("[[webhook]]\nurl = \"http://127.0.0.1:1/{n}\"\n")).collect();
        let config: Config = (hooks + &tables(1)).parse().unwrap();
        let webhooks = Webhooks::default();
        webhooks.apply(&engine, &config.webhooks);
        // Fewer in all than there is room for.
        price(&format!("a transition with {count} webhooks"), 2_000, |n| {
            let moved = if n % 2 == 0 { engine.force_open("t0") } else { engine.release("t0") };
            assert!(moved.unwrap());
        });
    }
}

#[tokio::test]
#[ignore = "prints figures, in a release build"]
async fn costs_of_metrics() {
    let shared = Shared::new(&targets(1_000)).unwrap();
    price("/metrics, with 1,000 targets", 10, |_| drop(black_box(metrics::page(&shared))));
}
