//! What a target's requests go through: admission, then one attempt at an upstream.

use std::sync::Arc;

use http::{Request, Response};
use http_body::Body;
use portcullis::Engine;
use portcullis::tower::{
    Admission, AdmissionLayer, Classify, Error, GuardedBody, HttpClassifier, KeyFor, RequestPermit,
};
use tower::{Layer, ServiceExt};

use crate::body::{Download, Upload};
use crate::config::Target;
use crate::upstream::{CallError, Client, Stream, Upstream};

/// The body of an upstream's answer, with the permit of its call.
pub(crate) type Answer = GuardedBody<Download>;

/// The services of one target.
#[derive(Debug)]
pub(crate) struct Stack {
    name: Name,
    service: Admission<Upstream, Name, Judge>,
}

/// The target's name, the same for each of its requests.
#[derive(Clone, Debug)]
struct Name(Arc<str>);

impl<Req> KeyFor<Req, String> for Name {
    fn key(&self, _request: &Req) -> String {
        self.0.as_ref().to_owned()
    }
}

/// The HTTP classifier, but for calls that failed by the client's fault or the gateway's own.
#[derive(Clone, Debug)]
struct Judge(HttpClassifier);

impl<B: Body> Classify<Response<B>, CallError, String> for Judge {
    type Response = Response<GuardedBody<B>>;

    fn settle(
        &self,
        permit: RequestPermit,
        result: Result<Response<B>, CallError>,
    ) -> Result<Self::Response, CallError> {
        match result {
            Err(error @ (CallError::Client { .. } | CallError::Exhausted(_))) => {
                permit.ignore();
                Err(error)
            }
            other => self.0.settle(permit, other),
        }
    }
}

impl Stack {
    pub(crate) fn new(engine: &Arc<Engine<String>>, client: &Client, target: &Target) -> Self {
        let name = Name(Arc::from(target.name.as_str()));
        // The upstream marks them: by their type, or because the configuration says so.
        let classifier = HttpClassifier::new().streams(|head| head.extensions.get::<Stream>().is_some());
        let layer = AdmissionLayer::new(Arc::clone(engine), name.clone(), Judge(classifier));
        Self { name, service: layer.layer(Upstream::new(client.clone(), target)) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name.0
    }

    /// Makes one call.
    pub(crate) async fn call(&self, request: Request<Upload>) -> Result<Response<Answer>, Error<CallError>> {
        self.service.clone().oneshot(request).await
    }
}
