//! A call that waits for its permit, polled by hand.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use portcullis::{Permit, Priority, Rejection};

use super::{Bench, T};

/// Counts how often it was woken.
#[derive(Debug, Default)]
pub(crate) struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(crate) type Answer<'e> = Result<Permit<'e>, Rejection>;

/// A call that waits, polled by hand.
pub(crate) struct Waiter<'e> {
    future: Pin<Box<dyn Future<Output = Answer<'e>> + 'e>>,
    pub(crate) woken: Arc<Woken>,
}

impl<'e> Waiter<'e> {
    pub(crate) fn new(future: impl Future<Output = Answer<'e>> + 'e) -> Self {
        Self { future: Box::pin(future), woken: Arc::default() }
    }

    /// One that never gives up.
    pub(crate) fn patient(bench: &'e Bench) -> Self {
        Self::new(bench.engine.admit_waiting(T, Priority::Critical, |_| pending()))
    }

    pub(crate) fn poll(&mut self) -> Poll<Answer<'e>> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    pub(crate) fn waits(&mut self) -> bool {
        self.poll().is_pending()
    }

    pub(crate) fn wakes(&self) -> usize {
        self.woken.0.load(Ordering::SeqCst)
    }

    pub(crate) fn answer(mut self) -> Answer<'e> {
        match self.poll() {
            Poll::Ready(answer) => answer,
            Poll::Pending => panic!("still waiting after {} wakes", self.wakes()),
        }
    }
}
