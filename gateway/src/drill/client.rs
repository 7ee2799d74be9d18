//! The admin listener of a gateway, as its client sees it.

use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Longer than a listener takes that only answers what it knows.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a drill could not be held.
#[derive(Debug)]
pub enum Error {
    /// The admin listener can't be reached, or doesn't answer like one.
    Unreachable(String),
    /// It refuses.
    Refused(String),
    /// The system refuses something.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the admin listener can't be asked: {why}"),
            Self::Refused(why) => write!(f, "the gateway refuses: {why}"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// One target at the admin listener.
#[derive(Debug)]
pub(super) struct Admin {
    client: Client<HttpConnector, Empty<Bytes>>,
    target: String,
    token: Option<header::HeaderValue>,
}

impl Admin {
    pub(super) fn new(address: &str, token: Option<&str>, target: &str) -> Result<Self, Error> {
        let token = token.map(|token| format!("Bearer {token}").try_into());
        let mut token: Option<header::HeaderValue> =
            token.transpose().map_err(|_| Error::Refused("the token is none that a header can hold".into()))?;
        if let Some(token) = &mut token {
            token.set_sensitive(true);
        }
        let target = format!("http://{address}/targets/{}", utf8_percent_encode(target, NON_ALPHANUMERIC));
        Ok(Self { client: Client::builder(TokioExecutor::new()).build_http(), target, token })
    }

    /// Begins a drill; the target as it is from then on.
    pub(super) async fn begin(&self, length: Duration) -> Result<Value, Error> {
        self.ask(Method::POST, &format!("/drill?seconds={}", length.as_secs())).await
    }

    pub(super) async fn look(&self) -> Result<Value, Error> {
        self.ask(Method::GET, "").await
    }

    /// Ends the drill and releases the target, unless somebody has ended it.
    pub(super) async fn end(&self) -> Result<Value, Error> {
        self.ask(Method::POST, "/end-drill").await
    }

    async fn ask(&self, method: Method, rest: &str) -> Result<Value, Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{rest}", self.target));
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, token);
        }
        let request = request.body(Empty::new()).map_err(|error| Error::Unreachable(error.to_string()))?;
        let answer = async {
            let (head, body) = self.client.request(request).await.map_err(|error| deepest(&error))?.into_parts();
            let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
            let body: Value = serde_json::from_slice(&body).map_err(|_| format!("{} without JSON", head.status))?;
            Ok::<_, String>((head.status, body))
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        let (status, body) = answer
            .map_err(|_| Error::Unreachable(format!("no answer within {PATIENCE:?}")))?
            .map_err(Error::Unreachable)?;
        if status.is_success() {
            return Ok(body);
        }
        let why = body.get("error").and_then(Value::as_str).unwrap_or("no reason given");
        Err(Error::Refused(format!("{why} ({})", status.as_u16())))
    }
}

/// The last cause says most.
fn deepest(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |&error| error.source()).last().map(ToString::to_string).unwrap_or_default()
}
