//! The service: admits in `call`, before the inner service sees anything.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower_service::Service;

use super::classify::Classify;
use super::error::Error;
use super::future::AdmissionFuture;
use super::key::KeyFor;
use super::priority::{AllCritical, PriorityFor};
use crate::engine::{Engine, Key};
use crate::priority::Admit;

/// A service whose requests are admitted first and settled after; see [`AdmissionLayer`](super::AdmissionLayer).
#[derive(Clone)]
pub struct Admission<S, F, C, K: Key = String, P = AllCritical> {
    inner: S,
    engine: Arc<Engine<K>>,
    key: F,
    classifier: C,
    priority: P,
}

impl<S, F, C, K: Key, P> Admission<S, F, C, K, P> {
    pub(super) fn new(inner: S, engine: Arc<Engine<K>>, key: F, classifier: C, priority: P) -> Self {
        Self { inner, engine, key, classifier, priority }
    }
}

impl<S, F, C, K, P, Req> Service<Req> for Admission<S, F, C, K, P>
where
    S: Service<Req> + Clone,
    F: KeyFor<Req, K>,
    C: Classify<S::Response, S::Error, K> + Clone,
    K: Key + Clone,
    P: PriorityFor<Req>,
{
    type Response = C::Response;
    type Error = Error<S::Error>;
    type Future = AdmissionFuture<S, Req, C, K>;

    /// Always ready: what isn't admitted is refused by `call`, and the inner service is made ready by its future.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let how = Admit::from(self.priority.priority(&request)).may_be_dropped();
        match self.engine.admit_owned_with(&self.key.key(&request), how) {
            Err(rejection) => AdmissionFuture::rejected(rejection),
            Ok(permit) => AdmissionFuture::admitted(permit, self.inner.clone(), request, self.classifier.clone()),
        }
    }
}

impl<S: fmt::Debug, F, C: fmt::Debug, K: Key, P> fmt::Debug for Admission<S, F, C, K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Admission");
        fields.field("inner", &self.inner).field("classifier", &self.classifier).finish_non_exhaustive()
    }
}
