//! Clients that hang up, dawdle or never ask: they get everything back to where it was, and no target is blamed for them.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{
    Raw, gateway, gateway_to, h2_client, request, scripted, send, single, state, target, until, until_idle, upstream,
};
use http::Method;

#[tokio::test]
async fn a_client_that_hangs_up_gives_everything_back() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "timeout = \"20s\"").await;
    let mut client = Raw::connect(gateway.address()).await;
    client.send("GET /hang HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("inside", async || core.counts().in_flight == 1).await;
    assert_eq!((gateway.in_flight(), gateway.engine().snapshot("t").unwrap().in_flight), (1, 1));
    drop(client);
    until_idle(&gateway, "t").await;
    until("the upstream is let go", async || core.counts().in_flight == 0).await;
    let totals = target(&gateway, "t").await["totals"].clone();
    assert_eq!((&totals["success"], &totals["admitted"]), (&0.into(), &1.into()));
}

#[tokio::test]
async fn a_client_that_hangs_up_in_the_middle_of_the_body_gives_everything_back() {
    let address = scripted(|mut raw| async move {
        raw.head().await;
        raw.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n").await;
        raw.read_all().await;
    })
    .await;
    let gateway = gateway_to(address, "timeout = \"20s\"").await;
    for reset in [false, true] {
        let mut client = Raw::connect(gateway.address()).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        client.read_to("half").await;
        assert_eq!(gateway.in_flight(), 1);
        if reset {
            client.reset();
        } else {
            drop(client);
        }
        until_idle(&gateway, "t").await;
    }
    let totals = target(&gateway, "t").await["totals"].clone();
    assert_eq!((&totals["admitted"], &totals["abandoned"]), (&2.into(), &2.into()));
}

#[tokio::test]
async fn a_client_that_breaks_off_its_upload_is_no_evidence() {
    let address = scripted(|mut raw| async move {
        raw.read_all().await;
    })
    .await;
    // However long it has taken: a target that is silent for that long would have tripped.
    let rules = "timeout = \"20s\"\nconsecutive_failures = 1\non_abandon = { failure_after = \"10ms\" }";
    let gateway = gateway_to(address, rules).await;
    for reset in [false, true] {
        let mut client = Raw::connect(gateway.address()).await;
        client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf").await;
        until("inside", async || gateway.in_flight() == 1).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        if reset {
            client.reset();
        } else {
            drop(client);
        }
        until_idle(&gateway, "t").await;
    }
    let seen = target(&gateway, "t").await;
    assert_eq!((seen["state"].as_str(), &seen["totals"]["failure"]), (Some("CLOSED"), &0.into()));

    // One that has sent everything and then loses patience is another matter.
    let mut client = Raw::connect(gateway.address()).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\n\r\nfull").await;
    until("inside", async || gateway.in_flight() == 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(client);
    until_idle(&gateway, "t").await;
    assert_eq!(state(&gateway, "t").await, "OPEN");
}

#[tokio::test]
async fn an_http2_client_that_cancels_gives_everything_back() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "timeout = \"20s\"").await;
    let client = h2_client();
    for _ in 0..2 {
        let call = tokio::spawn(client.request(request(Method::GET, gateway.address(), "/hang")));
        until("inside", async || core.counts().in_flight == 1).await;
        call.abort();
        until_idle(&gateway, "t").await;
        until("the upstream is let go", async || core.counts().in_flight == 0).await;
    }
    // The connection itself goes on.
    assert_eq!(send(&client, request(Method::GET, gateway.address(), "/fast")).await.status, 200);
}

#[tokio::test]
async fn a_client_that_reads_slowly_is_not_held_against_the_target() {
    const LENGTH: usize = 32 << 20;
    let address = scripted(|mut raw| async move {
        raw.head().await;
        raw.send(&format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n")).await;
        let _ = raw.try_send(&vec![b'x'; LENGTH]).await;
    })
    .await;
    let gateway = gateway_to(address, "timeout = \"200ms\"").await;
    let mut client = Raw::connect(gateway.address()).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    client.head().await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    assert_eq!(client.read_all().await.len(), LENGTH);
    until_idle(&gateway, "t").await;
    let totals = target(&gateway, "t").await["totals"].clone();
    assert_eq!((&totals["success"], &totals["failure"]), (&1.into(), &0.into()));
}

#[tokio::test]
async fn a_client_that_sends_no_more_is_told_so_and_the_target_isnt_blamed() {
    let address = scripted(|mut raw| async move {
        raw.read_all().await;
    })
    .await;
    let gateway = gateway_to(address, "timeout = \"300ms\"\nconsecutive_failures = 1").await;
    let mut client = Raw::connect(gateway.address()).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf").await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 408"), "{head}");
    client.read_to("E408").await;
    until_idle(&gateway, "t").await;
    let seen = target(&gateway, "t").await;
    assert_eq!((seen["state"].as_str(), &seen["totals"]["ignored"]), (Some("CLOSED"), &1.into()));
}

#[tokio::test]
async fn a_slow_upload_is_no_slow_answer() {
    let address = scripted(|mut raw| async move {
        raw.read_to("end").await;
        raw.send("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        raw.read_all().await;
    })
    .await;
    let gateway = gateway_to(address, "timeout = \"600ms\"").await;
    let mut client = Raw::connect(gateway.address()).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 8\r\n\r\n").await;
    // More than the timeout in all, with no pause as long as that.
    for piece in ["1", "2", "3", "4", "5", "end"] {
        tokio::time::sleep(Duration::from_millis(150)).await;
        client.send(piece).await;
    }
    assert!(client.head().await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_client_that_never_asks_is_let_go() {
    let core = upstream().await;
    let gateway = gateway(&format!("header_timeout = \"300ms\"\n{}", single(core.address(), ""))).await;
    // Nothing, the beginning of what may become either version, an endless head, HTTP/2 without a request.
    for begin in ["", "P", "GET / HTTP/1.1\r\nhost: a\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut client = Raw::connect(gateway.address()).await;
        client.send(begin).await;
        client.read_all().await;
    }
    // One that has asked may stay.
    let mut client = Raw::connect(gateway.address()).await;
    client.send("GET /slow?ms=600 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.read_to("slow\n").await;
}

#[tokio::test]
async fn an_endless_head_is_refused() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    let long = "x".repeat(70_000);
    for (ask, status) in [
        (format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"), "414"),
        (format!("GET / HTTP/1.1\r\nhost: a\r\n{}\r\n", "x: y\r\n".repeat(1_000)), "431"),
        (format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}", long.repeat(30)), "431"),
        ("GET / HTTP/1.1\r\nhost: a\r\nbad header\r\n\r\n".to_owned(), "400"),
    ] {
        let mut client = Raw::connect(gateway.address()).await;
        // The end of it may meet a closed connection.
        let _ = client.try_send(ask.as_bytes()).await;
        let all = client.read_all().await;
        assert!(all.is_empty() || all.starts_with(&format!("HTTP/1.1 {status}")), "{status}: {all}");
    }
    assert_eq!(core.counts().calls, 0);
    // A key of 64 KiB comes from nowhere: targets are named by the configuration only.
    assert_eq!(gateway.engine().len(), 1);
}
#[tokio::test]
async fn a_client_that_reads_slowly_and_leaves_is_no_evidence() {
    const LENGTH: usize = 32 << 20;
    let address = scripted(|mut raw| async move {
        raw.head().await;
        raw.send(&format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n")).await;
        let _ = raw.try_send(&vec![b'x'; LENGTH]).await;
    })
    .await;
    let gateway = gateway_to(address, "timeout = \"200ms\"\nconsecutive_failures = 1").await;
    let mut client = Raw::connect(gateway.address()).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.head().await;
    tokio::time::sleep(Duration::from_millis(800)).await;
    drop(client);
    until_idle(&gateway, "t").await;
    assert_eq!(state(&gateway, "t").await, "CLOSED");
}
