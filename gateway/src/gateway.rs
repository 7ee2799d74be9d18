//! A running gateway: its two listeners and what they share.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use portcullis::Engine;
use portcullis::call::CallCounts;
use tokio::net::TcpListener;

use crate::admin::Admin;
use crate::config::{Config, Otlp};
#[cfg(feature = "otlp")]
use crate::otlp::MetricsExporter;
use crate::proxy::Proxy;
use crate::server::{Limits, Server};
use crate::shared::Shared;

/// The admin listener only waits for answers that take no time.
const ADMIN_GRACE: Duration = Duration::from_millis(200);

/// A gateway at work. Dropping it cuts everything off; [`Gateway::shutdown`] doesn't.
#[derive(Debug)]
pub struct Gateway {
    shared: Arc<Shared>,
    proxy: Server,
    admin: Option<Server>,
    // As configured; a reload can't change these.
    listeners: (SocketAddr, Option<SocketAddr>, Limits),
    otlp: Option<Otlp>,
    #[cfg(feature = "otlp")]
    metrics: Option<MetricsExporter>,
    grace: Duration,
}

impl Gateway {
    /// Opens the listeners and starts to serve.
    ///
    /// # Errors
    ///
    /// A listener can't be opened, or the admin listener would be reachable from other machines and there is no token.
    pub async fn start(config: Config) -> io::Result<Self> {
        if config.admin_is_public() && !has_token(&config) {
            let message = "the admin listener isn't on loopback: set admin_token, or PORTCULLIS_ADMIN_TOKEN";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let shared = Shared::new(&config).map_err(io::Error::other)?;
        let limits = limits(&config);
        let proxy = Server::start(bind(config.listen).await?, limits, Proxy::new(Arc::clone(&shared)))?;
        let admin = match config.admin {
            Some(address) => {
                let listener = bind(address).await?;
                let admin = Admin::new(Arc::clone(&shared), listener.local_addr()?);
                Some(Server::start(listener, Limits { narrow: true, ..limits }, admin)?)
            }
            None => None,
        };
        let listeners = (config.listen, config.admin, limits);
        #[cfg(feature = "otlp")]
        let metrics = config.otlp.as_ref().filter(|otlp| otlp.metrics);
        Ok(Self {
            #[cfg(feature = "otlp")]
            metrics: metrics.map(|otlp| MetricsExporter::start(otlp, Arc::downgrade(&shared))),
            shared,
            proxy,
            admin,
            listeners,
            otlp: config.otlp,
            grace: config.shutdown_timeout,
        })
    }

    /// Where requests come in.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.proxy.address()
    }

    /// Where the operator looks and acts.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Server::address)
    }

    /// The engine that decides.
    #[must_use]
    pub fn engine(&self) -> &Engine<String> {
        self.shared.engine()
    }

    /// What became of a target's whole calls: those to a target with a deadline, a probe timeout, retries or a fallback, and those that brought a
    /// deadline.
    #[must_use]
    pub fn calls(&self, target: &str) -> Option<CallCounts> {
        self.shared.calls(target)
    }

    /// The requests in the process: those that count against `max_concurrent`.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.shared.cap().inside()
    }

    /// Puts another configuration in force: routes, targets, policies, the cap, the token. Targets keep their state, calls
    /// in flight go on. The listeners stay where they are.
    ///
    /// # Errors
    ///
    /// The engine has no room for the targets.
    pub fn reload(&mut self, config: &Config) -> io::Result<()> {
        let listeners = (config.listen, config.admin, limits(config));
        if listeners != self.listeners {
            tracing::warn!("another listen, admin, header_timeout or write_timeout takes effect at the next start");
        }
        if config.otlp != self.otlp {
            tracing::warn!("another [otlp] takes effect at the next start");
        }
        let public = self.admin_address().is_some_and(|address| !address.ip().to_canonical().is_loopback());
        if public && !has_token(config) {
            return Err(io::Error::other("the admin listener isn't on loopback and the new file has no admin_token"));
        }
        self.shared.apply(config).map_err(io::Error::other)?;
        self.grace = config.shutdown_timeout;
        Ok(())
    }

    /// Stops accepting, lets what runs finish within `shutdown_timeout`, and cuts the rest. Returns how many
    /// connections were cut.
    pub async fn shutdown(self) -> usize {
        self.shared.start_draining();
        let cut = self.proxy.shutdown(self.grace).await;
        let metrics = async {
            #[cfg(feature = "otlp")]
            if let Some(metrics) = self.metrics {
                metrics.shutdown().await;
            }
        };
        tokio::join!(metrics, self.shared.webhooks().shutdown());
        if let Some(admin) = self.admin {
            admin.shutdown(ADMIN_GRACE).await;
        }
        cut
    }
}

fn limits(config: &Config) -> Limits {
    Limits { head: config.header_timeout, write: config.write_timeout, narrow: false }
}

fn has_token(config: &Config) -> bool {
    config.admin_token.as_ref().is_some_and(|token| !token.is_empty())
}

async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .map_err(|error| io::Error::new(error.kind(), format!("can't listen on {address}: {error}")))
}
