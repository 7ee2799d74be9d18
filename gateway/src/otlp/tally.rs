//! What didn't get to the collector.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor};
use tokio::time::Instant;

use super::QUIET;

/// Counts spans on their way.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    ended: AtomicU64,
    sent: AtomicU64,
    failed: AtomicU64,
    said: Mutex<Option<Instant>>,
}

impl Lost {
    /// Says what was lost, once there is nothing on its way.
    pub(crate) fn say(&self) {
        let [ended, sent, failed] = [&self.ended, &self.sent, &self.failed].map(|count| count.load(Ordering::Relaxed));
        if ended > sent {
            let unsent = (ended - sent).saturating_sub(failed);
            tracing::warn!(
                ended,
                sent,
                failed,
                unsent,
                "spans were lost: not taken by the collector, or no room for them"
            );
        }
    }

    fn fail(&self, spans: u64, why: &dyn std::fmt::Display) {
        let failed = self.failed.fetch_add(spans, Ordering::Relaxed) + spans;
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.is_none_or(|said| said.elapsed() >= QUIET) {
            *said = Some(Instant::now());
            tracing::warn!(failed, error = %why, "the collector doesn't take spans; this is said once a minute");
        }
    }
}

/// Counts the spans that should get to the collector.
#[derive(Debug)]
pub(super) struct Tally {
    batches: BatchSpanProcessor,
    lost: Arc<Lost>,
}

impl Tally {
    pub(super) fn new(batches: BatchSpanProcessor, lost: Arc<Lost>) -> Self {
        Self { batches, lost }
    }
}

impl SpanProcessor for Tally {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() {
            self.lost.ended.fetch_add(1, Ordering::Relaxed);
        }
        self.batches.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// Counts those that do.
#[derive(Debug)]
pub(super) struct Counted<E> {
    inner: E,
    lost: Arc<Lost>,
}

impl<E> Counted<E> {
    pub(super) fn new(inner: E, lost: Arc<Lost>) -> Self {
        Self { inner, lost }
    }
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let done = self.inner.export(batch).await;
        match &done {
            Ok(()) => drop(self.lost.sent.fetch_add(spans, Ordering::Relaxed)),
            Err(error) => self.lost.fail(spans, error),
        }
        done
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
