//! The limit's promise: never more than `limit` calls in flight, never `Saturated` while permits lie idle for good.
//!
//! Permits come from the [`pool`]; a [`magazine`] stashes a few per stripe, so that taking and giving back is one write to a line
//! of the caller's own. The protocol, with the numbers that the comments below refer to:
//!
//! 1. `out` in the pool = in flight + stashed. Open magazines and announcements = `open`, always.
//! 2. Take: from the own magazine if it is open under the current version of the limit; under another version, close it first.
//! 3. Else from the pool, if there is room.
//! 4. A closed magazine is opened on the way if the limit is large enough for stashes and not near: announced in the pool by the same
//!    CAS that takes the permit, under the version read before it.
//! 5. An opener that comes second strikes its announcement off.
//! 6. An open, empty one is refilled by a batch on the way, if one for every stripe is left. If it closed meanwhile, the opener takes
//!    the batch back.
//! 7. Give: one `fetch_add` on the own magazine. If it was closed, one permit goes on to the pool; past the high mark, half of the
//!    stash does.
//! 8. Refuse only after all stripes were swept. With one stripe there is nothing to sweep.
//! 9. Close: one CAS on the magazine, then one RMW on the pool.
//! 10. Lower the limit: the pool's limit, then the version, then sweep, in this order: a magazine opened under the old limit is
//!     then known as such. To raise it the first step is enough.
//!
//! Stripes that are added later begin closed, and the first stays as it was: growth is no step of the protocol. The limit from which
//! there are stashes rises with it; magazines that are open by then are closed by the next sweep.
//!
//! Once a lowering has returned, no call starts until fewer than the new limit are in flight. In a race `Saturated` may be said
//! while another thread's refill, spill, sweep or release is under way; a lone caller never hears it wrongly (R21).
//!
//! Nothing rests on an order between two words that was read back: 2 and 10 pass a message through `version`, the rest is each word's
//! own modification order.

pub mod magazine;
pub mod pool;
pub mod stripe;

use stripe::{Stripe, Stripes};

use crate::counters::{self, Counter};
use crate::snapshot::Refusals;
use crate::sync::{AtomicU64, Ordering, Role, role};

/// Permits that an empty magazine takes from the pool at once.
const BATCH: u64 = if cfg!(portcullis_loom) { 1 } else { 32 };
/// Permits that must be left for each stripe when a magazine is opened: near the limit, what one stashes another must sweep for.
const SPARE: u64 = if cfg!(portcullis_loom) { 1 } else { 8 };
/// A stash of this size is halved.
const HIGH_MARK: u64 = if cfg!(portcullis_loom) { 2 } else { 512 };

/// Acquire: pairs with `RAISE`; whoever sees a version sees the limit lowered before it.
const READ: Role = role("version.read", Ordering::Acquire);
/// Release: pairs with `READ`.
const RAISE: Role = role("version.raise", Ordering::Release);

/// Why no permit was to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As many as the limit are in flight.
    Full { limit: u32 },
    /// The slot has no tenant: ask the map.
    Retired,
}

/// The permits of one target, over its stripes.
///
/// In the order of its lines: what every admission reads and hardly anybody writes; the first stripe; the pool, whose writers would take a
/// line that is read away from every core.
#[derive(Debug)]
#[repr(C)]
pub struct Bulkhead {
    /// Lowered limits so far; never wraps.
    version: AtomicU64,
    stripes: Stripes,
    pool: pool::Cell,
}

impl Bulkhead {
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self::over(limit, Stripes::default())
    }

    #[must_use]
    pub fn over(limit: u32, stripes: Stripes) -> Self {
        Self { version: AtomicU64::new(0), pool: pool::Cell::new(limit), stripes }
    }

    /// What `thread` writes.
    #[inline]
    pub fn stripe(&self, thread: usize) -> &Stripe {
        self.stripes.of(thread)
    }

    /// What all threads write.
    pub fn each_stripe(&self) -> impl Iterator<Item = &Stripe> + Clone {
        self.stripes.iter()
    }

    /// Whether there is more than one stripe.
    #[must_use]
    pub fn is_striped(&self) -> bool {
        self.stripes.count() > 1
    }

    /// Notes that two threads met on a word of a stripe.
    #[cold]
    pub fn meet(&self) {
        self.stripes.meet();
    }

    #[inline]
    fn magazine(&self, thread: usize) -> &magazine::Cell {
        &self.stripe(thread).magazine
    }

    /// Whether the limit is large enough that stashes can't make a target look full that isn't.
    fn is_abundant(&self, pool: pool::Word) -> bool {
        pool.limit() >= 4 * self.stripes.count() as u64 * BATCH
    }

    /// Whether so many permits are left for each stripe.
    fn leaves(&self, pool: pool::Word, each: u64) -> bool {
        pool.limit() >= pool.out() + each * self.stripes.count() as u64
    }

    /// Takes a permit for a call on `thread`.
    ///
    /// # Errors
    ///
    /// [`Refused`]: the target is full, or the slot recycled.
    #[inline]
    pub fn acquire(&self, thread: usize) -> Result<(), Refused> {
        if self.acquire_stashed(thread) { Ok(()) } else { self.acquire_slowly(thread) }
    }

    /// Takes a permit if the own stripe has one at hand.
    #[inline]
    pub fn acquire_stashed(&self, thread: usize) -> bool {
        let magazine = self.magazine(thread);
        let version = self.version.load(READ);
        let word = magazine.load();
        let Some(next) = word.taken(1).filter(|_| word.is_open_under(version)) else { return false };
        let is_taken = magazine.take(word, next);
        if !is_taken {
            self.stripes.meet();
        }
        is_taken
    }

    /// Takes a permit from wherever there is one.
    ///
    /// # Errors
    ///
    /// As [`Self::acquire`].
    #[inline(never)]
    pub fn acquire_slowly(&self, thread: usize) -> Result<(), Refused> {
        let mut swept = false;
        loop {
            let magazine = self.magazine(thread);
            // Before the pool: an opener must stamp the version that it read before its announcement.
            let version = self.version.load(READ);
            let word = magazine.load();
            if !word.is_closed() {
                if !word.is_open_under(version) {
                    self.close(magazine);
                    continue;
                }
                if let Some(next) = word.taken(1) {
                    if magazine.take(word, next) {
                        return Ok(());
                    }
                    self.stripes.meet();
                    continue;
                }
            }
            let pool = self.pool.load();
            if pool.is_retired() {
                return Err(Refused::Retired);
            }
            let Some(one) = pool.taken(1) else {
                if !swept && pool.open() > 0 && self.stripes.count() > 1 {
                    swept = true;
                    self.sweep();
                    continue;
                }
                let limit = u32::try_from(pool.limit()).unwrap_or(u32::MAX);
                return Err(Refused::Full { limit });
            };
            if self.is_abundant(pool) {
                if word.is_closed() {
                    if let Some(next) = pool.announced().filter(|next| self.leaves(*next, SPARE)) {
                        if self.pool.announce(pool, next) {
                            if !magazine.open(version) {
                                self.pool.give(0, 1);
                            }
                            return Ok(());
                        }
                        self.stripes.meet();
                        continue;
                    }
                } else if let Some(next) = pool.taken(1 + BATCH).filter(|next| self.leaves(*next, BATCH)) {
                    if self.pool.take(pool, next) {
                        self.refill(magazine);
                        return Ok(());
                    }
                    self.stripes.meet();
                    continue;
                }
            }
            if self.pool.take(pool, one) {
                return Ok(());
            }
            self.stripes.meet();
        }
    }

    /// The limit, if it is reached and no permit lies in a stash: what a look at the pool alone can tell.
    #[inline]
    pub fn limit_if_full(&self) -> Option<u32> {
        let pool = self.pool.load();
        let is_full = pool.out() >= pool.limit() && pool.open() == 0 && !pool.is_retired();
        // 24 bits.
        is_full.then_some(pool.limit() as u32)
    }

    /// Counts a refusal, by the counter of its reason.
    #[inline(always)]
    pub fn count(&self, thread: usize, reason: impl Fn(&counters::Refusals) -> &Counter) {
        let counter = reason(&self.stripes.of(thread).refusals);
        if counter.add_watching() {
            self.stripes.meet();
        }
    }

    /// Refusals so far, by reason.
    #[must_use]
    pub fn refusals(&self) -> Refusals {
        let mut sums = Refusals::default();
        for Stripe { refusals, .. } in self.stripes.iter() {
            sums.open += refusals.open.get();
            sums.probing += refusals.probing.get();
            sums.saturated += refusals.saturated.get();
            sums.shed += refusals.shed.get();
            sums.forced += refusals.forced.get();
        }
        sums
    }

    fn refill(&self, magazine: &magazine::Cell) {
        if magazine.give(BATCH, 0).is_closed() {
            // The closer didn't see these permits; whoever finds them in a closed magazine brings them home.
            let found = magazine.withdraw(magazine::Word::is_closed, |stash| stash.min(BATCH));
            self.pool.give(found, 0);
        }
    }

    /// Gives a permit back and counts its call as settled.
    #[inline]
    pub fn release(&self, thread: usize) {
        self.give_back(thread, 1);
    }

    /// Gives a permit back that no call was made with.
    pub fn cancel(&self, thread: usize) {
        self.give_back(thread, 0);
    }

    #[inline]
    fn give_back(&self, thread: usize, settled: u64) {
        let magazine = self.magazine(thread);
        let before = magazine.give(1, settled);
        if before.is_closed() || before.stash() >= HIGH_MARK || before.settled() + settled == magazine::SETTLED_LAP {
            self.after_giving(magazine, before, settled);
        }
    }

    #[cold]
    #[inline(never)]
    fn after_giving(&self, magazine: &magazine::Cell, before: magazine::Word, settled: u64) {
        if before.settled() + settled == magazine::SETTLED_LAP {
            self.stripes.lap();
        }
        if before.is_closed() {
            let one = magazine.withdraw(magazine::Word::is_closed, |stash| stash.min(1));
            self.pool.give(one, 0);
        } else if before.stash() >= HIGH_MARK {
            let half = magazine.withdraw(|word| !word.is_closed() && word.stash() > HIGH_MARK / 2, |stash| stash / 2);
            self.pool.give(half, 0);
        }
    }

    fn close(&self, magazine: &magazine::Cell) {
        if let Some(stash) = magazine.close() {
            self.pool.give(stash, 1);
        }
    }

    /// Closes every magazine, so that all idle permits lie in the pool.
    pub fn sweep(&self) {
        for stripe in self.stripes.iter() {
            self.close(&stripe.magazine);
        }
    }

    /// Sets the limit. Calls in flight stay counted; a lower limit admits nobody until fewer than it are in flight.
    pub fn set_limit(&self, limit: u32) {
        if self.pool.limit(limit) > u64::from(limit) {
            self.version.fetch_add(1, RAISE);
            self.sweep();
        }
    }

    /// Turns later callers away if nothing is in flight; false if something is.
    pub fn retire(&self) -> bool {
        self.sweep();
        self.pool.retire()
    }

    /// Counts from zero again, for a new tenant. Only for whoever retired it.
    pub fn reset_counts(&self) {
        self.stripes.reset_counts();
    }

    /// Makes a retired bulkhead fresh, for the next tenant or for the same one after all.
    pub fn reinstate(&self, limit: u32) {
        self.pool.reinstate(limit);
    }

    #[must_use]
    pub fn limit(&self) -> u32 {
        u32::try_from(self.pool.load().limit()).unwrap_or(u32::MAX)
    }

    /// Calls in flight and calls settled: each word as it is met, the pool until it stands still between two looks.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut usage = self.look();
        for _ in 0..8 {
            let again = self.look();
            if again == usage {
                break;
            }
            usage = again;
        }
        usage
    }

    fn look(&self) -> Usage {
        let out = self.pool.load().out();
        let (mut stashed, mut settled) = (0, self.stripes.laps().saturating_mul(magazine::SETTLED_LAP));
        for stripe in self.stripes.iter() {
            let word = stripe.magazine.load();
            stashed += word.stash();
            settled += word.settled();
        }
        Usage { in_flight: out.saturating_sub(stashed), settled }
    }
}

/// What the models need to bring about at once, or to see.
#[cfg(portcullis_loom)]
impl Bulkhead {
    /// With so many calls settled, for models of what comes after the last of a lap.
    #[must_use]
    pub fn with_settled(limit: u32, settled: u64) -> Self {
        let bulkhead = Self::new(limit);
        let _ = bulkhead.magazine(0).give(0, settled);
        bulkhead
    }

    /// As [`Self::set_limit`] without what a lower limit owes, for a twin.
    pub fn set_limit_unswept(&self, limit: u32) {
        let _ = self.pool.limit(limit);
    }

    #[must_use]
    pub fn stripes(&self) -> usize {
        self.stripes.count()
    }
}

/// What a bulkhead counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub in_flight: u64,
    pub settled: u64,
}

#[cfg(test)]
mod tests;
