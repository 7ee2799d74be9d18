//! What a route's requests go through: admission, unless the route is without, then one attempt at an upstream.

use std::sync::Arc;

use http::{Request, Response};
use http_body::Body;
use http_body_util::Either;
use portcullis::Engine;
use portcullis::tower::{
    Admission, AdmissionLayer, Classify, Error, GuardedBody, HttpClassifier, KeyFor, RequestPermit,
};
use tower::{Layer, Service as _, ServiceExt};

use crate::body::{Download, Upload};
use crate::upstream::{CallError, Stream, Upstream};

/// The body of an upstream's answer, with the permit of its call if there is one.
pub(crate) type Answer = Either<GuardedBody<Download>, Download>;

/// The services of one route.
#[derive(Debug)]
pub(crate) struct Stack {
    name: Name,
    service: Service,
}

#[derive(Debug)]
enum Service {
    Asked(Admission<Upstream, Name, Judge>),
    Unasked(Upstream),
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
    /// Asks the engine about each call.
    pub(crate) fn asked(engine: &Arc<Engine<String>>, target: &str, upstream: Upstream) -> Self {
        let name = Name(Arc::from(target));
        // The upstream marks them: by their type, or because the configuration says so.
        let classifier = HttpClassifier::new().streams(|head| head.extensions.get::<Stream>().is_some());
        let layer = AdmissionLayer::new(Arc::clone(engine), name.clone(), Judge(classifier));
        Self { name, service: Service::Asked(layer.layer(upstream)) }
    }

    /// Asks nobody: the engine doesn't know of these calls.
    pub(crate) fn unasked(target: &str, upstream: Upstream) -> Self {
        Self { name: Name(Arc::from(target)), service: Service::Unasked(upstream) }
    }

    /// The target's name.
    pub(crate) fn name(&self) -> &str {
        &self.name.0
    }

    /// Makes one call.
    pub(crate) async fn call(&self, request: Request<Upload>) -> Result<Response<Answer>, Error<CallError>> {
        match &self.service {
            Service::Asked(service) => {
                let answer = service.clone().ready().await?.call(request).await?;
                Ok(answer.map(Either::Left))
            }
            Service::Unasked(upstream) => {
                let mut upstream = upstream.clone();
                let ready = upstream.ready().await.map_err(Error::Inner)?;
                let answer = ready.call(request).await.map_err(Error::Inner)?;
                Ok(answer.map(Either::Right))
            }
        }
    }
}
