//! A listener and its connections: accepts, serves HTTP/1.1 and HTTP/2, and stops without cutting what runs.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::headers;
use crate::paced::Paced;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Answers requests. The address of the client comes as a header has it, made once per connection.
pub(crate) trait Handler: Clone + Send + Sync + 'static {
    /// The body of its answers.
    type Body: Body<Data: Send, Error: Into<BoxError>> + Send + 'static;

    /// Answers one request; dropped if the client goes away meanwhile.
    fn handle(
        self,
        request: Request<Incoming>,
        client: HeaderValue,
    ) -> impl Future<Output = Response<Self::Body>> + Send + 'static;
}

/// How long a client may take for its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// For the head of a request.
    pub(crate) head: Duration,
    /// Without taking anything of an answer.
    pub(crate) write: Duration,
    /// Whether it is for few clients with small requests: HTTP/1.1 only, whose idle connections end with the time for a head; at most
    /// [`NARROW_CONNECTIONS`] at once, and [`NARROW_HEAD`] for a head.
    pub(crate) narrow: bool,
}

/// The most connections of a narrow listener; further ones are closed at once.
const NARROW_CONNECTIONS: usize = 128;

/// The most bytes of a request's head at a narrow listener.
const NARROW_HEAD: usize = 16 * 1024;

/// A listener at work. Dropping it ends its connections at once.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<Duration>,
    task: JoinHandle<usize>,
    // Ends the task when the server is dropped without a shutdown.
    _abort: AbortOnDrop,
}

#[derive(Debug)]
struct AbortOnDrop(tokio::task::AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Server {
    /// Serves the listener.
    pub(crate) fn start(listener: TcpListener, limits: Limits, handler: impl Handler) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(run(listener, limits, handler, stopped));
        let abort = AbortOnDrop(task.abort_handle());
        Ok(Self { address, stop, task, _abort: abort })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, gives what runs this long, then cuts it. Returns the number of connections that were cut.
    pub(crate) async fn shutdown(self, grace: Duration) -> usize {
        // The task only ends by this message or with the runtime.
        let _ = self.stop.send(grace);
        self.task.await.unwrap_or(0)
    }
}

async fn run(
    listener: TcpListener,
    limits: Limits,
    handler: impl Handler,
    mut stopped: oneshot::Receiver<Duration>,
) -> usize {
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let grace = loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    while connections.try_join_next().is_some() {}
                    if limits.narrow && connections.len() >= NARROW_CONNECTIONS {
                        tracing::warn!(%peer, "closed: {NARROW_CONNECTIONS} connections are open");
                        continue;
                    }
                    connections.spawn(serve(socket, peer, limits, handler.clone(), graceful.watcher()));
                }
                Err(error) => accept_failed(&error).await,
            },
            // Reaped as they end, so that the set holds only those that live.
            Some(_) = connections.join_next() => {}
            grace = &mut stopped => break grace.unwrap_or_default(),
        }
    };
    drop(listener);
    if tokio::time::timeout(grace, graceful.shutdown()).await.is_ok() {
        return 0;
    }
    while connections.try_join_next().is_some() {}
    let cut = connections.len();
    connections.shutdown().await;
    cut
}

/// A client that was gone before it was accepted is no reason to wait; a process without free descriptors is.
async fn accept_failed(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "no connection could be accepted");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn serve<H: Handler>(socket: TcpStream, peer: SocketAddr, limits: Limits, handler: H, watcher: Watcher) {
    // Small answers shouldn't wait for the acknowledgement of earlier ones.
    let _ = socket.set_nodelay(true);
    let asked = Arc::new(AtomicBool::new(false));
    let service = {
        let (asked, client) = (Arc::clone(&asked), headers::address(peer.ip()));
        service_fn(move |request: Request<Incoming>| {
            asked.store(true, Ordering::Relaxed);
            let answer = handler.clone().handle(request, client.clone());
            async move { Ok::<_, Infallible>(answer.await) }
        })
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    if limits.narrow {
        builder = builder.http1_only();
        builder.http1().max_buf_size(NARROW_HEAD);
    }
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(256);
    builder.http2().keep_alive_interval(Duration::from_secs(30)).keep_alive_timeout(Duration::from_secs(20));
    let connection = builder.serve_connection(TokioIo::new(Paced::new(socket, limits.write)), service).into_owned();
    let mut connection = std::pin::pin!(watcher.watch(connection));
    // hyper's own limit begins once it knows the version, and doesn't cover HTTP/2.
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = first_request_is_late(limits.head, &asked) => return,
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}

/// Returns if no request has come within the limit, and never if one has.
async fn first_request_is_late(limit: Duration, asked: &AtomicBool) {
    tokio::time::sleep(limit).await;
    if asked.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
}
