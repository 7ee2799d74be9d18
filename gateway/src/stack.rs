//! What a route's requests go through: admission, unless the route is without, then one attempt at an upstream.
//!
//! The engine is asked directly, with the layer's classifier and body, but without the layer: a route's target is known beforehand, so
//! there is no key to be made for each request, and no service to be cloned.

use std::sync::Arc;

use http::{Request, Response};
use http_body_util::Either;
use portcullis::Engine;
use portcullis::tower::{Classify, Error, GuardedBody, HttpClassifier, RequestPermit};

use crate::body::{Download, Upload};
use crate::upstream::{CallError, Stream, Upstream};

/// The body of an upstream's answer, with the permit of its call if there is one.
pub(crate) type Answer = Either<GuardedBody<Download>, Download>;

/// What stands between a route and its target.
#[derive(Debug)]
pub(crate) struct Stack {
    target: Box<str>,
    // None where nobody is asked: the engine doesn't know of those calls.
    admission: Option<Admission>,
    upstream: Upstream,
}

#[derive(Debug)]
struct Admission {
    engine: Arc<Engine<String>>,
    classifier: HttpClassifier,
}

impl Stack {
    /// `engine` is asked about each call, if there is one.
    pub(crate) fn new(target: &str, engine: Option<&Arc<Engine<String>>>, upstream: Upstream) -> Self {
        let admission = engine.map(|engine| Admission {
            engine: Arc::clone(engine),
            // The upstream marks them: by their type, or because the configuration says so.
            classifier: HttpClassifier::new().streams(|head| head.extensions.get::<Stream>().is_some()),
        });
        Self { target: target.into(), admission, upstream }
    }

    /// The target's name.
    pub(crate) fn name(&self) -> &str {
        &self.target
    }

    /// Makes one call.
    pub(crate) async fn call(&self, request: Request<Upload>) -> Result<Response<Answer>, Error<CallError>> {
        let Some(Admission { engine, classifier }) = &self.admission else {
            let answer = self.upstream.call(request).await.map_err(Error::Inner)?;
            return Ok(answer.map(Either::Right));
        };
        // Dropped together with this future it is an abandoned call, and a failure where the future panics.
        let permit = engine.admit_async(&*self.target).map_err(Error::Rejected)?;
        let answer = settle(classifier, permit, self.upstream.call(request).await).map_err(Error::Inner)?;
        Ok(answer.map(Either::Left))
    }
}

/// As the classifier does, but for calls that failed by the client's fault or the gateway's own.
fn settle(
    classifier: &HttpClassifier,
    permit: RequestPermit,
    result: Result<Response<Download>, CallError>,
) -> Result<Response<GuardedBody<Download>>, CallError> {
    match result {
        Err(error @ (CallError::Client { .. } | CallError::Exhausted(_))) => {
            permit.ignore();
            Err(error)
        }
        other => classifier.settle(permit, other),
    }
}
