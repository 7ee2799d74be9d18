//! What the tests share: gateways from a few lines of configuration, a client, raw sockets, and patience.
#![allow(dead_code, clippy::unwrap_used, unreachable_pub)]

pub mod process;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use portcullis_gateway::demo::upstreams::Upstream;
use portcullis_gateway::{Config, Gateway};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

/// Longer than anything takes on a machine that is busy with other things.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a gateway on free ports. `text` begins with what belongs to the top of the file.
pub async fn gateway(text: &str) -> Gateway {
    let text = format!("listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{text}");
    let config: Config = text.parse().unwrap_or_else(|error| panic!("{error}\nin\n{text}"));
    Gateway::start(config).await.unwrap()
}

/// One target `t` behind every path, with the given lines in its table.
pub async fn gateway_to(upstream: SocketAddr, lines: &str) -> Gateway {
    gateway(&single(upstream, lines)).await
}

/// The text for one target `t` behind every path.
pub fn single(upstream: SocketAddr, lines: &str) -> String {
    format!("[[route]]\npath = \"/\"\ntarget = \"t\"\n[target.t]\nupstream = [\"http://{upstream}\"]\n{lines}\n")
}

/// An upstream of the demonstration.
pub async fn upstream() -> Upstream {
    Upstream::start().await.unwrap()
}

/// An answer that has been read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub took: Duration,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {:?}", self.body))
    }

    /// The wire code, or the empty string if the answer is an upstream's.
    pub fn code(&self) -> String {
        let json: Option<Value> = serde_json::from_slice(&self.body).ok();
        json.and_then(|json| json.get("code")?.as_str().map(str::to_owned)).unwrap_or_default()
    }

    pub fn reason(&self) -> String {
        self.json()["reason"].as_str().unwrap_or_default().to_owned()
    }

    pub fn retry_after(&self) -> u64 {
        self.headers["retry-after"].to_str().unwrap().parse().unwrap()
    }
}

pub fn client() -> Client<HttpConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new()).build_http()
}

pub fn h2_client() -> Client<HttpConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new()).http2_only(true).build_http()
}

pub async fn send(client: &Client<HttpConnector, Full<Bytes>>, request: Request<Full<Bytes>>) -> Answer {
    let begin = Instant::now();
    let work = async {
        let (head, body) = client.request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: head.status, headers: head.headers, body, took: begin.elapsed() }
    };
    tokio::time::timeout(PATIENCE, work).await.expect("an answer")
}

pub fn request(method: Method, address: SocketAddr, path: &str) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri(format!("http://{address}{path}")).body(Full::default()).unwrap()
}

pub async fn get(address: SocketAddr, path: &str) -> Answer {
    send(&client(), request(Method::GET, address, path)).await
}

pub async fn post(address: SocketAddr, path: &str) -> Answer {
    send(&client(), request(Method::POST, address, path)).await
}

/// A target as the admin listener shows it.
pub async fn target(gateway: &Gateway, name: &str) -> Value {
    let answer = get(gateway.admin_address().unwrap(), "/targets").await;
    let all = answer.json();
    let found = all.as_array().unwrap().iter().find(|target| target["name"] == name).cloned();
    found.unwrap_or_else(|| panic!("no {name} in {all}"))
}

pub async fn state(gateway: &Gateway, name: &str) -> String {
    target(gateway, name).await["state"].as_str().unwrap().to_owned()
}

/// The log of a target as pairs of states.
pub async fn transitions(gateway: &Gateway, name: &str) -> Vec<(String, String)> {
    let log = get(gateway.admin_address().unwrap(), "/transitions").await.json();
    let own = log["transitions"].as_array().unwrap().iter().filter(|entry| entry["target"] == name);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    own.map(|entry| (text(&entry["from"]), text(&entry["to"]))).collect()
}

/// Waits until something holds.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < end, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until the gateway and its target hold nothing.
pub async fn until_idle(gateway: &Gateway, name: &str) {
    until("nothing in flight", async || {
        gateway.in_flight() == 0 && gateway.engine().snapshot(name).unwrap().in_flight == 0
    })
    .await;
}

/// A connection without a client's manners.
pub struct Raw {
    stream: TcpStream,
    seen: Vec<u8>,
}

impl Raw {
    pub async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    pub fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        Self { stream, seen: Vec::new() }
    }

    pub async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Like `send`, to a peer that may be gone.
    pub async fn try_send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads until the text has come, and returns everything up to its end.
    pub async fn read_to(&mut self, text: &str) -> String {
        let mut buffer = [0; 4096];
        loop {
            if let Some(at) = find(&self.seen, text.as_bytes()) {
                let rest = self.seen.split_off(at + text.len());
                return String::from_utf8_lossy(&std::mem::replace(&mut self.seen, rest)).into_owned();
            }
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut buffer)).await;
            let read = read.unwrap_or_else(|_| panic!("no {text:?} came, only {:?}", self.text())).unwrap_or(0);
            assert!(read > 0, "closed before {text:?}, after {:?}", self.text());
            self.seen.extend_from_slice(&buffer[..read]);
        }
    }

    /// The next bytes, as many as that.
    pub async fn take(&mut self, length: usize) -> Vec<u8> {
        let mut buffer = [0; 4096];
        while self.seen.len() < length {
            let read = tokio::time::timeout(PATIENCE, self.stream.read(&mut buffer)).await;
            let read = read.expect("more comes").unwrap_or(0);
            assert!(read > 0, "closed {} bytes early", length - self.seen.len());
            self.seen.extend_from_slice(&buffer[..read]);
        }
        let rest = self.seen.split_off(length);
        std::mem::replace(&mut self.seen, rest)
    }

    /// The head of a message.
    pub async fn head(&mut self) -> String {
        self.read_to("\r\n\r\n").await
    }

    /// The head of the next message; none if the peer closes instead.
    pub async fn next_head(&mut self) -> Option<String> {
        let mut buffer = [0; 4096];
        while find(&self.seen, b"\r\n\r\n").is_none() {
            let read = self.stream.read(&mut buffer).await.unwrap_or(0);
            if read == 0 {
                return None;
            }
            self.seen.extend_from_slice(&buffer[..read]);
        }
        Some(self.head().await)
    }

    /// Reads until the peer closes, and returns everything.
    pub async fn read_all(&mut self) -> String {
        let mut rest = Vec::new();
        let read = tokio::time::timeout(PATIENCE, self.stream.read_to_end(&mut rest)).await;
        // A reset ends it as well.
        let _ = read.expect("the peer closes");
        self.seen.append(&mut rest);
        self.text()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// Ends the connection with a reset.
    pub fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

/// An upstream that does with each connection what it is told.
pub async fn scripted<F, Fut>(script: F) -> SocketAddr
where
    F: Fn(Raw) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(script(Raw::over(stream)));
        }
    });
    address
}

/// A port on which nobody listens, for as long as the socket is held.
pub fn nobody() -> (tokio::net::TcpSocket, SocketAddr) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// An upstream that answers each request by a function of its number, from 0, and its head. No answer, if it has none to give.
pub struct Answering {
    pub address: SocketAddr,
    heads: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl Answering {
    pub async fn start(answer: impl Fn(usize, &str) -> Option<String> + Send + Sync + 'static) -> Self {
        let heads = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let (seen, answer) = (std::sync::Arc::clone(&heads), std::sync::Arc::new(answer));
        let address = scripted(move |mut raw| {
            let (seen, answer) = (std::sync::Arc::clone(&seen), std::sync::Arc::clone(&answer));
            async move {
                while let Some(head) = raw.next_head().await {
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(head.to_ascii_lowercase());
                        seen.len() - 1
                    };
                    match answer(number, &head) {
                        Some(answer) => raw.send(&answer).await,
                        None => drop(raw.read_all().await),
                    }
                }
            }
        })
        .await;
        Self { address, heads }
    }

    /// The heads of all requests, in lower case.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// The text of an answer with these header lines.
pub fn answer(status: &str, lines: &str, body: &str) -> Option<String> {
    Some(format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{lines}\r\n{body}", body.len()))
}

/// A field of a request's head.
pub fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
