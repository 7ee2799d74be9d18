//! What an OpenTelemetry collector gets to see: a real one's protocol, over loopback, from the real binary.
#![cfg(feature = "otlp")]
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use common::process::Process;
use common::{Answering, Raw, answer, client, field, nobody, request, scripted, send, until};
use http::Method;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use opentelemetry_proto::tonic::metrics::v1::{Metric, NumberDataPoint};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
/// So that a test doesn't wait for the next 5 s.
const SOON: (&str, &str) = ("OTEL_BSP_SCHEDULE_DELAY", "50");

/// A collector, and the spans that it got so far.
struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
    services: Arc<Mutex<Vec<String>>>,
    metrics: Arc<Mutex<Vec<Metric>>>,
}

impl Collector {
    async fn start() -> Self {
        let (spans, services) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
        let metrics = Arc::new(Mutex::new(Vec::new()));
        let (all, names, measured) = (Arc::clone(&spans), Arc::clone(&services), Arc::clone(&metrics));
        let address = scripted(move |mut raw| {
            let (all, names, measured) = (Arc::clone(&all), Arc::clone(&names), Arc::clone(&measured));
            async move {
                while let Some(head) = raw.next_head().await {
                    let body = body(&mut raw, &head).await;
                    if head.starts_with("POST /v1/traces ") {
                        let export = ExportTraceServiceRequest::decode(&*body).unwrap();
                        for resource in export.resource_spans {
                            let attributes = resource.resource.unwrap().attributes;
                            names.lock().unwrap().push(text(&attributes)["service.name"].clone());
                            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
                            all.lock().unwrap().extend(spans);
                        }
                    }
                    if head.starts_with("POST /v1/metrics ") {
                        assert_eq!(field(&head, "api-key"), Some("a key"));
                        let mut export = ExportMetricsServiceRequest::decode(&*body).unwrap();
                        let resource = export.resource_metrics.remove(0);
                        let attributes = resource.resource.unwrap().attributes;
                        names.lock().unwrap().push(text(&attributes)["service.name"].clone());
                        *measured.lock().unwrap() =
                            resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics).collect();
                    }
                    raw.send("HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n")
                        .await;
                }
            }
        })
        .await;
        Self { address, spans, services, metrics }
    }

    /// The spans of a name, once there are that many.
    async fn named(&self, name: &str, count: usize) -> Vec<Span> {
        let found = || self.spans.lock().unwrap().iter().filter(|span| span.name == name).cloned().collect::<Vec<_>>();
        until(name, async || found().len() >= count).await;
        let found = found();
        assert_eq!(found.len(), count, "{found:?}");
        found
    }
}

async fn body(raw: &mut Raw, head: &str) -> Vec<u8> {
    let length = field(&head.to_ascii_lowercase(), "content-length").unwrap().parse().unwrap();
    raw.take(length).await
}

/// Attributes as text.
fn text(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let told = |value: &Option<AnyValue>| match value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    attributes.iter().map(|entry| (entry.key.clone(), told(&entry.value))).collect()
}

fn hex(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn config(collector: SocketAddr, upstream: SocketAddr, lines: &str) -> String {
    let target = common::single(upstream, lines);
    format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [otlp]\nendpoint = \"http://{collector}\"\nmetrics = false\n{target}"
    )
}

async fn ask(gateway: &Process, headers: &[(&str, &str)]) -> common::Answer {
    let mut request = request(Method::GET, gateway.proxy, "/path?query=secret");
    for &(name, value) in headers {
        request.headers_mut().append(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
    }
    send(&client(), request).await
}

fn caller(flags: &str) -> String {
    format!("00-{TRACE}-{CALLER}-{flags}")
}

#[tokio::test]
async fn a_request_and_its_attempts_are_spans_of_the_callers_trace() {
    let collector = Collector::start().await;
    let upstream = Answering::start(|number, _| answer(if number == 0 { "503 Busy" } else { "200 OK" }, "", "x")).await;
    let text_of = config(collector.address, upstream.address, "attempts = 2\ndeadline = \"20s\"");
    let gateway = Process::start_in(&[SOON], "otlp-spans", &text_of).await;
    let asked = ask(&gateway, &[("traceparent", &caller("01")), ("tracestate", "a=1"), ("tracestate", "b=2")]).await;
    assert_eq!(asked.status, 200);

    let span = collector.named("GET t", 1).await.remove(0);
    assert_eq!((hex(&span.trace_id), hex(&span.parent_span_id)), (TRACE.into(), CALLER.into()));
    let told = text(&span.attributes);
    for (key, value) in [
        ("http.request.method", "GET"),
        ("url.path", "/path"),
        ("portcullis.target", "t"),
        ("portcullis.decision", "admitted"),
        ("portcullis.attempts", "2"),
        ("http.response.status_code", "200"),
    ] {
        assert_eq!(told.get(key).map(String::as_str), Some(value), "{key} in {told:?}");
    }
    assert!(!format!("{span:?}").contains("secret"), "{span:?}");
    assert_eq!(collector.services.lock().unwrap()[0], "portcullis");

    let attempts = collector.named("GET", 2).await;
    for (attempt, head) in attempts.iter().zip(upstream.heads()) {
        assert_eq!(attempt.parent_span_id, span.span_id);
        let lead = format!("00-{TRACE}-{}-01", hex(&attempt.span_id));
        assert_eq!(field(&head, "traceparent"), Some(lead.as_str()));
        assert!(head.contains("tracestate: a=1\r\ntracestate: b=2"), "{head}");
    }
    let told: Vec<_> = attempts.iter().map(|attempt| text(&attempt.attributes)).collect();
    assert_eq!(told[0]["http.response.status_code"], "503");
    assert_eq!(told[1]["http.request.resend_count"], "1");
    assert_eq!(told[1]["server.port"], upstream.address.port().to_string());
    assert_eq!(attempts.iter().map(|attempt| attempt.status.as_ref().unwrap().code).collect::<Vec<_>>(), [2, 0]);
}

#[tokio::test]
async fn a_trace_that_is_none_is_dropped_and_a_new_one_begun() {
    let collector = Collector::start().await;
    let upstream = Answering::start(|_, _| answer("200 OK", "", "x")).await;
    let gateway = Process::start_in(&[SOON], "otlp-invalid", &config(collector.address, upstream.address, "")).await;
    ask(&gateway, &[("traceparent", &caller("xx")), ("tracestate", "a=1")]).await;
    ask(&gateway, &[("traceparent", &caller("01")), ("traceparent", &caller("01")), ("tracestate", "a=1")]).await;
    let odd = request(Method::from_bytes(b"MADE-UP").unwrap(), gateway.proxy, &format!("/{}", "p".repeat(2_000)));
    assert_eq!(send(&client(), odd).await.status, 200);
    let odd = text(&collector.named("HTTP t", 1).await[0].attributes);
    assert_eq!((odd["http.request.method"].as_str(), odd["url.path"].len()), ("_OTHER", 512));
    let spans = collector.named("GET t", 2).await;
    for (span, head) in spans.iter().zip(upstream.heads()) {
        assert!(span.parent_span_id.is_empty(), "{span:?}");
        assert_ne!(hex(&span.trace_id), TRACE);
        assert_eq!(head.matches("traceparent:").count(), 1, "{head}");
        assert!(field(&head, "traceparent").unwrap().starts_with(&format!("00-{}-", hex(&span.trace_id))), "{head}");
        assert!(!head.contains("tracestate"), "{head}");
    }
}

#[tokio::test]
async fn a_trace_that_isnt_sampled_is_passed_on_and_not_exported() {
    let collector = Collector::start().await;
    let upstream = Answering::start(|_, _| answer("200 OK", "", "x")).await;
    let gateway = Process::start_in(&[SOON], "otlp-unsampled", &config(collector.address, upstream.address, "")).await;
    ask(&gateway, &[("traceparent", &caller("00"))]).await;
    ask(&gateway, &[]).await;
    let spans = collector.named("GET t", 1).await;
    assert_ne!(hex(&spans[0].trace_id), TRACE);
    let lead = upstream.heads().remove(0);
    let lead = field(&lead, "traceparent").unwrap();
    assert!(lead.starts_with(&format!("00-{TRACE}-")) && lead.ends_with("-00") && !lead.contains(CALLER), "{lead}");
}

#[tokio::test]
async fn a_refusal_says_why_and_the_trip_is_an_event_of_the_request_that_brought_it_about() {
    let collector = Collector::start().await;
    let upstream = Answering::start(|_, _| answer("500 Broken", "", "x")).await;
    let policy = "consecutive_failures = 1\nopen_wait = \"60s\"\nopen_wait_max = \"60s\"";
    let text_of = config(collector.address, upstream.address, policy);
    let gateway = Process::start_in(&[SOON, ("OTEL_SERVICE_NAME", "edge")], "otlp-refused", &text_of).await;
    ask(&gateway, &[]).await;
    assert_eq!(ask(&gateway, &[]).await.code(), "E904");
    let spans = collector.named("GET t", 2).await;
    let opened = spans.iter().find(|span| !span.events.is_empty()).expect("a span with an event");
    assert_eq!(opened.events[0].name, "t: CLOSED to OPEN");
    assert_eq!(opened.status.as_ref().unwrap().code, 2);
    let refused = spans.iter().map(|span| text(&span.attributes)).find(|told| told.contains_key("portcullis.code"));
    let told = refused.expect("a span with a code");
    let told = |key: &str| told[key].clone();
    assert_eq!(
        [told("portcullis.decision"), told("portcullis.code"), told("portcullis.reason")],
        ["refused", "E904", "open"]
    );
    assert_eq!((told("http.response.status_code"), told("portcullis.attempts")), ("503".into(), "0".into()));
    assert_eq!(collector.services.lock().unwrap()[0], "edge");
}

#[tokio::test]
async fn a_fallback_is_told_as_one() {
    let collector = Collector::start().await;
    let upstream = Answering::start(|_, _| answer("500 Broken", "", "x")).await;
    let fallback = "fallback = { value = { status = 200, body = \"instead\" } }";
    let text_of = config(collector.address, upstream.address, fallback);
    let gateway = Process::start_in(&[SOON], "otlp-fallback", &text_of).await;
    assert_eq!(ask(&gateway, &[]).await.status, 200);
    let told = text(&collector.named("GET t", 1).await[0].attributes);
    assert_eq!(told["portcullis.decision"], "fallback", "{told:?}");
}

#[tokio::test]
async fn what_an_upstream_calls_a_fallback_is_none_of_the_gateways() {
    let collector = Collector::start().await;
    let upstream = Answering::start(|_, _| answer("200 OK", "x-portcullis-fallback: value\r\n", "x")).await;
    for (number, lines) in ["", "attempts = 2\ndeadline = \"20s\""].into_iter().enumerate() {
        let text_of = config(collector.address, upstream.address, lines);
        let gateway = Process::start_in(&[SOON], "otlp-elsewhere", &text_of).await;
        let told = ask(&gateway, &[]).await;
        assert_eq!(told.headers["x-portcullis-fallback"], "value", "its word is passed on");
        let spans = collector.named("GET t", number + 1).await;
        let told = text(&spans[number].attributes);
        assert_eq!(told["portcullis.decision"], "admitted", "{told:?}");
    }
}

#[tokio::test]
async fn a_collector_that_is_down_is_said_once_and_harms_nobody() {
    let (_held, collector) = nobody();
    let upstream = Answering::start(|_, _| answer("200 OK", "", "x")).await;
    let mut gateway = Process::start_in(&[SOON], "otlp-down", &config(collector, upstream.address, "")).await;
    assert_eq!(ask(&gateway, &[]).await.status, 200);
    gateway.logged("the collector doesn't take spans", 1).await;
    for _ in 0..10 {
        assert_eq!(ask(&gateway, &[]).await.status, 200);
    }
    gateway.signal("TERM").await;
    assert!(gateway.ended().await.success());
    gateway.logged("spans were lost", 1).await;
    let log = gateway.log();
    assert_eq!(log.matches("the collector doesn't take spans").count(), 1, "{log}");
    assert!(log.contains("ended=22 sent=0"), "{log}");
}

#[tokio::test]
async fn a_collector_that_never_answers_delays_neither_requests_nor_the_end() {
    let hung = scripted(|mut raw| async move { drop(raw.read_all().await) }).await;
    let upstream = Answering::start(|_, _| answer("200 OK", "", "x")).await;
    let few = ("OTEL_BSP_MAX_QUEUE_SIZE", "4");
    let mut gateway = Process::start_in(&[SOON, few], "otlp-hung", &config(hung, upstream.address, "")).await;
    for _ in 0..20 {
        assert_eq!(ask(&gateway, &[]).await.status, 200);
    }
    gateway.signal("TERM").await;
    assert!(gateway.ended().await.success());
    gateway.logged("spans were lost", 1).await;
    assert!(gateway.log().contains("ended=40 sent=0"), "{}", gateway.log());
}

/// The value of a series of a metric, if it is there.
fn value(metrics: &[Metric], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let points: &[NumberDataPoint] = match metrics.iter().find(|metric| metric.name == name)?.data.as_ref()? {
        Data::Sum(sum) => &sum.data_points,
        Data::Gauge(gauge) => &gauge.data_points,
        _ => return None,
    };
    let is_it = |point: &&NumberDataPoint| {
        let told = text(&point.attributes);
        labels.iter().all(|&(label, value)| told.get(label).is_some_and(|told| told == value))
    };
    match points.iter().find(is_it)?.value? {
        Number::AsDouble(value) => Some(value),
        Number::AsInt(value) => Some(value as f64),
    }
}

#[tokio::test]
async fn the_series_of_the_metrics_page_are_exported_and_a_last_time_at_the_end() {
    let collector = Collector::start().await;
    let upstream = Answering::start(|_, _| answer("500 Broken", "", "x")).await;
    let policy = "consecutive_failures = 2\nopen_wait = \"60s\"\nopen_wait_max = \"60s\"\nmax_in_flight = 3";
    let text_of = config(collector.address, upstream.address, policy).replace("metrics = false", "traces = false");
    let environment = [("OTEL_METRIC_EXPORT_INTERVAL", "100"), ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20key")];
    let mut gateway = Process::start_in(&environment, "otlp-metrics", &text_of).await;
    for _ in 0..5 {
        ask(&gateway, &[("traceparent", &caller("01"))]).await;
    }
    let is = |name: &str, labels: &[(&str, &str)], wanted: f64| {
        let told = value(&collector.metrics.lock().unwrap(), name, &[labels, &[("target", "t")]].concat());
        told.is_some_and(|told| told == wanted)
    };
    until("it is told", async || is("portcullis_refusals_total", &[("reason", "open")], 3.0)).await;
    assert!(is("portcullis_limit", &[], 3.0) && is("portcullis_target_state", &[("state", "OPEN")], 1.0));
    // Under the names that Prometheus sees.
    let page = String::from_utf8(common::get(gateway.admin, "/metrics").await.body.to_vec()).unwrap();
    let names: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let told: Vec<String> = collector.metrics.lock().unwrap().iter().map(|metric| metric.name.clone()).collect();
    assert_eq!(told, names);
    assert!(names.len() > 20, "{names:?}");
    let metrics = collector.metrics.lock().unwrap().clone();
    let latency = metrics.iter().find(|metric| metric.name == "portcullis_latency_seconds").unwrap();
    let Some(Data::Histogram(latency)) = &latency.data else { panic!("{latency:?}") };
    assert_eq!(latency.data_points[0].count, 2);
    assert_eq!(latency.data_points[0].bucket_counts.iter().sum::<u64>(), 2);
    assert_eq!(latency.data_points[0].explicit_bounds.len() + 1, latency.data_points[0].bucket_counts.len());
    assert!(collector.spans.lock().unwrap().is_empty());
    // Nobody exports spans, so the trace is passed on as it came.
    assert!(upstream.heads().iter().all(|head| field(head, "traceparent") == Some(&caller("01"))));

    gateway.signal("TERM").await;
    assert!(gateway.ended().await.success());
}

#[tokio::test]
async fn what_was_counted_at_last_is_exported_before_the_end() {
    let collector = Collector::start().await;
    let upstream = Answering::start(|_, _| answer("200 OK", "", "x")).await;
    let text_of = config(collector.address, upstream.address, "").replace("metrics = false", "");
    let environment = [("OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20key")];
    let mut gateway = Process::start_in(&environment, "otlp-last", &text_of).await;
    ask(&gateway, &[]).await;
    gateway.signal("TERM").await;
    assert!(gateway.ended().await.success());
    let told = value(&collector.metrics.lock().unwrap(), "portcullis_admitted_total", &[("target", "t")]);
    assert_eq!(told, Some(1.0));
    // The spans as well, long before their batch was due.
    assert_eq!(collector.named("GET t", 1).await.len(), 1);
}

#[tokio::test]
async fn a_collector_that_takes_no_metrics_is_said_once_and_delays_no_end() {
    let hung = scripted(|mut raw| async move { drop(raw.read_all().await) }).await;
    let upstream = Answering::start(|_, _| answer("200 OK", "", "x")).await;
    let text_of = config(hung, upstream.address, "").replace("metrics = false", "traces = false");
    let environment = [("OTEL_METRIC_EXPORT_INTERVAL", "10"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "50")];
    let mut gateway = Process::start_in(&environment, "otlp-deaf", &text_of).await;
    gateway.logged("the collector doesn't take metrics", 1).await;
    assert_eq!(ask(&gateway, &[]).await.status, 200);
    gateway.signal("TERM").await;
    assert!(gateway.ended().await.success());
    assert_eq!(gateway.log().matches("the collector doesn't take metrics").count(), 1, "{}", gateway.log());
}
