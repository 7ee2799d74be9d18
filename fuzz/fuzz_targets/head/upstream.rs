//! Upstreams that believe nothing: each request is read strictly, held to what a gateway may send, and kept for the comparison.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::strict::{self, Body, Head};

/// The body of every answer.
pub const SAYS: &[u8] = b"ok\n";

/// The host that has a route to itself.
pub const OWN_HOST: &str = "named.test";

/// What is meant for the gateway alone, and never passed on.
const NEVER: [&str; 8] = [
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "proxy-authorization",
    "proxy-authenticate",
    "expect",
];

/// A target of the gateway, by what it does with its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Has a host of its own; keeps its connections.
    Named,
    /// Keeps its connections.
    Core,
    /// Answers at the head, whatever body follows.
    Early,
    /// Closes after each answer.
    Any,
}

/// A request that has come.
#[derive(Debug)]
pub struct Seen {
    pub head: Head,
    /// None while it isn't whole.
    pub body: Option<Body>,
    pub answered: bool,
}

/// What has come since it was cleared.
#[derive(Debug, Default)]
pub struct Log {
    seen: Mutex<Vec<Seen>>,
    over: Notify,
}

impl Log {
    pub fn seen(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().expect("a panic ends the process")
    }

    /// Forgets everything and ends all connections.
    pub fn clear(&self) {
        self.seen().clear();
        self.over.notify_waiters();
    }
}

impl Target {
    pub const ALL: [Self; 4] = [Self::Named, Self::Core, Self::Early, Self::Any];

    /// Opens a listener and serves it for good.
    pub async fn start(self, log: &Arc<Log>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let log = Arc::clone(log);
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.expect("a connection");
                // The end by a reset leaves no port in TIME_WAIT.
                socket.set_zero_linger().expect("a socket");
                tokio::spawn(self.serve(socket, address, Arc::clone(&log)));
            }
        });
        address
    }

    async fn serve(self, mut socket: TcpStream, own: SocketAddr, log: Arc<Log>) {
        let mut bytes = Vec::new();
        loop {
            let Some(head) = read(&mut socket, &mut bytes, &log, strict::head).await else {
                assert!(bytes.is_empty(), "left over: {}", bytes.escape_ascii());
                return;
            };
            self.check(&head, own);
            let (framing, method) = (head.framing, head.method.clone());
            let at = log.seen().len();
            log.seen().push(Seen { head, body: None, answered: false });
            if self == Self::Early {
                self.answer(&mut socket, &method).await;
                log.seen()[at].answered = true;
            }
            // A client that breaks off its body ends the connection.
            let Some(body) = read(&mut socket, &mut bytes, &log, |bytes| strict::body(framing, bytes)).await else {
                return;
            };
            // They could say again what only the head may say.
            assert!(body.trailers.is_empty(), "{body:?}");
            log.seen()[at].body = Some(body);
            if self != Self::Early {
                self.answer(&mut socket, &method).await;
                log.seen()[at].answered = true;
            }
        }
    }

    async fn answer(self, socket: &mut TcpStream, method: &str) {
        let close = if self == Self::Any { "connection: close\r\n" } else { "" };
        let mut answer = format!("HTTP/1.1 200 OK\r\n{close}content-length: {}\r\n\r\n", SAYS.len()).into_bytes();
        if method != "HEAD" {
            answer.extend_from_slice(SAYS);
        }
        // The gateway may be gone.
        let _ = socket.write_all(&answer).await;
    }

    /// What holds for each request of the gateway, whatever it was made from.
    fn check(self, head: &Head, own: SocketAddr) {
        let only = |name| head.only(name).unwrap_or_else(|| panic!("not one {name} in {head:?}"));
        assert_eq!((head.minor, head.fault, only("host")), (1, None, own.to_string().as_str()), "{head:?}");
        assert!(head.connection().iter().all(|token| token == "keep-alive"), "{head:?}");
        for name in NEVER {
            assert!(head.all(name).next().is_none(), "{name} in {head:?}");
        }
        assert_eq!(only("x-forwarded-proto"), "http", "{head:?}");
        assert_eq!(only("x-forwarded-for").rsplit(", ").next(), Some("127.0.0.1"), "{head:?}");
        assert!(only("via").ends_with(" portcullis"), "{head:?}");
        let host = head.only("x-forwarded-host").unwrap_or_default().to_ascii_lowercase();
        let is_named = host.split(':').next() == Some(OWN_HOST);
        let fits = match self {
            Self::Named => is_named,
            Self::Early => !is_named && head.target.starts_with("/core/early/"),
            Self::Core => !is_named && head.target.starts_with("/core/") && !head.target.starts_with("/core/early/"),
            Self::Any => !is_named && head.target.starts_with('/') && !head.target.starts_with("/core/"),
        };
        assert!(fits && head.all("x-forwarded-host").count() <= 1, "{head:?} at {self:?}");
    }
}

/// Reads until `parse` has what it wants; none if the connection ends before.
async fn read<T>(
    socket: &mut TcpStream,
    bytes: &mut Vec<u8>,
    log: &Log,
    parse: impl Fn(&[u8]) -> strict::Progress<T>,
) -> Option<T> {
    loop {
        match parse(bytes) {
            Ok(Some((read, length))) => {
                bytes.drain(..length);
                return Some(read);
            }
            Ok(None) => {}
            Err(refusal) => panic!("{refusal:?}: {}", bytes.escape_ascii()),
        }
        super::idle::moved();
        tokio::select! {
            read = socket.read_buf(bytes) => if read.unwrap_or(0) == 0 { return None },
            () = log.over.notified() => return None,
        }
    }
}
