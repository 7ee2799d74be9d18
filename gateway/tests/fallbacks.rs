//! What callers get instead of a failure: marked, counted, and never hiding that it failed itself.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Answer, client, gateway_to, get, post, request, send, single, target, upstream};
use http::Method;
use portcullis_gateway::Gateway;
use portcullis_gateway::demo::upstreams::Mode;

const VALUE: &str =
    "fallback = { value = { status = 203, content_type = \"application/json\", body = '{\"balance\":null}' } }";
const STALE: &str = "fallback = { stale = \"5m\" }";

fn mark(answer: &Answer) -> &str {
    answer.headers.get("x-portcullis-fallback").map_or("", |mark| mark.to_str().unwrap())
}

async fn with(gateway: &Gateway, path: &str, name: &'static str, value: &str) -> Answer {
    let mut request = request(Method::GET, gateway.address(), path);
    request.headers_mut().insert(name, value.parse().unwrap());
    send(&client(), request).await
}

#[tokio::test]
async fn a_value_stands_in_for_every_kind_of_failure() {
    let mut core = upstream().await;
    let gateway = gateway_to(core.address(), &format!("{VALUE}\nwindow = \"none\"\ntimeout = \"100ms\"")).await;
    let at = gateway.address();
    let good = get(at, "/fast").await;
    assert_eq!((good.status.as_u16(), mark(&good)), (200, ""));
    assert_eq!(get(at, "/bad").await.status, 400, "an answer is an answer");

    let mut instead = vec![get(at, "/always500").await, get(at, "/hang").await];
    core.set_mode(Mode::Refusing).await.unwrap();
    instead.push(get(at, "/fast").await);
    // But for who was late on arrival, since nobody waits for it.
    let late = with(&gateway, "/fast", "x-request-deadline-ms", "0").await;
    assert_eq!((late.status.as_u16(), mark(&late)), (504, ""));
    post(gateway.admin_address().unwrap(), "/targets/t/force-open").await;
    instead.push(get(at, "/fast").await);
    for answer in instead {
        assert_eq!((answer.status.as_u16(), mark(&answer)), (203, "value"));
        assert_eq!(answer.headers["content-type"], "application/json");
        assert_eq!(&answer.body[..], b"{\"balance\":null}");
    }
    let shown = target(&gateway, "t").await;
    assert_eq!((&shown["calls"]["fallback_value"], &shown["calls"]["failed"]), (&4.into(), &5.into()));
    // The target's failures are its failures.
    assert_eq!(shown["totals"]["failure"], 3);
}

#[tokio::test]
async fn the_last_good_answer_stands_in_for_the_same_question_only() {
    let mut core = upstream().await;
    let gateway = gateway_to(core.address(), &format!("{STALE}\nwindow = \"none\"")).await;
    assert_eq!(mark(&with(&gateway, "/fast", "host", "one.example").await), "");
    // Meant for one caller, it is nobody else's.
    assert_eq!(with(&gateway, "/slow?ms=1", "authorization", "Basic x").await.status, 200);

    core.set_mode(Mode::Refusing).await.unwrap();
    let stale = with(&gateway, "/fast", "host", "one.example").await;
    assert_eq!((stale.status.as_u16(), &stale.body[..]), (200, &b"fast\n"[..]));
    let (word, age) = mark(&stale).split_once("; age=").unwrap();
    let age: u64 = age.parse().unwrap();
    assert!(word == "stale" && age <= 20, "{}", mark(&stale));
    assert!(stale.headers["age"].to_str().unwrap().parse::<u64>().unwrap() <= age);

    for (path, host) in [("/fast", "other.example"), ("/fast?x", "one.example"), ("/slow?ms=1", "one.example")] {
        let failed = with(&gateway, path, "host", host).await;
        assert_eq!((failed.status.as_u16(), failed.code().as_str(), mark(&failed)), (502, "E902", "failed"), "{path}");
        let json = failed.json();
        assert!(json["message"].as_str().unwrap().contains("; the fallback failed: no answer is kept"), "{json}");
    }
    let seen = gateway.calls("t").unwrap();
    assert_eq!((seen.fallback_stale, seen.fallback_failed), (1, 3));
}

#[tokio::test]
async fn what_is_too_old_is_no_answer_and_the_targets_own_words_are_handed_on() {
    let mut core = upstream().await;
    let gateway = gateway_to(core.address(), "fallback = { stale = \"1ms\" }\nwindow = \"none\"").await;
    assert_eq!(get(gateway.address(), "/fast").await.status, 200);
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    core.set_mode(Mode::Failing).await.unwrap();
    let failed = get(gateway.address(), "/fast").await;
    assert_eq!((failed.status.as_u16(), mark(&failed), &failed.body[..]), (503, "failed", &b"out of order\n"[..]));
}

#[tokio::test]
async fn what_counts_against_the_target_asks_the_fallback() {
    let core = common::Answering::start(|_, _| common::answer("429 Too Many Requests", "", "later")).await;
    let gateway = gateway_to(core.address, VALUE).await;
    let instead = get(gateway.address(), "/").await;
    assert_eq!((instead.status.as_u16(), mark(&instead)), (203, "value"));
    let shown = target(&gateway, "t").await;
    assert_eq!((&shown["totals"]["failure"], &shown["calls"]["failed"]), (&1.into(), &1.into()));
}

#[tokio::test]
async fn a_reload_keeps_answers_and_budgets() {
    let mut core = upstream().await;
    let text = |timeout: &str| {
        let lines = "window = \"none\"\nattempts = 2\nretry_backoff = \"1ms\"\nretry_budget = 0.2\nretry_floor = 0";
        let lines = format!("{STALE}\n{lines}\nretry_memory = \"60s\"\ntimeout = \"{timeout}\"");
        format!("listen = \"127.0.0.1:0\"\nadmin = \"off\"\n{}", single(core.address(), &lines))
    };
    let (before, after) = (text("1s").parse().unwrap(), text("2s").parse().unwrap());
    let mut gateway = Gateway::start(before).await.unwrap();
    assert_eq!(get(gateway.address(), "/fast").await.status, 200);
    for _ in 0..7 {
        assert_eq!(get(gateway.address(), "/always500").await.status, 500);
    }
    assert_eq!(gateway.calls("t").unwrap().retries, 1);

    gateway.reload(&after).unwrap();
    // The ninth call has what is left of the old ones' share, and the tenth has the next.
    get(gateway.address(), "/always500").await;
    assert_eq!(gateway.calls("t").unwrap().retries, 1);
    get(gateway.address(), "/always500").await;
    assert_eq!(gateway.calls("t").unwrap().retries, 2);
    core.set_mode(Mode::Refusing).await.unwrap();
    let stale = get(gateway.address(), "/fast").await;
    assert_eq!((stale.status.as_u16(), mark(&stale).split(';').next()), (200, Some("stale")));
}
