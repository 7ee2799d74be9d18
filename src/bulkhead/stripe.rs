//! Stripes: what every call of a target writes, once per few threads, so that calls on different cores write different lines.
//!
//! A target starts with one stripe, in its slot, so that a million idle ones stay small. When threads are seen to meet on its words,
//! it gets as many as the machine has cores (the idea of `Striped64` in Java's `java.util.concurrent`), and keeps them. Nothing moves
//! then: the first stripe goes on as one of them, announced in the pool as it was.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

use crossbeam_utils::CachePadded;

use super::magazine;
use crate::counters::Refusals;
use crate::sync::{AtomicU32, Later, Lazy, Ordering, Role, cores, role};
use crate::window::lane::Lane;

/// Times that threads must have met before a target gets its stripes: two calls that meet once a day are no reason.
const MEETINGS: u32 = if cfg!(portcullis_loom) { 1 } else { 16 };
/// No more stripes than that, however many cores: 16 KiB.
const MOST: usize = 128;

/// Acquire: pairs with `LAP`; read before the magazines, so that a lap seen late is the only error.
const READ_LAPS: Role = role("laps.read", Ordering::Acquire);
/// Release: pairs with `READ_LAPS`; after the addition that wrapped its magazine.
const LAP: Role = role("laps.raise", Ordering::Release);
/// Relaxed: as the magazines' own.
const RESET_LAPS: Role = role("laps.reset", Ordering::Relaxed);
/// Relaxed: a count of its own, that publishes nothing.
const MEET: Role = role("meetings.raise", Ordering::Relaxed);

/// What one thread in so many writes.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Stripe {
    pub magazine: magazine::Cell,
    pub refusals: Refusals,
    /// Calls of a window of time, where the policy has one.
    pub(crate) lane: Lazy<CachePadded<Lane>>,
}

/// The stripes of one target, a power of two.
#[derive(Debug)]
#[repr(C)]
pub struct Stripes {
    /// All but the first.
    others: Later<Box<[CachePadded<Stripe>]>>,
    first: Stripe,
    meetings: AtomicU32,
    laps: AtomicU32,
}

impl Default for Stripes {
    fn default() -> Self {
        Self::from(Later::new(|| others(as_many_as_cores())))
    }
}

impl From<Later<Box<[CachePadded<Stripe>]>>> for Stripes {
    fn from(others: Later<Box<[CachePadded<Stripe>]>>) -> Self {
        Self { others, first: Stripe::default(), meetings: AtomicU32::new(0), laps: AtomicU32::new(0) }
    }
}

impl Stripes {
    /// As many from the start.
    #[must_use]
    pub fn grown(count: usize) -> Self {
        Self::from(Later::made(others(count)))
    }

    /// One, and another as soon as threads meet.
    #[cfg(portcullis_loom)]
    #[must_use]
    pub fn growing() -> Self {
        Self::from(Later::awaited(others(2)))
    }

    /// How many there are.
    #[must_use]
    #[inline]
    pub fn count(&self) -> usize {
        self.others.get().map_or(1, |others| others.len() + 1)
    }

    /// The stripe of a thread.
    #[must_use]
    #[inline]
    pub fn of(&self, thread: usize) -> &Stripe {
        let Some(others) = self.others.get() else { return &self.first };
        // One less than a power of two, so it serves as the mask.
        let index = thread & others.len();
        if index == 0 { &self.first } else { others.get(index - 1).map_or(&self.first, |padded| &**padded) }
    }

    pub fn iter(&self) -> impl Iterator<Item = &Stripe> + Clone {
        let others = self.others.get().into_iter().flatten();
        std::iter::once(&self.first).chain(others.map(|padded| &**padded))
    }

    /// Notes that a magazine's count of settled calls starts again. Whose addition did it has given its permit back: stalled until the slot is
    /// the next tenant's, it notes the lap there.
    pub fn lap(&self) {
        self.laps.fetch_add(1, LAP);
    }

    /// Times that a magazine's count of settled calls started again.
    #[must_use]
    pub fn laps(&self) -> u64 {
        self.laps.load(READ_LAPS).into()
    }

    /// Counts from zero again, for a new tenant. Only while the bulkhead is retired.
    pub fn reset_counts(&self) {
        self.laps.store(0, RESET_LAPS);
        for Stripe { magazine, refusals, .. } in self.iter() {
            magazine.reset();
            refusals.reset();
        }
    }

    /// Notes that two threads met on a word.
    #[cold]
    pub fn meet(&self) {
        if self.others.get().is_none() && self.meetings.fetch_add(1, MEET) + 1 >= MEETINGS {
            self.others.make(|| others(as_many_as_cores()));
        }
    }
}

fn others(count: usize) -> Box<[CachePadded<Stripe>]> {
    (1..count).map(|_| CachePadded::default()).collect()
}

/// As many stripes as a target gets.
pub(crate) fn as_many_as_cores() -> usize {
    if cfg!(portcullis_loom) {
        return 2;
    }
    // With one core, threads still take turns within a call; two stripes serve them.
    cores().next_power_of_two().clamp(2, MOST)
}

const NONE: usize = usize::MAX;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(NONE) };
    /// Apart from the number, which without a destructor is read for next to nothing.
    static LEASE: Lease = Lease::new();
}

/// The calling thread's number: the least that no living thread has, so that few threads share a stripe.
#[must_use]
#[inline]
pub fn own() -> usize {
    if cfg!(portcullis_loom) {
        return 0;
    }
    let number = NUMBER.get();
    if number == NONE { numbered() } else { number }
}

#[cold]
fn numbered() -> usize {
    // A thread that is about to end, past its lease, takes any.
    LEASE.try_with(|lease| NUMBER.set(lease.0)).map_or(0, |()| NUMBER.get())
}

/// Numbers that threads gave back, and the next one that never was given.
static NUMBERS: Mutex<(BinaryHeap<Reverse<usize>>, usize)> = Mutex::new((BinaryHeap::new(), 0));

struct Lease(usize);

impl Lease {
    fn new() -> Self {
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        let (free, next) = &mut *numbers;
        Self(free.pop().map_or_else(
            || {
                *next += 1;
                *next - 1
            },
            |Reverse(number)| number,
        ))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        NUMBER.set(NONE);
        let mut numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
        numbers.0.push(Reverse(self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_the_least_numbers_that_are_free() {
        let number = || std::thread::spawn(|| (own(), own())).join().unwrap();
        let (first, again) = number();
        assert_eq!(first, again);
        // Other tests run threads, too; but numbers come back, so that they stay few.
        assert!((0..1_000).all(|_| number().0 < 200));
    }

    #[test]
    fn a_thread_past_its_lease_still_has_a_number() {
        struct Late;
        impl Drop for Late {
            fn drop(&mut self) {
                assert!(own() < 200);
            }
        }
        thread_local!(static LATE: Late = const { Late });
        let ends = std::thread::spawn(|| {
            // Before the lease, so that it is dropped after it, where that is the order.
            LATE.with(|_| ());
            own()
        });
        assert!(ends.join().is_ok());
    }

    #[test]
    fn a_target_gets_its_stripes_at_the_sixteenth_meeting_and_keeps_the_first() {
        let stripes = Stripes::default();
        let first: *const Stripe = stripes.of(0);
        for _ in 1..MEETINGS {
            stripes.meet();
        }
        assert_eq!((stripes.count(), stripes.iter().count()), (1, 1));
        assert!(std::ptr::eq(stripes.of(0), stripes.of(1)));
        stripes.meet();
        assert_eq!(stripes.count(), as_many_as_cores());
        assert_eq!(stripes.iter().count(), stripes.count());
        assert!(std::ptr::eq(first, stripes.of(0)) && !std::ptr::eq(stripes.of(0), stripes.of(1)));
    }

    #[test]
    fn every_thread_has_a_stripe_and_every_stripe_a_thread() {
        let stripes = Stripes::grown(4);
        let all: Vec<*const Stripe> = stripes.iter().map(|stripe| -> *const Stripe { stripe }).collect();
        for thread in 0..9 {
            assert!(std::ptr::eq(stripes.of(thread), all[thread % 4]));
        }
    }

    #[test]
    fn threads_that_live_at_once_have_different_numbers() {
        let meet = std::sync::Barrier::new(3);
        let numbers: Vec<usize> = std::thread::scope(|scope| {
            let number = || {
                let number = own();
                meet.wait();
                number
            };
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(number)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2] && numbers[0] != numbers[2], "{numbers:?}");
    }
}
