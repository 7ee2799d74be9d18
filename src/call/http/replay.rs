//! A request body that is kept while it is sent, so that it can be sent again.
//!
//! Nothing is read ahead: an attempt's bytes flow as they come, and a retry begins with those that came and goes on with those that are to
//! come. Past the limit nothing is kept any more, and there is no retry. So a stream that waits for its answer works as it did.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::super::fallback::BoxError;
use crate::sync::Mutex;

/// Frames of a few bytes weigh more than those.
const MOST_FRAMES: usize = 1_024;

pin_project! {
    /// The body of a request to the inner service: the caller's own, or what is kept of it.
    pub struct ReplayBody<B> {
        #[pin]
        source: Source<B>,
    }
}

pin_project! {
    #[project = SourceProjection]
    enum Source<B> {
        // Sent once, as it is.
        Once { #[pin] body: B },
        // The attempt's own place in what is kept.
        Kept { kept: Arc<Mutex<Kept<B>>>, attempt: u32, place: usize },
    }
}

/// What all attempts share. Only the last one's body goes on reading.
struct Kept<B> {
    body: Pin<Box<B>>,
    frames: Vec<Sent>,
    left: usize,
    attempt: u32,
    has_ended: bool,
    is_over_limit: bool,
}

#[derive(Clone)]
enum Sent {
    Data(Bytes),
    Trailers(http::HeaderMap),
}

impl Sent {
    fn frame(&self) -> Frame<Bytes> {
        match self {
            Self::Data(data) => Frame::data(data.clone()),
            Self::Trailers(trailers) => Frame::trailers(trailers.clone()),
        }
    }
}

/// Makes the bodies of a request's attempts.
pub(super) struct Replays<B>(Kind<B>);

enum Kind<B> {
    Once(Option<B>),
    Kept(Arc<Mutex<Kept<B>>>),
}

impl<B: Body> Replays<B> {
    /// For a request that is sent once.
    pub(super) fn once(body: B) -> Self {
        Self(Kind::Once(Some(body)))
    }

    /// For a request that may be sent again while its body is no longer than `limit` bytes.
    pub(super) fn kept(body: B, limit: usize) -> Self {
        // Too long by its own word: there is no use in keeping any of it.
        if body.size_hint().lower() > limit as u64 {
            return Self::once(body);
        }
        Self(Kind::Kept(Arc::new(Mutex::new(Kept {
            body: Box::pin(body),
            frames: Vec::new(),
            left: limit,
            attempt: 0,
            has_ended: false,
            is_over_limit: false,
        }))))
    }

    /// The body of the next attempt; none if what it needs is gone.
    pub(super) fn next(&mut self) -> Option<ReplayBody<B>> {
        let source = match &mut self.0 {
            Kind::Once(body) => Source::Once { body: body.take()? },
            Kind::Kept(kept) => {
                let attempt = {
                    let kept = kept.lock();
                    if kept.is_over_limit {
                        return None;
                    }
                    kept.attempt
                };
                Source::Kept { kept: Arc::clone(kept), attempt, place: 0 }
            }
        };
        Some(ReplayBody { source })
    }

    /// Takes the body from the attempt before, whose connection may still be reading it; whether there can be a next one.
    pub(super) fn take_back(&mut self) -> bool {
        match &self.0 {
            Kind::Once(body) => body.is_some(),
            Kind::Kept(kept) => {
                let mut kept = kept.lock();
                kept.attempt += 1;
                !kept.is_over_limit
            }
        }
    }

    /// Whether there could be a next attempt's body.
    pub(super) fn can_replay(&self) -> bool {
        match &self.0 {
            Kind::Once(body) => body.is_some(),
            Kind::Kept(kept) => !kept.lock().is_over_limit,
        }
    }
}

impl<B: Body> Kept<B>
where
    B::Error: Into<BoxError>,
{
    fn poll_frame(&mut self, cx: &mut Context<'_>, place: &mut usize) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(sent) = self.frames.get(*place) {
            *place += 1;
            return Poll::Ready(Some(Ok(sent.frame())));
        }
        if self.has_ended {
            return Poll::Ready(None);
        }
        let frame = match ready!(self.body.as_mut().poll_frame(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                // The caller's own body is broken: another attempt would find no more of it.
                self.forget();
                return Poll::Ready(Some(Err(error.into())));
            }
            None => {
                self.has_ended = true;
                return Poll::Ready(None);
            }
        };
        let sent = match frame.into_data() {
            Ok(mut data) => Sent::Data(data.copy_to_bytes(data.remaining())),
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => Sent::Trailers(trailers),
                // There are no other frames.
                Err(_) => return Poll::Ready(None),
            },
        };
        let frame = sent.frame();
        // A slice would keep the whole buffer that it was read into, of 8 KiB for a byte.
        let sent = match sent {
            Sent::Data(data) if !self.is_over_limit && data.len() <= self.left => {
                Sent::Data(Bytes::copy_from_slice(&data))
            }
            sent => sent,
        };
        if !self.is_over_limit {
            let length = if let Sent::Data(data) = &sent { data.len() } else { 0 };
            match self.left.checked_sub(length).filter(|_| self.frames.len() < MOST_FRAMES) {
                Some(left) => {
                    self.left = left;
                    self.frames.push(sent);
                    *place += 1;
                }
                None => self.forget(),
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn forget(&mut self) {
        self.is_over_limit = true;
        self.frames = Vec::new();
    }

    fn has_ended(&self, place: usize) -> bool {
        place >= self.frames.len() && (self.has_ended || self.body.is_end_stream())
    }

    fn size_hint(&self, place: usize) -> SizeHint {
        let to_come = if self.has_ended { SizeHint::with_exact(0) } else { self.body.size_hint() };
        let length = |sent: &Sent| if let Sent::Data(data) = sent { data.len() as u64 } else { 0 };
        let again: u64 = self.frames.iter().skip(place).map(length).sum();
        let mut hint = SizeHint::new();
        hint.set_lower(to_come.lower().saturating_add(again));
        if let Some(upper) = to_come.upper() {
            hint.set_upper(upper.saturating_add(again));
        }
        hint
    }
}

impl<B: Body> Body for ReplayBody<B>
where
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project().source.project() {
            SourceProjection::Once { body } => {
                let frame = ready!(body.poll_frame(cx));
                let whole = |frame: Frame<B::Data>| frame.map_data(|mut data| data.copy_to_bytes(data.remaining()));
                Poll::Ready(frame.map(|frame| frame.map(whole).map_err(Into::into)))
            }
            SourceProjection::Kept { kept, attempt, place } => {
                let mut kept = kept.lock();
                if kept.attempt != *attempt {
                    return Poll::Ready(Some(Err(ReplayError.into())));
                }
                // Beyond the limit frames go through, and the place stands at the end of none.
                if kept.is_over_limit {
                    *place = 0;
                }
                kept.poll_frame(cx, place)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Once { body } => body.is_end_stream(),
            Source::Kept { kept, place, .. } => kept.lock().has_ended(*place),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Once { body } => body.size_hint(),
            Source::Kept { kept, place, .. } => kept.lock().size_hint(*place),
        }
    }
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayBody").finish_non_exhaustive()
    }
}

/// An attempt that was given up goes on reading its request's body, which is another attempt's now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayError;

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request's body belongs to a later attempt")
    }
}

impl Error for ReplayError {}
