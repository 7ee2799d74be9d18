//! What each thread remembers of where keys live, so that a key asked for often costs no lock and no shared write.
//!
//! The tables are hashed for speed alone: keys chosen to collide only displace each other, and the map is asked, whose hash is
//! made for such keys.
//!
//! What is remembered is a slot and the epoch of its tenant, never a pointer: it may be out of date, and the caller checks the
//! epoch once its permit pins the slot, or before it believes a refusal (protocol K). A thread that asks by key has a table of 1,024
//! places, 48 KiB for keys of 24 bytes beside what the keys themselves hold. While its keys are in each other's way it grows, to
//! 16,384 places at most. A new thread takes over the table of one that ended; they go with the engine.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::fmt;
use std::hash::{BuildHasher, Hash};

use crossbeam_utils::CachePadded;
use rustc_hash::FxBuildHasher;
use thread_local::ThreadLocal;

/// Places in a new table, a power of two; each key has one where it may be.
const PLACES: usize = 1_024;
/// What a table grows by, and to.
const GROWTH: usize = 4;
const MOST_PLACES: usize = PLACES * GROWTH * GROWTH;
/// Of so many misses one takes another key's place: a key that is asked for rarely isn't worth the copy.
const PATIENCE: u32 = 16;

/// Where a key was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) slot: u32,
    /// Of the tenant that was there.
    pub(crate) epoch: u64,
}

struct Entry<K> {
    hash: u64,
    place: Place,
    key: K,
}

struct Table<K> {
    /// A power of two of them.
    entries: Box<[Option<Entry<K>>]>,
    /// Since the table has this size, those that found another key in the way.
    misses: u32,
}

impl<K> Table<K> {
    fn new(places: usize) -> Self {
        Self { entries: std::iter::repeat_with(|| None).take(places).collect(), misses: 0 }
    }

    fn index(&self, hash: u64) -> usize {
        hash as usize & (self.entries.len() - 1)
    }

    /// The place of a key, if it is worth another's.
    fn place(&mut self, hash: u64) -> Option<&mut Option<Entry<K>>> {
        let index = self.index(hash);
        let is_in_the_way = self.entries[index].as_ref().is_some_and(|entry| entry.hash != hash);
        if is_in_the_way {
            self.misses = self.misses.wrapping_add(1);
            if self.misses as usize >= 2 * self.entries.len() && self.entries.len() < MOST_PLACES {
                self.grow();
                return self.place(hash);
            }
            if !self.misses.is_multiple_of(PATIENCE) {
                return None;
            }
        }
        self.entries.get_mut(index)
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let old = std::mem::replace(self, Self::new(self.entries.len() * GROWTH));
        for entry in old.entries.into_iter().flatten() {
            let index = self.index(entry.hash);
            self.entries[index] = Some(entry);
        }
    }
}

#[inline]
fn hash<Q: Hash + ?Sized>(key: &Q) -> u64 {
    FxBuildHasher.hash_one(key)
}

/// The tables of an engine's threads, each on a line of its own: being borrowed is written there.
pub(crate) struct Cache<K: Send>(ThreadLocal<CachePadded<RefCell<Table<K>>>>);

impl<K: Send> Default for Cache<K> {
    fn default() -> Self {
        Self(ThreadLocal::new())
    }
}

impl<K: Send> fmt::Debug for Cache<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

impl<K: Send> Cache<K> {
    /// Where this thread last found a key. None also while the key's own code runs.
    #[inline]
    pub(crate) fn recall<Q>(&self, key: &Q) -> Option<Place>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if cfg!(portcullis_loom) {
            return None;
        }
        let hash = hash(key);
        let table = self.0.get()?.try_borrow().ok()?;
        let entry = table.entries.get(table.index(hash))?.as_ref()?;
        (entry.hash == hash && entry.key.borrow() == key).then_some(entry.place)
    }

    /// Remembers where a key is, if its place is free, its own, or was in the way often enough.
    pub(crate) fn remember<Q>(&self, key: &Q, place: Place)
    where
        Q: Hash + ToOwned<Owned = K> + ?Sized,
    {
        if cfg!(portcullis_loom) {
            return;
        }
        let hash = hash(key);
        let table = self.0.get_or(Self::table);
        if !table.try_borrow_mut().is_ok_and(|mut table| table.place(hash).is_some()) {
            return;
        }
        // The keys' own code, to copy this one and to drop the one that it displaces, runs while nothing is borrowed.
        let entry = Entry { hash, place, key: key.to_owned() };
        let _displaced = table.try_borrow_mut().ok().and_then(|mut table| {
            let index = table.index(hash);
            table.entries[index].replace(entry)
        });
    }

    #[cold]
    #[inline(never)]
    fn table() -> CachePadded<RefCell<Table<K>>> {
        CachePadded::new(RefCell::new(Table::new(PLACES)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { slot: 7, epoch: 3 };

    #[test]
    fn a_key_is_known_where_it_was_remembered_last() {
        let cache = Cache::<String>::default();
        cache.remember("a", PLACE);
        assert_eq!(cache.recall("a"), Some(PLACE));
        assert_eq!((cache.recall("b"), Cache::<String>::default().recall("a")), (None, None));
        let moved = Place { slot: 8, epoch: 1 };
        cache.remember("a", moved);
        assert_eq!(cache.recall("a"), Some(moved));
    }

    /// Keys that all have one place, and every second one hash.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Crowded(u64);

    impl Hash for Crowded {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            // Above what the place is taken from.
            state.write_u64((self.0 % 2) << 48);
        }
    }

    #[test]
    fn a_key_in_the_way_stays_until_it_was_in_the_way_often() {
        let cache = Cache::<Crowded>::default();
        let [first, same, other] = [0, 2, 1].map(Crowded);
        assert!(hash(&first) == hash(&same) && hash(&first) != hash(&other));
        assert_eq!(hash(&first) as usize % PLACES, hash(&other) as usize % PLACES);
        cache.remember(&first, PLACE);
        // Not to be told from it by the hash, so it counts as the same key come back.
        assert_eq!(cache.recall(&same), None);
        let mut asked = 0;
        while cache.recall(&other).is_none() {
            assert_eq!(cache.recall(&first), Some(PLACE));
            cache.remember(&other, PLACE);
            asked += 1;
        }
        assert!((2..=PATIENCE).contains(&asked), "{asked}");
        assert_eq!(cache.recall(&first), None);
        cache.remember(&first, PLACE);
    }

    #[test]
    fn a_table_whose_keys_are_in_each_others_way_grows_to_its_bound() {
        let cache = Cache::<usize>::default();
        let places = || cache.0.get().map(|table| RefCell::borrow(table).entries.len());
        let known = |keys: usize| (0..keys).filter(|key| cache.recall(key).is_some()).count();
        let ask = |keys: usize, times: usize| {
            for key in (0..keys).cycle().take(times * keys) {
                if cache.recall(&key).is_none() {
                    cache.remember(&key, PLACE);
                }
            }
        };
        ask(100, 100);
        assert_eq!(places(), Some(PLACES));
        let before = known(100);
        ask(10_000, 20);
        assert_eq!(places(), Some(MOST_PLACES));
        assert!(before > 80 && known(10_000) > 6_000, "{before} of 100, {} of 10,000", known(10_000));
        ask(100_000, 1);
        assert_eq!(places(), Some(MOST_PLACES));
    }

    #[test]
    fn each_thread_has_its_own() {
        let cache = Cache::<u8>::default();
        cache.remember(&1, PLACE);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| cache.recall(&1));
            assert!(matches!(other.join(), Ok(None)));
        });
        assert_eq!(cache.recall(&1), Some(PLACE));
    }

    thread_local!(static NOSY: Cache<Nosy> = Cache::default());

    /// A key whose own code asks the cache that it is in.
    #[derive(Debug, Eq)]
    struct Nosy;

    impl Hash for Nosy {
        fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
    }

    impl PartialEq for Nosy {
        fn eq(&self, _: &Self) -> bool {
            NOSY.with(|cache| cache.remember(&Self, PLACE));
            true
        }
    }

    impl Clone for Nosy {
        fn clone(&self) -> Self {
            NOSY.with(|cache| cache.recall(&Self));
            Self
        }
    }

    impl Drop for Nosy {
        fn drop(&mut self) {
            let _ = NOSY.try_with(|cache| cache.recall(&0_u8));
        }
    }

    impl Borrow<u8> for Nosy {
        fn borrow(&self) -> &u8 {
            &0
        }
    }

    #[test]
    fn keys_may_ask_while_they_are_compared_copied_and_dropped() {
        NOSY.with(|cache| {
            cache.remember(&Nosy, PLACE);
            assert_eq!(cache.recall(&Nosy), Some(PLACE));
            let moved = Place { slot: 8, epoch: 1 };
            cache.remember(&Nosy, moved);
            assert_eq!(cache.recall(&Nosy), Some(moved));
        });
    }
}
