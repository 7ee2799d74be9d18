//! The operator's listener.
#![allow(clippy::unwrap_used)]

mod common;

use common::{client, gateway, gateway_to, get, post, request, send, state, target, transitions, until, upstream};
use http::{Method, Request};
use http_body_util::Full;

const TOKEN: &str = "correct-horse-battery";

async fn with_header(address: std::net::SocketAddr, path: &str, name: &str, value: &str) -> common::Answer {
    let uri = format!("http://{address}{path}");
    let request = Request::post(uri).header(name, value).body(Full::default()).unwrap();
    send(&client(), request).await
}

#[tokio::test]
async fn targets_are_listed_before_any_traffic() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "max_in_flight = 3").await;
    let admin = gateway.admin_address().unwrap();
    let all = get(admin, "/targets").await;
    assert_eq!((all.status.as_u16(), all.headers["content-type"].to_str().unwrap()), (200, "application/json"));
    let all = all.json();
    let [only] = all.as_array().unwrap().as_slice() else { panic!("{all}") };
    assert_eq!((&only["name"], &only["state"]), (&"t".into(), &"CLOSED".into()));
    assert_eq!((&only["in_flight"], &only["limit"], &only["configured"]), (&0.into(), &3.into(), &true.into()));
    assert_eq!(only["policy"]["max_in_flight"], 3);
    assert_eq!(get(admin, "/targets/t").await.json()["name"], "t");
    assert_eq!(get(admin, "/targets/").await.status, 200);
}

#[tokio::test]
async fn the_log_tells_why_a_circuit_opened() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "consecutive_failures = 2\nwindow = \"none\"").await;
    for _ in 0..2 {
        get(gateway.address(), "/always500").await;
    }
    let log = get(gateway.admin_address().unwrap(), "/transitions").await.json();
    assert_eq!(log["dropped"], 0);
    let trip = log["transitions"].as_array().unwrap().iter().find(|entry| entry["to"] == "OPEN").unwrap();
    assert_eq!((&trip["target"], &trip["from"]), (&"t".into(), &"CLOSED".into()));
    assert_eq!(trip["cause"], "consecutive_failures");
    assert!(trip["sequence"].is_u64() && trip["at_ms"].is_u64(), "{trip}");
    assert!(trip["wall"].as_str().unwrap().ends_with('Z'), "{trip}");
    assert_eq!(trip["evidence"]["streak"], 2, "{trip}");
}

#[tokio::test]
async fn an_operator_closes_disables_and_releases() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "consecutive_failures = 1").await;
    let (at, admin) = (gateway.address(), gateway.admin_address().unwrap());

    let done = post(admin, "/targets/t/force-open").await;
    assert_eq!(
        (done.status.as_u16(), done.json()),
        (200, serde_json::json!({ "name": "t", "changed": true, "state": "FORCED_OPEN" }))
    );
    let refused = get(at, "/fast").await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str(), refused.reason().as_str()), (503, "E904", "forced"));
    assert_eq!(core.counts().calls, 0);
    assert_eq!(post(admin, "/targets/t/force-open").await.json()["changed"], false);

    assert_eq!(post(admin, "/targets/t/disable").await.status, 200);
    for _ in 0..3 {
        assert_eq!(get(at, "/always500").await.status, 500);
    }
    assert_eq!(state(&gateway, "t").await, "DISABLED");

    assert_eq!(post(admin, "/targets/t/release").await.json()["state"], "CLOSED");
    assert_eq!(get(at, "/fast").await.status, 200);
    let states: Vec<String> = transitions(&gateway, "t").await.into_iter().map(|(_, to)| to).collect();
    assert_eq!(states, ["FORCED_OPEN", "DISABLED", "CLOSED"]);
}

#[tokio::test]
async fn names_are_decoded_and_unknown_ones_are_not_created() {
    let core = upstream().await;
    let text =
        format!("[[route]]\npath = \"/\"\ntarget = \"a/b c%\"\n[target.\"a/b c%\"]\nupstream = [\"{}\"]", core.url());
    let gateway = gateway(&text).await;
    let admin = gateway.admin_address().unwrap();
    assert_eq!(get(admin, "/targets/a%2Fb%20c%25").await.json()["name"], "a/b c%");
    assert_eq!(post(admin, "/targets/a%2fb%20c%25/force-open").await.json()["name"], "a/b c%");
    let long = "x".repeat(8_000);
    for name in ["nobody", "%ff%fe", "%", long.as_str()] {
        assert_eq!(get(admin, &format!("/targets/{name}")).await.status, 404);
        for action in ["force-open", "disable", "release"] {
            assert_eq!(post(admin, &format!("/targets/{name}/{action}")).await.status, 404);
        }
    }
    assert_eq!(gateway.engine().len(), 1);
}

#[tokio::test]
async fn wrong_methods_and_pages_are_told_apart() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    let admin = gateway.admin_address().unwrap();
    assert_eq!(get(admin, "/healthz").await.json()["status"], "ok");
    for path in ["/healthz", "/targets", "/targets/t", "/transitions"] {
        let refused = post(admin, path).await;
        assert_eq!((refused.status.as_u16(), refused.headers["allow"].to_str().unwrap()), (405, "GET, HEAD"));
        let head = send(&client(), request(Method::HEAD, admin, path)).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    }
    for action in ["force-open", "disable", "release"] {
        let refused = get(admin, &format!("/targets/t/{action}")).await;
        assert_eq!((refused.status.as_u16(), refused.headers["allow"].to_str().unwrap()), (405, "POST"));
    }
    for path in ["/", "/target", "/targets/t/open", "/targets/t/release/now", "//", "/healthz/x"] {
        assert_eq!(get(admin, path).await.status, 404, "{path}");
    }
    assert_eq!(state(&gateway, "t").await, "CLOSED");
}

#[tokio::test]
async fn with_a_token_only_its_bearer_acts() {
    let core = upstream().await;
    // As on every interface, though only this machine is asked.
    let text =
        common::single(core.address(), "").replace("[[route]]", &format!("admin_token = \"{TOKEN}\"\n[[route]]"));
    let text = format!("listen = \"127.0.0.1:0\"\nadmin = \"0.0.0.0:0\"\n{text}");
    let public = portcullis_gateway::Gateway::start(text.parse().unwrap()).await.unwrap();
    let port = public.admin_address().unwrap().port();
    let admin = std::net::SocketAddr::from(([127, 0, 0, 1], port));

    assert_eq!(get(admin, "/targets").await.status, 200);
    let refused = post(admin, "/targets/t/force-open").await;
    assert_eq!((refused.status.as_u16(), refused.headers["www-authenticate"].to_str().unwrap()), (401, "Bearer"));
    for wrong in ["Bearer wrong-horse-battery", "Bearer ", "Basic Y29ycmVjdA==", TOKEN] {
        assert_eq!(with_header(admin, "/targets/t/force-open", "authorization", wrong).await.status, 401, "{wrong}");
    }
    // Whether a target exists is none of a stranger's business.
    assert_eq!(post(admin, "/targets/nobody/force-open").await.status, 401);
    assert_eq!(public.engine().snapshot("t").unwrap().state, portcullis::State::Closed);
    let right = format!("Bearer {TOKEN}");
    assert_eq!(with_header(admin, "/targets/t/force-open", "authorization", &right).await.status, 200);
    assert_eq!(public.engine().snapshot("t").unwrap().state, portcullis::State::ForcedOpen);
}

#[tokio::test]
async fn debug_output_shows_no_token() {
    let core = upstream().await;
    let text = format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nadmin_token = \"{TOKEN}\"\n{}",
        common::single(core.address(), "")
    );
    let config: portcullis_gateway::Config = text.parse().unwrap();
    let (target, admin) = ("t".to_owned(), "127.0.0.1:1".to_owned());
    let length = std::time::Duration::from_secs(1);
    let drill = portcullis_gateway::drill::Drill { target, length, admin, token: Some(TOKEN.to_owned()) };
    let shown = [format!("{config:?}"), format!("{drill:?}")];
    let gateway = portcullis_gateway::Gateway::start(config).await.unwrap();
    for shown in shown.into_iter().chain([format!("{gateway:?}")]) {
        assert!(shown.contains("oken: Some(<hidden>)") && !shown.contains(TOKEN), "{shown}");
    }
}

#[tokio::test]
async fn without_a_token_a_public_listener_does_not_start() {
    let core = upstream().await;
    let text = format!("admin = \"0.0.0.0:0\"\nlisten = \"127.0.0.1:0\"\n{}", common::single(core.address(), ""));
    let refused = portcullis_gateway::Gateway::start(text.parse().unwrap()).await;
    assert!(refused.unwrap_err().to_string().contains("admin_token"));
}

#[tokio::test]
async fn web_pages_do_not_act_for_the_operator() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    let admin = gateway.admin_address().unwrap();
    let refused = with_header(admin, "/targets/t/force-open", "origin", "http://evil.example").await;
    assert_eq!(refused.status, 403);
    assert_eq!(state(&gateway, "t").await, "CLOSED");
}

#[tokio::test]
async fn what_is_in_flight_is_shown() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "timeout = \"20s\"").await;
    let at = gateway.address();
    let call = tokio::spawn(async move { get(at, "/slow?ms=1500").await });
    until("inside", async || core.counts().in_flight == 1).await;
    assert_eq!(target(&gateway, "t").await["in_flight"], 1);
    assert_eq!(get(gateway.admin_address().unwrap(), "/healthz").await.json()["in_flight"], 1);
    assert_eq!(call.await.unwrap().status, 200);
}
