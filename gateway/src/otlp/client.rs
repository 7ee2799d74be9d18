//! How the exporter reaches the collector: a client of its own on the gateway's runtime, whichever thread asks.

use std::time::Duration;

use async_trait::async_trait;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use tokio::runtime::Handle;

/// More than any answer of a collector.
const LONGEST_ANSWER: usize = 1 << 20;

/// Sends exports.
#[derive(Clone, Debug)]
pub(super) struct Client {
    client: legacy::Client<HttpConnector, Full<Bytes>>,
    runtime: Handle,
    timeout: Duration,
}

impl Client {
    /// A client on the runtime that this is called from, for a signal as variables name it.
    pub(super) fn new(signal: &str) -> Self {
        let own = format!("OTEL_EXPORTER_OTLP_{signal}_TIMEOUT");
        let names = [own.as_str(), "OTEL_EXPORTER_OTLP_TIMEOUT"].into_iter();
        let timeout = names.filter_map(|name| std::env::var(name).ok()?.parse().ok()).next();
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(4))
            .build_http();
        let timeout = timeout.map_or(Duration::from_secs(10), Duration::from_millis);
        Self { client, runtime: Handle::current(), timeout }
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        refuse_tls(request.uri())?;
        let client = self.client.clone();
        let sent = async move {
            let (head, body) = client.request(request.map(Full::new)).await?.into_parts();
            let body = Limited::new(body, LONGEST_ANSWER).collect().await?.to_bytes();
            Ok::<_, HttpError>(Response::from_parts(head, body))
        };
        let timeout = self.timeout;
        // Timers and sockets belong to the runtime; who asks is a thread without one.
        let answer = self.runtime.spawn(async move { tokio::time::timeout(timeout, sent).await }).await?;
        answer.map_err(|_| format!("no answer within {timeout:?}"))?
    }
}

fn refuse_tls(uri: &Uri) -> Result<(), HttpError> {
    if uri.scheme_str() == Some("http") {
        return Ok(());
    }
    // The rest of it may be what nobody else should know.
    let host = uri.host().unwrap_or_default();
    Err(format!("{host}: only http:// is spoken to collectors; an agent beside the gateway can add TLS").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_is_refused_is_named_by_its_host() {
        let refused = refuse_tls(&Uri::from_static("https://user:hidden@collector.example/hidden?key=hidden"));
        let why = refused.unwrap_err().to_string();
        assert!(why.starts_with("collector.example: only http://") && !why.contains("hidden"), "{why}");
        assert!(refuse_tls(&Uri::from_static("http://collector.example/")).is_ok());
    }
}
