//! What a permit and a limit carry: whoever takes one sees what was written before it was given.
//!
//! The messages are relaxed atomics of loom's, which shows a stale value wherever nothing forbids it. A call adds one by a load and
//! a store, so one that starts without what the call before it left loses it.

use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom_tests::model;
use loom_tests::room::Striped;
use portcullis::internals::Bulkhead;
use portcullis::internals::magazine::SETTLED_LAP;

const EITHER: &[[bool; 2]] = &[[true, true], [true, false], [false, true]];

/// A bulkhead with one permit left, so that calls come one after another, and what they leave.
#[derive(Debug)]
struct Booth<const N: usize> {
    permits: Striped<N>,
    calls: AtomicU32,
}

impl<const N: usize> Booth<N> {
    /// Of this limit, all but one held for good; the one in stripe 0's stash if `stashed`, else in the pool.
    fn with_one_left(limit: u32, stashed: bool) -> Self {
        let permits = Striped::new(limit);
        for _ in 0..limit - u32::from(!stashed) {
            assert!(permits.acquire(0).is_ok());
        }
        if stashed {
            permits.release(0);
        }
        Self { permits, calls: AtomicU32::new(0) }
    }

    fn call(&self) {
        self.calls.store(self.calls.load(Relaxed) + 1, Relaxed);
    }

    fn pass(&self, stripe: usize) -> bool {
        let entered = self.permits.acquire(stripe).is_ok();
        if entered {
            self.call();
            self.permits.release(stripe);
        }
        entered
    }

    /// Leaves as if no call had been made: the words look the same as before it came.
    fn pass_unseen(&self, stripe: usize) -> bool {
        let entered = self.permits.acquire(stripe).is_ok();
        if entered {
            self.call();
            self.permits.cancel(stripe);
        }
        entered
    }
}

fn nothing_lost<const N: usize, const R: usize>(booth: &Booth<N>, passed: [bool; R]) -> [bool; R] {
    let calls = passed.iter().filter(|passed| **passed).count();
    assert_eq!(booth.calls.load(Relaxed) as usize, calls, "a call started without what the one before it left");
    passed
}

#[test]
fn a_permit_of_the_pool_carries_what_the_last_call_left() {
    model(
        "messages: a permit of the pool carries what the last call left",
        EITHER,
        || Booth::<1>::with_one_left(1, false),
        [|booth: &Booth<1>| booth.pass(0); 2],
        nothing_lost,
    );
}

#[test]
fn a_stashed_permit_carries_what_the_last_call_left() {
    model(
        "messages: a stashed permit carries what the last call left",
        EITHER,
        || Booth::<1>::with_one_left(4, true),
        [|booth: &Booth<1>| booth.pass(0); 2],
        nothing_lost,
    );
}

#[test]
fn a_stashed_permit_carries_it_though_the_magazine_looks_untouched() {
    model(
        "messages: a stashed permit carries it though the magazine looks untouched",
        EITHER,
        || Booth::<1>::with_one_left(4, true),
        [|booth: &Booth<1>| booth.pass_unseen(0); 2],
        nothing_lost,
    );
}

#[test]
fn a_permit_swept_from_another_stripe_carries_it() {
    model(
        "messages: a permit swept from another stripe carries it",
        EITHER,
        || Booth::<2>::with_one_left(8, true),
        [|booth: &Booth<2>| booth.pass_unseen(0), |booth| booth.pass(1)],
        nothing_lost,
    );
}

#[test]
fn a_permit_swept_by_a_third_carries_it() {
    model(
        "messages: a permit swept by a third carries it",
        // While the sweeper has it in hand, both may be told that there is none (R21).
        &[[true, false, true], [true, false, false], [false, false, true], [false; 3]],
        || Booth::<2>::with_one_left(8, true),
        [
            |booth: &Booth<2>| booth.pass_unseen(0),
            |booth| {
                booth.permits.sweep();
                false
            },
            |booth| booth.pass(1),
        ],
        nothing_lost,
    );
}

/// A magazine is opened by one, filled by the next and emptied by a sweep, and the permit comes through all of it.
#[test]
fn a_permit_that_opens_a_magazine_carries_it() {
    model(
        "messages: a permit that opens a magazine carries it",
        EITHER,
        || {
            let booth = Booth::<2>::with_one_left(8, true);
            booth.permits.sweep();
            booth
        },
        [|booth: &Booth<2>| booth.pass_unseen(0), |booth| booth.pass_unseen(0)],
        nothing_lost,
    );
}

/// Two permits and what their calls wrote before they gave them back.
#[derive(Debug)]
struct Pair {
    permits: Bulkhead,
    written: [AtomicU32; 2],
}

impl Pair {
    fn held(limit: u32, held: u32, left: u32) -> Self {
        let permits = Bulkhead::new(limit);
        for _ in 0..held {
            assert!(permits.acquire(0).is_ok());
        }
        for _ in 0..left {
            permits.release(0);
        }
        Self { permits, written: [AtomicU32::new(0), AtomicU32::new(0)] }
    }

    fn leave(&self, index: usize) -> bool {
        self.written[index].store(1, Relaxed);
        self.permits.release(0);
        true
    }

    /// Takes so many permits, if there are so many: then those who gave them back are behind this thread.
    fn take(&self, permits: usize, givers: usize) -> bool {
        let taken = (0..permits).all(|_| self.permits.acquire(0).is_ok());
        if taken {
            let written = self.written.iter().take(givers).all(|written| written.load(Relaxed) == 1);
            assert!(written, "a permit came without what its last call wrote");
        }
        taken
    }
}

/// The magazine is closed: either may bring the other's permit home.
#[test]
fn a_permit_brought_home_by_another_carries_what_its_call_wrote() {
    model(
        "messages: a permit brought home by another carries what its call wrote",
        &[[true, true, true], [true, true, false]],
        || Pair::held(2, 2, 0),
        [|pair: &Pair| pair.leave(0), |pair| pair.leave(1), |pair| pair.take(2, 2)],
        |_, told| told,
    );
}

#[test]
fn a_spilled_permit_carries_what_its_call_wrote() {
    model(
        "messages: a spilled permit carries what its call wrote",
        &[[true, true], [true, false]],
        || Pair::held(4, 4, 2),
        [|pair: &Pair| pair.leave(0), |pair| pair.take(3, 1)],
        |_, told| told,
    );
}

#[test]
fn two_spills_carry_what_their_calls_wrote() {
    model(
        "messages: two spills carry what their calls wrote",
        &[[true, true, true], [true, true, false]],
        || Pair::held(4, 4, 2),
        [|pair: &Pair| pair.leave(0), |pair| pair.leave(1), |pair| pair.take(4, 2)],
        |_, told| told,
    );
}

#[test]
fn a_raised_limit_carries_what_its_setter_wrote() {
    model(
        "messages: a raised limit carries what its setter wrote",
        &[[true, true], [true, false]],
        || Pair::held(1, 1, 0),
        [
            |pair: &Pair| {
                pair.written[0].store(1, Relaxed);
                pair.permits.set_limit(2);
                true
            },
            |pair| pair.take(1, 1),
        ],
        |_, told| told,
    );
}

#[test]
fn a_reinstated_slot_carries_what_its_owner_wrote() {
    model(
        "messages: a reinstated slot carries what its owner wrote",
        &[[true, true], [true, false]],
        || {
            let pair = Pair::held(1, 0, 0);
            assert!(pair.permits.retire());
            pair
        },
        [
            |pair: &Pair| {
                pair.written[0].store(1, Relaxed);
                pair.permits.reinstate(1);
                true
            },
            |pair| pair.take(1, 1),
        ],
        |_, told| told,
    );
}

/// What the evictor judges is all that the last call recorded; the pool looks as if nobody had come.
#[test]
fn a_retired_slot_shows_what_the_last_call_left() {
    model(
        "messages: a retired slot shows what the last call left",
        &[[true, true], [true, false], [false, true]],
        || Booth::<1>::with_one_left(1, false),
        [
            |booth: &Booth<1>| booth.pass_unseen(0),
            |booth| {
                let retired = booth.permits.retire();
                // Retired, nobody is inside and nobody comes: whoever came has left.
                if retired {
                    booth.call();
                }
                retired
            },
        ],
        nothing_lost,
    );
}

/// The limit falls from 4 to 1 with 1 in flight. Whoever sees the version sees what was written before the limit fell.
#[test]
fn a_lowered_limit_is_seen_by_whoever_sees_its_version() {
    model(
        "messages: a lowered limit is seen by whoever sees its version",
        &[[true, true], [false, true]],
        || Pair::held(8, 2, 1),
        [
            |pair: &Pair| {
                let entered = pair.permits.acquire(0).is_ok();
                // Refused, it saw the new limit.
                assert!(entered || pair.written[0].load(Relaxed) == 1, "a limit came without what its setter wrote");
                entered
            },
            |pair| {
                pair.written[0].store(1, Relaxed);
                pair.permits.set_limit(1);
                true
            },
        ],
        |_, told| told,
    );
}

/// The pool first, then the magazines: a look may count a call twice on its way out, and never misses it.
#[test]
fn a_call_that_ends_is_in_flight_or_settled_at_every_look() {
    model(
        "messages: a call that ends is in flight or settled at every look",
        &[Some((1, 0)), Some((0, 1)), Some((1, 1))],
        || Pair::held(1, 1, 0).permits,
        [
            |permits: &Bulkhead| {
                permits.release(0);
                None
            },
            |permits| {
                let usage = permits.usage();
                assert!(usage.in_flight + usage.settled > 0, "a look missed a call");
                Some((usage.in_flight, usage.settled))
            },
        ],
        |_, [_, seen]| seen,
    );
}

/// The count of settled calls starts again in its magazine, and the lap is counted elsewhere.
#[test]
fn a_lap_is_missed_for_a_moment_and_never_counted_twice() {
    model(
        "messages: a lap is missed for a moment and never counted twice",
        &[Some(SETTLED_LAP - 1), Some(0), Some(SETTLED_LAP)],
        || {
            let permits = Bulkhead::with_settled(1, SETTLED_LAP - 1);
            assert!(permits.acquire(0).is_ok());
            permits
        },
        [
            |permits: &Bulkhead| {
                permits.release(0);
                None
            },
            |permits| Some(permits.usage().settled),
        ],
        |permits, [_, seen]| {
            assert!(seen.is_some_and(|settled| settled <= SETTLED_LAP), "a lap was counted twice");
            assert_eq!(permits.usage().settled, SETTLED_LAP);
            seen
        },
    );
}
