//! The usual atomics, telling a recorder of each access: for models of what the engine asks of a machine's caches.
//!
//! A recorder is a thread's own. It is asked before each access, and may let others go first; then it is told what was done, to
//! which address and from which line of the source. Layouts are those of the types in use otherwise. The map isn't seen, nor is
//! what boxcar and thread_local do; of a mutex only the taking is.

use std::cell::RefCell;
use std::panic::Location;
use std::rc::Rc;
use std::sync::{LockResult, OnceLock, TryLockError, TryLockResult};

pub(super) use std::sync::MutexGuard;

use once_cell::race::OnceBox;
use portable_atomic::AtomicUsize;

use super::Ordering;

/// What was done to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It was read.
    Load,
    /// It was written.
    Store,
    /// It was read and written in one step.
    Swap,
    /// A compare-and-swap found another value.
    Lost,
    /// A value made on first use was put there.
    Publish,
    /// A mutex was taken, or found taken.
    Lock,
}

/// One access to a word that threads share.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Where the word is.
    pub address: usize,
    /// What was done.
    pub kind: Kind,
    /// The line of the engine that did it.
    pub by: &'static Location<'static>,
}

/// Who is told of a thread's accesses.
pub trait Recorder {
    /// The thread is about to access a word; it does so when this returns.
    fn turn(&self);

    /// It did.
    fn note(&self, access: Access);
}

thread_local!(static RECORDER: RefCell<Option<Rc<dyn Recorder>>> = const { RefCell::new(None) });

/// Tells a recorder of what this thread does from now on, or nobody.
pub fn record(recorder: Option<Rc<dyn Recorder>>) {
    RECORDER.with(|current| *current.borrow_mut() = recorder);
}

fn recorder() -> Option<Rc<dyn Recorder>> {
    // None for a thread that is about to end.
    RECORDER.try_with(|current| current.borrow().clone()).ok().flatten()
}

#[track_caller]
fn step<T, R>(word: &T, access: impl FnOnce() -> (Kind, R)) -> R {
    let Some(recorder) = recorder() else { return access().1 };
    recorder.turn();
    let (kind, result) = access();
    recorder.note(Access { address: std::ptr::from_ref(word).addr(), kind, by: Location::caller() });
    result
}

static CORES: AtomicUsize = AtomicUsize::new(0);

/// Makes targets take the machine for one of so many cores; 0 for as many as it has.
pub fn pretend_cores(cores: usize) {
    CORES.store(cores, Ordering::Relaxed);
}

pub(crate) fn cores() -> usize {
    match CORES.load(Ordering::Relaxed) {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        cores => cores,
    }
}

macro_rules! atomic {
    ($(#[$doc:meta])* $Atomic:ident, $word:ty) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $Atomic(portable_atomic::$Atomic);

        #[allow(dead_code, missing_docs, reason = "each word uses some of them, as they are in std")]
        impl $Atomic {
            #[must_use]
            pub const fn new(value: $word) -> Self {
                Self(portable_atomic::$Atomic::new(value))
            }

            #[track_caller]
            pub fn load(&self, ordering: Ordering) -> $word {
                step(self, || (Kind::Load, self.0.load(ordering)))
            }

            #[track_caller]
            pub fn store(&self, value: $word, ordering: Ordering) {
                step(self, || (Kind::Store, self.0.store(value, ordering)));
            }

            #[track_caller]
            pub fn fetch_add(&self, value: $word, ordering: Ordering) -> $word {
                step(self, || (Kind::Swap, self.0.fetch_add(value, ordering)))
            }

            #[track_caller]
            pub fn fetch_sub(&self, value: $word, ordering: Ordering) -> $word {
                step(self, || (Kind::Swap, self.0.fetch_sub(value, ordering)))
            }

            #[track_caller]
            pub fn fetch_max(&self, value: $word, ordering: Ordering) -> $word {
                step(self, || (Kind::Swap, self.0.fetch_max(value, ordering)))
            }

            #[track_caller]
            pub fn fetch_update(
                &self,
                won: Ordering,
                lost: Ordering,
                mut next: impl FnMut($word) -> Option<$word>,
            ) -> Result<$word, $word> {
                let mut word = self.load(lost);
                while let Some(next) = next(word) {
                    match self.compare_exchange(word, next, won, lost) {
                        Ok(word) => return Ok(word),
                        Err(other) => word = other,
                    }
                }
                Err(word)
            }

            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $word,
                new: $word,
                won: Ordering,
                lost: Ordering,
            ) -> Result<$word, $word> {
                step(self, || {
                    let result = self.0.compare_exchange(current, new, won, lost);
                    (if result.is_ok() { Kind::Swap } else { Kind::Lost }, result)
                })
            }

            /// Never fails for nothing: a run can be repeated.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $word,
                new: $word,
                won: Ordering,
                lost: Ordering,
            ) -> Result<$word, $word> {
                self.compare_exchange(current, new, won, lost)
            }
        }
    };
}

atomic!(
    /// As in std.
    AtomicU32,
    u32
);
atomic!(
    /// As in std.
    AtomicU64,
    u64
);
atomic!(
    /// As in portable-atomic.
    AtomicU128,
    u128
);

/// As the facade's own.
#[derive(Debug)]
pub(crate) struct Later<T>(OnceLock<T>);

impl<T> Later<T> {
    pub(crate) fn new(_: impl FnOnce() -> T) -> Self {
        Self(OnceLock::new())
    }

    pub(crate) fn made(value: T) -> Self {
        Self(value.into())
    }

    #[track_caller]
    pub(crate) fn get(&self) -> Option<&T> {
        step(self, || (Kind::Load, self.0.get()))
    }

    #[track_caller]
    pub(crate) fn make(&self, value: impl FnOnce() -> T) {
        step(self, || (Kind::Publish, _ = self.0.get_or_init(value)));
    }
}

/// As the facade's own.
#[derive(Debug)]
pub(crate) struct Lazy<T>(OnceBox<T>);

impl<T> Default for Lazy<T> {
    fn default() -> Self {
        Self(OnceBox::new())
    }
}

impl<T: Default> Lazy<T> {
    #[track_caller]
    pub(crate) fn get(&self) -> Option<&T> {
        step(self, || (Kind::Load, self.0.get()))
    }

    #[track_caller]
    pub(crate) fn force(&self) -> &T {
        match self.get() {
            Some(value) => value,
            None => step(self, || (Kind::Publish, self.0.get_or_init(Box::default))),
        }
    }
}

/// A mutex whose waiters take turns with its holder.
#[derive(Debug, Default)]
pub(super) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    #[track_caller]
    pub(super) fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        if recorder().is_none() {
            return self.0.try_lock();
        }
        step(self, || (Kind::Lock, self.0.try_lock()))
    }

    #[track_caller]
    pub(super) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        if recorder().is_none() {
            return self.0.lock();
        }
        loop {
            match step(self, || (Kind::Lock, self.0.try_lock())) {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
                Err(TryLockError::WouldBlock) => {}
            }
        }
    }
}
