//! A body that holds something until it has ended or is dropped.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body::{Body, Frame, SizeHint};

pin_project_lite::pin_project! {
    /// A body with what is given back at its end.
    #[derive(Debug)]
    pub(crate) struct Held<B, H> {
        #[pin]
        inner: B,
        held: Option<H>,
    }
}

impl<B: Body, H> Held<B, H> {
    pub(crate) fn new(inner: B, held: H) -> Self {
        // An empty body may never be polled.
        let held = (!inner.is_end_stream()).then_some(held);
        Self { inner, held }
    }
}

impl<B: Body, H> Body for Held<B, H> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.inner.as_mut().poll_frame(cx));
        // A server that knows the length doesn't come back for the end.
        if matches!(frame, None | Some(Err(_))) || this.inner.is_end_stream() {
            this.held.take();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
