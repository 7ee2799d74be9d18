//! The request's body on its way to the upstream, and whose turn it is: a slow client must not look like a slow target.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The upstream has been given all that there was; it may not even have taken that.
const UPSTREAMS_TURN: u8 = 0;
/// The upstream could take more, and the client sends nothing.
const CLIENTS_TURN: u8 = 1;
/// The client broke off.
const FAILED: u8 = 2;
/// The client has sent everything.
const SENT: u8 = 3;

/// How the upload stands, for those who wait for the upstream meanwhile.
///
/// The fields are hints for timeouts and guard no other memory, so their accesses are relaxed; who waits for one is woken after it.
#[derive(Debug)]
pub(crate) struct Progress {
    start: Instant,
    last_micros: AtomicU64,
    turn: AtomicU8,
    /// Whether nobody waits for the answer any more.
    orphaned: AtomicBool,
    changed: Notify,
}

impl Progress {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            last_micros: AtomicU64::new(0),
            turn: AtomicU8::new(UPSTREAMS_TURN),
            orphaned: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    /// Whether the upstream has to wait for the client.
    pub(crate) fn is_clients_turn(&self) -> bool {
        self.turn.load(Ordering::Relaxed) == CLIENTS_TURN
    }

    /// A further attempt begins, which is still to ask for what the client has sent. What the one before found is no excuse for it.
    pub(crate) fn begin_again(&self) {
        let _ = self.turn.compare_exchange(CLIENTS_TURN, UPSTREAMS_TURN, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether the client broke off.
    pub(crate) fn has_failed(&self) -> bool {
        self.turn.load(Ordering::Relaxed) == FAILED
    }

    /// When the client last sent something, or the call began.
    pub(crate) fn last(&self) -> Instant {
        self.start + Duration::from_micros(self.last_micros.load(Ordering::Relaxed))
    }

    /// Nobody waits for the answer any more.
    pub(crate) fn orphan(&self) {
        self.orphaned.store(true, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Waits until everything was sent by a client that didn't stay for the answer.
    pub(crate) async fn sent_and_orphaned(&self) {
        while !(self.orphaned.load(Ordering::Relaxed) && self.turn.load(Ordering::Relaxed) == SENT) {
            self.changed.notified().await;
        }
    }

    fn note(&self, turn: u8) {
        let elapsed = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last_micros.store(elapsed, Ordering::Relaxed);
        self.turn.store(turn, Ordering::Relaxed);
        if turn == SENT {
            self.changed.notify_one();
        }
    }
}

pin_project_lite::pin_project! {
    /// The body of a client's request.
    #[derive(Debug)]
    pub(crate) struct Upload {
        #[pin]
        inner: Incoming,
        progress: Option<Arc<Progress>>,
    }
}

impl Upload {
    pub(crate) fn new(inner: Incoming) -> Self {
        // Most requests have no body, and nothing to follow.
        let progress = (!inner.is_end_stream()).then(|| Arc::new(Progress::new()));
        Self { inner, progress }
    }

    /// How it stands; none if there is nothing to send.
    pub(crate) fn progress(&self) -> Option<Arc<Progress>> {
        self.progress.clone()
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut this = self.project();
        let polled = this.inner.as_mut().poll_frame(cx);
        if let Some(progress) = this.progress {
            match &polled {
                Poll::Pending => progress.turn.store(CLIENTS_TURN, Ordering::Relaxed),
                Poll::Ready(Some(Err(_))) => progress.note(FAILED),
                Poll::Ready(None) => progress.note(SENT),
                // Of a body of known length the end isn't asked for.
                Poll::Ready(_) if this.inner.is_end_stream() => progress.note(SENT),
                Poll::Ready(_) => progress.note(UPSTREAMS_TURN),
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
