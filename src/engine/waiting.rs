//! A call that waits for its permit, as a future or on its own thread.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use super::{Engine, Key};
use crate::bulkhead::Ticket;
use crate::permit::Permit;
use crate::priority::Admit;
use crate::rejection::Rejection;
use crate::slot::Slot;
use crate::target::Asked;
use crate::time::{Reading, saturating_nanos};

/// A call on its way through the queue. Dropped there, it leaves, and what it was granted goes to the next.
struct Caller<'e, K: Key> {
    engine: &'e Engine<K>,
    /// Pinned by whoever made this.
    slot: &'e Slot<K>,
    how: Admit,
    ticket: Option<Ticket>,
}

impl<'e, K: Key> Caller<'e, K> {
    /// Joins the queue, or looks whether there is an answer.
    fn poll(&mut self, waker: &Waker) -> Poll<Result<Permit<'e, K>, Rejection>> {
        let Self { engine, slot, how, .. } = *self;
        let time = Reading::new(|| engine.read_clock());
        let answered = match &self.ticket {
            None => match slot.words.admit_or_wait(engine.terms(slot), how, &time, waker) {
                Asked::Answered(answered) => answered,
                Asked::Waits(ticket) => {
                    self.ticket = Some(ticket);
                    return Poll::Pending;
                }
            },
            Some(ticket) => match slot.words.hear(ticket, || engine.policy(slot), how, &time, waker) {
                Some(answered) => answered,
                None => return Poll::Pending,
            },
        };
        self.ticket = None;
        Poll::Ready(engine.answered(slot, answered).map(|token| Permit::new(engine, slot, token)))
    }

    /// Leaves the queue with the answer that its time is over, unless there is another by now.
    fn give_up(&mut self) -> Result<Permit<'e, K>, Rejection> {
        let Self { engine, slot, how, .. } = *self;
        let Some(ticket) = self.ticket.take() else { return engine.admit_slot_as(slot, how) };
        let time = Reading::new(|| engine.read_clock());
        let answered = slot.words.give_up(&ticket, engine.policy(slot), how, &time);
        engine.answered(slot, answered).map(|token| Permit::new(engine, slot, token))
    }
}

impl<K: Key> Drop for Caller<'_, K> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.slot.words.desert(&ticket);
        }
    }
}

impl<K: Key> Engine<K> {
    /// Asks a slot that the caller pins, and waits until `sleep` is over.
    pub(crate) async fn wait_for<'e, S: Future<Output = ()>>(
        &'e self,
        slot: &'e Slot<K>,
        how: Admit,
        sleep: impl FnOnce(Duration) -> S,
    ) -> Result<Permit<'e, K>, Rejection> {
        let mut caller = Caller { engine: self, slot, how, ticket: None };
        if let Poll::Ready(answer) = poll_fn(|context| Poll::Ready(caller.poll(context.waker()))).await {
            return answer;
        }
        // Not before: whoever needn't wait needs no timer.
        let mut sleep = pin!(sleep(self.policy(slot).max_wait()));
        poll_fn(|context| {
            let polled = caller.poll(context.waker());
            if polled.is_pending() && sleep.as_mut().poll(context).is_ready() {
                return Poll::Ready(caller.give_up());
            }
            polled
        })
        .await
    }

    /// Asks a slot that the caller pins, and blocks the thread while that waits.
    pub(crate) fn block_for<'e>(
        &'e self,
        slot: &'e Slot<K>,
        how: Admit,
        at_most: Duration,
    ) -> Result<Permit<'e, K>, Rejection> {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut caller = Caller { engine: self, slot, how, ticket: None };
        if let Poll::Ready(answer) = caller.poll(&waker) {
            return answer;
        }
        let most = saturating_nanos(self.policy(slot).max_wait().min(at_most));
        let began = self.read_clock();
        loop {
            if let Poll::Ready(answer) = caller.poll(&waker) {
                return answer;
            }
            let left = most.saturating_sub(self.read_clock().nanos_since(began));
            if left == 0 {
                return caller.give_up();
            }
            std::thread::park_timeout(Duration::from_nanos(left));
        }
    }
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
