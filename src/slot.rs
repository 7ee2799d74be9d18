//! A place in the arena: the words of a target, and whose they are at present.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::bits::Field;
use crate::counters::Counter;
use crate::event::Transition;
use crate::gate::{GENERATION_BITS, State};
use crate::policy::Policy;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, Role, role};
use crate::target::{Change, Words};
use crate::time::Now;

const POLICY: Field = Field::lowest(32);
const VERSION: Field = POLICY.above(32);
const _: () = assert!(VERSION.end() == 64);

/// Acquire: pairs with `SET_TERMS`; whoever sees an index sees its policy in the arena.
const READ_TERMS: Role = role("terms.read", Ordering::Acquire);
/// Release: pairs with `READ_TERMS`.
const SET_TERMS: Role = role("terms.set", Ordering::Release);
/// Acquire: pairs with `WIDEN`.
const READ_SEQUENCE: Role = role("sequence.read", Ordering::Acquire);
/// Release: pairs with `READ_SEQUENCE`. Acquire: comes after the numbers that it exceeds.
const WIDEN: Role = role("sequence.widen", Ordering::AcqRel);
/// Acquire: pairs with `UNPIN`; whoever finds nobody holding the tenant sees what its holders did.
const READ_HANDLES: Role = role("handles.read", Ordering::Acquire);
/// Acquire and release: as `UNPIN`.
const PIN: Role = role("handles.pin", Ordering::AcqRel);
/// Release: pairs with `READ_HANDLES`. Acquire: comes after the holders that left before.
const UNPIN: Role = role("handles.unpin", Ordering::AcqRel);

/// A bit of the handles' word that no number of handles reaches.
const CONFIGURED: u32 = 1 << 31;

/// Where a target lives. Its address never changes, so permits borrow it; its tenant may.
///
/// Four cache lines of its own, so that no neighbour's calls are felt; the words first, in the order of theirs.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Slot<K> {
    pub(crate) words: Words,
    pub(crate) index: u32,
    /// What pins the tenant: `configured | handles`. Raised only under the shard's lock or from a live handle.
    handles: AtomicU32,
    /// Which policy is in force: `version | policy`, one word so that evidence names the policy that judged.
    terms: AtomicU64,
    /// The widest generation reported so far: the narrow one in the gate, unwrapped.
    sequence: AtomicU64,
    /// The most successes that a snapshot has shown.
    pub(crate) success_seen: Counter,
    /// Serves as the lock of what is done by hand, too. Never held while user code runs.
    tenant: Mutex<Option<Tenant<K>>>,
}

/// Whose the slot is.
#[derive(Debug)]
pub(crate) struct Tenant<K> {
    pub(crate) key: Arc<K>,
    /// Its number among all tenants, under a bit that says whether the limit is one set by hand, which nothing else moves.
    number: u64,
    /// The wide generation that the tenant found.
    pub(crate) first: u64,
    pub(crate) sighting: Sighting,
}

/// What the sweeper saw at its last visit that found something moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sighting {
    /// Calls and refusals so far; no number of them is [`NEVER`].
    moved: u64,
    at: Now,
}

/// Not sighted yet. Instead of an option, for the size of a slot.
const NEVER: u64 = u64::MAX;

/// How long a target must lie still before it may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) idle_after: Duration,
    pub(crate) forget_after: Duration,
}

/// Above every number of a tenant.
const LIMIT_BY_HAND: u64 = 1 << 63;

impl<K> Tenant<K> {
    pub(crate) fn incarnation(&self) -> u64 {
        self.number & !LIMIT_BY_HAND
    }

    pub(crate) fn is_limit_by_hand(&self) -> bool {
        self.number & LIMIT_BY_HAND != 0
    }

    pub(crate) fn set_limit_by_hand(&mut self, is_by_hand: bool) {
        self.number = self.incarnation() | if is_by_hand { LIMIT_BY_HAND } else { 0 };
    }
}

impl<K> Slot<K> {
    pub(crate) fn new(index: u32, policy: &Policy) -> Self {
        Self {
            words: Words::new(policy),
            index,
            handles: AtomicU32::new(0),
            terms: AtomicU64::new(0),
            sequence: AtomicU64::new(0),
            success_seen: Counter::default(),
            tenant: Mutex::new(None),
        }
    }

    /// Moves a tenant in. Only for whoever took the slot off the free list.
    pub(crate) fn occupy(&self, key: Arc<K>, incarnation: u64, salt: u32, (index, policy): (u32, &Policy)) {
        let first = self.sequence.load(READ_SEQUENCE);
        let tenant =
            Tenant { key, number: incarnation, first, sighting: Sighting { moved: NEVER, at: Now::default() } };
        // Before it is there to be seen: a sweeper that took the last tenant's counts for its own would find it idle when it has as many.
        self.terms.store(u64::from(index), SET_TERMS);
        self.words.recycle(policy, salt);
        self.success_seen.reset();
        let before = self.tenant.lock().replace(tenant);
        debug_assert!(before.is_none(), "a slot on the free list has no tenant");
        // Last: it publishes everything above to whoever takes a permit.
        self.words.bulkhead.reinstate(policy.first_limit());
    }

    /// Moves the tenant out of a retired slot whose key is no longer in the map; the report if it had to be forgotten.
    pub(crate) fn vacate(&self, now: Now) -> Option<Arc<Transition<K>>> {
        self.words.next_epoch();
        let begins = self.words.beginning(now);
        let change = self.words.by_hand(crate::event::Cause::Forgotten, now, |word| word.forget(begins));
        let tenant = self.tenant.lock().take();
        let (change, tenant) = (change?, tenant?);
        let is_news = change.moved.from.state() != State::Closed;
        let report = self.report(change, &tenant);
        is_news.then_some(report)
    }

    pub(crate) fn tenant(&self) -> impl std::ops::DerefMut<Target = Option<Tenant<K>>> + '_ {
        self.tenant.lock()
    }

    /// The tenant, if nobody else has it just now.
    pub(crate) fn tenant_if_free(&self) -> Option<impl std::ops::DerefMut<Target = Option<Tenant<K>>> + '_> {
        self.tenant.try_lock()
    }

    pub(crate) fn terms(&self) -> (u32, u32) {
        let terms = self.terms.load(READ_TERMS);
        (VERSION.get(terms) as u32, POLICY.get(terms) as u32)
    }

    /// Puts another policy in force. Under the tenant's lock.
    pub(crate) fn set_policy(&self, policy: u32) {
        let (version, _) = self.terms();
        self.terms.store(VERSION.set(policy.into(), version.wrapping_add(1).into()), SET_TERMS);
    }

    pub(crate) fn pin(&self) {
        self.handles.fetch_add(1, PIN);
    }

    pub(crate) fn unpin(&self) {
        self.handles.fetch_sub(1, UNPIN);
    }

    /// Pins the tenant for good: a policy or limit was set for it by hand. From a live handle.
    pub(crate) fn configure(&self) {
        let set = |handles| (handles & CONFIGURED == 0).then_some(handles | CONFIGURED);
        let _ = self.handles.fetch_update(PIN, READ_HANDLES, set);
    }

    /// Makes the report of a change. The caller pins the tenant.
    pub(crate) fn describe(&self, change: Change) -> Option<Arc<Transition<K>>> {
        let tenant = self.tenant.lock();
        Some(self.report(change, tenant.as_ref()?))
    }

    pub(crate) fn report(&self, change: Change, tenant: &Tenant<K>) -> Arc<Transition<K>> {
        let Change { moved, cause, evidence, asked_ms, at } = change;
        Arc::new(Transition {
            target: Arc::clone(&tenant.key),
            from: moved.from.state(),
            to: moved.to.state(),
            cause,
            sequence: self.widen(moved.to.generation()).saturating_sub(tenant.first),
            generation: moved.to.generation(),
            incarnation: tenant.incarnation(),
            at: Duration::from_nanos(at.nanos()),
            wall: SystemTime::now(),
            evidence,
            wait: (moved.to.state() == State::Open).then(|| at.until_tick(moved.to.tick())),
            retry_after: (asked_ms > 0).then(|| Duration::from_millis(asked_ms)),
        })
    }

    /// How many transitions of its tenant have been reported.
    pub(crate) fn transitions(&self, tenant: &Tenant<K>) -> u64 {
        self.sequence.load(READ_SEQUENCE).saturating_sub(tenant.first)
    }

    /// The wide number of a generation. Every mover comes here once, so the widest number seen lags by as many as are
    /// between their CAS and this, never by the half of the narrow range that would make it ambiguous.
    fn widen(&self, generation: u32) -> u64 {
        let unused = 32 - GENERATION_BITS;
        let seen = self.sequence.load(READ_SEQUENCE);
        let ahead = (generation.wrapping_sub(seen as u32) << unused).cast_signed() >> unused;
        let wide = seen.wrapping_add_signed(ahead.into());
        self.sequence.fetch_max(wide, WIDEN);
        wide
    }

    /// Whether the tenant has lain still for long enough (R19). Notes what it sees for the next visit.
    pub(crate) fn is_idle(&self, policy: &Policy, now: Now, patience: Patience) -> bool {
        let mut tenant = self.tenant.lock();
        let Some(tenant) = &mut *tenant else { return false };
        let usage = self.words.bulkhead.usage();
        let refusals = self.words.bulkhead.refusals().total();
        let moved = usage.settled.wrapping_add(refusals);
        if tenant.sighting.moved != moved || usage.in_flight > 0 {
            tenant.sighting = Sighting { moved, at: now };
            return false;
        }
        let gate = self.words.gate.load();
        let still = Duration::from_nanos(now.nanos_since(tenant.sighting.at));
        match gate.state() {
            State::ForcedOpen | State::Disabled => false,
            State::Closed if !self.words.holds_evidence(gate, policy, now) => still >= patience.idle_after,
            State::Closed | State::Open | State::HalfOpen => still >= patience.forget_after.max(policy.memory()),
        }
    }

    pub(crate) fn is_pinned(&self) -> bool {
        self.handles.load(READ_HANDLES) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of `docs::operations` and of the policies' arena.
    #[test]
    fn a_target_takes_no_more_than_the_docs_say() {
        let (lane, far) = crate::window::lane::BYTES;
        let (rare, chunk) = (crate::target::RARE_BYTES, crate::window::marks::CHUNK_BYTES);
        let (samples, stripe) = crate::adaptive::samples::BYTES;
        let (queue, running) = (crate::bulkhead::QUEUE_BYTES, crate::stall::lane::BYTES);
        let limiter = crate::target::LIMITER_BYTES;
        let (slot, policy) = (size_of::<Slot<String>>(), size_of::<Policy>());
        let sizes = [slot, rare, chunk, policy, lane, far, samples, stripe, queue, running, limiter];
        let most = [256, 192, 128, 200, 128, 424, 384, 128, 64, 128, 48];
        let shadows = [crate::shadow::candidate::BYTES, crate::shadow::desk::ENTRY_BYTES, crate::shadow::desk::BYTES];
        assert!(shadows.iter().zip([544, 112, 1_024]).all(|(size, most)| *size <= most), "{shadows:?}");
        let fits = sizes.iter().zip(most).all(|(size, most)| *size <= most);
        assert!(fits, "{sizes:?} bytes, the docs say {most:?}");
    }

    #[test]
    fn a_generation_that_wrapped_is_numbered_on() {
        let slot: Slot<String> = Slot::new(0, &Policy::default());
        let lap = 1 << GENERATION_BITS;
        assert_eq!([400_000, 800_000, 9].map(|generation| slot.widen(generation)), [400_000, 800_000, lap + 9]);
        // A mover that comes late, with a number from before the wrap.
        assert_eq!((slot.widen(1_000_000), slot.widen(10)), (1_000_000, lap + 10));
    }

    #[test]
    fn a_tenant_is_idle_once_it_lay_still_with_nothing_in_flight() {
        let policy = Policy::default();
        let slot: Slot<u8> = Slot::new(0, &policy);
        let patience = Patience { idle_after: Duration::from_secs(1), forget_after: Duration::from_secs(9) };
        let is_idle = |second: u64| slot.is_idle(&policy, Now::from_millis(1_000 * second), patience);
        assert!(!is_idle(0), "nobody lives here");
        slot.occupy(Arc::new(7), 1, 0, (0, &policy));
        assert_eq!(slot.words.bulkhead.acquire(0), Ok(()));
        assert!(!is_idle(1) && !is_idle(5));
        slot.words.bulkhead.cancel(0);
        assert!(is_idle(6));
    }
}
