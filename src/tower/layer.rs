//! The layer: what every service that it wraps shares.

use std::fmt;
use std::sync::Arc;

use tower_layer::Layer;

use super::priority::AllCritical;
use super::service::Admission;
use crate::engine::{Engine, Key};

/// Wraps services so that each request is admitted first and settled after.
///
/// ```
/// use std::sync::Arc;
/// use portcullis::Engine;
/// use portcullis::tower::{AdmissionLayer, ByAuthority, HttpClassifier};
/// use tower::ServiceBuilder;
///
/// let engine: Arc<Engine> = Arc::new(Engine::builder().build());
/// let service = ServiceBuilder::new()
///     .layer(AdmissionLayer::new(engine, ByAuthority, HttpClassifier::new()))
///     .service_fn(|_request: http::Request<String>| async { Ok::<_, std::io::Error>(http::Response::new(String::new())) });
/// ```
#[derive(Clone)]
pub struct AdmissionLayer<F, C, K: Key = String, P = AllCritical> {
    engine: Arc<Engine<K>>,
    key: F,
    classifier: C,
    priority: P,
}

impl<F, C, K: Key> AdmissionLayer<F, C, K> {
    /// Makes the layer: `key` tells which target a request is for, `classifier` what its response says about that target.
    pub fn new(engine: Arc<Engine<K>>, key: F, classifier: C) -> Self {
        Self { engine, key, classifier, priority: AllCritical }
    }
}

impl<F, C, K: Key, P> AdmissionLayer<F, C, K, P> {
    /// Sets how much each request matters; all are critical unless set. See [`requested_priority`](super::requested_priority) for one that a header names.
    #[must_use]
    pub fn priority<P2>(self, priority: P2) -> AdmissionLayer<F, C, K, P2> {
        let Self { engine, key, classifier, .. } = self;
        AdmissionLayer { engine, key, classifier, priority }
    }
}

impl<S, F: Clone, C: Clone, K: Key, P: Clone> Layer<S> for AdmissionLayer<F, C, K, P> {
    type Service = Admission<S, F, C, K, P>;

    fn layer(&self, inner: S) -> Self::Service {
        let Self { engine, key, classifier, priority } = self;
        Admission::new(inner, Arc::clone(engine), key.clone(), classifier.clone(), priority.clone())
    }
}

impl<F, C: fmt::Debug, K: Key, P> fmt::Debug for AdmissionLayer<F, C, K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionLayer").field("classifier", &self.classifier).finish_non_exhaustive()
    }
}
