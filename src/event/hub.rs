//! Where transitions go: the log, the subscriptions, the observers.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::DerefMut;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::Transition;
use super::channel::{self, Sender, Subscription};
use super::observer::{Entry, List, Observer, ObserverGuard};
use super::order::Order;
use crate::counters::Counter;
use crate::sync::Mutex;

#[derive(Debug)]
pub(crate) struct Hub<K> {
    ordered: Mutex<Ordered<K>>,
    observers: Arc<List<K>>,
    panics: Counter,
}

/// What is delivered in order, under one lock that no user code runs in.
#[derive(Debug)]
struct Ordered<K> {
    order: Order<K>,
    log: VecDeque<Arc<Transition<K>>>,
    capacity: usize,
    overwritten: u64,
    /// What fell out of the log and isn't dropped yet.
    displaced: Vec<Arc<Transition<K>>>,
    subscribers: Vec<Sender<K>>,
}

impl<K> Ordered<K> {
    /// Writes what is due to the log and the channels.
    fn deliver(&mut self, due: Vec<Arc<Transition<K>>>) {
        for transition in due {
            self.subscribers.retain(|subscriber| subscriber.send(&transition));
            self.log.push_back(transition);
            if self.log.len() > self.capacity {
                self.displaced.extend(self.log.pop_front());
                self.overwritten += 1;
            }
        }
    }
}

type Job = Box<dyn FnOnce()>;

thread_local! {
    /// The dispatches that wait for the one that this thread is in; none if it is in none.
    static PENDING: RefCell<Option<VecDeque<Job>>> = const { RefCell::new(None) };
}

impl<K: Debug + Send + Sync + 'static> Hub<K> {
    pub(crate) fn new(capacity: usize) -> Arc<Self> {
        let ordered = Ordered {
            order: Order::default(),
            log: VecDeque::new(),
            capacity,
            overwritten: 0,
            displaced: Vec::new(),
            subscribers: Vec::new(),
        };
        Arc::new(Self { ordered: Mutex::new(ordered), observers: Arc::default(), panics: Counter::default() })
    }

    /// Writes a transition to the log and the channels. What fell out of the log waits for [`tell`](Self::tell) to drop it: a key's own
    /// drop mustn't run under the locks that the caller may hold.
    pub(crate) fn write(&self, slot: u32, transition: &Arc<Transition<K>>) {
        let mut ordered = self.lock();
        let mut due = Vec::new();
        ordered.order.offer(slot, Arc::clone(transition), &mut |transition| due.push(transition));
        ordered.deliver(due);
    }

    /// Calls the observers. The caller holds nothing that they could need.
    pub(crate) fn tell(self: &Arc<Self>, transition: Arc<Transition<K>>) {
        drop(self.displaced());
        let hub = Arc::clone(self);
        dispatch(Box::new(move || hub.call(&transition)));
    }

    fn displaced(&self) -> Vec<Arc<Transition<K>>> {
        std::mem::take(&mut self.lock().displaced)
    }

    fn call(&self, transition: &Transition<K>) {
        #[cfg(feature = "tracing")]
        if catch_unwind(AssertUnwindSafe(|| trace(transition))).is_err() {
            self.panics.add(1);
        }
        for entry in self.observers.current().iter() {
            if !entry.call(transition) {
                self.panics.add(1);
            }
        }
    }

    pub(crate) fn observe(&self, observer: impl Observer<K> + 'static) -> ObserverGuard {
        let entry = Arc::new(Entry::new(observer));
        self.observers.add(Arc::clone(&entry));
        ObserverGuard::new(&entry, Arc::downgrade(&self.observers))
    }

    pub(crate) fn subscribe(&self, capacity: usize) -> Subscription<K> {
        let (sender, subscription) = channel::channel(capacity);
        self.lock().subscribers.push(sender);
        subscription
    }

    /// The log, oldest first, after giving up on holes that `now` makes too old.
    pub(crate) fn log(&self, now: Duration) -> Vec<Arc<Transition<K>>> {
        let (log, displaced) = {
            let mut ordered = self.lock();
            let mut due = Vec::new();
            ordered.order.give_up(now, &mut |transition| due.push(transition));
            ordered.deliver(due);
            (ordered.log.iter().cloned().collect(), std::mem::take(&mut ordered.displaced))
        };
        drop(displaced);
        log
    }

    /// Transitions that the log no longer has or never got.
    pub(crate) fn dropped(&self) -> u64 {
        let ordered = self.lock();
        ordered.overwritten + ordered.order.dropped()
    }

    pub(crate) fn panics(&self) -> u64 {
        self.panics.get()
    }

    fn lock(&self) -> impl DerefMut<Target = Ordered<K>> + '_ {
        self.ordered.lock()
    }
}

/// Runs a job now, or after the job that this thread is in: an observer that causes transitions can't recurse.
fn dispatch(job: Job) {
    let mut job = Some(job);
    let is_first = PENDING.try_with(|pending| match &mut *pending.borrow_mut() {
        Some(queue) => {
            queue.extend(job.take());
            false
        }
        empty => {
            *empty = Some(VecDeque::new());
            true
        }
    });
    if let Some(job) = job {
        run(job);
    }
    if is_first == Ok(true) {
        while let Some(job) = PENDING.with(|pending| next(&mut pending.borrow_mut())) {
            run(job);
        }
    }
}

/// Observers' panics are caught where they are counted; a key that panics when it is dropped mustn't end the dispatch either.
fn run(job: Job) {
    let _ = catch_unwind(AssertUnwindSafe(job));
}

/// The next waiting job; without one the thread leaves its dispatch.
fn next(pending: &mut Option<VecDeque<Job>>) -> Option<Job> {
    let job = pending.as_mut().and_then(VecDeque::pop_front);
    if job.is_none() {
        *pending = None;
    }
    job
}

#[cfg(feature = "tracing")]
fn trace<K: Debug + 'static>(transition: &Transition<K>) {
    let Transition { from, to, cause, sequence, .. } = transition;
    let target = super::name(&*transition.target);
    let wall = transition.wall.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let wall_ms = u64::try_from(wall).unwrap_or(u64::MAX);
    tracing::info!(name: "transition", target: "portcullis", target = %target, %from, %to, %cause, sequence, wall_ms, "{target}: {from} to {to}");
}
