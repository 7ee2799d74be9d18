//! One call of the inner service: made ready, then called, on the very clone that is called.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower_service::Service;

pin_project! {
    #[project = OnceProjection]
    pub(super) enum Once<S, F, Req> {
        Readying { inner: S, request: Option<Req> },
        Calling { #[pin] future: F },
        // There is no request any more: its body went with an earlier attempt. Never made by a plan that asked before.
        Nothing,
    }
}

impl<S: Service<Req>, Req> Once<S, S::Future, Req> {
    pub(super) fn new(inner: S, request: Option<Req>) -> Self {
        if request.is_some() { Self::Readying { inner, request } } else { Self::Nothing }
    }
}

impl<S: Service<Req>, Req> Future for Once<S, S::Future, Req> {
    type Output = Result<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let future = match self.as_mut().project() {
                OnceProjection::Nothing => return Poll::Pending,
                OnceProjection::Calling { future } => return future.poll(cx),
                OnceProjection::Readying { inner, request } => {
                    if let Err(error) = ready!(inner.poll_ready(cx)) {
                        return Poll::Ready(Err(error));
                    }
                    match request.take() {
                        Some(request) => inner.call(request),
                        None => return Poll::Pending,
                    }
                }
            };
            self.set(Self::Calling { future });
        }
    }
}
