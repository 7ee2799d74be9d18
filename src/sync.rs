//! The one file that names the model checker.
//!
//! Everything that races is built from these types: `portable-atomic` and std as a rule, loom's under
//! `--cfg portcullis_loom`. Loom has no 128-bit atomic, so the model puts a loom mutex around the word: each operation
//! stays one indivisible step that loom interleaves, but its orderings are those of a lock, stronger than the real ones.

#[cfg(not(portcullis_loom))]
pub(crate) use portable_atomic::{AtomicU32, AtomicU64, AtomicU128};

#[cfg(portcullis_loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(portcullis_loom)]
pub(crate) use modelled::AtomicU128;

pub(crate) use std::sync::atomic::Ordering;

/// A mutex that can't be poisoned: no invariant of ours spans a panic, so one panic mustn't fail every later call.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(inner::Mutex<T>);

#[cfg(not(portcullis_loom))]
use std::sync as inner;

#[cfg(portcullis_loom)]
use loom::sync as inner;

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(inner::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> inner::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A boxed value made on first use. The model makes it at once: loom's objects must be born before threads share them.
#[derive(Debug)]
pub(crate) struct Lazy<T>(std::sync::OnceLock<Box<T>>);

impl<T: Default> Default for Lazy<T> {
    fn default() -> Self {
        let lazy = Self(std::sync::OnceLock::new());
        if cfg!(portcullis_loom) {
            lazy.force();
        }
        lazy
    }
}

impl<T: Default> Lazy<T> {
    /// The value if anybody made it.
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get().map(|boxed| &**boxed)
    }

    /// The value, made now if need be.
    pub(crate) fn force(&self) -> &T {
        self.0.get_or_init(Box::default)
    }
}

#[cfg(portcullis_loom)]
mod modelled {
    use super::Ordering;
    use loom::sync::Mutex;

    /// A 128-bit word for the model: a loom mutex whose every use is one operation.
    #[derive(Debug)]
    pub(crate) struct AtomicU128(Mutex<u128>);

    impl AtomicU128 {
        pub(crate) fn new(value: u128) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn load(&self, _: Ordering) -> u128 {
            *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }

        pub(crate) fn compare_exchange_weak(
            &self,
            current: u128,
            new: u128,
            _: Ordering,
            _: Ordering,
        ) -> Result<u128, u128> {
            let mut word = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if *word == current {
                *word = new;
                Ok(current)
            } else {
                Err(*word)
            }
        }
    }
}
