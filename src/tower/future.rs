//! The future of one request: makes the inner service ready, calls it, settles.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_service::Service;

use super::RequestPermit;
use super::classify::Classify;
use super::error::Error;
use crate::engine::Key;
use crate::rejection::Rejection;

pin_project! {
    /// The response of a guarded service. Dropped before it is ready, its call is abandoned; never polled, it hadn't begun.
    #[must_use = "futures do nothing unless polled"]
    pub struct AdmissionFuture<S: Service<Req>, Req, C, K: Key> {
        #[pin]
        stage: Stage<S, S::Future, Req>,
        // What was taken and who judges; none once settled, or if nothing was.
        taken: Option<(RequestPermit<K>, C)>,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<S, F, Req> {
        Rejected { rejection: Rejection },
        Readying { inner: S, request: Option<Req> },
        Calling { #[pin] future: F },
    }
}

impl<S: Service<Req>, Req, C, K: Key> AdmissionFuture<S, Req, C, K> {
    pub(super) fn rejected(rejection: Rejection) -> Self {
        Self { stage: Stage::Rejected { rejection }, taken: None }
    }

    pub(super) fn admitted(permit: RequestPermit<K>, inner: S, request: Req, classifier: C) -> Self {
        Self { stage: Stage::Readying { inner, request: Some(request) }, taken: Some((permit.not_begun(), classifier)) }
    }
}

impl<S, Req, C, K> Future for AdmissionFuture<S, Req, C, K>
where
    S: Service<Req>,
    C: Classify<S::Response, S::Error, K>,
    K: Key,
{
    type Output = Result<C::Response, Error<S::Error>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let StageProjection::Rejected { rejection } = this.stage.as_mut().project() {
            return Poll::Ready(Err(Error::Rejected(*rejection)));
        }
        // Out of the future while user code runs: should that panic, the permit is dropped by the panic and counts as a failure.
        let mut taken = this.taken.take();
        if let Some((permit, _)) = taken.as_mut().filter(|(permit, _)| !permit.has_begun()) {
            permit.begin();
        }
        let result = match poll_inner(this.stage, cx) {
            Poll::Ready(result) => result,
            Poll::Pending => {
                *this.taken = taken;
                return Poll::Pending;
            }
        };
        match taken {
            Some((permit, classifier)) => Poll::Ready(classifier.settle(permit, result).map_err(Error::Inner)),
            // Polled again after it was ready, against the contract of futures.
            None => Poll::Pending,
        }
    }
}

fn poll_inner<S: Service<Req>, Req>(
    mut stage: Pin<&mut Stage<S, S::Future, Req>>,
    cx: &mut Context<'_>,
) -> Poll<Result<S::Response, S::Error>> {
    loop {
        let future = match stage.as_mut().project() {
            StageProjection::Rejected { .. } => return Poll::Pending,
            StageProjection::Calling { future } => return future.poll(cx),
            StageProjection::Readying { inner, request } => {
                if let Err(error) = ready!(inner.poll_ready(cx)) {
                    return Poll::Ready(Err(error));
                }
                match request.take() {
                    Some(request) => inner.call(request),
                    None => return Poll::Pending,
                }
            }
        };
        stage.set(Stage::Calling { future });
    }
}

impl<S: Service<Req>, Req, C, K: Key> fmt::Debug for AdmissionFuture<S, Req, C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let permit = self.taken.as_ref().map(|(permit, _)| permit);
        f.debug_struct("AdmissionFuture").field("permit", &permit).finish_non_exhaustive()
    }
}
