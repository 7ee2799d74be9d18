//! The cap on the requests that the whole process works on at once. It never waits: at the cap, the answer is no.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How many are in, and how many may be.
#[derive(Debug)]
pub(crate) struct Cap {
    inside: AtomicU32,
    limit: AtomicU32,
    refused: AtomicU64,
}

/// A place under the cap; dropping it gives the place back.
#[derive(Debug)]
pub(crate) struct Place(Arc<Cap>);

impl Cap {
    pub(crate) fn new(limit: u32) -> Arc<Self> {
        Arc::new(Self { inside: AtomicU32::new(0), limit: AtomicU32::new(limit), refused: AtomicU64::new(0) })
    }

    /// Takes a place if there is one.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Place> {
        let limit = self.limit();
        // Relaxed: only the number matters, no other memory is handed over with a place.
        let entered = self
            .inside
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |inside| (inside < limit).then(|| inside + 1))
            .is_ok();
        if !entered {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        entered.then(|| Place(Arc::clone(self)))
    }

    /// How often there was no place.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    pub(crate) fn inside(&self) -> u32 {
        self.inside.load(Ordering::Relaxed)
    }

    pub(crate) fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the cap. Those above a lower one go on; nobody comes in until they are under it.
    pub(crate) fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Ordering::Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_cap_refuses_until_a_place_is_dropped() {
        let cap = Cap::new(2);
        let places = (cap.enter().unwrap(), cap.enter().unwrap());
        assert!(cap.enter().is_none());
        assert_eq!(cap.refused(), 1);
        drop(places);
        assert!(cap.enter().is_some());
        assert_eq!(cap.inside(), 0);
    }

    #[test]
    fn a_lower_cap_lets_nobody_in_until_it_is_met() {
        let cap = Cap::new(2);
        let (first, second) = (cap.enter().unwrap(), cap.enter().unwrap());
        cap.set_limit(1);
        drop(first);
        assert!(cap.enter().is_none());
        drop(second);
        assert!(cap.enter().is_some());
    }
}
