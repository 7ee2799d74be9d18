//! What the model checker sees in place of atomics and the map.

use std::borrow::Borrow;
use std::io::Write;
use std::ops::Deref;
use std::sync::{LazyLock, Mutex, Once, PoisonError};

use loom::sync::atomic;
use loom::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Ordering;

/// An ordering that can be replaced by name, to see which model misses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Role {
    name: &'static str,
    ordering: Ordering,
}

pub(crate) const fn role(name: &'static str, ordering: Ordering) -> Role {
    Role { name, ordering }
}

/// `PORTCULLIS_LOOM_WEAKEN=gate.read=Relaxed`, read once per process.
static WEAKENED: LazyLock<Option<(String, Ordering)>> = LazyLock::new(|| {
    let text = std::env::var("PORTCULLIS_LOOM_WEAKEN").ok()?;
    let (name, ordering) = text.split_once('=')?;
    let ordering = match ordering {
        "Relaxed" => Ordering::Relaxed,
        "Acquire" => Ordering::Acquire,
        "Release" => Ordering::Release,
        "AcqRel" => Ordering::AcqRel,
        _ => panic!("{ordering} isn't weaker than anything"),
    };
    Some((name.to_owned(), ordering))
});

impl Role {
    fn ordering(self) -> Ordering {
        match &*WEAKENED {
            Some((name, weakened)) if name == self.name => {
                // Past the capture of the tests' output: that no model failed says something only if one came by here.
                static SAID: Once = Once::new();
                SAID.call_once(|| {
                    let _ = writeln!(std::io::stderr(), "weakened: {name}");
                });
                *weakened
            }
            _ => self.ordering,
        }
    }

    /// As a load has it.
    fn of_load(self) -> Ordering {
        match self.ordering() {
            Ordering::AcqRel => Ordering::Acquire,
            ordering => ordering,
        }
    }

    /// Loom takes a sequentially consistent access for AcqRel, and knows fences: one before each such access is how processors have them
    /// that know no such accesses either.
    fn fence(self) {
        if self.ordering() == Ordering::SeqCst {
            atomic::fence(Ordering::SeqCst);
        }
    }
}

pub(crate) fn fence(role: Role) {
    atomic::fence(role.ordering());
}

macro_rules! atomic {
    ($Atomic:ident, $word:ty) => {
        #[derive(Debug)]
        pub(crate) struct $Atomic(atomic::$Atomic);

        #[allow(dead_code, reason = "each word uses some of them")]
        impl $Atomic {
            pub(crate) fn new(value: $word) -> Self {
                Self(atomic::$Atomic::new(value))
            }

            pub(crate) fn load(&self, role: Role) -> $word {
                role.fence();
                self.0.load(role.of_load())
            }

            pub(crate) fn store(&self, value: $word, role: Role) {
                self.0.store(value, role.ordering());
            }

            pub(crate) fn fetch_add(&self, value: $word, role: Role) -> $word {
                self.0.fetch_add(value, role.ordering())
            }

            pub(crate) fn fetch_sub(&self, value: $word, role: Role) -> $word {
                self.0.fetch_sub(value, role.ordering())
            }

            pub(crate) fn fetch_max(&self, value: $word, role: Role) -> $word {
                self.0.fetch_max(value, role.ordering())
            }

            pub(crate) fn fetch_update(
                &self,
                won: Role,
                lost: Role,
                step: impl FnMut($word) -> Option<$word>,
            ) -> Result<$word, $word> {
                self.0.fetch_update(won.ordering(), lost.ordering(), step)
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $word,
                new: $word,
                won: Role,
                lost: Role,
            ) -> Result<$word, $word> {
                won.fence();
                self.0.compare_exchange(current, new, won.ordering(), lost.ordering())
            }

            pub(crate) fn compare_exchange_weak(
                &self,
                current: $word,
                new: $word,
                won: Role,
                lost: Role,
            ) -> Result<$word, $word> {
                self.0.compare_exchange_weak(current, new, won.ordering(), lost.ordering())
            }
        }
    };
}

atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);

/// A value that is there from the start, since loom's objects must be born before threads share them, and seen once it is made.
#[derive(Debug)]
pub(crate) struct Later<T> {
    value: T,
    is_made: bool,
    /// Only where a model is about the making: each look at it multiplies the executions.
    is_made_meanwhile: Option<atomic::AtomicBool>,
}

impl<T> Later<T> {
    pub(crate) fn new(value: impl FnOnce() -> T) -> Self {
        Self { value: value(), is_made: false, is_made_meanwhile: None }
    }

    pub(crate) fn made(value: T) -> Self {
        Self { value, is_made: true, is_made_meanwhile: None }
    }

    pub(crate) fn awaited(value: T) -> Self {
        Self { value, is_made: false, is_made_meanwhile: Some(atomic::AtomicBool::new(false)) }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        let is_made = self.is_made_meanwhile.as_ref().map_or(self.is_made, |made| made.load(Ordering::Acquire));
        is_made.then_some(&self.value)
    }

    pub(crate) fn make(&self, _: impl FnOnce() -> T) {
        if let Some(made) = &self.is_made_meanwhile {
            made.store(true, Ordering::Release);
        }
    }
}

/// A 128-bit word, which loom hasn't: an atomic number that stands for the value. Equal values have the same number, so a CAS compares
/// as it should, and the orderings are those of the number.
#[derive(Debug)]
pub(crate) struct AtomicU128 {
    number: AtomicU64,
    /// Plain std: loom's threads take turns, and none is switched away from inside.
    values: Mutex<Vec<u128>>,
}

impl AtomicU128 {
    pub(crate) fn new(value: u128) -> Self {
        Self { number: AtomicU64::new(0), values: Mutex::new(vec![value]) }
    }

    fn number(&self, value: u128) -> u64 {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let number = values.iter().position(|known| *known == value).unwrap_or_else(|| {
            values.push(value);
            values.len() - 1
        });
        number as u64
    }

    fn value(&self, number: u64) -> u128 {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)[number as usize]
    }

    pub(crate) fn load(&self, role: Role) -> u128 {
        self.value(self.number.load(role))
    }

    pub(crate) fn compare_exchange_weak(&self, current: u128, new: u128, won: Role, lost: Role) -> Result<u128, u128> {
        let (current, new) = (self.number(current), self.number(new));
        let result = self.number.compare_exchange_weak(current, new, won, lost);
        result.map(|number| self.value(number)).map_err(|number| self.value(number))
    }
}

/// One shard of the map: a lock with the shape of DashMap's, around a list.
#[derive(Debug)]
pub(crate) struct Map<K>(RwLock<Vec<(K, u32)>>);

impl<K> Default for Map<K> {
    fn default() -> Self {
        Self(RwLock::new(Vec::new()))
    }
}

/// The shard, locked for reading, and one value in it.
pub(crate) struct Ref<'a, K> {
    shard: RwLockReadGuard<'a, Vec<(K, u32)>>,
    at: usize,
}

impl<K> Deref for Ref<'_, K> {
    type Target = u32;

    fn deref(&self) -> &u32 {
        &self.shard[self.at].1
    }
}

/// The shard, locked for writing.
pub(crate) enum Entry<'a, K> {
    Occupied(Occupied<'a, K>),
    Vacant(Vacant<'a, K>),
}

pub(crate) struct Occupied<'a, K> {
    shard: RwLockWriteGuard<'a, Vec<(K, u32)>>,
    at: usize,
}

pub(crate) struct Vacant<'a, K> {
    shard: RwLockWriteGuard<'a, Vec<(K, u32)>>,
    key: K,
}

impl<K: Eq> Map<K> {
    fn place<Q: Eq + ?Sized>(shard: &[(K, u32)], key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        shard.iter().position(|(known, _)| known.borrow() == key)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Vec<(K, u32)>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get<Q: Eq + ?Sized>(&self, key: &Q) -> Option<Ref<'_, K>>
    where
        K: Borrow<Q>,
    {
        let shard = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Self::place(&shard, key).map(|at| Ref { shard, at })
    }

    pub(crate) fn contains_key<Q: Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    pub(crate) fn entry(&self, key: K) -> Entry<'_, K> {
        let shard = self.write();
        match Self::place(&shard, &key) {
            Some(at) => Entry::Occupied(Occupied { shard, at }),
            None => Entry::Vacant(Vacant { shard, key }),
        }
    }

    pub(crate) fn remove_if<Q: Eq + ?Sized>(&self, key: &Q, goes: impl FnOnce(&K, &u32) -> bool) -> Option<(K, u32)>
    where
        K: Borrow<Q>,
    {
        let mut shard = self.write();
        let at = Self::place(&shard, key)?;
        let (known, value) = &shard[at];
        goes(known, value).then(|| shard.swap_remove(at))
    }
}

impl<K> Occupied<'_, K> {
    pub(crate) fn get(&self) -> &u32 {
        &self.shard[self.at].1
    }
}

impl<'a, K> Vacant<'a, K> {
    pub(crate) fn insert(mut self, value: u32) -> RwLockWriteGuard<'a, Vec<(K, u32)>> {
        self.shard.push((self.key, value));
        self.shard
    }
}
