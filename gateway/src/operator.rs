//! The admin listener of a gateway, as its client sees it.

use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use crate::upstream::causes;

/// Longer than a listener takes that only answers what it knows.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why the admin listener was of no use.
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

/// The admin listener of a gateway.
#[derive(Clone, Debug)]
pub(crate) struct Operator {
    client: Client<HttpConnector, Empty<Bytes>>,
    base: String,
    token: Option<header::HeaderValue>,
}

/// The path of a target, whatever it is called.
pub(crate) fn path(target: &str) -> String {
    format!("/targets/{}", utf8_percent_encode(target, NON_ALPHANUMERIC))
}

impl Operator {
    pub(crate) fn new(address: &str, token: Option<&str>) -> Result<Self, Error> {
        let token = token.map(|token| format!("Bearer {token}").try_into());
        let mut token: Option<header::HeaderValue> =
            token.transpose().map_err(|_| Error::Refused("the token is none that a header can hold".into()))?;
        if let Some(token) = &mut token {
            token.set_sensitive(true);
        }
        let client = Client::builder(TokioExecutor::new()).build_http();
        Ok(Self { client, base: format!("http://{address}"), token })
    }

    /// Asks for what is there at once.
    pub(crate) async fn ask(&self, method: Method, path: &str) -> Result<Value, Error> {
        let answer = async {
            let (head, body) = self.send(method, path).await?.into_parts();
            let body = body.collect().await.map_err(|error| Error::Unreachable(error.to_string()))?.to_bytes();
            let body = serde_json::from_slice(&body);
            let body: Value = body.map_err(|_| Error::Unreachable(format!("{} without JSON", head.status)))?;
            Ok((head.status, body))
        };
        let (status, body) = in_time(answer).await?;
        if status.is_success() {
            return Ok(body);
        }
        let why = body.get("error").and_then(Value::as_str).unwrap_or("no reason given");
        Err(Error::Refused(format!("{why} ({})", status.as_u16())))
    }

    /// Begins to read what comes by and by.
    pub(crate) async fn open(&self, path: &str) -> Result<Incoming, Error> {
        let (head, body) = in_time(self.send(Method::GET, path)).await?.into_parts();
        match head.status {
            status if status.is_success() => Ok(body),
            StatusCode::UNAUTHORIZED => {
                Err(Error::Refused("it wants its token: --token or PORTCULLIS_ADMIN_TOKEN".into()))
            }
            status => Err(Error::Refused(format!("it answered {status}"))),
        }
    }

    async fn send(&self, method: Method, path: &str) -> Result<Response<Incoming>, Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, token);
        }
        let request = request.body(Empty::new()).map_err(|error| Error::Unreachable(error.to_string()))?;
        self.client.request(request).await.map_err(|error| Error::Unreachable(causes(&error)))
    }
}

async fn in_time<T>(answer: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let late = |_| Error::Unreachable(format!("no answer within {PATIENCE:?}"));
    tokio::time::timeout(PATIENCE, answer).await.map_err(late)?
}
