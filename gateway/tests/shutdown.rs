//! SIGTERM on the real binary: nobody new comes in, what runs is finished or timed out.
#![allow(clippy::unwrap_used)]

mod common;

use common::process::Process;
use common::{Raw, get, h2_client, request, send, until, upstream};
use http::Method;
use tokio::net::TcpStream;

fn config(upstream: std::net::SocketAddr, grace: &str) -> String {
    let top = format!("listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nshutdown_timeout = \"{grace}\"\n");
    top + &common::single(upstream, "timeout = \"20s\"")
}

#[tokio::test]
async fn what_runs_is_finished_and_nobody_new_comes_in() {
    let core = upstream().await;
    let mut process = Process::start("shutdown", &config(core.address(), "20s")).await;
    let at = process.proxy;
    // An idle connection must not keep the process.
    let mut idle = Raw::connect(at).await;
    idle.send("GET /fast HTTP/1.1\r\nhost: a\r\n\r\n").await;
    idle.read_to("fast\n").await;
    let first = tokio::spawn(async move { get(at, "/slow?ms=2000").await });
    let second = tokio::spawn(async move { send(&h2_client(), request(Method::GET, at, "/slow?ms=2000")).await });
    until("both inside", async || core.counts().in_flight == 2).await;

    process.signal("TERM").await;
    process.logged("stopping", 1).await;
    until("no more connections", async || TcpStream::connect(at).await.is_err()).await;
    let drained = get(process.admin, "/healthz").await;
    assert_eq!((drained.status.as_u16(), &drained.json()["status"]), (503, &"draining".into()));
    for call in [first, second] {
        let answer = call.await.unwrap();
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"slow\n"[..]));
    }
    assert_eq!(idle.read_all().await, "");
    assert_eq!(process.ended().await.code(), Some(0));
}

#[tokio::test]
async fn what_does_not_finish_in_time_is_cut() {
    let core = upstream().await;
    let mut process = Process::start("shutdown-cut", &config(core.address(), "300ms")).await;
    let mut client = Raw::connect(process.proxy).await;
    client.send("GET /hang HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("inside", async || core.counts().in_flight == 1).await;
    process.signal("INT").await;
    assert_eq!(process.ended().await.code(), Some(0));
    assert_eq!(client.read_all().await, "");
    process.logged("cut=1", 1).await;
    until("the upstream is let go", async || core.counts().in_flight == 0).await;
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let core = upstream().await;
    let mut process = Process::start("shutdown-twice", &config(core.address(), "1h")).await;
    let mut client = Raw::connect(process.proxy).await;
    client.send("GET /hang HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("inside", async || core.counts().in_flight == 1).await;
    process.signal("TERM").await;
    process.logged("stopping", 1).await;
    process.signal("TERM").await;
    assert_eq!(process.ended().await.code(), Some(0));
}
