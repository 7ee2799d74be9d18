//! The record of targets: which key lives in which slot, and who may go when there is no room.
//!
//! The map is the truth about keys; the arena gives slots a stable address; the free list hands them on. A key's slot is found, made
//! or taken away only under the lock of the key's shard, and no user code runs under one but the key's own `Hash` and `Eq`.
//!
//! A target may go when nothing is in flight, nobody holds its handle, and it has lain still for long enough (R19). That it did is
//! seen from its counters at two visits: the hot path writes no time. The order of eviction (protocol K): look; under the
//! shard's lock retire the bulkhead, so that no call can begin; judge only now; take the key out; a new epoch and generation for
//! the slot; the free list.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::counters::Counter;
use crate::engine::Key;
use crate::event::hub::Hub;
use crate::policy::Policy;
use crate::rejection::Rejection;
use crate::slot::{Patience, Slot};
use crate::sync::{AtomicU64, Entry, Map, Mutex, Ordering, Role, role};
use crate::time::Now;

/// Slots that are made at once: they share one allocation.
const CHUNK: usize = if cfg!(portcullis_loom) { 2 } else { 64 };
/// Slots that the addition of a key visits, to see whether somebody may go.
const STEP: usize = 16;

/// Acquire: pairs with `GIVE`.
const READ: Role = role("taken.read", Ordering::Acquire);
/// Acquire: pairs with `GIVE`; whoever takes the room of one who left finds its slot vacant. Release: pairs with `READ`.
const TAKE: Role = role("taken.take", Ordering::AcqRel);
/// Release: pairs with `TAKE`. Acquire: comes after the `TAKE` whose room it gives back.
const GIVE: Role = role("taken.give", Ordering::AcqRel);

pub(crate) struct Registry<K> {
    map: Map<K>,
    arena: boxcar::Vec<Box<[Slot<K>]>>,
    places: Mutex<Places>,
    policies: Policies,
    /// Keys in the map, and those about to be or just gone.
    taken: AtomicU64,
    max_targets: usize,
    patience: Patience,
    incarnations: Counter,
    exhausted: Counter,
    seed: u64,
}

/// Which slots are free.
#[derive(Debug, Default)]
struct Places {
    /// Slots that were used before.
    vacant: Vec<u32>,
    /// Slots that were ever used.
    used: u32,
    /// Where the next sweeping step begins. A place, not a count of visits: taken modulo a `used` that grows, a count may come
    /// by the same slots for ever.
    next: usize,
}

impl<K: Key> Registry<K> {
    pub(crate) fn new(max_targets: usize, patience: Patience, seed: u64, policy: Policy) -> Self {
        Self {
            map: Map::default(),
            arena: boxcar::Vec::new(),
            places: Mutex::new(Places::default()),
            policies: Policies::new(policy),
            taken: AtomicU64::new(0),
            max_targets: max_targets.min(u32::MAX as usize),
            patience,
            incarnations: Counter::default(),
            exhausted: Counter::default(),
            seed,
        }
    }

    pub(crate) fn policies(&self) -> &Policies {
        &self.policies
    }

    pub(crate) fn len(&self) -> usize {
        // Not the map's own: it adds its shards up one after another, and may count a key that moved on.
        self.taken.load(READ) as usize
    }

    pub(crate) fn max_targets(&self) -> usize {
        self.max_targets
    }

    pub(crate) fn exhausted(&self) -> u64 {
        self.exhausted.get()
    }

    #[inline]
    pub(crate) fn slot(&self, index: u32) -> Option<&Slot<K>> {
        self.arena.get(index as usize / CHUNK)?.get(index as usize % CHUNK)
    }

    /// All slots that were ever used.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &Slot<K>> {
        let used = self.places.lock().used;
        (0..used).filter_map(|index| self.slot(index))
    }

    /// Uses the slot of a key under its shard's lock, if the key is known.
    pub(crate) fn find<'a, Q, R>(&'a self, key: &Q, with: impl FnOnce(&'a Slot<K>) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let entry = self.map.get(key)?;
        self.slot(*entry).map(with)
    }

    /// Uses the slot of a key under its shard's lock; makes it if the key is new. The hub hears of who had to go for it.
    pub(crate) fn find_or_make<'a, Q, R>(
        &'a self,
        key: &Q,
        now: impl FnOnce() -> Now,
        hub: &Arc<Hub<K>>,
        with: impl FnOnce(&'a Slot<K>) -> R,
    ) -> Result<R, Rejection>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if let Some(entry) = self.map.get(key)
            && let Some(slot) = self.slot(*entry)
        {
            return Ok(with(slot));
        }
        // In any case, so that the idle go while there is still room; and before a shard is locked, since it locks them.
        self.sweep_step(STEP, now(), hub);
        let is_full = self.taken.load(READ) >= self.max_targets as u64;
        // The key may have come in meanwhile and be what fills it. If not, it isn't worth a copy.
        if is_full && !self.map.contains_key(key) {
            return Err(self.exhaust());
        }
        // User code, so before the shard is locked.
        let (owned, name) = (key.to_owned(), Arc::new(key.to_owned()));
        let salt = self.salt(&*name);
        match self.map.entry(owned) {
            Entry::Occupied(entry) => self.slot(*entry.get()).map(with).ok_or_else(|| self.exhaust()),
            Entry::Vacant(entry) => {
                let slot = self.move_in(name, salt).ok_or_else(|| self.exhaust())?;
                let _guard = entry.insert(slot.index);
                Ok(with(slot))
            }
        }
    }

    fn exhaust(&self) -> Rejection {
        self.exhausted.add(1);
        Rejection::Exhausted { max_targets: self.max_targets }
    }

    /// Makes a key's tenant, if there is room. Under the lock of the key's shard, so that no two threads take room for one key.
    fn move_in(&self, key: Arc<K>, salt: u32) -> Option<&Slot<K>> {
        let more = |taken| (taken < self.max_targets as u64).then_some(taken + 1);
        self.taken.fetch_update(TAKE, READ, more).ok()?;
        let slot = self.slot(self.place())?;
        let policy = (Policies::DEFAULT, self.policies.get(Policies::DEFAULT));
        slot.occupy(key, self.incarnations.add(1) + 1, salt, policy);
        Some(slot)
    }

    /// What makes a target's jitter its own, the same in every run of a build with the same seed.
    fn salt(&self, key: &K) -> u32 {
        // Not the map's hasher, which differs between processors; std's has no random part unless it is asked for one.
        let mut hasher = std::hash::DefaultHasher::new();
        (self.seed, key).hash(&mut hasher);
        hasher.finish() as u32
    }

    fn place(&self) -> u32 {
        let mut places = self.places.lock();
        if let Some(index) = places.vacant.pop() {
            return index;
        }
        let index = places.used;
        if index as usize / CHUNK >= self.arena.count() {
            let policy = self.policies.get(Policies::DEFAULT);
            self.arena.push((0..CHUNK as u32).map(|offset| Slot::new(index + offset, policy)).collect());
        }
        places.used += 1;
        index
    }

    /// Visits every slot once and lets go of whoever may; how many went.
    pub(crate) fn sweep(&self, now: Now, hub: &Arc<Hub<K>>) -> usize {
        let used = self.places.lock().used as usize;
        self.sweep_step(used, now, hub)
    }

    fn sweep_step(&self, visits: usize, now: Now, hub: &Arc<Hub<K>>) -> usize {
        let (from, used) = {
            let mut places = self.places.lock();
            let (from, used) = (places.next, places.used as usize);
            places.next = (from + visits).checked_rem(used).unwrap_or(0);
            (from, used)
        };
        let visited = (0..visits.min(used)).filter_map(|step| self.slot(((from + step) % used) as u32));
        visited.filter(|slot| self.evict(slot, now, hub)).count()
    }

    fn evict(&self, slot: &Slot<K>, now: Now, hub: &Arc<Hub<K>>) -> bool {
        let is_idle = || slot.is_idle(self.policies.get(slot.terms().1), now, self.patience);
        if slot.is_pinned() || !is_idle() {
            return false;
        }
        let Some(key) = slot.tenant().as_ref().map(|tenant| Arc::clone(&tenant.key)) else { return false };
        let gone = self.map.remove_if(&*key, |_, index| {
            if *index != slot.index || slot.is_pinned() {
                return false;
            }
            let bulkhead = &slot.words.bulkhead;
            if !bulkhead.retire() {
                return false;
            }
            let goes = is_idle();
            if goes {
                // Under the shard's lock, like the key itself: whoever misses the key finds its room.
                self.taken.fetch_sub(1, GIVE);
            } else {
                slot.words.reinstate();
            }
            goes
        });
        if gone.is_none() {
            return false;
        }
        let report = slot.vacate(now);
        if let Some(report) = &report {
            hub.write(slot.index, report);
        }
        // Only now may another move in.
        self.places.lock().vacant.push(slot.index);
        if let Some(report) = report {
            hub.tell(report);
        }
        true
    }
}

/// The policies that were ever in force, equal ones once: a target names one by its index, so that replacing it needs neither a
/// refcount nor a reclamation scheme. They stay until the engine goes, here and as the map's key, about 400 bytes each.
#[derive(Debug)]
pub(crate) struct Policies {
    default: Policy,
    arena: boxcar::Vec<Policy>,
    known: Mutex<std::collections::HashMap<Policy, u32>>,
}

impl Policies {
    pub(crate) const DEFAULT: u32 = 0;

    fn new(default: Policy) -> Self {
        let policies = Self {
            default: default.clone(),
            arena: boxcar::Vec::new(),
            known: Mutex::new(std::collections::HashMap::new()),
        };
        policies.intern(default);
        policies
    }

    /// The index of a policy.
    pub(crate) fn intern(&self, policy: Policy) -> u32 {
        let mut known = self.known.lock();
        if let Some(index) = known.get(&policy) {
            return *index;
        }
        // Bounded by memory long before u32.
        let index = self.arena.push(policy.clone()) as u32;
        known.insert(policy, index);
        index
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Policy {
        self.arena.get(index as usize).unwrap_or(&self.default)
    }
}

#[cfg(test)]
mod tests {
    use crate::bulkhead::stripe;
    use crate::engine::Engine;

    #[test]
    fn a_visit_leaves_the_permits_of_a_busy_target_where_they_are() {
        let engine: Engine<u8> = Engine::builder().clock(crate::Clock::mock().0).build();
        engine.admit(&7).unwrap().success();
        assert_eq!(engine.sweep(), 0);
        assert!(engine.slot(0).unwrap().words.bulkhead.acquire_stashed(stripe::own()));
    }
}
