//! A client's socket, given up once the client takes nothing more: who stops reading must not hold a place for ever.
//!
//! The wait is for the socket to take anything at all, so it bounds silence and not slowness. The kernel's own buffer comes on top: it
//! asks for more once about a third of it is free, up to some MiB on a fast path, so the limit has to leave a slow reader the
//! time for that. An answer that has been handed to the kernel holds no place any more and waits for nobody here.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

pin_project_lite::pin_project! {
    /// A socket whose writes fail after a time without progress.
    #[derive(Debug)]
    pub(crate) struct Paced<S> {
        #[pin]
        inner: S,
        stall: Stall,
    }
}

/// The wait for the peer. The timer is made by the first wait and moved by later ones.
#[derive(Debug)]
struct Stall {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    waiting: bool,
}

impl<S> Paced<S> {
    pub(crate) fn new(inner: S, limit: Duration) -> Self {
        Self { inner, stall: Stall { limit, timer: None, waiting: false } }
    }
}

impl Stall {
    /// Passes a write's result on, or fails it when it has been pending for too long.
    fn judge<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.waiting = false;
            return polled;
        }
        let end = Instant::now() + self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        if !self.waiting {
            self.waiting = true;
            timer.as_mut().reset(end);
        }
        timer.as_mut().poll(cx).map(|()| {
            let message = format!("the client took nothing for {:?}", self.limit);
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        })
    }
}

impl<S: AsyncRead> AsyncRead for Paced<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite> AsyncWrite for Paced<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.project();
        let polled = this.inner.poll_write(cx, bytes);
        this.stall.judge(cx, polled)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.project();
        let polled = this.inner.poll_write_vectored(cx, slices);
        this.stall.judge(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    // Neither says anything about the peer: a TCP socket flushes nothing and closes at once.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_given_up_and_a_slow_one_is_not() {
        let limit = Duration::from_millis(300);
        let (socket, mut peer) = duplex(16);
        let mut socket = Paced::new(socket, limit);
        let slow = tokio::spawn(async move {
            let mut byte = [0; 16];
            for _ in 0..8 {
                tokio::time::sleep(limit / 6).await;
                peer.read_exact(&mut byte).await.unwrap();
            }
            peer
        });
        // More than the limit in all, with no pause as long as that.
        socket.write_all(&[0; 144]).await.unwrap();
        let _peer = slow.await.unwrap();
        let error = socket.write_all(&[0; 1]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
