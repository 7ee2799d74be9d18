//! SIGHUP on the real binary: another file takes effect without losing what is known, a wrong one changes nothing.
#![allow(clippy::unwrap_used)]

mod common;

use common::process::Process;
use common::{Raw, get, until, upstream};
use portcullis_gateway::demo::upstreams::Upstream;
use serde_json::Value;

const TOP: &str = "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n";

fn config(core: &Upstream, extra: &str, lines: &str) -> String {
    format!("{TOP}{extra}\n{}", common::single(core.address(), lines))
}

async fn shown(process: &Process, name: &str) -> Value {
    get(process.admin, &format!("/targets/{name}")).await.json()
}

#[tokio::test]
async fn state_and_calls_in_flight_survive_a_reload() {
    let core = upstream().await;
    let rules = "consecutive_failures = 2\nopen_wait = \"60s\"\ntimeout = \"20s\"";
    let process = Process::start("reload-state", &config(&core, "", rules)).await;
    let at = process.proxy;
    let running = tokio::spawn(async move { get(at, "/slow?ms=2500").await });
    until("inside", async || core.counts().in_flight == 1).await;
    for _ in 0..2 {
        assert_eq!(get(at, "/always500").await.status, 500);
    }
    assert_eq!(shown(&process, "t").await["state"], "OPEN");

    process.rewrite(&config(&core, "", &format!("{rules}\nmax_in_flight = 7")));
    process.signal("HUP").await;
    process.logged("reloaded", 1).await;
    let seen = shown(&process, "t").await;
    assert_eq!((&seen["state"], &seen["limit"], &seen["in_flight"]), (&"OPEN".into(), &7.into(), &1.into()));
    assert_eq!(seen["totals"]["failure"], 2);
    assert_eq!(get(at, "/fast").await.code(), "E904");
    let answer = running.await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"slow\n"[..]));
}

#[tokio::test]
async fn a_wrong_file_changes_nothing() {
    let core = upstream().await;
    let process = Process::start("reload-wrong", &config(&core, "", "max_in_flight = 3")).await;
    for (n, text) in ["max_concurrent = 0", "[[", "", "listen = 7"].into_iter().enumerate() {
        process.rewrite(text);
        process.signal("HUP").await;
        process.logged("reload refused", n + 1).await;
    }
    assert!(process.log().contains("max_concurrent: 0 is out of range"), "{}", process.log());
    assert_eq!(shown(&process, "t").await["limit"], 3);
    assert_eq!(get(process.proxy, "/fast").await.status, 200);
}

#[tokio::test]
async fn routes_targets_and_the_cap_follow_the_file() {
    let (core, claims) = (upstream().await, upstream().await);
    let process = Process::start("reload-routes", &config(&core, "", "")).await;
    assert_eq!(get(process.proxy, "/fast").await.status, 200);

    let text = format!(
        "{TOP}max_concurrent = 1\nshutdown_timeout = \"1s\"\n[[route]]\npath = \"/claims/\"\ntarget = \"claims\"
         [target.claims]\nupstream = [\"{}\"]\ntimeout = \"20s\"",
        claims.url()
    );
    process.rewrite(&text);
    process.signal("HUP").await;
    process.logged("reloaded", 1).await;
    assert_eq!(get(process.proxy, "/fast").await.code(), "E404");
    assert_eq!(get(process.proxy, "/claims/fast").await.status, 200);
    // What was known of the target is kept, for when it comes back.
    let old = shown(&process, "t").await;
    assert_eq!((&old["configured"], &old["totals"]["success"]), (&false.into(), &1.into()));
    assert_eq!(shown(&process, "claims").await["configured"], true);

    let mut inside = Raw::connect(process.proxy).await;
    inside.send("GET /claims/hang HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("inside", async || claims.counts().in_flight == 1).await;
    assert_eq!(get(process.proxy, "/claims/fast").await.reason(), "process");
}

#[tokio::test]
async fn other_addresses_wait_for_the_next_start() {
    let core = upstream().await;
    let process = Process::start("reload-listen", &config(&core, "", "")).await;
    process.rewrite(&config(&core, "", "").replace("listen = \"127.0.0.1:0\"", "listen = \"127.0.0.2:0\""));
    process.signal("HUP").await;
    process.logged("reloaded", 1).await;
    assert!(process.log().contains("next start"), "{}", process.log());
    assert_eq!(get(process.proxy, "/fast").await.status, 200);
}
