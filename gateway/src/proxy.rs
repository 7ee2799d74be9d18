//! The way of one request: route, cap, admission, attempt, answer.

use std::sync::Arc;

use bytes::Bytes;
use http::header::UPGRADE;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use tracing::{Instrument as _, Span};

use crate::body::{Held, Upload};
use crate::cap::Place;
use crate::headers;
use crate::reply::Reply;
use crate::route;
use crate::server::Handler;
use crate::shared::Shared;
use crate::stack::Answer;
use crate::trace::Traced;
use crate::uploading;
use crate::upstream::Stream;

/// Answers clients.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    shared: Arc<Shared>,
}

impl Proxy {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

impl Handler for Proxy {
    type Body = Either<Held<Answer, (Place, Traced)>, Full<Bytes>>;

    async fn handle(self, request: Request<Incoming>, client: HeaderValue) -> Response<Self::Body> {
        let traced = Traced::begin(&request);
        match traced.span() {
            None => self.answer(request, &client, &traced).await.unwrap_or_else(|own| own.map(Either::Right)),
            // Boxed: the others would be moved with room for it.
            Some(span) => Box::pin(self.told(request, &client, &traced).instrument(span.clone())).await,
        }
    }
}

impl Proxy {
    /// Answers within a span.
    async fn told(
        &self,
        request: Request<Incoming>,
        client: &HeaderValue,
        traced: &Traced,
    ) -> Response<<Self as Handler>::Body> {
        let answer = self.answer(request, client, traced).await.unwrap_or_else(|own| own.map(Either::Right));
        traced.answered(&answer);
        answer
    }

    /// The upstream's answer, or else the gateway's own.
    async fn answer(
        &self,
        mut request: Request<Incoming>,
        client: &HeaderValue,
        traced: &Traced,
    ) -> Result<Response<<Self as Handler>::Body>, Response<Full<Bytes>>> {
        let own = |reply: Reply<'_>| {
            traced.replied(&reply);
            reply.into_response()
        };
        if let Some(refusal) = refusal(&request) {
            return Err(own(refusal));
        }
        let Some(way) = route::find(self.shared.live().routes(), &request).cloned() else {
            return Err(own(Reply::no_route()));
        };
        let target = way.stack.name();
        traced.routed(&way.stack, &mut request);
        let cap = self.shared.cap();
        let Some(place) = cap.enter() else {
            return Err(own(Reply::full(target, cap.limit())));
        };
        let mut request = request.map(Upload::new);
        headers::prepare(&mut request, client);
        if way.stream {
            request.extensions_mut().insert(Stream);
        }
        let answer = match request.body().progress() {
            None => way.stack.call(request).await,
            Some(progress) => {
                let stack = Arc::clone(&way.stack);
                let span = traced.span().cloned().unwrap_or_else(Span::none);
                uploading::finish(progress, async move { stack.call(request).await }.instrument(span)).await
            }
        };
        match answer {
            Ok(response) => Ok(response.map(|body| Either::Left(Held::new(body, (place, traced.clone()))))),
            Err(why) => {
                tracing::debug!(target_name = target, ?why, "a call has no answer");
                Err(own(Reply::unanswered(target, &why)))
            }
        }
    }
}

/// Why a request isn't even looked up.
fn refusal<B>(request: &Request<B>) -> Option<Reply<'static>> {
    if asks_for_another_protocol(request) {
        Some(Reply::no_upgrade())
    } else if !headers::names_one_host(request) {
        Some(Reply::no_host())
    } else if !headers::is_plain_or_chunked(request.headers()) {
        Some(Reply::no_coding())
    } else {
        None
    }
}

/// Tunnels, and upgrades but the one to HTTP/2, which a client offers and a server may pass over.
fn asks_for_another_protocol<B>(request: &Request<B>) -> bool {
    let upgrades = |value: &http::HeaderValue| !value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"h2c");
    request.method() == Method::CONNECT || request.headers().get_all(UPGRADE).iter().any(upgrades)
}
