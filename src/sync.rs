//! The one file that names the model checker and the recorder.
//!
//! Everything that races is built from these types: `portable-atomic`, std and DashMap as a rule; under `--cfg portcullis_loom` those of
//! loom, and what `modelled.rs` makes of them: a 128-bit word, the map, and orderings that can be weakened one at a time. Under
//! `--cfg portcullis_trace` they are the usual ones, and `traced.rs` tells a recorder of each access.

#[cfg(portcullis_loom)]
mod modelled;
#[cfg(portcullis_trace)]
pub mod traced;

#[cfg(not(any(portcullis_loom, portcullis_trace)))]
pub(crate) use portable_atomic::{AtomicU32, AtomicU64, AtomicU128};

#[cfg(portcullis_trace)]
pub(crate) use traced::{AtomicU32, AtomicU64, AtomicU128, Later, Lazy, cores};

#[cfg(portcullis_loom)]
pub(crate) use modelled::{AtomicU32, AtomicU64, AtomicU128, Entry, Later, Map, Role, fence, role};

pub(crate) use std::sync::atomic::Ordering;
#[cfg(not(portcullis_loom))]
pub(crate) use std::sync::atomic::fence;

/// An ordering, named by its role in the protocol.
#[cfg(not(portcullis_loom))]
pub(crate) type Role = Ordering;

/// Gives an ordering its name, by which `loom-tests/run --weaken` relaxes it. Anywhere else it is the ordering.
#[cfg(not(portcullis_loom))]
pub(crate) const fn role(_: &'static str, ordering: Ordering) -> Role {
    ordering
}

/// The map from keys to slots.
#[cfg(not(portcullis_loom))]
pub(crate) type Map<K> = dashmap::DashMap<K, u32, ahash::RandomState>;
#[cfg(not(portcullis_loom))]
pub(crate) use dashmap::mapref::entry::Entry;

/// A mutex that can't be poisoned: no invariant of ours spans a panic, so one panic mustn't fail every later call.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(inner::Mutex<T>);

#[cfg(not(any(portcullis_loom, portcullis_trace)))]
use std::sync as inner;

#[cfg(portcullis_trace)]
use traced as inner;

#[cfg(portcullis_loom)]
use loom::sync as inner;

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(inner::Mutex::new(value))
    }

    #[cfg_attr(portcullis_trace, track_caller)]
    pub(crate) fn lock(&self) -> inner::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The guard, if nobody else has it: never waits.
    #[cfg_attr(portcullis_trace, track_caller)]
    pub(crate) fn try_lock(&self) -> Option<inner::MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// A value that is made when it turns out to be needed, and stays.
#[cfg(not(any(portcullis_loom, portcullis_trace)))]
#[derive(Debug)]
pub(crate) struct Later<T>(std::sync::OnceLock<T>);

#[cfg(not(any(portcullis_loom, portcullis_trace)))]
impl<T> Later<T> {
    /// Nothing yet. The model makes the value here, and only lets it be seen later.
    pub(crate) fn new(_: impl FnOnce() -> T) -> Self {
        Self(std::sync::OnceLock::new())
    }

    pub(crate) fn made(value: T) -> Self {
        Self(value.into())
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }

    pub(crate) fn make(&self, value: impl FnOnce() -> T) {
        self.0.get_or_init(value);
    }
}

/// A boxed value made on first use: a pointer, so that what is seldom needed costs a slot 8 bytes. The model makes it at once: loom's
/// objects must be born before threads share them.
#[cfg(not(portcullis_trace))]
#[derive(Debug)]
pub(crate) struct Lazy<T>(once_cell::race::OnceBox<T>);

#[cfg(not(portcullis_trace))]
impl<T: Default> Default for Lazy<T> {
    fn default() -> Self {
        let lazy = Self(once_cell::race::OnceBox::new());
        if cfg!(portcullis_loom) {
            lazy.force();
        }
        lazy
    }
}

#[cfg(not(portcullis_trace))]
impl<T: Default> Lazy<T> {
    /// The value if anybody made it.
    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// The value, made now if need be.
    pub(crate) fn force(&self) -> &T {
        self.0.get_or_init(Box::default)
    }
}

/// The machine's cores.
#[cfg(not(portcullis_trace))]
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
