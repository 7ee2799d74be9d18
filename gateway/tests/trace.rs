//! Traces without a collector: what is passed on, and what the log shows.

mod common;

use common::process::Process;
use common::{Answering, answer, client, request, send, single};
use http::Method;

fn config(upstream: std::net::SocketAddr, lines: &str) -> String {
    format!("listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{}", single(upstream, lines))
}

#[tokio::test]
async fn without_a_collector_the_trace_context_is_passed_on_as_it_came_with_every_attempt() {
    let upstream = Answering::start(|number, _| answer(if number == 0 { "503 Busy" } else { "200 OK" }, "", "x")).await;
    let text = config(upstream.address, "attempts = 2\ndeadline = \"20s\"");
    // Also where spans are made for the log.
    let gateway = Process::start_in(&[("RUST_LOG", "debug")], "trace-passed", &text).await;
    let mut request = request(Method::GET, gateway.proxy, "/");
    let lines = [
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("tracestate", "a=1"),
        ("tracestate", "b=2"),
        ("baggage", "user=7"),
    ];
    for (name, value) in lines {
        request.headers_mut().append(name, value.parse().unwrap());
    }
    assert_eq!(send(&client(), request).await.status, 200);
    let heads = upstream.heads();
    assert_eq!(heads.len(), 2);
    for head in heads {
        for (name, value) in lines {
            assert!(head.contains(&format!("{name}: {value}\r\n")), "{name} in {head}");
        }
    }
}

#[tokio::test]
async fn the_log_shows_the_span_of_what_went_wrong_if_it_is_asked_for() {
    let (_held, upstream) = common::nobody();
    let levels = [("RUST_LOG", "info,portcullis_gateway=debug")];
    let gateway = Process::start_in(&levels, "trace-log", &config(upstream, "")).await;
    let asked = send(&client(), request(Method::GET, gateway.proxy, "/path?query=secret")).await;
    assert_eq!(asked.code(), "E902");
    gateway.logged("a call has no answer", 1).await;
    let log = gateway.log();
    let line = log.lines().find(|line| line.contains("a call has no answer")).unwrap();
    for part in ["request{", "http.request.method=\"GET\"", "url.path=\"/path\"", "portcullis.target=\"t\""] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!line.contains("secret"), "{line}");
}
