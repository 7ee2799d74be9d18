//! The answer's body on its way to the client: an upstream that falls silent in the middle is given up.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep};

use super::Progress;
use crate::headers::strip_hop_by_hop;

pin_project_lite::pin_project! {
    /// The body of an upstream's answer.
    #[derive(Debug)]
    pub(crate) struct Download {
        #[pin]
        inner: Incoming,
        // None for streams, which may be silent for as long as they like.
        silence: Option<Silence>,
        upload: Option<Arc<Progress>>,
    }
}

/// The wait for the next frame. The timer is made by the first wait and moved by later ones.
#[derive(Debug)]
struct Silence {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

/// Why an answer broke off.
#[derive(Debug)]
pub(crate) enum DownloadError {
    /// Nothing came for this long.
    Silent(Duration),
    /// The connection failed, or what came wasn't HTTP.
    Broken(hyper::Error),
}

impl fmt::Display for DownloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(limit) => write!(f, "the upstream sent nothing for {limit:?}"),
            Self::Broken(error) => write!(f, "the upstream broke off: {error}"),
        }
    }
}

impl std::error::Error for DownloadError {}

impl Download {
    /// `limit` bounds the silence between two frames; an upload that is still going on excuses the upstream.
    pub(crate) fn new(inner: Incoming, limit: Option<Duration>, upload: Option<Arc<Progress>>) -> Self {
        let silence = limit.map(|limit| Silence { limit, timer: None, waiting: false });
        Self { inner, silence, upload }
    }
}

impl Silence {
    /// Ready when the limit has passed since the wait began. The client's pauses don't count: it isn't polled in them.
    fn poll(&mut self, cx: &mut Context<'_>, upload: Option<&Progress>) -> Poll<DownloadError> {
        let end = Instant::now() + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if !self.waiting {
            self.waiting = true;
            timer.as_mut().reset(end);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if !upload.is_some_and(Progress::is_clients_turn) {
                return Poll::Ready(DownloadError::Silent(self.limit));
            }
            // The upstream may well be waiting for the rest of the question.
            timer.as_mut().reset(end);
        }
    }
}

/// Trailers are held to what the head was held to.
fn without_hop_by_hop(mut frame: Frame<Bytes>) -> Frame<Bytes> {
    if let Some(trailers) = frame.trailers_mut() {
        strip_hop_by_hop(trailers);
    }
    frame
}

impl Body for Download {
    type Data = Bytes;
    type Error = DownloadError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, DownloadError>>> {
        let this = self.project();
        match (this.inner.poll_frame(cx), this.silence) {
            (Poll::Ready(frame), silence) => {
                if let Some(silence) = silence {
                    silence.waiting = false;
                }
                Poll::Ready(frame.map(|frame| frame.map(without_hop_by_hop).map_err(DownloadError::Broken)))
            }
            (Poll::Pending, None) => Poll::Pending,
            (Poll::Pending, Some(silence)) => silence.poll(cx, this.upload.as_deref()).map(|error| Some(Err(error))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
