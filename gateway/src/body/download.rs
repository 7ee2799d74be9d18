//! The answer's body on its way to the client: an upstream that falls silent in the middle is given up, and so is one that goes on after the
//! end of the time for the whole request.

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
        patience: Option<Patience>,
        upload: Option<Arc<Progress>>,
    }
}

/// The waits for the next frame. The timer is made by the first wait and moved by later ones.
#[derive(Debug)]
struct Patience {
    /// The longest single wait.
    limit: Duration,
    /// What is left for all of them, if that is bounded.
    left: Option<Duration>,
    timer: Option<Pin<Box<Sleep>>>,
    /// When the wait that is on began.
    since: Option<Instant>,
}

/// Why an answer broke off.
#[derive(Debug)]
pub(crate) enum DownloadError {
    /// Nothing came for this long.
    Silent(Duration),
    /// It was still going on at the deadline of the whole request.
    Late,
    /// The connection failed, or what came wasn't HTTP.
    Broken(hyper::Error),
}

impl fmt::Display for DownloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Silent(limit) => write!(f, "the upstream sent nothing for {limit:?}"),
            Self::Late => f.write_str("the upstream had not sent all of it by the deadline"),
            Self::Broken(error) => write!(f, "the upstream broke off: {error}"),
        }
    }
}

impl std::error::Error for DownloadError {}

impl Download {
    /// `limit` bounds the silence between two frames and `end` all of them, neither if there is no limit; an upload that is still going on
    /// excuses the upstream.
    pub(crate) fn new(
        inner: Incoming,
        limit: Option<Duration>,
        end: Option<Instant>,
        upload: Option<Arc<Progress>>,
    ) -> Self {
        Self { inner, patience: limit.map(|limit| Patience::new(limit, end)), upload }
    }
}

impl Patience {
    fn new(limit: Duration, end: Option<Instant>) -> Self {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        Self { limit, left, timer: None, since: None }
    }

    /// Ready when the wait, or all of them together, took too long. The client's pauses don't count: it isn't polled in them.
    fn poll(&mut self, cx: &mut Context<'_>, is_clients_turn: impl Fn() -> bool) -> Poll<DownloadError> {
        let now = Instant::now();
        let wait = self.left.map_or(self.limit, |left| left.min(self.limit));
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(now + wait)));
        if self.since.is_none() {
            self.since = Some(now);
            timer.as_mut().reset(now + wait);
        }
        loop {
            ready!(timer.as_mut().poll(cx));
            if !is_clients_turn() {
                let is_late = self.left.is_some_and(|left| left <= self.limit);
                return Poll::Ready(if is_late { DownloadError::Late } else { DownloadError::Silent(self.limit) });
            }
            // The upstream may well be waiting for the rest of the question.
            self.since = Some(now);
            timer.as_mut().reset(now + self.limit);
        }
    }

    /// A frame has come.
    fn end_wait(&mut self, is_clients_turn: impl Fn() -> bool) {
        if let (Some(since), Some(left)) = (self.since.take(), &mut self.left)
            && !is_clients_turn()
        {
            *left = left.saturating_sub(since.elapsed());
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
        let is_clients_turn = || this.upload.as_deref().is_some_and(Progress::is_clients_turn);
        match (this.inner.poll_frame(cx), this.patience) {
            (Poll::Ready(frame), patience) => {
                if let Some(patience) = patience {
                    patience.end_wait(is_clients_turn);
                }
                Poll::Ready(frame.map(|frame| frame.map(without_hop_by_hop).map_err(DownloadError::Broken)))
            }
            (Poll::Pending, None) => Poll::Pending,
            (Poll::Pending, Some(patience)) => patience.poll(cx, is_clients_turn).map(|error| Some(Err(error))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::time::advance;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Timeout 100 ms, and 250 ms to the end.
    fn patience() -> Patience {
        Patience::new(100 * MS, Some(Instant::now() + 250 * MS))
    }

    fn polled(patience: &mut Patience, is_clients_turn: bool) -> Poll<DownloadError> {
        patience.poll(&mut Context::from_waker(Waker::noop()), || is_clients_turn)
    }

    /// A wait that ends with a frame.
    async fn drip(patience: &mut Patience, wait: u32, is_clients_turn: bool) {
        assert!(polled(patience, is_clients_turn).is_pending());
        advance(wait * MS).await;
        assert!(polled(patience, is_clients_turn).is_pending());
        patience.end_wait(|| is_clients_turn);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_drips_is_late_and_one_that_is_silent_before_that_is_silent() {
        let mut dripping = patience();
        for _ in 0..3 {
            drip(&mut dripping, 80, false).await;
        }
        assert!(polled(&mut dripping, false).is_pending());
        advance(11 * MS).await;
        assert!(matches!(polled(&mut dripping, false), Poll::Ready(DownloadError::Late)));

        let mut silent = patience();
        drip(&mut silent, 80, false).await;
        assert!(polled(&mut silent, false).is_pending());
        advance(101 * MS).await;
        assert!(matches!(polled(&mut silent, false), Poll::Ready(DownloadError::Silent(_))));
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_the_client_takes_does_not_count() {
        let mut patience = patience();
        for _ in 0..3 {
            drip(&mut patience, 20, false).await;
            // It takes nothing.
            advance(300 * MS).await;
            // It owes a part of its request.
            drip(&mut patience, 80, true).await;
        }
        assert!(polled(&mut patience, true).is_pending());
        advance(300 * MS).await;
        assert!(polled(&mut patience, true).is_pending());
        assert_eq!(patience.left, Some(190 * MS));
    }

    #[tokio::test(start_paused = true)]
    async fn without_an_end_it_may_drip_for_ever() {
        let mut patience = Patience::new(100 * MS, None);
        for _ in 0..1_000 {
            drip(&mut patience, 80, false).await;
        }
    }
}
