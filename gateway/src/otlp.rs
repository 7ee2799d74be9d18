//! What an OpenTelemetry collector is told: spans, in batches, from a thread of their own; and [`metrics`].
//!
//! No request ever waits for the collector. Spans wait in a queue of 2,048 (`OTEL_BSP_MAX_QUEUE_SIZE`); what doesn't fit is lost, and so is a batch
//! that the collector doesn't take within 10 s (`OTEL_EXPORTER_OTLP_TIMEOUT`). What is lost is counted, and said in the log at most once a minute.

mod client;
mod metrics;
mod page;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracerProvider};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::registry::LookupSpan;

use crate::config::Otlp;
use client::Client;
pub(crate) use metrics::MetricsExporter;
use tally::{Counted, Lost, Tally};

/// The longest wait for the collector at the end of the process.
const FAREWELL: Duration = Duration::from_secs(3);
/// Between two words about the same trouble.
const QUIET: Duration = Duration::from_mins(1);
/// What isn't said otherwise: `OTEL_SERVICE_NAME`, or `service.name` in `OTEL_RESOURCE_ATTRIBUTES`.
const NAME: &str = "portcullis";

/// The export of spans.
#[derive(Debug)]
pub(crate) struct Exporter {
    provider: SdkTracerProvider,
    lost: Arc<Lost>,
}

impl Exporter {
    /// Begins to export, from within a runtime that the requests to the collector run on.
    ///
    /// # Errors
    ///
    /// The environment asks for what isn't there, such as another compression than none.
    pub(crate) fn start(otlp: &Otlp) -> Result<Self, ExporterBuildError> {
        let mut exporter = SpanExporter::builder().with_http().with_http_client(Client::new("TRACES"));
        if let Some(endpoint) = &otlp.endpoint {
            exporter = exporter.with_endpoint(format!("{endpoint}/v1/traces"));
        }
        let lost = Arc::new(Lost::default());
        let exporter = Counted::new(exporter.build()?, Arc::clone(&lost));
        let batches = BatchSpanProcessor::builder(exporter).build();
        let provider = SdkTracerProvider::builder()
            .with_resource(resource())
            .with_span_processor(Tally::new(batches, Arc::clone(&lost)))
            .build();
        Ok(Self { provider, lost })
    }

    /// The layer by which spans get there: those of requests, with the transitions that they brought about.
    pub(crate) fn layer<S: Subscriber + for<'s> LookupSpan<'s>>(&self) -> impl Layer<S> {
        let ours = Targets::new()
            .with_target("portcullis_gateway::trace", LevelFilter::DEBUG)
            .with_target("portcullis", LevelFilter::INFO);
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(NAME))
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_tracked_inactivity(false)
            .with_context_activation(false)
            .with_filter(ours)
    }

    /// Sends what waits, for [`FAREWELL`] at most, and says what was lost in all.
    pub(crate) async fn shutdown(self) {
        let Self { provider, lost } = self;
        // It blocks, and what it waits for runs on this runtime.
        let done = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FAREWELL)).await;
        if let Ok(Err(error)) = done {
            tracing::warn!(%error, "the last spans didn't get to the collector");
        }
        lost.say();
    }
}

fn resource() -> Resource {
    let by_environment = Resource::builder().build();
    let name = by_environment.get(&opentelemetry::Key::new("service.name")).map(|name| name.to_string());
    match name {
        Some(name) if !name.starts_with("unknown_service") => by_environment,
        _ => Resource::builder().with_service_name(NAME).build(),
    }
}
