//! The caller's time: in by a header, out with what is left, and the target's own bound on a whole request.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{
    Answer, Answering, Raw, answer, client, field, gateway, gateway_to, request, scripted, send, single, target,
    until_idle, upstream,
};
use http::Method;
use portcullis_gateway::Gateway;

async fn within(gateway: &Gateway, path: &str, name: &'static str, time: &str) -> Answer {
    let mut request = request(Method::GET, gateway.address(), path);
    request.headers_mut().insert(name, time.parse().unwrap());
    send(&client(), request).await
}

const KINDS: [&str; 3] = ["", "attempts = 2", "admission = false"];

/// A target with one attempt, with more, and one that isn't asked about.
async fn gateway_of(kind: &str, upstream: std::net::SocketAddr, lines: &str) -> Gateway {
    if kind.starts_with("admission") {
        let unasked = format!("target = \"t\"\n{kind}\n[target.t]");
        return gateway(&single(upstream, lines).replace("target = \"t\"\n[target.t]", &unasked)).await;
    }
    gateway_to(upstream, &format!("{lines}\n{kind}")).await
}

#[tokio::test]
async fn expired_on_arrival_it_is_no_work_for_anybody() {
    let core = upstream().await;
    for kind in KINDS {
        let gateway = gateway_of(kind, core.address(), "").await;
        for (name, late) in [("x-request-deadline-ms", "0"), ("x-request-deadline-ms", "-7"), ("grpc-timeout", "0m")] {
            let refused = within(&gateway, "/fast", name, late).await;
            assert_eq!((refused.status.as_u16(), refused.code().as_str()), (504, "E901"), "{kind}");
            assert_eq!(refused.reason(), "deadline", "{kind}");
        }
        let shown = target(&gateway, "t").await;
        assert_eq!((&shown["totals"]["admitted"], &shown["totals"]["failure"]), (&0.into(), &0.into()));
        let counted = if kind.starts_with("admission") { 0 } else { 3 };
        assert_eq!(shown["calls"]["deadline_refused"], counted);
    }
    assert_eq!(core.counts().calls, 0);
}

#[tokio::test]
async fn a_deadline_ends_a_call_and_is_no_failure_of_its_target() {
    let core = upstream().await;
    for kind in KINDS {
        let gateway = gateway_of(kind, core.address(), "timeout = \"20s\"\non_abandon = \"ignore\"").await;
        let cut = within(&gateway, "/hang", "x-request-deadline-ms", "60").await;
        assert_eq!((cut.status.as_u16(), cut.code().as_str(), cut.reason().as_str()), (504, "E901", "deadline"));
        let shown = target(&gateway, "t").await;
        assert_eq!(shown["totals"]["failure"], 0, "{kind}");
        if !kind.starts_with("admission") {
            assert_eq!((&shown["totals"]["abandoned"], &shown["calls"]["deadline_cut"]), (&1.into(), &1.into()));
        }
        // Time enough is no hindrance.
        assert_eq!(within(&gateway, "/fast", "x-request-deadline-ms", "20000").await.status, 200, "{kind}");
    }
}

#[tokio::test]
async fn what_is_left_goes_out() {
    let core = Answering::start(|_, _| answer("200 OK", "", "")).await;
    for kind in KINDS {
        let gateway = gateway_of(kind, core.address, "timeout = \"30s\"").await;
        within(&gateway, "/", "x-request-deadline-ms", "20000").await;
        within(&gateway, "/", "grpc-timeout", "20S").await;
        within(&gateway, "/", "x-request-deadline-ms", "40000").await;
    }
    let heads = core.heads();
    assert_eq!(heads.len(), 9);
    for each in heads.chunks(3) {
        let left = |head: usize| field(&each[head], "x-request-deadline-ms").unwrap().parse::<u64>().unwrap();
        assert!((1..=20_000).contains(&left(0)) && (1..=20_000).contains(&left(1)), "{each:?}");
        assert_eq!(field(&each[1], "grpc-timeout").unwrap(), format!("{}m", left(1)));
        assert_eq!(left(2), 30_000, "no attempt has longer than its timeout");
    }
}

#[tokio::test]
async fn nobody_is_told_of_a_deadline_that_there_is_not() {
    let core = Answering::start(|_, _| answer("200 OK", "", "")).await;
    let gateway = gateway_to(core.address, "").await;
    common::get(gateway.address(), "/").await;
    assert_eq!(field(&core.heads()[0], "x-request-deadline-ms"), None);
    assert_eq!(gateway.calls("t").unwrap().calls, 0, "one attempt is no whole call");
}

#[tokio::test]
async fn a_client_that_takes_all_the_time_itself_is_held_to_the_deadline() {
    let core = upstream().await;
    let lines = "timeout = \"400ms\"\ndeadline = \"400ms\"\non_abandon = \"failure\"";
    let gateway = gateway_to(core.address(), lines).await;
    let mut slow = Raw::connect(gateway.address()).await;
    slow.send("PUT /hang HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n").await;
    // Each piece would give the attempt more time.
    let writing = async {
        loop {
            if slow.try_send(b"1\r\nx\r\n").await.is_err() {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = common::until("the deadline passes", async || gateway.calls("t").unwrap().failed == 1);
    tokio::select! {
        () = writing => {}
        () = ended => {}
    }
    let head = slow.head().await;
    assert!(head.starts_with("HTTP/1.1 504"), "{head}");
    until_idle(&gateway, "t").await;
    let totals = target(&gateway, "t").await["totals"].clone();
    assert_eq!((&totals["ignored"], &totals["failure"]), (&1.into(), &0.into()), "{totals}");
}

#[tokio::test]
async fn an_upstream_that_drips_is_cut_off_at_the_deadline_and_its_place_is_free() {
    let core = scripted(|mut raw| async move {
        let head = raw.head().await;
        if head.starts_with("GET /fast") {
            return raw.send(&answer("200 OK", "connection: close\r\n", "fast").unwrap()).await;
        }
        raw.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        // Never silent, never done, until it is hung up on.
        while raw.try_send(b"1\r\nx\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    for kind in KINDS {
        let lines = "timeout = \"500ms\"\nretry_backoff = \"0s\"\ndeadline = \"1100ms\"\nmax_in_flight = 1";
        let gateway = gateway_of(kind, core, lines).await;
        let mut client = Raw::connect(gateway.address()).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        let all = client.read_all().await;
        assert!(all.starts_with("HTTP/1.1 200") && all.contains("1\r\nx\r\n") && !all.ends_with("0\r\n\r\n"), "{all}");
        until_idle(&gateway, "t").await;
        let failures = u64::from(!kind.starts_with("admission"));
        assert_eq!(target(&gateway, "t").await["totals"]["failure"], failures, "{kind}");
        assert_eq!(common::get(gateway.address(), "/fast").await.status, 200, "{kind}");
    }
}

#[tokio::test]
async fn a_stream_goes_on_after_the_deadline() {
    let core = scripted(|mut raw| async move {
        raw.head().await;
        raw.send("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf").await;
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        raw.send("half").await;
    })
    .await;
    let gateway = gateway_to(core, "timeout = \"1s\"\ndeadline = \"1s\"\nstream = true").await;
    assert_eq!(&common::get(gateway.address(), "/").await.body[..], b"halfhalf");
}
