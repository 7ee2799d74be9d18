//! The service: admits in `call`, before the inner service sees anything.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower_service::Service;

use super::classify::Classify;
use super::error::Error;
use super::future::AdmissionFuture;
use super::key::KeyFor;
use crate::engine::{Engine, Key};

/// A service whose requests are admitted first and settled after; see [`AdmissionLayer`](super::AdmissionLayer).
#[derive(Clone)]
pub struct Admission<S, F, C, K: Key = String> {
    inner: S,
    engine: Arc<Engine<K>>,
    key: F,
    classifier: C,
}

impl<S, F, C, K: Key> Admission<S, F, C, K> {
    pub(super) fn new(inner: S, engine: Arc<Engine<K>>, key: F, classifier: C) -> Self {
        Self { inner, engine, key, classifier }
    }
}

impl<S, F, C, K, Req> Service<Req> for Admission<S, F, C, K>
where
    S: Service<Req> + Clone,
    F: KeyFor<Req, K>,
    C: Classify<S::Response, S::Error, K> + Clone,
    K: Key + Clone,
{
    type Response = C::Response;
    type Error = Error<S::Error>;
    type Future = AdmissionFuture<S, Req, C, K>;

    /// Always ready: what isn't admitted is refused by `call`, and the inner service is made ready by its future.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        match self.engine.admit_async(&self.key.key(&request)) {
            Err(rejection) => AdmissionFuture::rejected(rejection),
            Ok(permit) => AdmissionFuture::admitted(permit, self.inner.clone(), request, self.classifier.clone()),
        }
    }
}

impl<S: fmt::Debug, F, C: fmt::Debug, K: Key> fmt::Debug for Admission<S, F, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Admission");
        fields.field("inner", &self.inner).field("classifier", &self.classifier).finish_non_exhaustive()
    }
}
