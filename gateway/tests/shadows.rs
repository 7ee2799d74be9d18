//! Candidates for a target's policy on real calls: what they would have done, and one of them put in force.
#![allow(clippy::unwrap_used)]

mod common;

use common::{gateway, gateway_to, get, post, single, target, until_idle, upstream};
use http::StatusCode;
use portcullis_gateway::{Config, ConfigError, Gateway};
use serde_json::Value;

/// Lenient, with a strict candidate.
const LINES: &str = "min_calls = 100\njitter = 0.0\n\
     [target.t.shadow.strict]\nconsecutive_failures = 3\nopen_wait = \"60s\"\nopen_wait_max = \"60s\"\n\
     [target.t.shadow.\"half a limit\"]\nmax_in_flight = 1";

async fn shown(gateway: &Gateway) -> Value {
    get(gateway.admin_address().unwrap(), "/targets/t").await.json()
}

fn errors(lines: &str) -> Vec<ConfigError> {
    let address = "127.0.0.1:1".parse().unwrap();
    let errors = single(address, lines).parse::<Config>().expect_err(lines);
    errors.errors().to_vec()
}

#[tokio::test]
async fn a_strict_candidate_shows_what_it_would_have_done_and_does_it_once_it_is_promoted() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), LINES).await;
    let (at, admin) = (gateway.address(), gateway.admin_address().unwrap());
    for path in ["/fast", "/always500", "/always500", "/always500", "/always500", "/fast", "/always500"] {
        // Each of them is made.
        assert_eq!(get(at, path).await.code(), "", "{path}");
    }
    until_idle(&gateway, "t").await;
    let seen = shown(&gateway).await;
    assert_eq!((&seen["state"], &seen["totals"]["failure"]), (&"CLOSED".into(), &5.into()));
    let strict = &seen["shadows"][0];
    let counts = ["asked", "not_asked", "trips", "refused", "failures_avoided", "refused_but_succeeded"];
    assert_eq!(strict["name"], "strict");
    assert_eq!(counts.map(|name| strict[name].as_u64().unwrap()), [7, 0, 1, 3, 2, 1], "{strict:#}");
    assert_eq!(
        (&strict["would_be"]["state"], &strict["last_trip"]["cause"]),
        (&"OPEN".into(), &"consecutive_failures".into())
    );
    // One call at a time.
    assert_eq!((&seen["shadows"][1]["name"], &seen["shadows"][1]["refused"]), (&"half a limit".into(), &0.into()));

    let answer = post(admin, "/targets/t/promote?shadow=strict").await;
    assert_eq!(answer.status, StatusCode::OK);
    let told = answer.json();
    let toml = told["toml"].as_str().unwrap();
    assert!(toml.contains("consecutive_failures = 3\n") && toml.contains("min_calls = 100\n"), "{toml}");
    assert!(!told["before"].as_str().unwrap().contains("consecutive_failures"));
    // What is printed can be put into the file.
    let written: Config = single(core.address(), toml).parse().unwrap();
    let in_force = gateway.engine().snapshot("t").unwrap();
    assert_eq!((written.targets[0].policy.clone(), in_force.policy_version), (in_force.policy, 2));
    for _ in 0..3 {
        assert_eq!(get(at, "/always500").await.status, 500);
    }
    assert_eq!(get(at, "/fast").await.code(), "E904");
    let seen = shown(&gateway).await;
    assert_eq!((seen["state"].as_str(), seen["shadows"].as_array().map(Vec::len)), (Some("OPEN"), Some(1)));
    assert_eq!(get(admin, "/changes").await.json()["changes"][0]["action"], "promote");
}

#[tokio::test]
async fn only_a_shadow_that_is_there_is_promoted_and_only_by_post() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), LINES).await;
    let admin = gateway.admin_address().unwrap();
    let status = async |path: &str| post(admin, path).await.status.as_u16();
    assert_eq!(get(admin, "/targets/t/promote?shadow=strict").await.status, 405);
    assert_eq!(status("/targets/t/promote").await, 400);
    assert_eq!(status("/targets/t/promote?shadow=other").await, 404);
    assert_eq!(status("/targets/nobody/promote?shadow=strict").await, 404);
    assert_eq!(status("/targets/t/promote?shadow=half%20a%20limit").await, 200);
    assert_eq!(status("/targets/t/promote?shadow=half%20a%20limit").await, 404);
    assert_eq!(target(&gateway, "t").await["limit"], 1);
}

#[tokio::test]
async fn a_reload_keeps_what_shadows_of_the_same_policy_counted() {
    let core = upstream().await;
    let mut gateway = gateway_to(core.address(), LINES).await;
    get(gateway.address(), "/always500").await;
    until_idle(&gateway, "t").await;
    let asked = |gateway: &Gateway| -> Vec<(String, u64)> {
        gateway.engine().shadows("t").into_iter().map(|shadow| (shadow.name, shadow.asked)).collect()
    };
    let config = |lines: &str| -> Config {
        format!("listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{}", single(core.address(), lines)).parse().unwrap()
    };
    gateway.reload(&config(&LINES.replace("max_in_flight = 1", "max_in_flight = 2"))).unwrap();
    assert_eq!(asked(&gateway), [("strict".to_owned(), 1), ("half a limit".to_owned(), 0)]);
    // A promotion lasts until here.
    let before = gateway.engine().promote("t", "strict").unwrap();
    gateway.reload(&config(LINES)).unwrap();
    assert_eq!(gateway.engine().snapshot("t").unwrap().policy, before);
    assert_eq!(asked(&gateway), [("half a limit".to_owned(), 0), ("strict".to_owned(), 0)]);
    gateway.reload(&config("")).unwrap();
    assert_eq!(asked(&gateway), []);
    gateway.reload(&config(LINES)).unwrap();
    let mut other = config("");
    other.targets[0].name = "u".to_owned();
    other.routes[0].target = "u".to_owned();
    gateway.reload(&other).unwrap();
    assert_eq!(asked(&gateway), [], "a target that is gone has none");
}

#[tokio::test]
async fn shadows_show_in_the_metrics_where_there_are_any() {
    let core = upstream().await;
    let page = async |gateway: &Gateway| {
        let answer = get(gateway.admin_address().unwrap(), "/metrics").await;
        String::from_utf8(answer.body.to_vec()).unwrap()
    };
    let plain = gateway_to(core.address(), "").await;
    assert!(!page(&plain).await.contains("shadow"));
    let gateway = gateway_to(core.address(), LINES).await;
    for _ in 0..4 {
        get(gateway.address(), "/always500").await;
    }
    get(gateway.address(), "/fast").await;
    until_idle(&gateway, "t").await;
    let page = page(&gateway).await;
    for line in [
        "# TYPE portcullis_shadow_trips_total counter",
        "portcullis_shadow_state{target=\"t\",shadow=\"strict\",state=\"OPEN\"} 1",
        "portcullis_shadow_state{target=\"t\",shadow=\"strict\",state=\"CLOSED\"} 0",
        "portcullis_shadow_asked_total{target=\"t\",shadow=\"half a limit\"} 5",
        "portcullis_shadow_refused_total{target=\"t\",shadow=\"strict\",reason=\"open\"} 2",
        "portcullis_shadow_refused_but_succeeded_total{target=\"t\",shadow=\"strict\"} 1",
        "portcullis_shadow_failures_avoided_total{target=\"t\",shadow=\"strict\"} 1",
        "portcullis_shadow_trips_total{target=\"t\",shadow=\"strict\"} 1",
        "portcullis_shadow_in_flight{target=\"t\",shadow=\"strict\"} 0",
    ] {
        assert!(page.lines().any(|there| there == line), "no {line} in\n{page}");
    }
}

#[tokio::test]
async fn requests_that_still_run_when_a_shadow_is_promoted_stay_counted() {
    let core = upstream().await;
    let gateway = gateway(&single(core.address(), &format!("timeout = \"20s\"\n{LINES}"))).await;
    let at = gateway.address();
    let running = tokio::spawn(async move { get(at, "/slow?ms=1500").await });
    common::until("inside", async || core.counts().in_flight == 1).await;
    assert!(gateway.engine().promote("t", "half a limit").is_ok());
    assert_eq!(get(at, "/fast").await.code(), "E905");
    assert_eq!(running.await.unwrap().status, 200);
    until_idle(&gateway, "t").await;
    assert_eq!(get(at, "/fast").await.status, 200);
}

#[test]
fn a_shadow_is_its_target_but_for_what_it_sets() {
    let lines =
        "min_calls = 9\nfailures = 20\n[target.t.shadow.a]\nmin_calls = 12\n[target.t.shadow.b]\nfailure_rate = 0.9";
    let config: Config =
        format!("[defaults]\njitter = 0.5\n{}", single("127.0.0.1:1".parse().unwrap(), lines)).parse().unwrap();
    let target = &config.targets[0];
    let names: Vec<&str> = target.shadows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(target.shadows[0].1, target.policy.to_builder().min_calls(12).build().unwrap());
    assert_eq!(target.shadows[1].1, target.policy.to_builder().failure_rate(0.9).build().unwrap());
}

#[test]
fn a_shadow_that_is_shown_means_the_same() {
    let lines = "max_in_flight = 30\nadaptive = { algorithm = \"gradient\" }\nfailures = 30\n\
         [target.t.shadow.\"plain one\"]\nadaptive = \"none\"\nmax_in_flight = \"unlimited\"\n\
         [target.t.shadow.no_window]\nwindow = { time = \"10s\" }\nfailure_rate = \"none\"";
    let config: Config = single("127.0.0.1:1".parse().unwrap(), lines).parse().unwrap();
    assert_eq!(config.targets[0].shadows.len(), 2);
    let again: Config = config.to_string().parse().unwrap_or_else(|error| panic!("{error}\nin\n{config}"));
    assert_eq!(again, config, "{config}");
}

#[test]
fn what_is_wrong_with_a_shadow_is_told_with_its_line() {
    let shadow = |lines: &str| format!("min_calls = 9\n[target.t.shadow.a]\n{lines}");
    let cases = [
        ("min_calls = 1000", 8, "target.t.shadow.a.min_calls", "1000"),
        ("window = { calls = 5 }", 6, "target.t.shadow.a.min_calls", "(set in the target or defaults)"),
        ("min_call = 3", 8, "target.t.shadow.a.min_call", "unknown field"),
        ("timeout = \"3s\"", 8, "target.t.shadow.a.timeout", "must be under [target.t]"),
        ("attempts = 3", 8, "target.t.shadow.a.attempts", "must be under [target.t]"),
        ("[target.t.shadow.\"\"]", 8, "target.t.shadow", "1 to 64 bytes"),
    ];
    for (lines, line, field, says) in cases {
        let all = errors(&shadow(lines));
        let [error] = all.as_slice() else { panic!("not one error but {all:?} for {lines}") };
        assert_eq!((error.line, error.field.as_str()), (Some(line), field), "{error}");
        assert!(error.message.contains(says), "{error}");
    }
    let five: String = ["a", "b", "c", "d", "e"].map(|name| format!("[target.t.shadow.{name}]\n")).concat();
    assert_eq!(errors(&five)[0].field, "target.t.shadow");
    let in_defaults = format!("[defaults.shadow.a]\n{}", single("127.0.0.1:1".parse().unwrap(), ""));
    let errors = in_defaults.parse::<Config>().unwrap_err();
    assert!(errors.to_string().contains("belongs to a target"), "{errors}");
    // A whole call must hold what a promoted shadow may make it wait.
    let late = "timeout = \"100ms\"\ndeadline = \"150ms\"\nmax_in_flight = 3\n[target.t.shadow.a]\nmax_waiting = 3\nmax_wait = \"1s\"";
    assert!(self::errors(late)[0].message.contains("doesn't go with the target's calls"));
}
