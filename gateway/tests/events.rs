//! The stream of the admin listener, over real connections.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Raw, gateway_to, get, post, until, upstream};
use serde_json::Value;

/// The data of the next event of that kind.
async fn event(raw: &mut Raw, kind: &str) -> Value {
    raw.read_to(&format!("event: {kind}\ndata: ")).await;
    serde_json::from_str(raw.read_to("\n\n").await.trim_end()).unwrap()
}

async fn listen(admin: std::net::SocketAddr, lines: &str) -> Raw {
    let mut raw = Raw::connect(admin).await;
    raw.send(&format!("GET /events HTTP/1.1\r\nhost: {admin}\r\n{lines}\r\n")).await;
    raw
}

#[tokio::test]
async fn an_outage_is_told_while_it_happens() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "consecutive_failures = 2\nwindow = \"none\"\nmax_in_flight = 7").await;
    let admin = gateway.admin_address().unwrap();
    let mut raw = listen(admin, "").await;
    let head = raw.head().await;
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("content-type: text/event-stream"), "{head}");
    let state = event(&mut raw, "state").await;
    assert_eq!((&state["targets"][0]["name"], &state["targets"][0]["limit"]), (&"t".into(), &7.into()));
    assert_eq!(state["health"]["status"], "ok");
    for _ in 0..2 {
        get(gateway.address(), "/always500").await;
    }
    loop {
        let change = event(&mut raw, "change").await;
        if let Some(opened) = change["transitions"].as_array().unwrap().iter().find(|moved| moved["to"] == "OPEN") {
            assert_eq!((&opened["cause"], &opened["evidence"]["streak"]), (&"consecutive_failures".into(), &2.into()));
            assert_eq!(change["targets"][0]["state"], "OPEN");
            assert!(change["targets"][0]["reopen_at_ms"].as_u64() > change["now_ms"].as_u64());
            break;
        }
    }
    // The detail keeps what happened, however much the log forgets.
    let detail = get(admin, "/targets/t").await.json();
    assert_eq!(detail["trip"]["evidence"]["streak"], 2);
    assert_eq!(detail["recent"][0]["to"], "OPEN");
}

#[tokio::test]
async fn strangers_and_further_readers_are_refused_and_places_come_free() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    let admin = gateway.admin_address().unwrap();
    let mut stranger = listen(admin, "sec-fetch-site: cross-site\r\n").await;
    assert!(stranger.head().await.starts_with("HTTP/1.1 403"));
    assert_eq!(post(admin, "/events").await.status, 405);
    let mut all = Vec::new();
    for _ in 0..32 {
        let mut raw = listen(admin, "").await;
        event(&mut raw, "state").await;
        all.push(raw);
    }
    assert_eq!(get(admin, "/events").await.status, 503);
    drop(all);
    until("a place", async || listen(admin, "").await.head().await.starts_with("HTTP/1.1 200")).await;
}
