//! Descriptors: what happens when there are none left, and when ten thousand are idle.

use crate::common::{Raw, get, single, until, upstream};
use crate::{Scene, count, together};

#[tokio::test]
async fn without_descriptors_it_waits_blames_nobody_and_goes_on() {
    // More than the pool has idle connections, fewer than are inside.
    const ASKING: usize = 60;
    let core = upstream().await;
    let rules = "consecutive_failures = 1\ntimeout = \"20s\"";
    let text = format!("header_timeout = \"1h\"\n{}", single(core.address(), rules));
    let scene = Scene::new("descriptors", &text, Some(128)).await;
    let at = scene.proxy();
    // More than there are descriptors. The kernel takes those that the gateway can't.
    let mut crowd = Vec::new();
    for _ in 0..200 {
        crowd.push(Raw::connect(at).await);
    }
    scene.process.logged("no connection could be accepted", 1).await;
    // Those inside ask. There is no descriptor for their calls, which is nobody's fault but the gateway's.
    let asked = crowd.drain(..ASKING).collect::<Vec<_>>();
    let asks: Vec<_> = asked
        .into_iter()
        .map(|mut raw| {
            tokio::spawn(async move {
                raw.send("GET /slow?ms=1500 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
                raw.read_all().await
            })
        })
        .collect();
    let mut answers = Vec::new();
    for ask in asks {
        answers.push(ask.await.unwrap());
    }
    let refused = count(&answers, "HTTP/1.1 503");
    assert!(refused > 0 && refused + count(&answers, "HTTP/1.1 200") == ASKING, "{answers:?}");
    assert!(answers.iter().all(|answer| answer.contains(" 200 ") || answer.contains("E905")), "{answers:?}");
    drop(crowd);
    until("it serves again", async || get(at, "/fast").await.status == 200).await;
    let shown = scene.target("t").await;
    assert_eq!((&shown["state"], &shown["totals"]["failure"]), (&"CLOSED".into(), &0.into()), "{shown}");
    scene.calm().await;
}

const WAVES: usize = 3;
/// What a connection that has asked may take at most. The allocator keeps what a wave took for the next one; a leak would take it anew
/// for each.
const EACH_KIB: u64 = 24;

/// The limit of open descriptors of this process.
fn limit() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX)
}

#[tokio::test]
async fn ten_thousand_idle_connections_cost_what_they_hold_and_no_more() {
    // The other tests of this file need some of them, too.
    let many = 10_000.min(limit().saturating_sub(2_000) * 3 / 4).max(100);
    let core = upstream().await;
    let text = format!("header_timeout = \"1h\"\n{}", single(core.address(), ""));
    let scene = Scene::new("idle", &text, Some(many as u64 + 500)).await;
    let at = scene.proxy();
    for wave in 1..=WAVES {
        let mut idle = Vec::new();
        while idle.len() < many {
            // Half of them have asked before, half never.
            let more = together(100.min(many - idle.len()), move |number| async move {
                let mut raw = Raw::connect(at).await;
                if number % 2 == 0 {
                    raw.send("GET /fast HTTP/1.1\r\nhost: a\r\n\r\n").await;
                    raw.read_to("fast\n").await;
                }
                raw
            });
            idle.extend(more.await);
        }
        until("all are accepted", async || scene.process.descriptors() >= many).await;
        assert_eq!(get(at, "/fast").await.status, 200);
        println!("wave {wave}: {many} idle connections, {} KiB", scene.process.resident());
        drop(idle);
        until("all are gone", async || scene.process.descriptors() < 200).await;
    }
    println!("after it: {} KiB", scene.process.resident());
    scene.calm_within(many as u64 * EACH_KIB).await;
}
