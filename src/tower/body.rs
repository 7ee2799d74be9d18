//! The response body that carries its request's permit.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::classify::GrpcClassifier;
use super::{RequestHeld, RequestPermit, come_back};
use crate::engine::Key;
use crate::outcome::Outcome;

/// Where a response is judged, and as what.
#[derive(Clone, Copy, Debug)]
pub(super) enum Judged {
    /// At once; the body only holds the bulkhead slot.
    Headers(Outcome),
    /// When the body has ended; an error in it is a failure.
    End(Outcome),
    /// By the status in the trailers.
    Trailers(GrpcClassifier),
}

impl Judged {
    /// What is known before the body.
    pub(super) fn by_now(self) -> Option<Outcome> {
        match self {
            Self::Headers(outcome) => Some(outcome),
            Self::End(_) | Self::Trailers(_) => None,
        }
    }
}

pin_project! {
    /// A response body that settles its request's permit when it has ended.
    ///
    /// Dropped before its end, the call is abandoned. The target counts as silent only while it was waited for: a caller who doesn't read
    /// says nothing about it.
    pub struct GuardedBody<B, K: Key = String> {
        #[pin]
        inner: B,
        guard: Guard<K>,
        // Bytes to come, where the length is known: a server needn't ask again once it has them.
        left: Option<u64>,
        // Whether the target is waited for, and not its caller.
        waits: bool,
    }

    impl<B, K: Key> PinnedDrop for GuardedBody<B, K> {
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            if !*this.waits {
                this.guard.touch();
            }
        }
    }
}

#[derive(Debug)]
enum Guard<K: Key> {
    /// To be settled.
    Pending {
        permit: RequestPermit<K>,
        judged: Judged,
    },
    /// Recorded; kept for the bulkhead slot.
    Recorded {
        _held: RequestHeld<K>,
    },
    Done,
}

impl<B: Body, K: Key> GuardedBody<B, K> {
    /// Guards a body of `length` bytes, if that is known.
    pub(super) fn new(inner: B, length: Option<u64>, permit: RequestPermit<K>, judged: Judged) -> Self {
        let mut guard = match judged {
            Judged::Headers(outcome) => Guard::Recorded { _held: permit.record(outcome) },
            Judged::End(_) | Judged::Trailers(_) => {
                let mut permit = permit;
                permit.touch();
                Guard::Pending { permit, judged }
            }
        };
        // A server needn't ask an empty body for anything.
        if inner.is_end_stream() || length == Some(0) {
            guard.end();
        }
        Self { inner, guard, left: length, waits: false }
    }
}

impl<K: Key> Guard<K> {
    fn settle(&mut self, outcome: impl FnOnce(Judged) -> Outcome) {
        if let Self::Pending { permit, judged } = std::mem::replace(self, Self::Done) {
            permit.settle(outcome(judged));
        }
    }

    /// The body has ended in order, or without the trailers that it owed.
    fn end(&mut self) {
        self.settle(|judged| match judged {
            Judged::Headers(outcome) | Judged::End(outcome) => outcome,
            Judged::Trailers(_) => Outcome::Failure,
        });
    }

    fn fail(&mut self) {
        self.settle(|_| Outcome::Failure);
    }

    fn touch(&mut self) {
        if let Self::Pending { permit, .. } = self {
            permit.touch();
        }
    }

    fn frame<D>(&mut self, frame: &Frame<D>) {
        let Self::Pending { judged, permit } = self else { return };
        let Judged::Trailers(classifier) = *judged else { return };
        if let Some(trailers) = frame.trailers_ref() {
            let outcome = classifier.judge(trailers).unwrap_or(Outcome::Failure);
            if outcome == Outcome::Failure {
                come_back::grpc(trailers).into_iter().for_each(|wait| permit.note_retry_after(wait));
            }
            self.settle(|_| outcome);
        }
    }
}

impl<B: Body, K: Key> Body for GuardedBody<B, K> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let polled = this.inner.as_mut().poll_frame(cx);
        if polled.is_pending() && !*this.waits {
            // From here on it is the target's silence.
            this.guard.touch();
        }
        *this.waits = polled.is_pending();
        let frame = ready!(polled);
        match &frame {
            None => this.guard.end(),
            Some(Err(_)) => this.guard.fail(),
            Some(Ok(frame)) => {
                this.guard.frame(frame);
                if let (Some(left), Some(data)) = (this.left.as_mut(), frame.data_ref()) {
                    *left = left.saturating_sub(data.remaining() as u64);
                }
                if this.inner.is_end_stream() || *this.left == Some(0) {
                    this.guard.end();
                }
            }
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

impl<B: fmt::Debug, K: Key> fmt::Debug for GuardedBody<B, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedBody").field("inner", &self.inner).field("guard", &self.guard).finish()
    }
}
