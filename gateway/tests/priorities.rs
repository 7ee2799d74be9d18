//! Requests that matter more and less: who is shed, who waits, and what a wait leaves behind.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{Answer, Raw, client, gateway, gateway_to, get, request, send, target, until, until_idle, upstream};
use http::Method;
use portcullis::Snapshot;
use portcullis_gateway::Gateway;
use portcullis_gateway::demo::upstreams::Upstream;

/// One inside; others wait for longer than any of these tests takes.
const QUEUED: &str = "max_in_flight = 1\nmax_waiting = 5\nmax_wait = \"60s\"\ntimeout = \"60s\"\nprobe_lease = \"90s\"";

fn snapshot(gateway: &Gateway) -> Snapshot {
    gateway.engine().snapshot("t").unwrap()
}

/// Begins a call that stays until its client leaves.
async fn inside(gateway: &Gateway, core: &Upstream) -> Raw {
    let before = core.counts().in_flight;
    let mut raw = Raw::connect(gateway.address()).await;
    raw.send("GET /hang HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("inside", async || core.counts().in_flight == before + 1).await;
    raw
}

async fn ask(address: SocketAddr, path: &str, header: &str, value: &str) -> Answer {
    let mut request = request(Method::GET, address, path);
    request.headers_mut().insert(http::HeaderName::try_from(header).unwrap(), value.parse().unwrap());
    send(&client(), request).await
}

#[tokio::test]
async fn requests_that_matter_less_stop_at_their_share_while_critical_ones_pass() {
    // One attempt, and a whole call.
    for lines in ["", "attempts = 3\nretry_budget = \"none\"\nretry_backoff = \"1ms\""] {
        let core = upstream().await;
        // Three ways to the same upstream, by host.
        let text = format!(
            "[[route]]\npath = \"/\"\ntarget = \"t\"\npriority_header = true
[[route]]\nhost = \"batch\"\npath = \"/\"\ntarget = \"t\"\npriority = \"sheddable\"
[[route]]\nhost = \"plain\"\npath = \"/\"\ntarget = \"t\"\npriority = \"normal\"\npriority_header = true
[target.t]\nupstream = [\"http://{}\"]\nmax_in_flight = 4\nnormal_share = 0.75\nsheddable_share = 0.5\n{lines}",
            core.address()
        );
        let gateway = gateway(&text).await;
        let at = gateway.address();
        let _held = [inside(&gateway, &core).await, inside(&gateway, &core).await];
        let batch = ask(at, "/fast", "host", "batch").await;
        let told = (batch.status.as_u16(), batch.code(), batch.reason(), batch.retry_after());
        assert_eq!(told, (503, "E905".to_owned(), "shed".to_owned(), 1));
        assert_eq!(
            (batch.json()["target"].as_str(), &batch.headers["x-portcullis-code"]),
            (Some("t"), &"E905".parse().unwrap())
        );
        assert_eq!(ask(at, "/fast", "x-request-priority", "sheddable").await.reason(), "shed");
        assert_eq!(ask(at, "/fast", "host", "plain").await.status, 200);
        let third = inside(&gateway, &core).await;
        // A client may say less of its request, never more.
        for (header, value) in [("x-request-priority", "normal"), ("host", "plain")] {
            assert_eq!(ask(at, "/fast", header, value).await.reason(), "shed", "{value}");
        }
        let mut boast = request(Method::GET, at, "/fast");
        boast.headers_mut().insert("host", "plain".parse().unwrap());
        boast.headers_mut().insert("x-request-priority", "critical".parse().unwrap());
        assert_eq!(send(&client(), boast).await.reason(), "shed");
        assert_eq!(get(at, "/fast").await.status, 200);
        assert_eq!(ask(at, "/fast", "x-request-priority", "critical").await.status, 200);
        assert_eq!((snapshot(&gateway).refusals.shed, snapshot(&gateway).refusals.total()), (5, 5));
        assert_eq!(target(&gateway, "t").await["refusals"]["shed"], 5);
        assert_eq!(core.counts().calls, 6, "no refusal was tried again");
        drop(third);
    }
}

#[tokio::test]
async fn nobody_heeds_the_header_unless_the_route_says_so() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "max_in_flight = 2\nsheddable_share = 0.5").await;
    let _held = inside(&gateway, &core).await;
    assert_eq!(ask(gateway.address(), "/fast", "x-request-priority", "sheddable").await.status, 200);
}

#[tokio::test]
async fn a_critical_request_waits_and_is_answered() {
    for lines in ["", "attempts = 2"] {
        let core = upstream().await;
        let gateway = gateway_to(core.address(), &format!("{QUEUED}\n{lines}")).await;
        let held = inside(&gateway, &core).await;
        let at = gateway.address();
        let waiting = tokio::spawn(async move { get(at, "/fast").await });
        until("it waits", async || snapshot(&gateway).waiting == 1).await;
        assert_eq!((target(&gateway, "t").await["waiting"].as_u64(), gateway.in_flight()), (Some(1), 2));
        held.reset();
        assert_eq!(waiting.await.unwrap().status, 200);
        until_idle(&gateway, "t").await;
        let seen = snapshot(&gateway);
        assert_eq!((seen.waited, seen.waiting, seen.refusals.total(), seen.totals.success), (1, 0, 0, 1));
    }
}

#[tokio::test]
async fn a_client_that_hangs_up_while_it_waits_leaves_nothing() {
    let heads = [
        "GET /fast HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /fast HTTP/1.1\r\nhost: a\r\nx-request-deadline-ms: 100000\r\n\r\n",
    ];
    let core = upstream().await;
    let gateway = gateway_to(core.address(), QUEUED).await;
    let held = inside(&gateway, &core).await;
    for head in heads {
        let mut leaving = Raw::connect(gateway.address()).await;
        leaving.send(head).await;
        until("it waits", async || snapshot(&gateway).waiting == 1).await;
        leaving.reset();
        until("it left", async || snapshot(&gateway).waiting == 0 && gateway.in_flight() == 1).await;
    }
    held.reset();
    until_idle(&gateway, "t").await;
    assert_eq!((core.counts().calls, snapshot(&gateway).waited), (1, 2));
    assert_eq!(get(gateway.address(), "/fast").await.status, 200);
}

#[tokio::test]
async fn a_client_that_left_in_the_middle_of_its_upload_is_noticed_when_its_turn_comes() {
    for lines in ["", "attempts = 2"] {
        let core = upstream().await;
        let gateway = gateway_to(core.address(), &format!("{QUEUED}\n{lines}")).await;
        let held = inside(&gateway, &core).await;
        let mut leaving = Raw::connect(gateway.address()).await;
        leaving.send("PUT /fast HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf").await;
        until("it waits", async || snapshot(&gateway).waiting == 1).await;
        leaving.reset();
        // Nothing is read ahead of an unread body, not even its end.
        held.reset();
        until_idle(&gateway, "t").await;
        let seen = snapshot(&gateway);
        assert_eq!((seen.waiting, seen.waited, seen.totals.ignored, seen.totals.failure), (0, 1, 1, 0));
        assert_eq!(get(gateway.address(), "/fast").await.status, 200);
    }
}

#[tokio::test]
async fn a_wait_ends_with_max_wait_or_where_the_deadline_leaves_no_whole_attempt() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), &QUEUED.replace("\"60s\"\ntimeout", "\"100ms\"\ntimeout")).await;
    let _held = inside(&gateway, &core).await;
    let refused = get(gateway.address(), "/fast").await;
    assert_eq!(
        (refused.status.as_u16(), refused.code().as_str(), refused.reason().as_str()),
        (503, "E905", "saturated")
    );
    assert!(refused.took >= Duration::from_millis(100), "{:?}", refused.took);

    let gateway = gateway_to(core.address(), QUEUED).await;
    let _held = inside(&gateway, &core).await;
    let refused = ask(gateway.address(), "/fast", "x-request-deadline-ms", "60100").await;
    assert_eq!(
        (refused.status.as_u16(), refused.code().as_str(), refused.reason().as_str()),
        (503, "E905", "saturated")
    );
    assert!(refused.took >= Duration::from_millis(90), "{:?}", refused.took);
    let hasty = ask(gateway.address(), "/fast", "x-request-deadline-ms", "60000").await;
    assert_eq!((hasty.code().as_str(), snapshot(&gateway).waited), ("E905", 1));
}

#[tokio::test]
async fn who_waits_holds_a_place_in_the_process() {
    let core = upstream().await;
    let gateway = gateway(&format!("max_concurrent = 2\n{}", common::single(core.address(), QUEUED))).await;
    let held = inside(&gateway, &core).await;
    let at = gateway.address();
    let waiting = tokio::spawn(async move { get(at, "/fast").await });
    until("it waits", async || snapshot(&gateway).waiting == 1).await;
    let refused = get(at, "/fast").await;
    assert_eq!((refused.code().as_str(), refused.reason().as_str()), ("E905", "process"));
    held.reset();
    assert_eq!(waiting.await.unwrap().status, 200);
}
