//! The layer: what every service that it wraps shares.

use std::fmt;
use std::sync::Arc;

use tower_layer::Layer;

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
pub struct AdmissionLayer<F, C, K: Key = String> {
    engine: Arc<Engine<K>>,
    key: F,
    classifier: C,
}

impl<F, C, K: Key> AdmissionLayer<F, C, K> {
    /// Makes the layer: `key` tells which target a request is for, `classifier` what its response says about that target.
    pub fn new(engine: Arc<Engine<K>>, key: F, classifier: C) -> Self {
        Self { engine, key, classifier }
    }
}

impl<S, F: Clone, C: Clone, K: Key> Layer<S> for AdmissionLayer<F, C, K> {
    type Service = Admission<S, F, C, K>;

    fn layer(&self, inner: S) -> Self::Service {
        Admission::new(inner, Arc::clone(&self.engine), self.key.clone(), self.classifier.clone())
    }
}

impl<F, C: fmt::Debug, K: Key> fmt::Debug for AdmissionLayer<F, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionLayer").field("classifier", &self.classifier).finish_non_exhaustive()
    }
}
