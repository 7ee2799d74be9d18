//! Subscriptions: the ordered transitions over a bounded channel.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

use super::Transition;
use crate::counters::Counter;

/// Receives every transition of an engine from now on, each target's in the order of their numbers.
///
/// A full channel loses the newest, counted in [`dropped`](Self::dropped): no call ever waits for a subscriber.
#[derive(Debug)]
pub struct Subscription<K = String> {
    receiver: Receiver<Arc<Transition<K>>>,
    dropped: Arc<Counter>,
}

impl<K> Subscription<K> {
    /// Waits for the next transition.
    ///
    /// # Errors
    ///
    /// [`RecvError`] once the engine is gone and everything was received.
    pub fn recv(&self) -> Result<Arc<Transition<K>>, RecvError> {
        self.receiver.recv()
    }

    /// Waits for the next transition, for a while.
    ///
    /// # Errors
    ///
    /// [`RecvTimeoutError`] if none came in time, or the engine is gone.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<Arc<Transition<K>>, RecvTimeoutError> {
        self.receiver.recv_timeout(timeout)
    }

    /// The next transition, if there is one.
    ///
    /// # Errors
    ///
    /// [`TryRecvError`] if there is none yet, or the engine is gone.
    pub fn try_recv(&self) -> Result<Arc<Transition<K>>, TryRecvError> {
        self.receiver.try_recv()
    }

    /// Transitions lost because the channel was full.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.get()
    }
}

/// The engine's end of a subscription.
#[derive(Debug)]
pub(crate) struct Sender<K> {
    sender: SyncSender<Arc<Transition<K>>>,
    dropped: Arc<Counter>,
}

impl<K> Sender<K> {
    /// Sends, or counts the loss; false once the subscriber is gone.
    pub(crate) fn send(&self, transition: &Arc<Transition<K>>) -> bool {
        match self.sender.try_send(Arc::clone(transition)) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.dropped.add(1);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

/// A channel that holds up to `capacity` transitions, 1 to 65,536: it is allocated at once.
pub(crate) fn channel<K>(capacity: usize) -> (Sender<K>, Subscription<K>) {
    let (sender, receiver) = sync_channel(capacity.clamp(1, 1 << 16));
    let dropped = Arc::new(Counter::default());
    (Sender { sender, dropped: Arc::clone(&dropped) }, Subscription { receiver, dropped })
}
