//! Chaos over real sockets, on the real binary: whatever upstreams, clients, signals and limits do, nothing stays behind.
//!
//! After each scenario nothing is in flight, the descriptors and the memory are back at their level, and the log knows of no panic.
//! Counts are asserted, never how long something took.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

#[path = "chaos/clients.rs"]
mod clients;
#[path = "chaos/descriptors.rs"]
mod descriptors;
#[path = "chaos/upstreams.rs"]
mod upstreams;

use std::net::SocketAddr;
use std::sync::Arc;

use common::process::Process;
use common::{Raw, get, until};
use serde_json::Value;

/// KiB that the allocator may keep after a storm, for buffers that it hasn't given back. What a leak of one buffer of 8 KiB for each of a
/// few thousand connections would take is more.
const KEPT: u64 = 24 * 1024;

/// A gateway in a process of its own, with its level before the storm.
pub(crate) struct Scene {
    pub(crate) process: Process,
    descriptors: usize,
    resident: u64,
}

impl Scene {
    /// `text` begins with what belongs to the top of the file.
    pub(crate) async fn new(name: &str, text: &str, descriptors: Option<u64>) -> Self {
        let config = format!("listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{text}");
        let process = Process::start_with(&format!("chaos-{name}"), &config, descriptors).await;
        let at = process.descriptors();
        let mut scene = Self { process, descriptors: at, resident: 0 };
        // What it takes to work at all isn't the storm's.
        let calls: Vec<_> = (0..32).map(|_| tokio::spawn(get(scene.process.proxy, "/fast"))).collect();
        for call in calls {
            call.await.unwrap();
        }
        scene.resident = scene.process.resident();
        scene
    }

    pub(crate) fn proxy(&self) -> SocketAddr {
        self.process.proxy
    }

    pub(crate) async fn target(&self, name: &str) -> Value {
        get(self.process.admin, &format!("/targets/{name}")).await.json()
    }

    pub(crate) async fn state(&self, name: &str) -> String {
        self.target(name).await["state"].as_str().unwrap().to_owned()
    }

    /// Requests in the process and in its targets.
    async fn in_flight(&self) -> u64 {
        let number = |value: &Value| value["in_flight"].as_u64().unwrap();
        let targets = get(self.process.admin, "/targets").await.json();
        let targets: u64 = targets.as_array().unwrap().iter().map(number).sum();
        targets + number(&get(self.process.admin, "/healthz").await.json())
    }

    /// After the storm: all is as it was.
    pub(crate) async fn calm(&self) {
        self.calm_within(KEPT).await;
    }

    /// The same, with so many KiB that may stay.
    pub(crate) async fn calm_within(&self, most: u64) {
        until("nothing in flight", async || self.in_flight().await == 0).await;
        // The pool lets go of idle connections after 4 s.
        until("the descriptors of the beginning", async || self.process.descriptors() <= self.descriptors).await;
        let kept = self.process.resident().saturating_sub(self.resident);
        assert!(kept <= most, "{kept} KiB more than the {} before, at most {most}", self.resident);
        let log = self.process.log();
        assert!(!log.contains("panicked"), "{log}");
        for name in get(self.process.admin, "/targets").await.json().as_array().unwrap() {
            let totals = &name["totals"];
            let ended = ["success", "failure", "ignored", "abandoned", "stale"];
            let ended: u64 = ended.iter().map(|field| totals[field].as_u64().unwrap()).sum();
            assert_eq!(totals["admitted"], ended, "{name}");
        }
    }
}

/// Many at once; what came of each.
pub(crate) async fn together<R: Send + 'static, Fut: Future<Output = R> + Send + 'static>(
    many: usize,
    run: impl Fn(usize) -> Fut,
) -> Vec<R> {
    let tasks: Vec<_> = (0..many).map(|number| tokio::spawn(run(number))).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

/// One request on a connection of its own; everything that comes back, to the end.
pub(crate) async fn ask(address: SocketAddr, path: &str) -> String {
    let mut raw = Raw::connect(address).await;
    let _ = raw.try_send(format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes()).await;
    raw.read_all().await
}

/// How many answers begin like this.
pub(crate) fn count(answers: &[String], begin: &str) -> usize {
    answers.iter().filter(|answer| answer.starts_with(begin)).count()
}

pub(crate) fn shared<T: Default>() -> Arc<T> {
    Arc::default()
}
