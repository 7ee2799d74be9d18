//! The response body that callers get: the target's own, or a fallback's.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::super::last_good::LastGood;
use super::stale::Kept;

pin_project! {
    /// The body of an answer: the target's own, or a fallback's.
    pub struct CallBody<B> {
        #[pin]
        source: Source<B>,
    }
}

pin_project! {
    #[project = SourceProjection]
    enum Source<B> {
        Target { #[pin] body: B, keeper: Option<Keeper> },
        Fallback { body: Option<Bytes> },
    }
}

/// Copies a good answer on its way, to keep it once it is whole.
pub(super) struct Keeper {
    pub(super) store: LastGood<Kept>,
    pub(super) name: String,
    pub(super) headers: HeaderMap,
    pub(super) came: Duration,
    pub(super) body: BytesMut,
    /// More than that isn't kept.
    pub(super) limit: usize,
    /// The whole length, if the target said it: a server needn't ask again once it has it.
    pub(super) length: Option<usize>,
}

impl Keeper {
    fn end(self) {
        let kept = Kept { headers: self.headers, body: self.body.freeze() };
        self.store.keep(self.name, kept, self.came);
    }
}

impl<B> CallBody<B> {
    pub(super) fn of_target(body: B, keeper: Option<Keeper>) -> Self {
        Self { source: Source::Target { body, keeper } }
    }

    pub(super) fn of_fallback(body: Bytes) -> Self {
        Self { source: Source::Fallback { body: Some(body).filter(|body| !body.is_empty()) } }
    }
}

impl<B: Body> Body for CallBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let (body, keeper) = match self.project().source.project() {
            SourceProjection::Fallback { body } => return Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            SourceProjection::Target { body, keeper } => (body, keeper),
        };
        let mut body = body;
        let frame = match ready!(body.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => frame.map_data(|mut data| data.copy_to_bytes(data.remaining())),
            Some(Err(error)) => {
                // Half an answer is none.
                *keeper = None;
                return Poll::Ready(Some(Err(error)));
            }
            None => {
                if let Some(keeper) = keeper.take() {
                    keeper.end();
                }
                return Poll::Ready(None);
            }
        };
        if let Some(data) = frame.data_ref() {
            let fits = keeper.as_ref().is_some_and(|keeper| keeper.body.len() + data.len() <= keeper.limit);
            if !fits {
                *keeper = None;
            }
            if let Some(keeper) = keeper {
                keeper.body.extend_from_slice(data);
            }
        }
        let is_whole = |keeper: &Keeper| keeper.length == Some(keeper.body.len());
        if (body.is_end_stream() || keeper.as_ref().is_some_and(is_whole))
            && let Some(keeper) = keeper.take()
        {
            keeper.end();
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Target { body, .. } => body.is_end_stream(),
            Source::Fallback { body } => body.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Target { body, .. } => body.size_hint(),
            Source::Fallback { body } => SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64)),
        }
    }
}

impl<B: fmt::Debug> fmt::Debug for CallBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Target { body, .. } => f.debug_tuple("CallBody").field(body).finish(),
            Source::Fallback { body } => f.debug_tuple("CallBody").field(body).finish(),
        }
    }
}
