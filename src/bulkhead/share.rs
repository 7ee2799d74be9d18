//! Shares of the limit: calls that must leave room for more important ones.
//!
//! They take from the pool's word only, where all that is out counts against their share by the CAS that takes: calls in flight of any
//! priority, and stashed permits, until a sweep has brought those home. A stash would let them in uncounted. What they give back goes the usual
//! way. They open no magazine and fill none.

use super::{Bulkhead, Refused};
use crate::policy::{BASIS_POINTS, UNLIMITED};

/// A share of the limit, in basis points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u16);

impl Share {
    /// None if it is the whole.
    #[must_use]
    pub fn new(basis_points: u16) -> Option<Self> {
        (u64::from(basis_points) < BASIS_POINTS).then_some(Self(basis_points))
    }

    /// The most calls in flight, with the caller's: rounded down, but 1 where the limit allows any. All of what has no limit.
    #[must_use]
    pub fn of(self, limit: u64) -> u64 {
        if limit == u64::from(UNLIMITED) { limit } else { (limit * u64::from(self.0) / BASIS_POINTS).max(limit.min(1)) }
    }
}

impl Bulkhead {
    /// Takes a permit if, with it, no more than the share of the limit are in flight. `is_due` as for [`Self::acquire_slowly`].
    ///
    /// # Errors
    ///
    /// [`Refused`]; `Full` where the whole limit is reached as well.
    #[inline(never)]
    pub fn acquire_within(&self, share: Share, is_due: &mut bool) -> Result<(), Refused> {
        let mut swept = false;
        loop {
            let pool = self.pool.load();
            if pool.is_retired() {
                return Err(Refused::Retired);
            }
            if let Some(next) = pool.taken_within(1, share.of(pool.limit())) {
                if self.pool.take(pool, next) {
                    return Ok(());
                }
                self.stripes.meet();
            } else if !swept && pool.open() > 0 {
                // With one stripe as well: its own stash isn't for this caller.
                swept = true;
                *is_due |= self.sweep();
            } else {
                return Err(if pool.out() < pool.limit() { Refused::Shed } else { pool.full() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulkhead::stripe::Stripes;

    #[test]
    fn a_share_is_rounded_down_and_at_least_one() {
        let share = |basis_points, limit| Share::new(basis_points).map(|share| share.of(limit));
        assert_eq!(share(10_000, 7), None);
        assert_eq!([share(9_999, 7), share(5_000, 7), share(1, 7)], [Some(6), Some(3), Some(1)]);
        assert_eq!([share(9_999, 1), share(1, 1), share(5_000, 0)], [Some(1), Some(1), Some(0)]);
        assert_eq!(share(1, u64::from(UNLIMITED)), Some(u64::from(UNLIMITED)));
        assert_eq!(share(9_999, u64::from(UNLIMITED) - 1), Some(16_775_536));
    }

    #[test]
    fn stashes_are_swept_before_a_call_is_shed_and_never_taken_from() {
        for stripes in [1, 4] {
            let bulkhead = Bulkhead::over(600, Stripes::grown(stripes));
            let within = |basis_points| {
                let mut is_due = false;
                Share::new(basis_points).map(|share| (bulkhead.acquire_within(share, &mut is_due), is_due))
            };
            // Half of the limit passed through the stripe, and lies in its stash.
            (0..300).for_each(|_| assert_eq!(bulkhead.acquire(0), Ok(())));
            assert_eq!(within(5_000), Some((Err(Refused::Shed), false)));
            assert_eq!(within(5_017), Some((Ok(()), false)));
            (0..301).for_each(|_| bulkhead.release(0));
            (0..300).for_each(|_| assert_eq!(within(5_000), Some((Ok(()), false))));
            assert_eq!(within(5_000), Some((Err(Refused::Shed), false)));
            (0..300).for_each(|_| assert_eq!(bulkhead.acquire(0), Ok(())));
            assert_eq!(within(5_000), Some((Err(Refused::Full { limit: 600 }), false)));
            assert_eq!(bulkhead.usage().in_flight, 600);
        }
    }

    #[test]
    fn a_share_follows_the_limit_in_force() {
        let bulkhead = Bulkhead::new(10);
        let within = |share: Share| bulkhead.acquire_within(share, &mut false);
        let half = Share::new(5_000).unwrap();
        assert_eq!((0..10).filter(|_| within(half).is_ok()).count(), 5);
        bulkhead.set_limit(12);
        assert_eq!((within(half), within(half)), (Ok(()), Err(Refused::Shed)));
        bulkhead.set_limit(6);
        assert_eq!(within(half), Err(Refused::Full { limit: 6 }));
    }
}
