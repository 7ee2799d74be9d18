//! Calls of subjects that only wrap futures, held open: the upstream is a future that waits for its verdict.
//!
//! Polled by hand with a waker that does nothing, so that no runtime's scheduling enters a scenario. A subject that wants its own
//! lock first leaves the future pending without having started the upstream; then it is polled again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::subject::Ending;

/// Why a call has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The upstream failed.
    Upstream,
    /// The caller did: no evidence.
    Caller,
    /// It was never sent.
    Refused,
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Upstream => "the upstream failed",
            Self::Caller => "the caller failed",
            Self::Refused => "refused",
        })
    }
}

impl std::error::Error for Failed {}

const ASLEEP: u8 = 0;
const RUNNING: u8 = 1;
const SUCCESS: u8 = 2;
const FAILURE: u8 = 3;
const IGNORED: u8 = 4;

/// What an upstream is going to answer, shared between the call and whoever decides.
#[derive(Clone, Debug, Default)]
pub struct Verdict(Arc<AtomicU8>);

impl Verdict {
    #[must_use]
    pub fn ready(ending: Ending) -> Self {
        let verdict = Self::default();
        verdict.set(ending);
        verdict
    }

    fn set(&self, ending: Ending) {
        let word = match ending {
            Ending::Success => SUCCESS,
            Ending::Failure => FAILURE,
            Ending::Ignored => IGNORED,
        };
        self.0.store(word, Ordering::Release);
    }

    fn has_started(&self) -> bool {
        self.0.load(Ordering::Acquire) != ASLEEP
    }

    /// The upstream's call.
    #[must_use]
    pub fn call(&self) -> Running {
        Running(self.clone())
    }
}

/// An upstream at work until its verdict is given.
#[derive(Debug)]
pub struct Running(Verdict);

impl Future for Running {
    type Output = Result<(), Failed>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let word = &self.0.0;
        match word.load(Ordering::Acquire) {
            SUCCESS => Poll::Ready(Ok(())),
            FAILURE => Poll::Ready(Err(Failed::Upstream)),
            IGNORED => Poll::Ready(Err(Failed::Caller)),
            _ => {
                word.store(RUNNING, Ordering::Release);
                Poll::Pending
            }
        }
    }
}

/// A future of a subject whose upstream is at work.
pub struct HeldCall<'a> {
    future: Pin<Box<dyn Future<Output = ()> + Send + 'a>>,
    verdict: Verdict,
}

impl std::fmt::Debug for HeldCall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldCall").field("verdict", &self.verdict).finish_non_exhaustive()
    }
}

impl<'a> HeldCall<'a> {
    /// Polls until the upstream has started; None if the subject refused.
    pub fn start(verdict: Verdict, future: impl Future<Output = ()> + Send + 'a) -> Option<Self> {
        let mut call = Self { future: Box::pin(future), verdict };
        for turn in 0.. {
            if call.poll().is_ready() {
                return None;
            }
            if call.verdict.has_started() {
                break;
            }
            pause(turn);
        }
        Some(call)
    }

    /// Gives the verdict and polls until the subject has taken note of it. Ignored calls are told as errors of the caller.
    pub fn finish(mut self, ending: Ending) {
        self.verdict.set(ending);
        for turn in 0.. {
            if self.poll().is_ready() {
                return;
            }
            pause(turn);
        }
    }

    fn poll(&mut self) -> Poll<()> {
        self.future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }
}

/// Runs a future that has nothing to wait for but a subject's lock.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    for turn in 0.. {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
        pause(turn);
    }
    unreachable!("the loop ends by returning")
}

/// Lets whoever holds the lock go on; a deadlocked caller then sleeps, and burns no core for the rest of the run.
fn pause(turn: u32) {
    if turn < 100 {
        std::thread::yield_now();
    } else {
        std::thread::sleep(Duration::from_millis(1));
    }
}
