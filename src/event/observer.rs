//! Observers: called at each transition, unregistered by a guard.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};

use super::Transition;

/// Hears of every transition of an engine.
///
/// It is called on the thread that made the transition, after the fact and with nothing locked: it may call the engine, and may
/// panic, which is counted and hurts nobody. It should be quick, since that thread's call waits for it; for slow work take a
/// [`Subscription`](super::Subscription). Two threads may call it at once, and two transitions of a target may reach it in either
/// order: [`Transition::sequence`] tells.
pub trait Observer<K = String>: Send + Sync {
    /// Takes note of a transition.
    fn on_transition(&self, transition: &Transition<K>);
}

impl<K, F: Fn(&Transition<K>) + Send + Sync> Observer<K> for F {
    fn on_transition(&self, transition: &Transition<K>) {
        self(transition);
    }
}

thread_local! {
    /// Observers that this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// An observer's place in the list.
pub(crate) struct Entry<K> {
    observer: Box<dyn Observer<K>>,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_gone: bool,
    inside: usize,
}

impl<K> std::fmt::Debug for Entry<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("state", &self.state).finish_non_exhaustive()
    }
}

impl<K> Entry<K> {
    pub(crate) fn new(observer: impl Observer<K> + 'static) -> Self {
        Self { observer: Box::new(observer), state: Mutex::default(), left: Condvar::new() }
    }

    /// Calls the observer unless it is gone; false if it panicked.
    pub(crate) fn call(&self, transition: &Transition<K>) -> bool {
        {
            let mut state = self.lock();
            if state.is_gone {
                return true;
            }
            state.inside += 1;
        }
        let enter = |by: i32| {
            // The thread is ending if its local is gone: nobody can then drop a guard inside.
            let _ = DEPTH.try_with(|depth| depth.set(depth.get().saturating_add_signed(by)));
        };
        enter(1);
        let result = catch_unwind(AssertUnwindSafe(|| self.observer.on_transition(transition)));
        enter(-1);
        let is_fine = result.is_ok();
        // A payload may panic again when it is dropped.
        if let Err(payload) = result {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        }
        self.lock().inside -= 1;
        self.left.notify_all();
        is_fine
    }

    fn leave(&self) {
        let mut state = self.lock();
        state.is_gone = true;
        let is_inside_one = DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false);
        if is_inside_one {
            return;
        }
        while state.inside > 0 {
            state = self.left.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps an observer registered; dropping it unregisters.
///
/// Once the drop has returned, the observer isn't called again: the drop waits for calls that other threads are in. Dropped
/// inside an observer it doesn't wait, since two of them could wait for each other: no call begins after it then, but one on
/// another thread may still be ending. To observe as long as the engine lives, [`forever`](Self::forever) it.
#[must_use = "dropping the guard unregisters the observer"]
pub struct ObserverGuard(Option<Unregister>);

type Unregister = Box<dyn FnOnce() + Send + Sync>;

impl ObserverGuard {
    pub(crate) fn new<K: Send + Sync + 'static>(entry: &Arc<Entry<K>>, list: Weak<List<K>>) -> Self {
        let entry = Arc::clone(entry);
        Self(Some(Box::new(move || {
            entry.leave();
            if let Some(list) = list.upgrade() {
                list.remove(&entry);
            }
        })))
    }

    /// Leaves the observer registered for the engine's life.
    pub fn forever(mut self) {
        self.0 = None;
    }
}

impl std::fmt::Debug for ObserverGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObserverGuard").finish_non_exhaustive()
    }
}

impl Drop for ObserverGuard {
    fn drop(&mut self) {
        if let Some(unregister) = self.0.take() {
            unregister();
        }
    }
}

/// The registered observers, copied on write: a dispatch holds no lock while it calls them.
#[derive(Debug)]
pub(crate) struct List<K>(Mutex<Arc<Vec<Arc<Entry<K>>>>>);

impl<K> Default for List<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K> List<K> {
    pub(crate) fn current(&self) -> Arc<Vec<Arc<Entry<K>>>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add(&self, entry: Arc<Entry<K>>) {
        self.replace(|entries| entries.push(entry));
    }

    fn remove(&self, entry: &Arc<Entry<K>>) {
        self.replace(|entries| entries.retain(|other| !Arc::ptr_eq(other, entry)));
    }

    fn replace(&self, change: impl FnOnce(&mut Vec<Arc<Entry<K>>>)) {
        let before = {
            let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let mut entries = Vec::clone(&list);
            change(&mut entries);
            std::mem::replace(&mut *list, Arc::new(entries))
        };
        // An observer's own drop runs here, with nothing locked.
        drop(before);
    }
}
