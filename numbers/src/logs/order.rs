//! Puts calls into the order of their start, within a bound.

use std::collections::BTreeMap;

use super::Call;

/// Buckets per window: a call that is out of order by a part of a bucket more than the window may still be in time.
const BUCKETS: u64 = 32;

/// The most calls that are held, however long the window: 48 MiB, and at worst twice that for room to grow. Only calls that lie so far apart that
/// each has a bucket of its own take more, some 150 bytes each.
pub(super) const MOST: usize = 2 << 20;

/// The calls that may not be handed over yet, since earlier ones may follow.
///
/// A bucket is sorted once, as it is handed over; calls of the same start keep the order of their lines.
#[derive(Debug)]
pub(super) struct Order {
    width: u64,
    buckets: BTreeMap<u64, Vec<Call>>,
    held: usize,
    most: usize,
    /// All that starts before this has been handed over.
    floor: u64,
}

impl Order {
    pub(super) fn new(window: u64, most: usize) -> Self {
        Self { width: (window / BUCKETS).max(1_000_000), buckets: BTreeMap::new(), held: 0, most, floor: 0 }
    }

    /// Takes a call, unless it is too late for it.
    pub(super) fn push(&mut self, call: Call) -> bool {
        if call.start < self.floor {
            return false;
        }
        self.buckets.entry(call.start / self.width).or_default().push(call);
        self.held += 1;
        true
    }

    /// Hands over what started well before `horizon`, and more if there is more than may be held. Says whether there was.
    pub(super) fn release(&mut self, horizon: u64, mut each: impl FnMut(&Call)) -> bool {
        while let Some(bucket) = self.buckets.first_entry()
            && *bucket.key() < horizon / self.width
        {
            let (key, calls) = bucket.remove_entry();
            self.hand_over(key, calls, &mut each);
        }
        let squeezed = self.held > self.most;
        while self.held > self.most
            && let Some((key, calls)) = self.buckets.pop_first()
        {
            self.hand_over(key, calls, &mut each);
        }
        squeezed
    }

    /// Hands over the rest.
    pub(super) fn finish(mut self, mut each: impl FnMut(&Call)) {
        while let Some((key, calls)) = self.buckets.pop_first() {
            self.hand_over(key, calls, &mut each);
        }
    }

    pub(super) fn held(&self) -> usize {
        self.held
    }

    fn hand_over(&mut self, key: u64, mut calls: Vec<Call>, each: &mut impl FnMut(&Call)) {
        calls.sort_by_key(|call| call.start);
        calls.iter().for_each(each);
        self.held -= calls.len();
        self.floor = key.saturating_add(1).saturating_mul(self.width);
    }
}
