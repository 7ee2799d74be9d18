//! Requests that could mean two things, and parts of messages that must not get through: found by the fuzz target `head`.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Raw, gateway_to, scripted, until_idle, upstream};
use tokio::sync::mpsc;

#[tokio::test]
async fn a_request_that_doesnt_name_one_host_is_refused() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    let mut client = Raw::connect(gateway.address()).await;
    for head in [
        "GET /fast HTTP/1.1\r\n",
        "GET http://a/fast HTTP/1.1\r\n",
        "GET /fast HTTP/1.1\r\nhost: a\r\nhost: a\r\n",
        "GET /fast HTTP/1.1\r\nhost: a, b\r\n",
        "GET /fast HTTP/1.1\r\nhost: a b\r\n",
        "GET /fast HTTP/1.1\r\nhost: a/b\r\n",
        "GET /fast HTTP/1.1\r\nhost: user@a\r\n",
        "GET /fast HTTP/1.1\r\nhost: \u{e9}\r\n",
        "GET http://user@a/fast HTTP/1.1\r\nhost: a\r\n",
    ] {
        client.send(&format!("{head}\r\n")).await;
        let answer = client.head().await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{head} {answer}");
        assert!(client.read_to("}").await.contains("E400"), "{head}");
    }
    assert_eq!(core.counts().calls, 0);
    for head in [
        "GET /fast HTTP/1.1\r\nhost: a\r\n",
        "GET /fast HTTP/1.1\r\nhost: [::1]:80\r\n",
        "GET /fast HTTP/1.1\r\nhost:\r\n",
        "GET http://b/fast HTTP/1.1\r\nhost: a\r\n",
        "GET /fast HTTP/1.0\r\n",
    ] {
        client.send(&format!("{head}\r\n")).await;
        assert!(client.read_to("fast\n").await.contains(" 200 OK\r\n"), "{head}");
    }
}

#[tokio::test]
async fn a_coding_that_the_upstream_wouldnt_hear_of_is_refused() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    for codings in ["gzip, chunked", "gzip\r\ntransfer-encoding: chunked", "chunked, chunked"] {
        let mut client = Raw::connect(gateway.address()).await;
        client.send(&format!("POST /fast HTTP/1.1\r\nhost: a\r\ntransfer-encoding: {codings}\r\n\r\n0\r\n\r\n")).await;
        assert!(client.head().await.starts_with("HTTP/1.1 501"), "{codings}");
        assert!(client.read_to("}").await.contains("\"E501\""), "{codings}");
    }
    assert_eq!(core.counts().calls, 0);
}

/// An upstream that tells all of each request up to `end`, and gives a fixed answer.
async fn telling(end: &'static str, answer: &'static str) -> (std::net::SocketAddr, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let address = scripted(move |mut raw| {
        let tell = tell.clone();
        async move {
            tell.send(raw.read_to(end).await.to_ascii_lowercase()).unwrap();
            raw.send(answer).await;
        }
    })
    .await;
    (address, told)
}

#[tokio::test]
async fn a_chunked_body_arrives_whatever_the_method() {
    let (address, mut told) =
        telling("0\r\n\r\n", "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok").await;
    let gateway = gateway_to(address, "").await;
    for method in ["GET", "DELETE", "POST"] {
        let mut client = Raw::connect(gateway.address()).await;
        client.send(&format!("{method} / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")).await;
        client.send("5\r\nhello\r\n0\r\n\r\n").await;
        let seen = told.recv().await.unwrap();
        assert!(seen.contains("transfer-encoding: chunked\r\n") && !seen.contains("content-length"), "{method} {seen}");
        assert!(seen.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"), "{method} {seen}");
        client.read_to("ok").await;
    }
    until_idle(&gateway, "t").await;
}

#[tokio::test]
async fn trailers_say_nothing_that_the_head_may_not() {
    let (address, mut told) = telling(
        "0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-end, keep-alive\r\n\r\n0\r\nx-end: 1\r\nkeep-alive: 9\r\n\r\n",
    )
    .await;
    let gateway = gateway_to(address, "").await;
    let mut client = Raw::connect(gateway.address()).await;
    client
        .send("POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\nte: trailers\r\ntransfer-encoding: chunked\r\n")
        .await;
    client
        .send("trailer: via, x-forwarded-for\r\n\r\n5\r\nhello\r\n0\r\nvia: x\r\nx-forwarded-for: 192.0.2.1\r\n\r\n")
        .await;
    let seen = told.recv().await.unwrap();
    assert!(seen.ends_with("\r\n\r\n5\r\nhello\r\n0\r\n\r\n") && !seen.contains("trailer"), "{seen}");
    let answer = client.read_all().await;
    assert!(answer.ends_with("0\r\nx-end: 1\r\n\r\n"), "{answer}");
}
