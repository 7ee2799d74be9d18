//! The export of metrics: every minute (`OTEL_METRIC_EXPORT_INTERVAL`) what Prometheus would read just then.
//!
//! A task of its own asks for it, on a thread that requests don't wait for. What the collector doesn't take isn't kept: counters are told as they are by
//! then the next time.

use std::sync::Weak;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, header};
use opentelemetry_http::{HttpClient as _, HttpError};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_proto::tonic::resource::v1::Resource;
use percent_encoding::percent_decode_str;
use prost::Message as _;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::client::Client;
use super::page::{Times, metrics};
use super::{FAREWELL, NAME, QUIET, resource};
use crate::config::Otlp;
use crate::shared::Shared;

/// The export of metrics. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct MetricsExporter {
    // Dropped, or with a word: the last export, or none.
    last: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Exports {
    client: Client,
    endpoint: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    shared: Weak<Shared>,
    began: u64,
    failed: u64,
    said: Option<Instant>,
}

impl MetricsExporter {
    /// Begins to export.
    pub(crate) fn start(otlp: &Otlp, shared: Weak<Shared>) -> Self {
        let interval = variable("OTEL_METRIC_EXPORT_INTERVAL").and_then(|text| text.parse().ok());
        let interval = Duration::from_millis(interval.unwrap_or(60_000).max(1));
        let exports = Exports {
            client: Client::new("METRICS"),
            endpoint: endpoint(otlp),
            headers: headers(),
            shared,
            began: unix_nanos(),
            failed: 0,
            said: None,
        };
        let (last, ends) = oneshot::channel();
        Self { last, task: tokio::spawn(run(exports, interval, ends)) }
    }

    /// Exports a last time, for [`FAREWELL`] at most.
    pub(crate) async fn shutdown(self) {
        let Self { last, mut task } = self;
        // The task is there until it hears of it.
        let _ = last.send(());
        if tokio::time::timeout(FAREWELL, &mut task).await.is_err() {
            task.abort();
            tracing::warn!("the last metrics didn't get to the collector");
        }
    }
}

async fn run(mut exports: Exports, interval: Duration, mut ends: oneshot::Receiver<()>) {
    loop {
        let ended = tokio::time::timeout(interval, &mut ends).await;
        if matches!(ended, Ok(Err(_))) {
            return;
        }
        let is_last = ended.is_ok();
        if let Err(error) = exports.export().await {
            exports.say(&*error);
        }
        if is_last {
            return;
        }
    }
}

impl Exports {
    async fn export(&self) -> Result<(), HttpError> {
        let Some(shared) = self.shared.upgrade() else { return Ok(()) };
        let times = Times { began: self.began, now: unix_nanos() };
        let body = tokio::task::spawn_blocking(move || encoded(&crate::metrics::page(&shared), times)).await?;
        let mut request = Request::post(&*self.endpoint).header(header::CONTENT_TYPE, "application/x-protobuf");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let status = self.client.send_bytes(request.body(body)?).await?.status();
        if status.is_success() { Ok(()) } else { Err(format!("it answered {status}").into()) }
    }

    fn say(&mut self, error: &dyn std::error::Error) {
        self.failed += 1;
        if self.said.is_none_or(|said| said.elapsed() >= QUIET) {
            self.said = Some(Instant::now());
            tracing::warn!(failed = self.failed, %error, "the collector doesn't take metrics; this is said once a minute");
        }
    }
}

fn encoded(page: &str, times: Times) -> Bytes {
    let told = resource();
    let attributes = told.iter().map(|(key, value)| KeyValue {
        key: key.to_string(),
        value: Some(value.clone().into()),
        ..KeyValue::default()
    });
    let scope = InstrumentationScope { name: NAME.to_owned(), ..InstrumentationScope::default() };
    let scope = ScopeMetrics { scope: Some(scope), metrics: metrics(page, times), schema_url: String::new() };
    let resource = Resource { attributes: attributes.collect(), ..Resource::default() };
    let metrics = ResourceMetrics { resource: Some(resource), scope_metrics: vec![scope], schema_url: String::new() };
    ExportMetricsServiceRequest { resource_metrics: vec![metrics] }.encode_to_vec().into()
}

fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Where to: by the file, or else by the environment as the specification has it.
fn endpoint(otlp: &Otlp) -> String {
    let below = |base: &str| format!("{}/v1/metrics", base.trim_end_matches('/'));
    let own = || variable("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT");
    let any = || variable("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| below(&base));
    let configured = otlp.endpoint.as_deref().map(below);
    configured.or_else(own).or_else(any).unwrap_or_else(|| below("http://localhost:4318"))
}

/// What the collector wants to see besides, such as a key: `name=value,...`, percent-encoded.
fn headers() -> Vec<(HeaderName, HeaderValue)> {
    let own = variable("OTEL_EXPORTER_OTLP_METRICS_HEADERS");
    let text = own.or_else(|| variable("OTEL_EXPORTER_OTLP_HEADERS")).unwrap_or_default();
    let header = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((name.trim().parse().ok()?, HeaderValue::from_str(&value).ok()?))
    };
    text.split(',').filter_map(header).collect()
}
