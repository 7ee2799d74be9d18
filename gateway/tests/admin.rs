//! The operator's listener.
#![allow(clippy::unwrap_used)]

mod common;

use common::{client, gateway, gateway_to, get, post, request, send, state, target, transitions, until, upstream};
use http::{Method, Request};
use http_body_util::Full;

const TOKEN: &str = "correct-horse-battery";

async fn with_header(address: std::net::SocketAddr, path: &str, name: &str, value: &str) -> common::Answer {
    let mut request = request(Method::POST, address, path);
    request.headers_mut().insert(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    send(&client(), request).await
}

/// A gateway whose admin listener is at that address, with the token, and where to ask it from this machine.
async fn with_token(
    admin: &str,
    upstream: std::net::SocketAddr,
) -> (portcullis_gateway::Gateway, std::net::SocketAddr) {
    let text = format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"{admin}\"\nadmin_token = \"{TOKEN}\"\n{}",
        common::single(upstream, "")
    );
    let gateway = portcullis_gateway::Gateway::start(text.parse().unwrap()).await.unwrap();
    let port = gateway.admin_address().unwrap().port();
    (gateway, std::net::SocketAddr::from(([127, 0, 0, 1], port)))
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
    for path in ["/dashboard/", "/dashboard/x.js", "/target", "/targets/t/open", "/targets/t/release/now", "/healthz/x"]
    {
        assert_eq!(get(admin, path).await.status, 404, "{path}");
    }
    assert_eq!(state(&gateway, "t").await, "CLOSED");
}

#[tokio::test]
async fn with_a_token_only_its_bearer_acts() {
    let core = upstream().await;
    // As on every interface, though only this machine is asked.
    let (public, admin) = with_token("0.0.0.0:0", core.address()).await;
    for path in ["/targets", "/targets/t", "/transitions", "/changes", "/nothing"] {
        let refused = get(admin, path).await;
        assert_eq!(refused.status, 401, "{path}");
        assert!(!String::from_utf8_lossy(&refused.body).contains("core"), "{path}");
        let mut request = request(Method::GET, admin, path);
        request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
        assert_ne!(send(&client(), request).await.status, 401, "{path}");
    }
    // A page must be there before a token can be entered; it holds no data.
    for (path, kind) in
        [("/", "text/html"), ("/dashboard/app.js", "text/javascript"), ("/dashboard/page.css", "text/css")]
    {
        let page = get(admin, path).await;
        assert_eq!(page.status, 200, "{path}");
        assert!(page.headers["content-type"].to_str().unwrap().starts_with(kind), "{path}");
        assert_eq!(post(admin, path).await.status, 401, "{path}");
    }
    // Whoever balances load asks this, and has no token.
    assert_eq!(get(admin, "/healthz").await.status, 200);
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
    let config = |admin: &str, token: &str| {
        let text =
            format!("admin = \"{admin}\"\nlisten = \"127.0.0.1:0\"\n{token}\n{}", common::single(core.address(), ""));
        text.parse::<portcullis_gateway::Config>().unwrap()
    };
    for admin in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0", "192.0.2.1:0"] {
        let refused = portcullis_gateway::Gateway::start(config(admin, "")).await;
        assert!(refused.unwrap_err().to_string().contains("admin_token"), "{admin}");
    }
    let mut empty = config("0.0.0.0:0", "");
    empty.admin_token = Some(String::new());
    assert!(portcullis_gateway::Gateway::start(empty).await.is_err());
    let mut public =
        portcullis_gateway::Gateway::start(config("0.0.0.0:0", &format!("admin_token = \"{TOKEN}\""))).await.unwrap();
    // The listener stays where it is, so a file that says otherwise doesn't help.
    for admin in ["0.0.0.0:0", "127.0.0.1:0"] {
        assert!(public.reload(&config(admin, "")).unwrap_err().to_string().contains("admin_token"));
    }
    assert!(public.reload(&config("0.0.0.0:0", "admin_token = \"another-horse-battery\"")).is_ok());
    let admin = std::net::SocketAddr::from(([127, 0, 0, 1], public.admin_address().unwrap().port()));
    let old = with_header(admin, "/targets/t/release", "authorization", &format!("Bearer {TOKEN}")).await;
    assert_eq!(old.status, 401);
    for loopback in ["[::1]:0", "127.8.9.1:0"] {
        assert!(portcullis_gateway::Gateway::start(config(loopback, "")).await.is_ok(), "{loopback}");
    }
}

#[tokio::test]
async fn on_loopback_a_token_is_for_changes_only() {
    let core = upstream().await;
    let (_gateway, admin) = with_token("127.0.0.1:0", core.address()).await;
    assert_eq!(get(admin, "/targets").await.status, 200);
    assert_eq!(post(admin, "/targets/t/force-open").await.status, 401);
    // Under another name it could be any web page's.
    let elsewhere =
        Request::get(format!("http://{admin}/targets")).header("host", "gate.example").body(Full::default());
    assert_eq!(send(&client(), elsewhere.unwrap()).await.status, 401);
}

#[tokio::test]
async fn other_web_pages_do_not_act_for_the_operator() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    let admin = gateway.admin_address().unwrap();
    let path = "/targets/t/force-open";
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("origin", "http://localhost:3000"),
        ("sec-fetch-site", "cross-site"),
        ("host", "evil.example"),
    ] {
        assert_eq!(with_header(admin, path, name, value).await.status, 403, "{name}: {value}");
    }
    assert_eq!(state(&gateway, "t").await, "CLOSED");
    assert_eq!(with_header(admin, path, "origin", &format!("http://{admin}")).await.status, 200);
    assert_eq!(state(&gateway, "t").await, "FORCED_OPEN");
}

#[tokio::test]
async fn changes_are_noted_with_who_asked() {
    let core = upstream().await;
    let (_gateway, admin) = with_token("127.0.0.1:0", core.address()).await;
    assert_eq!(post(admin, "/targets/t/disable").await.status, 401);
    for (path, operator) in
        [("/targets/t/force-open", "ann"), ("/targets/nobody/release", "<b>"), ("/targets/t/drill?seconds=9", "bob")]
    {
        let mut request = request(Method::POST, admin, path);
        request.headers_mut().insert("authorization", format!("Bearer {TOKEN}").parse().unwrap());
        request.headers_mut().insert("x-operator", operator.parse().unwrap());
        send(&client(), request).await;
    }
    let told = get(admin, "/changes").await.json();
    let field = |name: &str| -> Vec<String> {
        told["changes"].as_array().unwrap().iter().map(|change| change[name].to_string()).collect()
    };
    // Who isn't let in can't fill the log.
    assert_eq!(field("action"), [r#""force-open""#, r#""release""#, r#""drill""#]);
    assert_eq!(field("status"), ["200", "404", "409"]);
    assert_eq!(field("operator"), [r#""ann""#, r#""<b>""#, r#""bob""#]);
    assert_eq!(field("query"), ["null", "null", r#""seconds=9""#]);
    assert_eq!(field("token"), ["true", "true", "true"]);
    assert_eq!(field("peer"), [r#""127.0.0.1""#; 3]);
    assert!(field("wall").iter().all(|wall| wall.ends_with("Z\"")) && !told.to_string().contains(TOKEN), "{told}");
}

#[tokio::test]
async fn requests_are_bounded_in_size_and_time_and_number() {
    let core = upstream().await;
    let text = format!("header_timeout = \"300ms\"\n{}", common::single(core.address(), ""));
    let gateway = gateway(&text).await;
    let admin = gateway.admin_address().unwrap();

    let mut body = request(Method::POST, admin, "/targets/t/force-open");
    *body.body_mut() = Full::from("{}");
    assert_eq!(send(&client(), body).await.status, 413);
    assert_eq!(state(&gateway, "t").await, "CLOSED");

    let mut long = common::Raw::connect(admin).await;
    long.send(&format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-long: {}\r\n\r\n", "x".repeat(20_000))).await;
    assert!(long.head().await.starts_with("HTTP/1.1 431"));

    // Neither one that asks for nothing holds a place, nor one that has asked before.
    let mut idle = common::Raw::connect(admin).await;
    let mut asked = common::Raw::connect(admin).await;
    asked.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(asked.read_all().await.starts_with("HTTP/1.1 200"));
    assert_eq!(idle.read_all().await, "");
    let mut two = common::Raw::connect(admin).await;
    let _ = two.try_send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(!two.read_all().await.contains("\0"));
}

#[tokio::test]
async fn further_connections_are_closed_at_once() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    let admin = gateway.admin_address().unwrap();
    let mut open = Vec::new();
    for _ in 0..128 {
        let mut raw = common::Raw::connect(admin).await;
        raw.send("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        assert!(raw.head().await.starts_with("HTTP/1.1 200"));
        open.push(raw);
    }
    assert_eq!(common::Raw::connect(admin).await.read_all().await, "");
    drop(open);
    until("a place", async || {
        let mut raw = common::Raw::connect(admin).await;
        let _ = raw.try_send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
        raw.read_all().await.starts_with("HTTP/1.1 200")
    })
    .await;
}

#[tokio::test]
async fn browsers_are_told_to_run_and_keep_nothing() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    for path in ["/targets", "/targets/nobody", "/healthz"] {
        let headers = get(gateway.admin_address().unwrap(), path).await.headers;
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        let told = ["cache-control", "x-content-type-options", "referrer-policy"].map(|name| &headers[name]);
        assert_eq!(told, ["no-store", "nosniff", "no-referrer"]);
    }
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
