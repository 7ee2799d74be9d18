//! A slot whose tenant is known under a lock, as the map's shard knows it, with one step of eviction or admission done wrong.

use loom::sync::Mutex;
use portcullis::internals::{Now, Token};
use portcullis::{Cause, Policy};

use crate::desk::Desk;

/// Which step is wrong.
#[derive(Debug)]
pub struct Haste;

impl Haste {
    /// None: the twin itself is sound.
    pub const NONE: u8 = 0;
    /// Whether the tenant may go is judged before its bulkhead is retired.
    pub const JUDGED_FIRST: u8 = 1;
    /// The slot is found under the lock and asked for a permit without it, and nothing looks at whose it is by then.
    pub const ASKED_UNLOCKED: u8 = 2;
    /// The tenant goes although a call of it is in flight.
    pub const NOT_RETIRED: u8 = 3;
}

/// One slot and the number of its tenant.
#[derive(Debug)]
pub struct Shelf<const FLAW: u8> {
    pub desk: Desk,
    limit: u32,
    tenant: Mutex<u32>,
}

impl<const FLAW: u8> Shelf<FLAW> {
    #[must_use]
    pub fn new(policy: Policy, calls: usize) -> Self {
        let limit = policy.max_in_flight();
        Self { desk: Desk::with_calls(policy, calls), limit, tenant: Mutex::new(1) }
    }

    fn tenant(&self) -> loom::sync::MutexGuard<'_, u32> {
        self.tenant.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// A permit, and the tenant that the caller found.
    pub fn ask(&self) -> Option<(Token, u32)> {
        let tenant = self.tenant();
        let found = *tenant;
        if FLAW == Haste::ASKED_UNLOCKED {
            drop(tenant);
            return self.desk.admit(0).0.ok().map(|token| (token, found));
        }
        self.desk.admit(0).0.ok().map(|token| (token, found))
    }

    /// Asserts that a permit's slot is still the tenant's whom its caller found.
    ///
    /// # Panics
    ///
    /// If it isn't.
    pub fn check(&self, found: u32) {
        assert_eq!(*self.tenant(), found, "a permit on a recycled slot");
    }

    /// Lets the tenant go if it has no failures and nothing in flight; the next moves in at once.
    pub fn evict(&self) -> bool {
        let mut tenant = self.tenant();
        let is_clean = || self.desk.window().1 == 0;
        if FLAW == Haste::JUDGED_FIRST && !is_clean() {
            return false;
        }
        let bulkhead = &self.desk.words.bulkhead;
        if !bulkhead.retire() && FLAW != Haste::NOT_RETIRED {
            return false;
        }
        if FLAW != Haste::JUDGED_FIRST && !is_clean() {
            bulkhead.reinstate(self.limit);
            return false;
        }
        *tenant += 1;
        self.desk.by_hand(Cause::Forgotten, |gate| gate.forget(Now::default()));
        bulkhead.reinstate(self.limit);
        true
    }
}
