//! Counts what is asked of the allocator: the bytes that the process holds, and each thread's allocations.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

static COUNTS: AtomicBool = AtomicBool::new(true);
static HELD: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    // Const and without a drop, so that reaching it allocates nothing.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with counters. A binary that reports memory names it with `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

/// Bytes asked for and not given back. Sizes as asked: what the system rounds them up to isn't seen.
#[must_use]
pub fn held() -> isize {
    HELD.load(Ordering::Relaxed)
}

/// Allocations of this thread so far, growth in place among them.
#[must_use]
pub fn calls() -> u64 {
    CALLS.get()
}

/// Turns counting on or off: it writes a line that all threads share, which would be timed with whoever allocates. A difference of
/// two readings says something only if nothing between them went uncounted.
pub fn count(counts: bool) {
    COUNTS.store(counts, Ordering::Relaxed);
}

fn note(grown: usize, shrunk: usize) {
    if !COUNTS.load(Ordering::Relaxed) {
        return;
    }
    // Relaxed: sums are read only while nobody else allocates.
    HELD.fetch_add(grown as isize - shrunk as isize, Ordering::Relaxed);
    if grown > 0 {
        CALLS.set(CALLS.get() + 1);
    }
}

// SAFETY: every method passes its arguments on to `System` unchanged and gives its answer back, so `System`'s keeping of the
// contract is ours; the counters touch no memory of callers and don't allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc`'s contract.
        let pointer = unsafe { System.alloc(layout) };
        if !pointer.is_null() {
            note(layout.size(), 0);
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc_zeroed`'s contract.
        let pointer = unsafe { System.alloc_zeroed(layout) };
        if !pointer.is_null() {
            note(layout.size(), 0);
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract: `pointer` came from `System`, by way of us.
        unsafe { System.dealloc(pointer, layout) };
        note(0, layout.size());
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps `realloc`'s contract: `pointer` came from `System`, by way of us.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        if !moved.is_null() {
            note(size, layout.size());
        }
        moved
    }
}
