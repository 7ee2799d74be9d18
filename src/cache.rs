//! What a thread remembers of where keys live: a table of its own, so that a key asked for often costs no lock and no shared write.
//!
//! What is remembered is a slot and the epoch of its tenant, never a pointer: it may be out of date, and the caller checks the
//! epoch once its permit pins the slot, or before it believes a refusal (protocol K). A thread has one table for each of the
//! engines that it asked last, 4 at most, of 1,024 places each: 48 KiB for keys of 24 bytes, beside what the keys themselves hold.
//! They go with the thread. An engine's tables are never used for another, since its number isn't; but until its threads end or ask
//! other engines, its keys stay in them.

use std::any::Any;
use std::borrow::Borrow;
use std::cell::RefCell;

/// Places in a table; each key has one where it may be.
const PLACES: usize = 1_024;
/// Engines that a thread remembers.
const ENGINES: usize = 4;
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
    entries: Box<[Option<Entry<K>>]>,
    misses: u32,
}

impl<K> Table<K> {
    fn new() -> Self {
        Self { entries: (0..PLACES).map(|_| None).collect(), misses: 0 }
    }

    /// The entry that a hash has.
    fn at(&self, hash: u64) -> Option<&Entry<K>> {
        self.entries.get(hash as usize % PLACES)?.as_ref()
    }
}

/// The tables of a thread by their engine's number, the latest made first.
type Tables = Vec<(u64, Box<dyn Any>)>;

thread_local! {
    static TABLES: RefCell<Tables> = const { RefCell::new(Vec::new()) };
}

fn table<K: 'static>(tables: &Tables, engine: u64) -> Option<&Table<K>> {
    tables.iter().find(|(number, _)| *number == engine)?.1.downcast_ref()
}

/// Where the thread last found a key. None also while the key's own code runs, and when the thread ends.
#[inline]
pub(crate) fn recall<K, Q>(engine: u64, hash: u64, key: &Q) -> Option<Place>
where
    K: Borrow<Q> + 'static,
    Q: Eq + ?Sized,
{
    if cfg!(portcullis_loom) {
        return None;
    }
    TABLES
        .try_with(|tables| {
            let tables = tables.try_borrow().ok()?;
            let entry = table::<K>(&tables, engine)?.at(hash)?;
            (entry.hash == hash && entry.key.borrow() == key).then_some(entry.place)
        })
        .ok()?
}

/// Remembers where a key is, if its place is free, its own, or was in the way often enough.
pub(crate) fn remember<K: 'static>(engine: u64, hash: u64, place: Place, key: impl FnOnce() -> K) {
    if cfg!(portcullis_loom) {
        return;
    }
    let is_worth_it = TABLES.try_with(|tables| {
        let Ok(mut tables) = tables.try_borrow_mut() else { return false };
        table_mut::<K>(&mut tables, engine).is_none_or(|table| {
            table.misses = table.misses.wrapping_add(1);
            let is_in_the_way = table.at(hash).is_some_and(|entry| entry.hash != hash);
            !is_in_the_way || table.misses.is_multiple_of(PATIENCE)
        })
    });
    if is_worth_it != Ok(true) {
        return;
    }
    // The keys' own code, to copy this one and to drop those that it displaces, runs while nothing is borrowed.
    let entry = Entry { hash, place, key: key() };
    let _displaced = TABLES.try_with(|tables| {
        let mut tables = tables.try_borrow_mut().ok()?;
        let mut forgotten = None;
        if table_mut::<K>(&mut tables, engine).is_none() {
            forgotten = if tables.len() < ENGINES { None } else { tables.pop() };
            tables.insert(0, (engine, Box::new(Table::<K>::new())));
        }
        let replaced = table_mut(&mut tables, engine)?.entries.get_mut(hash as usize % PLACES)?.replace(entry);
        Some((forgotten, replaced))
    });
}

fn table_mut<K: 'static>(tables: &mut Tables, engine: u64) -> Option<&mut Table<K>> {
    tables.iter_mut().find(|(number, _)| *number == engine)?.1.downcast_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place = Place { slot: 7, epoch: 3 };

    fn known(engine: u64, hash: u64, key: &str) -> Option<Place> {
        recall::<String, str>(engine, hash, key)
    }

    #[test]
    fn a_key_is_known_by_engine_hash_and_itself() {
        remember(1, 5, PLACE, || "a".to_owned());
        assert_eq!(known(1, 5, "a"), Some(PLACE));
        assert_eq!((known(2, 5, "a"), known(1, 6, "a"), known(1, 5, "b")), (None, None, None));
        assert_eq!(recall::<u8, u8>(1, 5, &1), None);
        let moved = Place { slot: 8, epoch: 1 };
        remember(1, 5, moved, || "a".to_owned());
        assert_eq!(known(1, 5, "a"), Some(moved));
    }

    #[test]
    fn a_key_in_the_way_stays_until_it_was_in_the_way_often() {
        let (first, second) = (5, 5 + PLACES as u64);
        remember(1, first, PLACE, || "first".to_owned());
        let mut asked = 0;
        while known(1, second, "second").is_none() {
            assert_eq!(known(1, first, "first"), Some(PLACE));
            remember(1, second, PLACE, || "second".to_owned());
            asked += 1;
        }
        assert!((2..=PATIENCE).contains(&asked), "{asked}");
        assert_eq!(known(1, first, "first"), None);
    }

    #[test]
    fn a_thread_remembers_its_last_engines() {
        for engine in 0..=ENGINES as u64 {
            remember(engine, 1, PLACE, || "a".to_owned());
        }
        assert_eq!(known(0, 1, "a"), None);
        assert!((1..=ENGINES as u64).all(|engine| known(engine, 1, "a") == Some(PLACE)));
        TABLES.with(|tables| assert_eq!(tables.borrow().len(), ENGINES));
    }

    /// A key whose own code asks the cache.
    #[derive(Clone)]
    struct Nosy;

    impl PartialEq for Nosy {
        fn eq(&self, _: &Self) -> bool {
            remember(9, 2, PLACE, || Nosy);
            recall::<u8, u8>(9, 3, &0).is_none()
        }
    }

    impl Eq for Nosy {}

    impl Drop for Nosy {
        fn drop(&mut self) {
            assert!(TABLES.try_with(|tables| tables.try_borrow_mut().is_ok()) != Ok(false), "dropped within a borrow");
        }
    }

    #[test]
    fn keys_may_ask_while_they_are_compared_copied_and_dropped() {
        let ended = std::thread::spawn(|| {
            remember(9, 1, PLACE, || {
                remember(9, 1, PLACE, || Nosy);
                Nosy
            });
            assert_eq!(recall::<Nosy, Nosy>(9, 1, &Nosy), Some(PLACE));
            remember(9, 1, PLACE, || Nosy);
        });
        assert!(ended.join().is_ok());
    }
}
