//! The clients of the upstreams: one pool of connections, each upstream with its own part, for each bound on connecting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::body::Sent;

/// A pool of connections.
pub(crate) type Client = legacy::Client<HttpConnector, Sent>;

/// The clients so far. A file has few different bounds, and a reload finds the connections where they were.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clients(Arc<Mutex<HashMap<Option<Duration>, Client>>>);

impl Clients {
    /// The client whose connections take no longer than that to be made.
    pub(crate) fn within(&self, connect_timeout: Option<Duration>) -> Client {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        clients.entry(connect_timeout).or_insert_with(|| client(connect_timeout)).clone()
    }
}

fn client(connect_timeout: Option<Duration>) -> Client {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(connect_timeout);
    legacy::Client::builder(TokioExecutor::new())
        // Shorter than the 5 s after which many servers close: a call on a connection that closes meanwhile is lost.
        .pool_idle_timeout(Duration::from_secs(4))
        .pool_max_idle_per_host(256)
        .pool_timer(TokioTimer::new())
        // Each request has it already.
        .set_host(false)
        .timer(TokioTimer::new())
        .build(connector)
}
