//! What passes through the proxy, and what doesn't.
#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::{
    Raw, gateway, gateway_to, get, h2_client, nobody, post, request, scripted, send, single, target, until, until_idle,
    upstream,
};
use http::Method;
use http_body_util::Full;
use tokio::sync::mpsc;

/// An upstream that tells the head of each request and gives a fixed answer.
async fn telling(answer: &'static str) -> (std::net::SocketAddr, mpsc::UnboundedReceiver<String>) {
    let (tell, told) = mpsc::unbounded_channel();
    let address = scripted(move |mut raw| {
        let tell = tell.clone();
        async move {
            tell.send(raw.head().await).unwrap();
            raw.send(answer).await;
            raw.read_all().await;
        }
    })
    .await;
    (address, told)
}

fn lower(text: &str) -> String {
    text.to_ascii_lowercase()
}

#[tokio::test]
async fn bodies_stream_both_ways_at_once() {
    let address = scripted(|mut raw| async move {
        raw.head().await;
        raw.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        // Each piece is answered before the next one is sent.
        raw.read_to("ping").await;
        raw.send("4\r\npong\r\n").await;
        raw.read_to("done").await;
        raw.send("3\r\nbye\r\n0\r\n\r\n").await;
        raw.read_all().await;
    })
    .await;
    let gateway = gateway_to(address, "").await;
    let mut client = Raw::connect(gateway.address()).await;
    client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n4\r\nping\r\n").await;
    assert!(client.head().await.starts_with("HTTP/1.1 200"));
    client.read_to("pong").await;
    client.send("4\r\ndone\r\n0\r\n\r\n").await;
    client.read_to("bye\r\n0\r\n\r\n").await;
    until_idle(&gateway, "t").await;
    assert_eq!(target(&gateway, "t").await["totals"]["success"], 1);
}

#[tokio::test]
async fn hop_by_hop_fields_end_here_both_ways() {
    let (address, mut told) = telling(
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: x-hop, keep-alive\r\nx-hop: 1\r\nkeep-alive: timeout=9\r\n\
         proxy-authenticate: Basic\r\nx-end: 2\r\n\r\nok",
    )
    .await;
    let gateway = gateway_to(address, "").await;
    let mut client = Raw::connect(gateway.address()).await;
    client
        .send(
            "GET /a/../b?c=%20d HTTP/1.1\r\nhost: api.example.com\r\nconnection: close, x-secret\r\nx-secret: 1\r\n\
             te: trailers\r\nproxy-connection: keep-alive\r\nproxy-authorization: x\r\nupgrade: h2c\r\nexpect: \
             100-continue\r\nx-end: 2\r\nx-forwarded-for: 192.0.2.7\r\n\r\n",
        )
        .await;
    let seen = lower(&told.recv().await.unwrap());
    assert!(seen.starts_with("get /a/../b?c=%20d http/1.1\r\n"), "{seen}");
    for gone in ["x-secret", "te:", "proxy-", "upgrade", "expect", "connection:"] {
        assert!(!seen.contains(gone), "{gone} in {seen}");
    }
    for kept in [
        "x-end: 2\r\n",
        "x-forwarded-for: 192.0.2.7, 127.0.0.1\r\n",
        "x-forwarded-proto: http\r\n",
        "x-forwarded-host: api.example.com\r\n",
        "via: 1.1 portcullis\r\n",
        &format!("host: {address}\r\n"),
    ] {
        assert!(seen.contains(kept), "{kept} not in {seen}");
    }
    let answer = lower(&client.read_all().await);
    for gone in ["x-hop", "keep-alive", "proxy-"] {
        assert!(!answer.contains(gone), "{gone} in {answer}");
    }
    assert!(answer.contains("x-end: 2\r\n") && answer.ends_with("ok"), "{answer}");
}

#[tokio::test]
async fn http2_comes_in_and_http1_goes_out() {
    let (address, mut told) = telling("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let gateway = gateway_to(address, "").await;
    let client = h2_client();
    let mut asked = request(Method::POST, gateway.address(), "/x");
    *asked.body_mut() = Full::from("hello");
    let answer = send(&client, asked).await;
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"ok"[..]));
    let seen = lower(&told.recv().await.unwrap());
    assert!(seen.starts_with("post /x http/1.1\r\n"), "{seen}");
    assert!(seen.contains("via: 2.0 portcullis\r\n"), "{seen}");
    assert!(seen.contains(&format!("x-forwarded-host: {}\r\n", gateway.address())), "{seen}");
}

#[tokio::test]
async fn a_length_and_chunks_together_can_not_smuggle() {
    let (address, mut told) = telling("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let gateway = gateway_to(address, "").await;
    let mut client = Raw::connect(gateway.address()).await;
    client
        .send(
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n\
             0\r\n\r\nGET /second HTTP/1.1\r\nhost: a\r\n\r\n",
        )
        .await;
    let answer = client.read_to("\r\n\r\n").await;
    if answer.starts_with("HTTP/1.1 200") {
        let seen = lower(&told.recv().await.unwrap());
        assert!(seen.contains("transfer-encoding") != seen.contains("content-length"), "{seen}");
    } else {
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    }
}

#[tokio::test]
async fn failures_and_refusals_have_their_codes() {
    let core = upstream().await;
    let (_held, closed) = nobody();
    let gateway = gateway(&format!(
        "[defaults]\nconsecutive_failures = 2\nwindow = \"none\"\nopen_wait = \"60s\"\njitter = 0.0
         [[route]]\npath = \"/core/\"\ntarget = \"core\"\n[[route]]\npath = \"/gone/\"\ntarget = \"gone\"
         [target.core]\nupstream = [\"{}\"]\ntimeout = \"200ms\"
         [target.gone]\nupstream = [\"http://{closed}\"]",
        core.url()
    ))
    .await;
    let at = gateway.address();

    let timeout = get(at, "/core/hang").await;
    assert_eq!((timeout.status.as_u16(), timeout.code().as_str()), (504, "E901"));
    assert_eq!((timeout.reason().as_str(), timeout.retry_after()), ("timeout", 1));
    assert_eq!(timeout.json()["target"], "core");

    for _ in 0..2 {
        let refused = get(at, "/gone/x").await;
        assert_eq!((refused.status.as_u16(), refused.code().as_str()), (502, "E902"));
        assert_eq!((refused.reason().as_str(), refused.retry_after()), ("unreachable", 1));
    }
    let open = get(at, "/gone/x").await;
    assert_eq!((open.status.as_u16(), open.code().as_str(), open.reason().as_str()), (503, "E904", "open"));
    let millis = open.json()["retry_after_ms"].as_u64().unwrap();
    assert!((1..=60_001).contains(&millis), "{millis}");
    assert_eq!(open.retry_after(), millis.div_ceil(1_000));
    assert_eq!(open.headers["content-type"], "application/json");

    let nowhere = get(at, "/elsewhere").await;
    assert_eq!((nowhere.status.as_u16(), nowhere.code().as_str()), (404, "E404"));
    assert!(nowhere.json().get("target").is_none());
}

#[tokio::test]
async fn an_upstreams_own_errors_pass_through_and_count() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    let at = gateway.address();
    let broken = get(at, "/always500").await;
    assert_eq!((broken.status.as_u16(), &broken.body[..]), (500, &b"out of order\n"[..]));
    assert_eq!(get(at, "/bad").await.status, 400);
    assert_eq!(get(at, "/nonesuch").await.status, 404);
    let totals = target(&gateway, "t").await["totals"].clone();
    assert_eq!((&totals["failure"], &totals["success"]), (&1.into(), &2.into()));

    let (busy, _told) = telling("HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n").await;
    let gateway = gateway_to(busy, "").await;
    assert_eq!(get(gateway.address(), "/").await.status, 429);
    assert_eq!(target(&gateway, "t").await["totals"]["failure"], 1);
}

#[tokio::test]
async fn answers_without_a_body_count_and_hold_nothing() {
    for answer in [
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    ] {
        let (address, _told) = telling(answer).await;
        let gateway = gateway_to(address, "").await;
        get(gateway.address(), "/").await;
        until_idle(&gateway, "t").await;
        assert_eq!(target(&gateway, "t").await["totals"]["success"], 1, "{answer}");
    }
    let (address, _told) = telling("HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n").await;
    let gateway = gateway_to(address, "").await;
    let mut client = Raw::connect(gateway.address()).await;
    client.send("HEAD / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
    assert!(lower(&client.read_all().await).contains("content-length: 500\r\n"));
    until_idle(&gateway, "t").await;
    assert_eq!(target(&gateway, "t").await["totals"]["success"], 1);
}

#[tokio::test]
async fn the_cap_on_the_process_refuses_and_touches_no_target() {
    let core = upstream().await;
    let gateway = gateway(&format!("max_concurrent = 2\n{}", single(core.address(), "timeout = \"20s\""))).await;
    let at = gateway.address();
    let first = tokio::spawn(async move { get(at, "/slow?ms=3000").await });
    let second = tokio::spawn(async move { get(at, "/slow?ms=3000").await });
    until("both inside", async || core.counts().in_flight == 2).await;
    let refused = get(at, "/fast").await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (503, "E905"));
    assert_eq!((refused.reason().as_str(), refused.retry_after()), ("process", 1));
    let seen = target(&gateway, "t").await;
    assert_eq!((&seen["totals"]["admitted"], &seen["refusals"]["saturated"]), (&2.into(), &0.into()));
    assert_eq!((first.await.unwrap().status.as_u16(), second.await.unwrap().status.as_u16()), (200, 200));
    assert_eq!(get(at, "/fast").await.status, 200);
}

#[tokio::test]
async fn the_place_under_the_cap_is_held_to_the_end_of_the_body() {
    let (more, more_comes) = mpsc::unbounded_channel::<()>();
    let more_comes = std::sync::Arc::new(tokio::sync::Mutex::new(more_comes));
    let address = scripted(move |mut raw| {
        let more_comes = std::sync::Arc::clone(&more_comes);
        async move {
            raw.head().await;
            raw.send("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf").await;
            more_comes.lock().await.recv().await;
            raw.send("half").await;
            raw.read_all().await;
        }
    })
    .await;
    let gateway = gateway(&format!("max_concurrent = 1\n{}", single(address, "timeout = \"20s\""))).await;
    let mut client = Raw::connect(gateway.address()).await;
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    client.read_to("half").await;
    assert_eq!(get(gateway.address(), "/").await.reason(), "process");
    assert_eq!(gateway.engine().snapshot("t").unwrap().in_flight, 1);
    more.send(()).unwrap();
    client.read_to("half").await;
    until_idle(&gateway, "t").await;
    assert_eq!(target(&gateway, "t").await["totals"]["success"], 1);
}

#[tokio::test]
async fn streams_may_be_silent_and_other_bodies_may_not() {
    let talk = |kind: &'static str| {
        scripted(move |mut raw| async move {
            raw.head().await;
            raw.send(&format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n3\r\none\r\n"
            ))
            .await;
            tokio::time::sleep(Duration::from_millis(700)).await;
            // The gateway may have hung up.
            let _ = raw.try_send(b"3\r\ntwo\r\n0\r\n\r\n").await;
            raw.read_all().await;
        })
    };
    let timeout = "timeout = \"200ms\"";
    let ask = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

    // Declared by its type, by the target, and by the route.
    let events = gateway_to(talk("text/event-stream; charset=utf-8").await, timeout).await;
    let declared = gateway_to(talk("text/plain").await, &format!("{timeout}\nstream = true")).await;
    let text = single(talk("text/plain").await, timeout).replace("path = \"/\"", "path = \"/\"\nstream = true");
    for gateway in [events, declared, gateway(&text).await] {
        let mut client = Raw::connect(gateway.address()).await;
        client.send(ask).await;
        client.read_to("one").await;
        // Judged at its headers already, while it holds its slot.
        let seen = target(&gateway, "t").await;
        assert_eq!((&seen["window"]["calls"], &seen["in_flight"]), (&1.into(), &1.into()));
        client.read_to("two").await;
        until_idle(&gateway, "t").await;
    }

    let silent = gateway_to(talk("text/plain").await, timeout).await;
    let mut client = Raw::connect(silent.address()).await;
    client.send(ask).await;
    let all = client.read_all().await;
    assert!(all.contains("one") && !all.contains("two") && !all.ends_with("0\r\n\r\n"), "{all}");
    until_idle(&silent, "t").await;
    assert_eq!(target(&silent, "t").await["totals"]["failure"], 1);
}

#[tokio::test]
async fn a_route_without_admission_asks_nobody_and_is_held_to_the_rest() {
    let core = upstream().await;
    let route = |path: &str, rest: &str| format!("[[route]]\npath = \"{path}\"\ntarget = \"t\"\n{rest}");
    let routes = route("/bare/", "admission = false\n");
    let text = single(core.address(), "max_in_flight = 1\ntimeout = \"400ms\"\nconsecutive_failures = 1");
    let gateway = gateway(&format!("max_concurrent = 3\n{routes}{text}")).await;
    // Failures that would open the circuit, and successes, and neither is counted.
    assert_eq!(get(gateway.address(), "/bare/always500").await.status, 500);
    assert_eq!(get(gateway.address(), "/bare/fast").await.status, 200);
    until_idle(&gateway, "t").await;
    let totals = target(&gateway, "t").await["totals"].clone();
    assert!(totals.as_object().unwrap().values().all(|count| *count == 0), "{totals}");

    // Nothing is refused where the circuit is open or the target is full.
    post(gateway.admin_address().unwrap(), "/targets/t/force-open").await;
    assert_eq!(get(gateway.address(), "/fast").await.code(), "E904");
    let hung = [(); 3].map(|()| tokio::spawn(get(gateway.address(), "/bare/hang")));
    until("the cap is reached", async || gateway.in_flight() == 3).await;
    // The cap on the process holds, and so does the timeout.
    assert_eq!(get(gateway.address(), "/bare/fast").await.reason(), "process");
    for answer in hung {
        assert_eq!(answer.await.unwrap().code(), "E901");
    }
    until_idle(&gateway, "t").await;
    assert_eq!(target(&gateway, "t").await["totals"]["failure"], 0);
}

#[tokio::test]
async fn upgrades_and_tunnels_are_refused() {
    let core = upstream().await;
    let gateway = gateway_to(core.address(), "").await;
    for ask in [
        "GET /fast HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n",
    ] {
        let mut client = Raw::connect(gateway.address()).await;
        client.send(ask).await;
        assert!(client.head().await.starts_with("HTTP/1.1 501"), "{ask}");
        client.read_to("E501").await;
    }
    // A client that offers HTTP/2 is served in HTTP/1.1.
    let mut client = Raw::connect(gateway.address()).await;
    client
        .send("GET /fast HTTP/1.1\r\nhost: a\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: \r\n\r\n")
        .await;
    assert!(client.head().await.starts_with("HTTP/1.1 200"));
    assert_eq!(core.counts().calls, 1);
}

#[tokio::test]
async fn upstreams_take_turns() {
    let (first, second) = (upstream().await, upstream().await);
    let gateway = gateway(&format!(
        "[[route]]\npath = \"/\"\ntarget = \"t\"\n[target.t]\nupstream = [\"{}\", \"{}\"]",
        first.url(),
        second.url()
    ))
    .await;
    for _ in 0..6 {
        assert_eq!(get(gateway.address(), "/fast").await.status, 200);
    }
    assert_eq!((first.counts().calls, second.counts().calls), (3, 3));
}

#[tokio::test]
async fn hosts_have_their_own_routes() {
    let (core, claims) = (upstream().await, upstream().await);
    let gateway = gateway(&format!(
        "[[route]]\nhost = \"API.example.com\"\npath = \"/\"\ntarget = \"core\"
         [[route]]\npath = \"/\"\ntarget = \"claims\"
         [target.core]\nupstream = [\"{}\"]\n[target.claims]\nupstream = [\"{}\"]",
        core.url(),
        claims.url()
    ))
    .await;
    let mut client = Raw::connect(gateway.address()).await;
    client.send("GET /fast HTTP/1.1\r\nhost: api.EXAMPLE.com:8080\r\n\r\n").await;
    client.read_to("fast\n").await;
    assert_eq!((core.counts().calls, claims.counts().calls), (1, 0));
    client.send("GET /fast HTTP/1.1\r\nhost: other\r\n\r\n").await;
    client.read_to("fast\n").await;
    assert_eq!((core.counts().calls, claims.counts().calls), (1, 1));
}
