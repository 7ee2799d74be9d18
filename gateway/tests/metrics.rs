//! The page that Prometheus reads.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use common::{client, gateway, gateway_to, get, post, request, send, until, upstream};
use http::Method;
use portcullis_gateway::{Config, Gateway};

/// The series of a page with their values.
fn series(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let read = lines.map(|line| line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}")));
    let mut all = BTreeMap::new();
    for (name, value) in read {
        let value = value.parse().unwrap_or_else(|_| panic!("{name} {value}"));
        assert!(all.insert(name.to_owned(), value).is_none(), "{name} is there twice");
    }
    all
}

async fn scrape(gateway: &Gateway) -> BTreeMap<String, f64> {
    let answer = get(gateway.admin_address().unwrap(), "/metrics").await;
    assert_eq!(answer.status, 200);
    series(std::str::from_utf8(&answer.body).unwrap())
}

#[track_caller]
fn assert_shows(page: &BTreeMap<String, f64>, expected: &[(&str, f64)]) {
    for (name, expected) in expected {
        assert_eq!(page.get(*name), Some(expected), "{name} in {page:#?}");
    }
}

async fn ask(at: SocketAddr, path: &str, times: usize) {
    for _ in 0..times {
        get(at, path).await;
    }
}

#[tokio::test]
async fn an_outage_shows_in_the_metrics() {
    let core = upstream().await;
    let lines = "consecutive_failures = 3\nwindow = \"none\"\nopen_wait = \"100ms\"\nopen_wait_max = \"100ms\"\njitter = 0.0\n\
                 successes_to_close = 1\nmax_in_flight = 7";
    let gateway = gateway_to(core.address(), lines).await;
    let at = gateway.address();
    let before = scrape(&gateway).await;
    assert_shows(
        &before,
        &[
            ("portcullis_target_state{target=\"t\",state=\"CLOSED\"}", 1.0),
            ("portcullis_admitted_total{target=\"t\"}", 0.0),
            ("portcullis_transitions_total{target=\"t\",from=\"CLOSED\",to=\"OPEN\"}", 0.0),
            ("portcullis_last_transition_timestamp_seconds{target=\"t\"}", 0.0),
            ("portcullis_latency_seconds_count{target=\"t\"}", 0.0),
            ("portcullis_limit{target=\"t\"}", 7.0),
            ("portcullis_targets", 1.0),
            ("portcullis_max_concurrent", 512.0),
        ],
    );
    ask(at, "/fast", 4).await;
    ask(at, "/always500", 3).await;
    assert_eq!(get(at, "/fast").await.reason(), "open");
    let open = scrape(&gateway).await;
    assert_shows(
        &open,
        &[
            ("portcullis_calls_total{target=\"t\",outcome=\"success\"}", 4.0),
            ("portcullis_calls_total{target=\"t\",outcome=\"failure\"}", 3.0),
            ("portcullis_refusals_total{target=\"t\",reason=\"open\"}", 1.0),
            ("portcullis_admitted_total{target=\"t\"}", 7.0),
            ("portcullis_latency_seconds_bucket{target=\"t\",le=\"+Inf\"}", 7.0),
            ("portcullis_latency_seconds_count{target=\"t\"}", 7.0),
            ("portcullis_transitions_total{target=\"t\",from=\"CLOSED\",to=\"OPEN\"}", 1.0),
        ],
    );
    assert!(open["portcullis_latency_seconds_sum{target=\"t\"}"] > 0.0);
    assert!(open["portcullis_last_transition_timestamp_seconds{target=\"t\"}"] > open["process_start_time_seconds"]);
    until("closed again", async || get(at, "/fast").await.status == 200).await;
    let closed = scrape(&gateway).await;
    assert_shows(
        &closed,
        &[
            ("portcullis_target_state{target=\"t\",state=\"CLOSED\"}", 1.0),
            ("portcullis_target_state{target=\"t\",state=\"OPEN\"}", 0.0),
            ("portcullis_probes_total{target=\"t\"}", 1.0),
            ("portcullis_transitions_total{target=\"t\",from=\"HALF_OPEN\",to=\"CLOSED\"}", 1.0),
        ],
    );
    for (name, value) in &open {
        let is_counter =
            ["_total", "_count", "_sum", "_bucket"].iter().any(|end| name.split('{').next().unwrap().ends_with(end));
        assert!(!is_counter || closed[name] >= *value, "{name} went back");
    }
}

#[tokio::test]
async fn retries_timeouts_and_fallbacks_show_in_the_metrics() {
    let core = upstream().await;
    let lines = "timeout = \"50ms\"\ndeadline = \"2s\"\nattempts = 2\nretry_backoff = \"1ms\"\nmin_calls = 100\n\
                 fallback = { value = { status = 200, body = \"later\" } }";
    let gateway = gateway_to(core.address(), lines).await;
    assert_eq!(get(gateway.address(), "/hang").await.body, "later");
    assert_shows(
        &scrape(&gateway).await,
        &[
            ("portcullis_whole_calls_total{target=\"t\"}", 1.0),
            ("portcullis_attempts_total{target=\"t\"}", 2.0),
            ("portcullis_retries_total{target=\"t\"}", 1.0),
            ("portcullis_retries_refused_total{target=\"t\",reason=\"budget\"}", 0.0),
            ("portcullis_attempt_failures_total{target=\"t\",reason=\"timeout\"}", 2.0),
            ("portcullis_fallbacks_total{target=\"t\",kind=\"value\"}", 1.0),
        ],
    );
}

#[tokio::test]
async fn timeouts_are_counted_whether_or_not_a_call_may_have_more_attempts() {
    let timeouts = |probe| format!("portcullis_timeouts_total{{target=\"t\",probe=\"{probe}\"}}");
    for (lines, made) in [("", 1.0), ("deadline = \"5s\"\nattempts = 2\nretry_backoff = \"1ms\"", 2.0)] {
        let core = upstream().await;
        let policy = format!("timeout = \"50ms\"\nconsecutive_failures = {made}\nopen_wait = \"20ms\"\n{lines}");
        let gateway = gateway_to(core.address(), &policy).await;
        assert_eq!(get(gateway.address(), "/hang").await.reason(), "timeout");
        let (others, probes) = (timeouts(false), timeouts(true));
        assert_shows(&scrape(&gateway).await, &[(others.as_str(), made), (probes.as_str(), 0.0)]);
        until("the wait is over", async || common::state(&gateway, "t").await == "HALF_OPEN").await;
        get(gateway.address(), "/hang").await;
        assert_shows(&scrape(&gateway).await, &[(others.as_str(), made), (probes.as_str(), 1.0)]);
    }
}

#[tokio::test]
async fn the_name_of_a_target_ends_no_label() {
    let core = upstream().await;
    let name = r#"'a"b\c\nd<script>é'"#;
    let text = format!("[[route]]\npath = \"/\"\ntarget = {name}\n[target.{name}]\nupstream = [\"{}\"]", core.url());
    let gateway = gateway(&text).await;
    ask(gateway.address(), "/fast", 1).await;
    assert_shows(&scrape(&gateway).await, &[("portcullis_admitted_total{target=\"a\\\"b\\\\c\\\\nd<script>é\"}", 1.0)]);
}

fn two(upstream: &str, more: &str) -> String {
    let target = |name| {
        format!("[[route]]\npath = \"/{name}/\"\ntarget = \"{name}\"\n[target.{name}]\nupstream = [\"{upstream}\"]\n")
    };
    format!("{more}\n{}{}", target("a"), target("b"))
}

fn names(page: &BTreeMap<String, f64>) -> Vec<&str> {
    let limit = |name: &'_ String| name.starts_with("portcullis_limit{");
    page.keys().filter(|name| limit(name)).map(|name| name.split('"').nth(1).unwrap()).collect()
}

#[tokio::test]
async fn targets_past_the_bound_are_summed_up() {
    let core = upstream().await;
    let gateway = gateway(&two(&core.url(), "metrics_targets = 1")).await;
    ask(gateway.address(), "/a/fast", 2).await;
    ask(gateway.address(), "/b/fast", 3).await;
    let page = scrape(&gateway).await;
    assert_eq!(names(&page), ["b", "other"]);
    assert_shows(
        &page,
        &[
            ("portcullis_admitted_total{target=\"b\"}", 3.0),
            ("portcullis_admitted_total{target=\"other\"}", 2.0),
            ("portcullis_latency_seconds_count{target=\"other\"}", 2.0),
        ],
    );
    ask(gateway.address(), "/a/fast", 5).await;
    let page = scrape(&gateway).await;
    assert_eq!(names(&page), ["b", "other"], "who has series of its own keeps them");
    assert_shows(&page, &[("portcullis_admitted_total{target=\"other\"}", 7.0)]);
}

#[tokio::test]
async fn a_target_that_a_reload_took_away_leaves_the_metrics() {
    let core = upstream().await;
    let mut gateway = gateway(&two(&core.url(), "")).await;
    ask(gateway.address(), "/b/fast", 1).await;
    assert_eq!(names(&scrape(&gateway).await), ["a", "b"]);
    let text = two(&core.url(), "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"");
    let without: Config = text.split("[[route]]\npath = \"/b/\"").next().unwrap().parse().unwrap();
    gateway.reload(&without).unwrap();
    assert_eq!(names(&scrape(&gateway).await), ["a"]);
    gateway.reload(&text.parse().unwrap()).unwrap();
    let page = scrape(&gateway).await;
    assert_eq!(names(&page), ["a", "b"]);
}

#[tokio::test]
async fn drills_show_and_only_reading_is_allowed() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    let admin = gateway.admin_address().unwrap();
    assert_eq!(post(admin, "/metrics").await.status, 405);
    let head = send(&client(), request(Method::HEAD, admin, "/metrics")).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(head.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(post(admin, "/targets/t/drill?seconds=300").await.status, 200);
    let page = scrape(&gateway).await;
    assert!(page["portcullis_drill_remaining_seconds{target=\"t\"}"] > 200.0);
    assert_shows(&page, &[("portcullis_target_state{target=\"t\",state=\"FORCED_OPEN\"}", 1.0)]);
}
