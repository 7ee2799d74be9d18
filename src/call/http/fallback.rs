//! The fallback around all else, over HTTP: marked in a header, counted, and never hiding its own failure.

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderValue, Response, header};

use super::super::FALLBACK_HEADER;
use super::super::counters::Counters;
use super::super::error::CallError;
use super::super::fallback::{BoxError, Fallback, FallbackKind, NoFallback};
use super::answer::{CallBody, Keeper};
use super::layer::{Failure, Options};
use super::service::whole;
use super::stale;
use crate::engine::{Engine, Key};

/// What stands in for one call's failures.
pub(super) struct Fallbacks<'a, K: Key> {
    pub(super) policy: &'a Fallback,
    pub(super) options: &'a Options,
    pub(super) counters: &'a Counters,
    pub(super) engine: &'a Engine<K>,
}

impl<K: Key> Fallbacks<'_, K> {
    /// The name under which the answer may be kept, where the policy asks for that.
    pub(super) fn name(&self, key: &K, request: &Parts) -> Option<String> {
        matches!(self.policy, Fallback::Stale { .. }).then(|| stale::name(key, request)).flatten()
    }

    /// The target's good answer, copied on its way if it is to be kept.
    pub(super) fn good<B>(&self, response: Response<B>, name: Option<String>) -> Response<CallBody<B>> {
        let name = name.filter(|_| stale::may_keep(response.status(), response.headers()));
        let keeper = name.map(|name| {
            let length = response.headers().get(header::CONTENT_LENGTH);
            Keeper {
                store: self.options.kept.clone(),
                name,
                headers: stale::lasting(&response),
                came: self.engine.now(),
                body: BytesMut::new(),
                limit: self.options.most_of_one,
                length: length.and_then(|length| length.to_str().ok()?.parse().ok()),
            }
        });
        response.map(|body| CallBody::of_target(body, keeper))
    }

    /// What the caller gets instead of a failure, or the failure itself.
    pub(super) async fn instead_of<B, E>(
        &self,
        request: &Parts,
        name: Option<String>,
        mut error: CallError<E>,
        bad: Option<Response<B>>,
    ) -> Result<Response<CallBody<B>>, CallError<E>> {
        let said = match self.policy {
            _ if error.is_for_nobody() => None,
            Fallback::Refuse => None,
            Fallback::Value(value) => {
                let mut response = Response::new(Bytes::copy_from_slice(value.body.as_bytes()));
                // Both were checked when the policy was built.
                *response.status_mut() = http::StatusCode::from_u16(value.status).unwrap_or_default();
                if let Ok(content_type) = HeaderValue::try_from(&*value.content_type) {
                    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
                }
                Some(Ok((response, FallbackKind::Value)))
            }
            Fallback::Function => {
                Some(self.function(request, &error).await.map(|answer| (answer, FallbackKind::Function)))
            }
            Fallback::Stale { max_age } => Some(self.stale(name.as_deref(), *max_age)),
        };
        let failed = match said {
            None => None,
            Some(Ok((response, kind))) => {
                self.counters.fell_back(&Ok(kind));
                let mut response = whole(response);
                if let Ok(mark) = HeaderValue::try_from(kind.to_string()) {
                    response.headers_mut().insert(FALLBACK_HEADER, mark);
                }
                return Ok(response);
            }
            Some(Err(failed)) => {
                self.counters.fell_back(&Err(()));
                Some(failed)
            }
        };
        let mut bad = bad.map(|bad| bad.map(|body| CallBody::of_target(body, None)));
        match (&mut bad, failed) {
            (Some(bad), Some(_)) => {
                bad.headers_mut().insert(FALLBACK_HEADER, HeaderValue::from_static("failed"));
            }
            (_, failed) => error.fallback = failed,
        }
        bad.ok_or(error)
    }

    fn function<E>(
        &self,
        request: &Parts,
        error: &CallError<E>,
    ) -> impl Future<Output = Result<Response<Bytes>, BoxError>> + Send + use<K, E> {
        let failure = Failure {
            code: error.code(),
            reason: error.reason(),
            attempts: error.attempts(),
            retry_after: error.retry_after(),
        };
        let answering = self.options.function.as_ref().map(|function| function(request, failure));
        async move {
            match answering {
                Some(answering) => answering.await,
                None => Err(NoFallback::NoFunction.into()),
            }
        }
    }

    fn stale(
        &self,
        name: Option<&str>,
        max_age: std::time::Duration,
    ) -> Result<(Response<Bytes>, FallbackKind), BoxError> {
        let kept = name.and_then(|name| self.options.kept.get(name, max_age, self.engine.now()));
        let (kept, age) = kept.ok_or(NoFallback::NothingKept)?;
        let mut response = Response::new(kept.body);
        *response.headers_mut() = kept.headers;
        // RFC 9111, 5.1: in whole seconds.
        response.headers_mut().insert(header::AGE, age.as_secs().into());
        Ok((response, FallbackKind::Stale { age }))
    }
}
