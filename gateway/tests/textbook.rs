//! The textbook scenario, end to end: real HTTP through the gateway, each step judged by the upstream's own counter and by
//! what the admin listener says.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{Answer, get, state, target, transitions, until, upstream};
use portcullis_gateway::Gateway;
use portcullis_gateway::demo::upstreams::Upstream;
use tokio::task::JoinSet;

/// A window of 10 calls, 5 at least, half of them failures; three probes to close, one at a time.
const RULES: &str = "
    window = { calls = 10 }
    min_calls = 5
    failure_rate = 0.5
    jitter = 0.0
    backoff = 1.0
    max_probes = 1
    successes_to_close = 3
";

/// `core-banking` and `claims` under their names, with the same rules.
async fn bank(core: &Upstream, claims: &Upstream, defaults: &str, own: &str) -> Gateway {
    let text = format!(
        "[defaults]\n{RULES}\n{defaults}
         [[route]]\npath = \"/core/\"\ntarget = \"core-banking\"
         [[route]]\npath = \"/claims/\"\ntarget = \"claims\"
         [target.core-banking]\nupstream = [\"{}\"]\n{own}
         [target.claims]\nupstream = [\"{}\"]",
        core.url(),
        claims.url()
    );
    common::gateway(&text).await
}

async fn several(gateway: &Gateway, path: &str, count: usize) -> Vec<Answer> {
    let mut answers = Vec::new();
    for _ in 0..count {
        answers.push(get(gateway.address(), path).await);
    }
    answers
}

async fn at_once(gateway: &Gateway, path: &'static str, count: usize) -> JoinSet<Answer> {
    let address = gateway.address();
    let mut calls = JoinSet::new();
    for _ in 0..count {
        calls.spawn(async move { get(address, path).await });
    }
    calls
}

async fn trip(gateway: &Gateway, name: &str) {
    let path = if name == "claims" { "/claims/always500" } else { "/core/always500" };
    several(gateway, path, 5).await;
    assert_eq!(state(gateway, name).await, "OPEN");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_textbook_breaker() {
    let (core, claims) = (upstream().await, upstream().await);
    let gateway = bank(&core, &claims, "open_wait = \"1500ms\"", "").await;

    for answer in several(&gateway, "/core/fast", 3).await {
        assert_eq!(answer.status, 200);
    }
    let seen = target(&gateway, "core-banking").await;
    assert_eq!((seen["state"].as_str(), &seen["window"]["calls"]), (Some("CLOSED"), &3.into()));
    assert_eq!(core.counts().calls, 3);

    // The third failure makes three of six; the other two of the five are refused.
    let answers = several(&gateway, "/core/always500", 5).await;
    let codes: Vec<String> = answers.iter().map(Answer::code).collect();
    assert_eq!(codes, ["", "", "", "E904", "E904"]);
    assert!(answers[..3].iter().all(|answer| answer.status == 500));
    assert_eq!(state(&gateway, "core-banking").await, "OPEN");
    assert_eq!(core.counts().calls, 6);

    // A machine that stalls may delay a whole round, but hardly three.
    let mut quick = false;
    for _ in 0..3 {
        let refusals = several(&gateway, "/core/fast", 10).await;
        for refusal in &refusals {
            assert_eq!((refusal.status.as_u16(), refusal.code().as_str()), (503, "E904"));
            assert_eq!(refusal.reason(), "open");
            assert!((1..=2).contains(&refusal.retry_after()));
        }
        assert_eq!(core.counts().calls, 6);
        quick |= refusals.iter().all(|refusal| refusal.took < Duration::from_millis(50));
        if quick {
            break;
        }
    }
    assert!(quick, "ten refusals within 50 ms each");

    until("the wait is over", async || state(&gateway, "core-banking").await == "HALF_OPEN").await;
    assert_eq!(core.counts().calls, 6, "looking at it sends no probe");
    assert_eq!(get(gateway.address(), "/core/fast").await.status, 200);
    let seen = target(&gateway, "core-banking").await;
    assert_eq!((seen["state"].as_str(), &seen["probe_successes"]), (Some("HALF_OPEN"), &1.into()));
    assert_eq!(core.counts().calls, 7);

    several(&gateway, "/core/fast", 2).await;
    let seen = target(&gateway, "core-banking").await;
    assert_eq!((seen["state"].as_str(), &seen["window"]["calls"]), (Some("CLOSED"), &0.into()));
    assert_eq!(core.counts().calls, 9);

    // A fresh target: business refusals are answers of a healthy one.
    for answer in several(&gateway, "/claims/bad", 10).await {
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (400, &b"insufficient balance\n"[..]));
    }
    let seen = target(&gateway, "claims").await;
    assert_eq!(seen["state"], "CLOSED");
    assert_eq!((&seen["window"]["failures"], &seen["totals"]["failure"]), (&0.into(), &0.into()));
    assert_eq!((&seen["totals"]["success"], claims.counts().calls), (&10.into(), 10));

    let log = transitions(&gateway, "core-banking").await;
    let log: Vec<(&str, &str)> = log.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
    assert_eq!(log, [("CLOSED", "OPEN"), ("OPEN", "HALF_OPEN"), ("HALF_OPEN", "CLOSED")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failing_probe_opens_again() {
    let (core, claims) = (upstream().await, upstream().await);
    let gateway = bank(&core, &claims, "open_wait = \"300ms\"", "").await;
    trip(&gateway, "core-banking").await;
    until("the wait is over", async || state(&gateway, "core-banking").await == "HALF_OPEN").await;
    let before = core.counts().calls;
    assert_eq!(get(gateway.address(), "/core/always500").await.status, 500);
    assert_eq!(core.counts().calls, before + 1);
    let last = transitions(&gateway, "core-banking").await.pop();
    assert_eq!(last, Some(("HALF_OPEN".to_owned(), "OPEN".to_owned())));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limit_of_three_lets_three_in_and_spares_the_neighbour() {
    let (core, claims) = (upstream().await, upstream().await);
    let gateway = bank(&core, &claims, "timeout = \"20s\"", "max_in_flight = 3").await;

    let mut calls = at_once(&gateway, "/core/slow?ms=2000", 20).await;
    let mut refused = Vec::new();
    while refused.len() < 17 {
        refused.push(calls.join_next().await.unwrap().unwrap());
    }
    // All 17 are back while the three are still inside.
    for refusal in &refused {
        assert_eq!((refusal.status.as_u16(), refusal.code().as_str()), (503, "E905"));
        assert_eq!(refusal.reason(), "saturated");
        assert!(refusal.retry_after() >= 1);
    }
    for answer in several(&gateway, "/claims/fast", 10).await {
        assert_eq!(answer.status, 200);
    }
    for inside in calls.join_all().await {
        assert_eq!((inside.status.as_u16(), &inside.body[..]), (200, &b"slow\n"[..]));
    }
    let counts = core.counts();
    assert_eq!((counts.calls, counts.max_concurrent), (3, 3));
    let seen = target(&gateway, "core-banking").await;
    assert_eq!((&seen["refusals"]["saturated"], &seen["totals"]["admitted"]), (&17.into(), &3.into()));
    assert_eq!((state(&gateway, "core-banking").await.as_str(), claims.counts().calls), ("CLOSED", 10));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_64_callers_at_the_end_of_the_wait_one_probes() {
    let (core, claims) = (upstream().await, upstream().await);
    let gateway = bank(&core, &claims, "timeout = \"3s\"\nopen_wait = \"300ms\"", "max_in_flight = 3").await;
    trip(&gateway, "core-banking").await;
    let before = core.counts().calls;
    until("the wait is over", async || state(&gateway, "core-banking").await == "HALF_OPEN").await;

    // The probe hangs, so that nothing but the one slot decides.
    let mut calls = at_once(&gateway, "/core/hang", 64).await;
    for _ in 0..63 {
        let refusal = calls.join_next().await.unwrap().unwrap();
        assert_eq!(refusal.status, 503, "{refusal:?}");
        let kind = (refusal.code(), refusal.reason());
        let kind = (kind.0.as_str(), kind.1.as_str());
        assert!(matches!(kind, ("E904", "probing") | ("E905", "saturated")), "{kind:?}");
    }
    assert_eq!(core.counts().calls, before + 1);
    let probe = calls.join_next().await.unwrap().unwrap();
    assert_eq!((probe.status.as_u16(), probe.code().as_str()), (504, "E901"));
    assert_eq!(core.counts().calls, before + 1);
}
