//! A bulkhead, the real one or a twin, with its calls counted from outside.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};

use loom::sync::atomic::AtomicBool;
use portcullis::internals::Bulkhead;
use portcullis::internals::stripe::Stripes;

/// What the models do with a bulkhead.
pub trait Permits: Send + Sync + 'static {
    fn with_limit(limit: u32) -> Self;
    /// How many there are, or may be once it has grown.
    fn stripes(&self) -> usize;
    /// As if the caller had met another thread on a word: one that can grow does.
    fn meet(&self) {}
    fn acquire(&self, stripe: usize) -> bool;
    fn release(&self, stripe: usize);
    fn set_limit(&self, limit: u32);
    fn retire(&self) -> bool;
    fn reinstate(&self, limit: u32);
    fn in_flight(&self) -> u64;
}

/// A bulkhead with `N` stripes from the start.
#[derive(Debug)]
pub struct Striped<const N: usize>(Bulkhead);

/// A bulkhead with one stripe, and a second as soon as threads have met.
pub type Growing = Striped<0>;

impl<const N: usize> Striped<N> {
    #[must_use]
    pub fn new(limit: u32) -> Self {
        Self(Bulkhead::over(limit, if N == 0 { Stripes::growing() } else { Stripes::grown(N) }))
    }
}

impl<const N: usize> Deref for Striped<N> {
    type Target = Bulkhead;

    fn deref(&self) -> &Bulkhead {
        &self.0
    }
}

impl<const N: usize> Permits for Striped<N> {
    fn with_limit(limit: u32) -> Self {
        Self::new(limit)
    }

    fn stripes(&self) -> usize {
        if N == 0 { 2 } else { N }
    }

    fn meet(&self) {
        self.0.meet();
    }

    fn acquire(&self, stripe: usize) -> bool {
        self.0.acquire(stripe).is_ok()
    }

    fn release(&self, stripe: usize) {
        self.0.release(stripe);
    }

    fn set_limit(&self, limit: u32) {
        self.0.set_limit(limit);
    }

    fn retire(&self) -> bool {
        self.0.retire()
    }

    fn reinstate(&self, limit: u32) {
        self.0.reinstate(limit);
    }

    fn in_flight(&self) -> u64 {
        self.usage().in_flight
    }
}

/// A bulkhead whose calls are counted from outside, in plain atomics that loom doesn't see: it runs one thread at a time, so
/// they are exact in the order of the execution.
#[derive(Debug)]
pub struct Room<P> {
    pub permits: P,
    inside: AtomicU32,
    /// The most that may be inside; lowered with the limit, once that has returned.
    most: AtomicU32,
    /// Tells other racers that a lowering has returned; loom's, since it is what orders them.
    lowered: AtomicBool,
}

impl<P: Permits> Room<P> {
    #[must_use]
    pub fn new(limit: u32) -> Self {
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(limit));
        Self { permits: P::with_limit(limit), inside, most, lowered: AtomicBool::new(false) }
    }

    /// A room of `limit` where `entered` came in through a stripe and `left` of them went out by it again.
    #[must_use]
    pub fn used(limit: u32, stripe: usize, entered: u32, left: u32) -> Self {
        let room = Self::new(limit);
        for _ in 0..entered {
            assert!(room.enter(stripe));
        }
        for _ in 0..left {
            room.leave(stripe);
        }
        room
    }

    /// Asks for a permit. No more than the limit are ever inside.
    pub fn enter(&self, stripe: usize) -> bool {
        let entered = self.permits.acquire(stripe);
        if entered {
            self.count_in();
        }
        entered
    }

    /// Counts one in who has a permit.
    pub fn count_in(&self) -> u32 {
        let inside = self.inside.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(inside <= self.most.load(Ordering::Relaxed), "more inside than the limit");
        inside
    }

    /// How many are inside.
    pub fn inside(&self) -> u32 {
        self.inside.load(Ordering::Relaxed)
    }

    pub fn leave(&self, stripe: usize) {
        self.inside.fetch_sub(1, Ordering::Relaxed);
        self.permits.release(stripe);
    }

    /// Comes in and goes out again; whether there was room.
    pub fn pass(&self, stripe: usize) -> bool {
        let entered = self.enter(stripe);
        if entered {
            self.leave(stripe);
        }
        entered
    }

    /// Lowers the limit and lets the others know.
    pub fn lower(&self, limit: u32) {
        self.permits.set_limit(limit);
        self.lowered.store(true, Ordering::Release);
    }

    pub fn raise(&self, limit: u32) {
        self.most.store(limit, Ordering::Relaxed);
        self.permits.set_limit(limit);
    }

    /// Asks once the lowering to `limit` is known to have returned; `None` if it isn't. Nobody starts then while so many or more
    /// are inside.
    pub fn enter_lowered(&self, stripe: usize, limit: u32) -> Option<bool> {
        if !self.lowered.load(Ordering::Acquire) {
            return None;
        }
        let inside = self.inside.load(Ordering::Relaxed);
        let entered = self.enter(stripe);
        assert!(!entered || inside < limit, "a call started above the lowered limit");
        Some(entered)
    }

    /// Asserts that no permit is lost and none too many: exactly `limit` can be inside at once, whichever stripe they ask from,
    /// and a bulkhead with nobody inside can be retired.
    pub fn rest(&self, limit: u32) {
        let inside = self.inside.load(Ordering::Relaxed);
        assert_eq!(self.permits.in_flight(), u64::from(inside), "in flight at rest");
        let free = limit.saturating_sub(inside);
        for stripe in (0..self.permits.stripes()).rev() {
            for taken in 0..free {
                assert!(self.permits.acquire(stripe), "permits lie idle for good: {taken} of {free} found");
            }
            for other in 0..self.permits.stripes() {
                assert!(!self.permits.acquire(other), "one permit too many at rest");
            }
            for _ in 0..free {
                self.permits.release(stripe);
            }
        }
        if inside == 0 {
            assert!(self.permits.retire(), "an idle bulkhead can't be retired");
            self.permits.reinstate(limit);
        }
    }
}
