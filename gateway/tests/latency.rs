//! How long a target takes, as the operator sees it.
#![allow(clippy::unwrap_used)]

mod common;

use common::{gateway, gateway_to, get, target, upstream};
use portcullis_gateway::demo::upstreams::Mode;

#[tokio::test]
async fn answers_and_timeouts_have_a_latency_and_refused_connections_have_none() {
    for lines in ["", "deadline = \"10s\"\nattempts = 2\n"] {
        let mut core = upstream().await;
        let gateway = gateway_to(core.address(), &format!("timeout = \"200ms\"\nmin_calls = 100\n{lines}")).await;
        let at = gateway.address();
        assert_eq!(target(&gateway, "t").await["latency"]["p50_ms"], serde_json::Value::Null);
        assert_eq!(get(at, "/slow?ms=60").await.status, 200);
        let first = &target(&gateway, "t").await["latency"];
        assert_eq!(first["count"], 1);
        assert!(first["p99_ms"].as_f64().unwrap() >= 50.0, "{first}");

        core.set_mode(Mode::Hanging).await.unwrap();
        assert_eq!(get(at, "/hang").await.status, 504);
        let hung = target(&gateway, "t").await;
        let attempts = if lines.is_empty() { 1 } else { 2 };
        assert_eq!(
            (&hung["failed_attempts"]["timeout"], &hung["latency"]["count"]),
            (&attempts.into(), &(attempts + 1).into())
        );
        assert!(hung["latency"]["p99_ms"].as_f64().unwrap() >= 100.0, "{hung}");

        core.set_mode(Mode::Refusing).await.unwrap();
        assert_eq!(get(at, "/fast").await.status, 502);
        let refused = target(&gateway, "t").await;
        assert_eq!(refused["failed_attempts"]["unreachable"], attempts);
        assert_eq!(refused["latency"]["count"], attempts + 1);
    }
}

#[tokio::test]
async fn calls_that_nobody_is_asked_about_are_not_measured() {
    let core = upstream().await;
    let route = "[[route]]\npath = \"/\"\ntarget = \"t\"\nadmission = false";
    let gateway = gateway(&format!("{route}\n[target.t]\nupstream = [\"{}\"]", core.url())).await;
    assert_eq!(get(gateway.address(), "/fast").await.status, 200);
    assert_eq!(target(&gateway, "t").await["latency"]["count"], 0);
}
