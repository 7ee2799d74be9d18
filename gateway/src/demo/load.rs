//! A load at a fixed rate: each request is sent at its time whatever became of the ones before, as real clients do.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Longer than any answer of the gateway takes: whatever hits this got none.
const PATIENCE: Duration = Duration::from_secs(5);

/// What became of the requests to one target in one phase.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(Arc<Mutex<Results>>);

/// The answers so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Results {
    pub(super) sent: u64,
    pub(super) ok: u64,
    pub(super) codes: BTreeMap<String, u64>,
    pub(super) latencies: Vec<Duration>,
}

impl Results {
    /// The answers that said no before the upstream was asked.
    pub(super) fn refused(&self) -> u64 {
        ["E904", "E905"].iter().filter_map(|code| self.codes.get(*code)).sum()
    }

    /// All answers that weren't good ones.
    pub(super) fn lost(&self) -> u64 {
        self.codes.values().sum()
    }
}

impl Tally {
    fn lock(&self) -> MutexGuard<'_, Results> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn results(&self) -> Results {
        self.lock().clone()
    }

    fn answered(&self, waited: Duration, answer: Result<(), String>) {
        let mut results = self.lock();
        results.latencies.push(waited);
        match answer {
            Ok(()) => results.ok += 1,
            Err(code) => *results.codes.entry(code).or_default() += 1,
        }
    }
}

/// Sends requests to one page of the gateway.
#[derive(Clone, Debug)]
pub(super) struct Load {
    client: Client<HttpConnector, Empty<Bytes>>,
    uri: Uri,
    period: Duration,
}

impl Load {
    pub(super) fn new(gateway: SocketAddr, path: &str, per_second: u32) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        let uri = format!("http://{gateway}{path}").parse().unwrap_or_default();
        Self { client, uri, period: Duration::from_secs(1) / per_second.max(1) }
    }

    /// Sends from `start` for `length`, then waits for the last answer.
    pub(super) async fn run(&self, start: Instant, length: Duration, tally: &Tally) {
        let mut requests = JoinSet::new();
        let mut due = start;
        while due < start + length {
            tokio::time::sleep_until(due).await;
            tally.lock().sent += 1;
            let (load, tally) = (self.clone(), tally.clone());
            requests.spawn(async move {
                let answer = load.one().await;
                // From the moment at which it was due: a generator that falls behind must not flatter the gateway.
                tally.answered(due.elapsed(), answer);
            });
            due += self.period;
            while requests.try_join_next().is_some() {}
        }
        while requests.join_next().await.is_some() {}
    }

    /// Sends one request; the error is its wire code, or what stands for one.
    async fn one(&self) -> Result<(), String> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = self.uri.clone();
        match tokio::time::timeout(PATIENCE, self.answer(request)).await {
            Ok(answer) => answer,
            Err(_) => Err("no-answer".to_owned()),
        }
    }

    async fn answer(&self, request: Request<Empty<Bytes>>) -> Result<(), String> {
        let response = self.client.request(request).await.map_err(|_| "no-connection".to_owned())?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(|_| "broken-off".to_owned())?.to_bytes();
        if status.is_success() {
            return Ok(());
        }
        let told = serde_json::from_slice::<serde_json::Value>(&body).ok();
        let code = told.as_ref().and_then(|told| told.get("code")).and_then(|code| code.as_str());
        Err(match code {
            Some(code) => code.to_owned(),
            None if status.is_server_error() => "E500".to_owned(),
            None => format!("status-{}", status.as_u16()),
        })
    }
}
