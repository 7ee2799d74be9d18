//! Upstreams to try a gateway on: they answer well, badly, late or never, and count what reaches them.
//!
//! The last part of the path decides: `/fast`, `/slow` (300 ms, or `/slow?ms=2000`), `/always500`, `/bad` (400), `/hang`
//! (never), `/count` (the counters as JSON, not counted itself).

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

pub use super::meter::Counts;
use super::meter::Meter;
use crate::reply::json as json_response;

/// How long `/slow` takes.
pub const SLOW: Duration = Duration::from_millis(300);

/// How an upstream is today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It answers what the path asks for.
    Healthy,
    /// It answers, each time after so long.
    Slow(Duration),
    /// It accepts and never answers.
    Hanging,
    /// It answers at once that it can't: 503.
    Failing,
    /// Nobody listens; connections are refused.
    Refusing,
}

/// An upstream on a free loopback port.
#[derive(Debug)]
pub struct Upstream {
    address: SocketAddr,
    meter: Meter,
    mode: watch::Sender<Mode>,
    listening: Option<JoinHandle<()>>,
    // Bound but not listening: nobody else gets the port while connections are refused.
    _claim: TcpSocket,
}

impl Upstream {
    /// Starts one that is healthy.
    ///
    /// # Errors
    ///
    /// No loopback port could be bound.
    pub async fn start() -> io::Result<Self> {
        let claim = bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = claim.local_addr()?;
        let (mode, _) = watch::channel(Mode::Refusing);
        let mut upstream = Self { address, meter: Meter::default(), mode, listening: None, _claim: claim };
        upstream.set_mode(Mode::Healthy).await?;
        Ok(upstream)
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL, as a configuration wants it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it counted.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.meter.counts()
    }

    /// Begins to count anew.
    pub fn restart_counts(&self) {
        self.meter.restart();
    }

    pub(crate) fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// Changes how it is. Calls that hang go on hanging; refusing cuts every connection.
    ///
    /// # Errors
    ///
    /// It can't listen again.
    pub async fn set_mode(&mut self, mode: Mode) -> io::Result<()> {
        self.mode.send_replace(mode);
        if mode == Mode::Refusing {
            if let Some(task) = self.listening.take() {
                task.abort();
                // Awaited, since the listener is only gone when its task is.
                let _ = task.await;
            }
        } else if self.listening.is_none() {
            let listener = bound(self.address)?.listen(1_024)?;
            self.listening = Some(tokio::spawn(listen(listener, self.meter.clone(), self.mode.subscribe())));
        }
        Ok(())
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if let Some(task) = &self.listening {
            task.abort();
        }
    }
}

fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    // Shared between the claim and the listener.
    #[cfg(unix)]
    socket.set_reuseport(true)?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn listen(listener: TcpListener, meter: Meter, mode: watch::Receiver<Mode>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => drop(connections.spawn(serve(socket, meter.clone(), mode.clone()))),
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(socket: TcpStream, meter: Meter, mode: watch::Receiver<Mode>) {
    let _ = socket.set_nodelay(true);
    let service = service_fn(move |request| {
        let (meter, mode) = (meter.clone(), *mode.borrow());
        async move { Ok::<_, Infallible>(answer(&request, &meter, mode).await) }
    });
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service);
    // Clients that hang up are a part of the play.
    let _ = connection.await;
}

async fn answer<B>(request: &Request<B>, meter: &Meter, mode: Mode) -> Response<Full<Bytes>> {
    let asked = request.uri().path().rsplit('/').next().unwrap_or_default();
    if asked == "count" {
        let counts = meter.counts();
        let counts = json!({
            "calls": counts.calls,
            "in_flight": counts.in_flight,
            "max_concurrent": counts.max_concurrent,
        });
        return json_response(StatusCode::OK, &counts);
    }
    // Dropped with this future if the client leaves.
    let _call = meter.enter();
    match mode {
        Mode::Slow(wait) => tokio::time::sleep(wait).await,
        Mode::Failing => return text(StatusCode::SERVICE_UNAVAILABLE, "out of order\n"),
        Mode::Hanging => std::future::pending().await,
        Mode::Healthy | Mode::Refusing => {}
    }
    if asked == "hang" {
        std::future::pending::<()>().await;
    }
    match asked {
        "fast" => text(StatusCode::OK, "fast\n"),
        "slow" => {
            let millis = request.uri().query().and_then(|query| query.strip_prefix("ms=")?.parse().ok());
            tokio::time::sleep(millis.map_or(SLOW, Duration::from_millis)).await;
            text(StatusCode::OK, "slow\n")
        }
        "always500" => text(StatusCode::INTERNAL_SERVER_ERROR, "out of order\n"),
        "bad" => text(StatusCode::BAD_REQUEST, "insufficient balance\n"),
        _ => text(StatusCode::NOT_FOUND, "no such page\n"),
    }
}

fn text(status: StatusCode, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response
}
