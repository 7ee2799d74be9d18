//! Whole calls through the gateway: retries and their bounds, the timeouts, what is replayed.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use common::{
    Answering, Raw, answer, client, field, gateway, gateway_to, get, nobody, post, request, send, single, state,
    target, until, until_idle, upstream,
};
use http::{Method, Request};
use http_body_util::Full;
use portcullis::call::CallCounts;
use portcullis_gateway::Gateway;
use portcullis_gateway::demo::upstreams::Mode;
use tokio::net::{TcpSocket, TcpStream};

/// No breaker in the way, and no wait that the test would have to sit out.
const THREE: &str = "window = \"none\"\nattempts = 3\nretry_backoff = \"1ms\"\nretry_backoff_max = \"1ms\"";
const FREELY: &str = "retry_budget = \"none\"";

fn counts(gateway: &Gateway) -> CallCounts {
    gateway.calls("t").unwrap()
}

/// One target `t` behind every path, at both of these addresses.
async fn gateway_to_both(addresses: [SocketAddr; 2], lines: &str) -> Gateway {
    let [one, other] = addresses;
    let text =
        single(one, lines).replace(&format!("[\"http://{one}\"]"), &format!("[\"http://{one}\", \"http://{other}\"]"));
    gateway(&text).await
}

fn put(address: SocketAddr, body: &'static str) -> Request<Full<Bytes>> {
    Request::put(format!("http://{address}/")).body(Full::from(body)).unwrap()
}

#[tokio::test]
async fn each_attempt_takes_the_next_upstream() {
    let (core, (_dead, dead)) = (upstream().await, nobody());
    let gateway = gateway_to_both([dead, core.address()], &format!("{THREE}\n{FREELY}")).await;
    for _ in 0..20 {
        assert_eq!(get(gateway.address(), "/fast").await.status, 200);
    }
    let seen = counts(&gateway);
    assert_eq!((seen.calls, seen.attempts, seen.retries, seen.failed), (20, 30, 10, 0));
    assert_eq!(core.counts().calls, 20);
    until_idle(&gateway, "t").await;
    // Each attempt is admitted and settled by itself.
    let totals = target(&gateway, "t").await["totals"].clone();
    assert_eq!((&totals["success"], &totals["failure"]), (&20.into(), &10.into()));
}

#[tokio::test]
async fn an_attempt_that_hangs_is_given_up_and_made_elsewhere() {
    let (mut hung, core) = (upstream().await, upstream().await);
    hung.set_mode(Mode::Hanging).await.unwrap();
    let lines = format!("{THREE}\n{FREELY}\ntimeout = \"100ms\"");
    let gateway = gateway_to_both([hung.address(), core.address()], &lines).await;
    for _ in 0..4 {
        assert_eq!(get(gateway.address(), "/fast").await.status, 200);
    }
    assert_eq!((counts(&gateway).timeouts, counts(&gateway).retries), (2, 2));
}

#[tokio::test]
async fn retries_end_with_the_budget() {
    let core = upstream().await;
    let lines = format!("{THREE}\nretry_budget = 0.2\nretry_floor = 0\nretry_memory = \"60s\"");
    let gateway = gateway_to(core.address(), &lines).await;
    for _ in 0..20 {
        let failed = get(gateway.address(), "/always500").await;
        // What the upstream said last.
        assert_eq!((failed.status.as_u16(), &failed.body[..]), (500, &b"out of order\n"[..]));
    }
    let seen = counts(&gateway);
    assert_eq!((seen.calls, seen.retries, seen.failed), (20, 4, 20));
    assert_eq!(core.counts().calls, 24);
    assert_eq!(seen.budget_refused, 20);
    let shown = target(&gateway, "t").await;
    assert_eq!((&shown["calls"]["retries"], &shown["call_policy"]["attempts"]), (&4.into(), &3.into()));
}

#[tokio::test]
async fn without_a_budget_every_request_multiplies() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), &format!("{THREE}\n{FREELY}")).await;
    for _ in 0..20 {
        get(gateway.address(), "/always500").await;
    }
    assert_eq!(core.counts().calls, 60);
}

#[tokio::test]
async fn business_errors_are_answers() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), &format!("{THREE}\n{FREELY}")).await;
    assert_eq!(get(gateway.address(), "/bad").await.status, 400);
    assert_eq!(get(gateway.address(), "/nowhere").await.status, 404);
    assert_eq!((core.counts().calls, counts(&gateway).failed), (2, 0));
}

#[tokio::test]
async fn refusals_are_never_tried_again_wherever_they_come_from() {
    let core = upstream().await;
    let inner = gateway_to(core.address(), "").await;
    let outer = gateway_to(inner.address(), &format!("{THREE}\n{FREELY}")).await;
    post(inner.admin_address().unwrap(), "/targets/t/force-open").await;
    let refused = get(outer.address(), "/fast").await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (503, "E904"));
    assert_eq!(refused.headers["x-portcullis-code"], "E904");
    assert_eq!(inner.engine().snapshot("t").unwrap().refusals.forced, 1);
    assert_eq!((counts(&outer).attempts, counts(&outer).retries), (1, 0));

    post(outer.admin_address().unwrap(), "/targets/t/force-open").await;
    assert_eq!(get(outer.address(), "/fast").await.code(), "E904");
    assert_eq!((counts(&outer).rejected, counts(&outer).attempts), (1, 1));
    assert_eq!(outer.engine().snapshot("t").unwrap().refusals.forced, 1);
}

#[tokio::test]
async fn a_full_target_is_not_tried_again() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), &format!("{THREE}\n{FREELY}\nmax_in_flight = 1\ntimeout = \"20s\"")).await;
    let mut inside = Raw::connect(gateway.address()).await;
    inside.send("GET /hang HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("inside", async || core.counts().in_flight == 1).await;
    let refused = get(gateway.address(), "/fast").await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (503, "E905"));
    assert_eq!(gateway.engine().snapshot("t").unwrap().refusals.saturated, 1);
}

#[tokio::test]
async fn a_target_that_says_when_is_not_asked_before() {
    let sick = |n: usize, _: &str| {
        if n == 0 { answer("503 Service Unavailable", "retry-after: 1\r\n", "") } else { answer("200 OK", "", "well") }
    };
    let core = Answering::start(sick).await;
    let gateway = gateway_to(core.address, &format!("{THREE}\n{FREELY}")).await;
    let well = get(gateway.address(), "/").await;
    assert_eq!((well.status.as_u16(), &well.body[..]), (200, &b"well"[..]));
    assert!(well.took >= Duration::from_secs(1), "{:?}", well.took);
    assert_eq!(counts(&gateway).retries, 1);

    // There is no time for that.
    let core = Answering::start(sick).await;
    let gateway =
        gateway_to(core.address, &format!("{THREE}\n{FREELY}\ntimeout = \"100ms\"\ndeadline = \"900ms\"")).await;
    let sick = get(gateway.address(), "/").await;
    assert_eq!((sick.status.as_u16(), sick.headers["retry-after"].to_str().unwrap()), (503, "1"));
    assert_eq!((counts(&gateway).deadline_kept, core.heads().len()), (1, 1));
}

#[tokio::test]
async fn only_what_does_no_harm_twice_is_sent_twice() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), &format!("{THREE}\n{FREELY}")).await;
    post(gateway.address(), "/always500").await;
    assert_eq!(core.counts().calls, 1);
    let mut keyed = request(Method::POST, gateway.address(), "/always500");
    keyed.headers_mut().insert("idempotency-key", "7".parse().unwrap());
    send(&client(), keyed).await;
    assert_eq!(core.counts().calls, 4);
}

#[tokio::test]
async fn bodies_are_replayed_within_the_limit() {
    let (heard, mut bodies) = tokio::sync::mpsc::unbounded_channel();
    let core = common::scripted(move |mut raw| {
        let heard = heard.clone();
        async move {
            while let Some(head) = raw.next_head().await {
                assert_eq!(field(&head.to_ascii_lowercase(), "content-length"), Some("10"));
                heard.send(raw.read_to("67890").await).unwrap();
                raw.send(&answer("500 Internal Server Error", "", "").unwrap()).await;
            }
        }
    })
    .await;
    let within = gateway_to(core, &format!("{THREE}\n{FREELY}\nreplay_limit = 10")).await;
    assert_eq!(send(&client(), put(within.address(), "1234567890")).await.status, 500);
    assert_eq!((counts(&within).attempts, counts(&within).not_replayable), (3, 0));
    for _ in 0..3 {
        assert_eq!(bodies.recv().await.unwrap(), "1234567890");
    }
    let beyond = gateway_to(core, &format!("{THREE}\n{FREELY}\nreplay_limit = 9")).await;
    assert_eq!(send(&client(), put(beyond.address(), "1234567890")).await.status, 500);
    assert_eq!((counts(&beyond).attempts, counts(&beyond).not_replayable), (1, 1));
}

#[tokio::test]
async fn a_client_that_breaks_off_its_upload_is_nobodys_failure() {
    let core = upstream().await;
    let lines = format!("{THREE}\n{FREELY}\nfallback = {{ value = {{ body = \"plan B\" }} }}");
    let gateway = gateway_to(core.address(), &lines).await;
    let mut leaving = Raw::connect(gateway.address()).await;
    leaving.send("PUT /hang HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf").await;
    until("inside", async || core.counts().in_flight == 1).await;
    leaving.reset();
    until_idle(&gateway, "t").await;
    let totals = target(&gateway, "t").await["totals"].clone();
    assert_eq!((&totals["ignored"], &totals["failure"]), (&1.into(), &0.into()));
    assert_eq!((counts(&gateway).retries, counts(&gateway).fallback_value), (0, 0));
}

#[tokio::test]
async fn an_upstream_that_takes_nothing_of_an_upload_is_not_excused_by_the_attempt_before() {
    let sick = common::scripted(|mut raw| async move {
        // By then the gateway has asked the client for more, in vain.
        raw.read_to("half").await;
        raw.send(&answer("503 Service Unavailable", "", "").unwrap()).await;
        raw.read_all().await;
    })
    .await;
    let (hole, _waiting, _listener) = black_hole().await;
    let lines = format!("{FREELY}\nwindow = \"none\"\nattempts = 2\nretry_backoff = \"0s\"\ntimeout = \"500ms\"");
    let gateway = gateway_to_both([sick, hole], &lines).await;
    let mut slow = Raw::connect(gateway.address()).await;
    slow.send("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf").await;
    let head = slow.head().await;
    assert!(head.starts_with("HTTP/1.1 504"), "{head}");
    until_idle(&gateway, "t").await;
    let totals = target(&gateway, "t").await["totals"].clone();
    assert_eq!((&totals["failure"], &totals["ignored"]), (&2.into(), &0.into()), "{totals}");
}

#[tokio::test]
async fn a_probe_has_a_timeout_of_its_own() {
    let core = upstream().await;
    let lines = "consecutive_failures = 1\nopen_wait = \"20ms\"\ntimeout = \"20s\"\nprobe_timeout = \"50ms\"";
    let gateway = gateway_to(core.address(), &format!("{lines}\nprobe_lease = \"30s\"")).await;
    let at = gateway.address();
    // In good days it may take its time.
    assert_eq!(get(at, "/slow").await.status, 200);
    assert_eq!(get(at, "/always500").await.status, 500);
    until("the wait is over", async || state(&gateway, "t").await == "HALF_OPEN").await;
    let probe = get(at, "/slow").await;
    assert_eq!((probe.status.as_u16(), probe.code().as_str(), probe.reason().as_str()), (504, "E901", "timeout"));
    assert_eq!((counts(&gateway).timeouts, counts(&gateway).probe_timeouts), (1, 1));
    assert_eq!(gateway.engine().snapshot("t").unwrap().reopens, 1);
}

/// A port where connections are neither made nor refused, for as long as what is returned is held.
async fn black_hole() -> (SocketAddr, Vec<TcpStream>, tokio::net::TcpListener) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    // Nobody accepts, and once the queue is full the system answers no more.
    while let Ok(made) = tokio::time::timeout(Duration::from_millis(500), TcpStream::connect(address)).await {
        waiting.push(made.unwrap());
        assert!(waiting.len() < 100, "the queue has an end");
    }
    (address, waiting, listener)
}

#[tokio::test]
async fn a_connection_that_is_not_made_in_time_is_none() {
    let (hole, _waiting, _listener) = black_hole().await;
    let gateway = gateway_to(hole, "timeout = \"60s\"\nconnect_timeout = \"100ms\"").await;
    let failed = get(gateway.address(), "/").await;
    assert_eq!(
        (failed.status.as_u16(), failed.code().as_str(), failed.reason().as_str()),
        (502, "E902", "unreachable")
    );
    assert_eq!(target(&gateway, "t").await["totals"]["failure"], 1);
    // So there is time for another upstream.
    let core = upstream().await;
    let lines = format!("{THREE}\n{FREELY}\ntimeout = \"60s\"\nconnect_timeout = \"100ms\"");
    let gateway = gateway_to_both([hole, core.address()], &lines).await;
    assert_eq!(get(gateway.address(), "/fast").await.status, 200);
    assert_eq!(counts(&gateway).retries, 1);
}
