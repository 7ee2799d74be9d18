//! Upstreams that misbehave: each is the target's failure, in a clear code, and nothing stays behind.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::{Answer, Raw, gateway_to, get, request, scripted, send, target, until_idle};
use http::Method;
use http_body_util::Full;
use portcullis_gateway::Gateway;

/// An upstream that reads the head of a request, says this, and closes.
async fn saying(words: &'static str) -> SocketAddr {
    scripted(move |mut raw| async move {
        raw.head().await;
        raw.send(words).await;
    })
    .await
}

async fn fails_with(gateway: &Gateway, answer: &Answer, status: u16, code: &str) {
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (status, code), "{answer:?}");
    assert_eq!(answer.json()["target"], "t");
    assert!(answer.retry_after() >= 1);
    settled(gateway, 1).await;
}

async fn settled(gateway: &Gateway, failures: u64) {
    until_idle(gateway, "t").await;
    let totals = target(gateway, "t").await["totals"].clone();
    assert_eq!((&totals["failure"], &totals["success"]), (&failures.into(), &0.into()), "{totals}");
}

#[tokio::test]
async fn closes_before_it_has_read_anything() {
    let gateway = gateway_to(scripted(|raw| async move { drop(raw) }).await, "").await;
    let answer = get(gateway.address(), "/").await;
    fails_with(&gateway, &answer, 502, "E902").await;
}

#[tokio::test]
async fn resets_before_it_has_read_anything() {
    let gateway = gateway_to(scripted(|raw| async move { raw.reset() }).await, "").await;
    let answer = get(gateway.address(), "/").await;
    fails_with(&gateway, &answer, 502, "E902").await;
}

#[tokio::test]
async fn says_something_that_is_no_answer() {
    let huge: &'static str =
        Box::leak(format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(2_000_000)).into_boxed_str());
    for words in [
        "",
        "HTTP/1.1 200",
        "\0\u{1}garbage\r\n\r\n",
        "HTTP/9.9 999 ?\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
        huge,
    ] {
        let gateway = gateway_to(saying(words).await, "").await;
        let answer = get(gateway.address(), "/").await;
        let short: String = words.chars().take(60).collect();
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (502, "E902"), "{short:?} {answer:?}");
        settled(&gateway, 1).await;
    }
}

#[tokio::test]
async fn says_interim_answers_first() {
    let words = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let gateway = gateway_to(saying(words).await, "").await;
    let answer = get(gateway.address(), "/").await;
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"ok"[..]));
}

#[tokio::test]
async fn accepts_and_never_reads() {
    let address = scripted(|raw| async move {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(raw);
    })
    .await;
    let gateway = gateway_to(address, "timeout = \"500ms\"").await;
    let answer = get(gateway.address(), "/").await;
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (504, "E901"));

    // More than the sockets on the way can swallow: the upload stands, and the upstream is at fault.
    let mut asked = request(Method::POST, gateway.address(), "/");
    *asked.body_mut() = Full::from(vec![b'x'; 64 << 20]);
    let answer = send(&common::client(), asked).await;
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (504, "E901"));
    settled(&gateway, 2).await;
}

#[tokio::test]
async fn answers_without_reading_the_body() {
    let gateway =
        gateway_to(saying("HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\nconnection: close\r\n\r\nno\n").await, "");
    let gateway = gateway.await;
    // In pieces: the rest of the upload must not be needed for the answer to come through.
    let mut client = Raw::connect(gateway.address()).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nsome").await;
    client.read_to("413").await;
    client.read_to("no\n").await;
    until_idle(&gateway, "t").await;
    assert_eq!(target(&gateway, "t").await["totals"]["success"], 1);
}

#[tokio::test]
async fn breaks_off_in_the_middle_of_the_body() {
    for (reset, words) in [
        (false, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"),
        (true, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"),
        (false, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
        (false, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n"),
    ] {
        let address = scripted(move |mut raw| async move {
            raw.head().await;
            raw.send(words).await;
            // Until the first half has been passed on.
            tokio::time::sleep(Duration::from_millis(100)).await;
            if reset {
                raw.reset();
            }
        })
        .await;
        let gateway = gateway_to(address, "").await;
        let mut client = Raw::connect(gateway.address()).await;
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
        // The client can tell: its connection ends before the body has.
        let all = client.read_all().await;
        assert!(all.starts_with("HTTP/1.1 200") && all.contains("half") && !all.contains("\r\n0\r\n"), "{all}");
        settled(&gateway, 1).await;
    }
}

#[tokio::test]
async fn closes_an_idle_connection_unasked() {
    // Each connection serves once and then closes: the pool must not trip over it.
    let address = saying("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let gateway = gateway_to(address, "").await;
    for _ in 0..5 {
        let answer = get(gateway.address(), "/").await;
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"ok"[..]), "{answer:?}");
        // Until the end has come, also on a busy machine.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// It refuses with a time to come back, in seconds or as a date: the target stays open for no less, within its longest wait.
#[tokio::test]
async fn says_when_to_come_back() {
    let policy = "consecutive_failures = 2\nopen_wait = \"1s\"\nopen_wait_max = \"90s\"\njitter = 0.0";
    for (words, wait_ms, asked_ms) in [
        ("retry-after: 40\r\n", 40_000, 40_000),
        ("date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:50:07 GMT\r\n", 30_000, 30_000),
        ("retry-after: 3600\r\n", 90_000, 3_600_000),
    ] {
        let head =
            format!("HTTP/1.1 503 Service Unavailable\r\n{words}connection: close\r\ncontent-length: 4\r\n\r\nbusy");
        let upstream = scripted(move |mut raw| {
            let head = head.clone();
            async move {
                raw.head().await;
                raw.send(&head).await;
            }
        })
        .await;
        let gateway = gateway_to(upstream, policy).await;
        for _ in 0..2 {
            let answer = get(gateway.address(), "/").await;
            assert_eq!((answer.status.as_u16(), &answer.body[..]), (503, &b"busy"[..]), "the upstream's own answer");
        }
        let refused = get(gateway.address(), "/").await;
        assert_eq!((refused.reason().as_str(), refused.code().as_str()), ("open", "E904"));
        // Less what has passed, rounded up; without the upstream's word it would be one second.
        assert!((2..=wait_ms / 1_000 + 1).contains(&refused.retry_after()), "{refused:?}");
        let log = get(gateway.admin_address().unwrap(), "/transitions").await.json();
        let trip = &log["transitions"][0];
        assert_eq!((&trip["to"], &trip["retry_after_ms"]), (&"OPEN".into(), &asked_ms.into()), "{trip}");
        // The wait is counted from a whole millisecond, up to one after it was decided.
        assert!((wait_ms..=wait_ms + 1).contains(&trip["wait_ms"].as_u64().unwrap()), "{trip}");
    }
}
