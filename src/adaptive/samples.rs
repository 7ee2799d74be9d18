//! What calls tell of their latency: per stripe two words `calls | micros`, one of successes and one of failures.
//!
//! ```text
//!  63    60 59      42 41           0
//! +--------+----------+--------------+
//! | unused |  calls   |    micros    |
//! |    4   |    18    |      42      |
//! +--------+----------+--------------+
//! ```
//!
//! A call adds itself by one `fetch_add`, to a line that threads of other stripes don't write. Nothing carries: a word stands still from
//! 131,072 calls on, which 65,536 threads would have to pass at once to exceed 18 bits, and each call brings less than 2^24 µs (16.8 s; longer ones
//! count as that), so that 2^18 of them stay below 2^42.
//!
//! Only the holder of the target's lock takes samples out: it subtracts what it has read. So a call that adds itself meanwhile stays for the next
//! window, and none is lost or taken twice. A sum over stripes may miss what is being added; that comes with the next window too.

use crossbeam_utils::CachePadded;

use super::control::Control;
use crate::bits::Field;
use crate::bulkhead::stripe::as_many_as_cores;
use crate::sync::{AtomicU64, Lazy, Mutex, Ordering, Role, role};
use crate::time::Now;

const MICROS: Field = Field::lowest(42);
const CALLS: Field = MICROS.above(18);
const _: () = assert!(CALLS.end() <= 64);

/// From here on a word stands still.
const FULL: u64 = 1 << 17;
const MOST_MICROS: u64 = (1 << 24) - 1;
const _: () = assert!(CALLS.max() * MOST_MICROS <= MICROS.max() && FULL + (1 << 16) <= CALLS.max());

/// The longest that a window is ever set to last: an end that is further off was set before the clock stepped back.
pub const LONGEST: u64 = 60_000_000_000;

/// Relaxed: a number by itself; nothing is reached by it.
const READ: Role = role("sample.read", Ordering::Relaxed);
/// Relaxed: as `READ`.
const ADD: Role = role("sample.add", Ordering::Relaxed);
/// Relaxed: as `READ`. One at a time takes, in the order of the target's lock, and a read-modify-write takes from the newest value.
const TAKE: Role = role("sample.take", Ordering::Relaxed);
/// Relaxed: a hint; whoever goes by it looks again under the lock.
const READ_END: Role = role("end.read", Ordering::Relaxed);
/// Relaxed: as `READ_END`.
const SET_END: Role = role("end.set", Ordering::Relaxed);
/// Relaxed: a number by itself.
const READ_MOST: Role = role("most.read", Ordering::Relaxed);
/// Relaxed: as `READ_MOST`.
const SET_MOST: Role = role("most.set", Ordering::Relaxed);

/// A copy of a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Word(u64);

impl Word {
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// One call of so many nanoseconds.
    #[must_use]
    pub const fn of_call(nanos: u64) -> Self {
        let micros = nanos / 1_000;
        Self(CALLS.one() + if micros > MOST_MICROS { MOST_MICROS } else { micros })
    }

    #[must_use]
    pub const fn calls(self) -> u64 {
        CALLS.get(self.0)
    }

    #[must_use]
    pub const fn micros(self) -> u64 {
        MICROS.get(self.0)
    }

    #[must_use]
    pub const fn is_full(self) -> bool {
        self.calls() >= FULL
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Samples").field("calls", &self.calls()).field("micros", &self.micros()).finish()
    }
}

/// The word that threads share.
#[derive(Debug)]
pub struct Cell(AtomicU64);

impl Default for Cell {
    fn default() -> Self {
        Self(AtomicU64::new(0))
    }
}

impl Cell {
    #[must_use]
    #[inline]
    pub fn load(&self) -> Word {
        Word(self.0.load(READ))
    }

    /// Adds a call; whether that makes the word full, or it was.
    pub fn add(&self, nanos: u64) -> bool {
        // A full one stands still.
        self.load().is_full() || {
            let call = Word::of_call(nanos);
            Word(self.0.fetch_add(call.0, ADD) + call.0).is_full()
        }
    }

    /// Takes out what is there. Only for the holder of the target's lock.
    pub fn take(&self) -> Word {
        let word = self.load();
        self.0.fetch_sub(word.0, TAKE);
        word
    }
}

/// Calls, and how long they took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    pub calls: u64,
    pub nanos: u64,
}

impl Sum {
    fn and(self, word: Word) -> Self {
        Self { calls: self.calls + word.calls(), nanos: self.nanos.saturating_add(word.micros() * 1_000) }
    }

    /// Mean nanoseconds of a call; 0 of none.
    #[must_use]
    pub const fn mean(self) -> u64 {
        match self.nanos.checked_div(self.calls) {
            Some(mean) => mean,
            None => 0,
        }
    }
}

/// Successes and failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub good: Sum,
    pub failed: Sum,
}

impl Sums {
    #[must_use]
    pub const fn calls(self) -> u64 {
        self.good.calls + self.failed.calls
    }
}

/// What the threads of one stripe write.
#[derive(Debug, Default)]
struct Lane {
    good: Cell,
    failed: Cell,
}

/// All lanes but the first, as many as a target's stripes.
#[derive(Debug)]
struct Others(Box<[CachePadded<Lane>]>);

impl Default for Others {
    fn default() -> Self {
        Self((1..as_many_as_cores()).map(|_| CachePadded::default()).collect())
    }
}

/// The samples of a target, over its stripes, and when the window of them ends.
#[derive(Debug)]
pub struct Samples {
    /// In nanoseconds.
    end: AtomicU64,
    /// The most that one call counts for, in nanoseconds.
    most: AtomicU64,
    /// Where the limit stands. Here for the size of a slot; asked for under the target's lock only, so nobody waits for it.
    control: Mutex<Option<Control>>,
    first: CachePadded<Lane>,
    others: Lazy<Others>,
}

/// What a target's samples take, and those of each further stripe.
#[cfg(test)]
pub(crate) const BYTES: (usize, usize) = (size_of::<Samples>(), size_of::<CachePadded<Lane>>());

impl Default for Samples {
    fn default() -> Self {
        Self {
            end: AtomicU64::new(0),
            most: AtomicU64::new(u64::MAX),
            control: Mutex::default(),
            first: CachePadded::default(),
            others: Lazy::default(),
        }
    }
}

impl Samples {
    /// Adds a call on `thread`.
    pub fn add(&self, thread: usize, is_striped: bool, failed: bool, nanos: u64) {
        let lane = if is_striped { self.lane(thread) } else { &self.first };
        let nanos = nanos.min(self.most.load(READ_MOST));
        let is_full = if failed { lane.failed.add(nanos) } else { lane.good.add(nanos) };
        if is_full {
            // Over. Where that is the end of the next window, too, it holds few samples and goes on.
            self.end_at(0);
        }
    }

    fn lane(&self, thread: usize) -> &Lane {
        let others = &self.others.force().0;
        // One less than a power of two, so it serves as the mask.
        let index = thread & others.len();
        if index == 0 { &self.first } else { others.get(index - 1).unwrap_or(&self.first) }
    }

    fn lanes(&self) -> impl Iterator<Item = &Lane> {
        let others = self.others.get().into_iter().flat_map(|others| others.0.iter());
        std::iter::once(&self.first).chain(others).map(|lane| &**lane)
    }

    /// Whether the window has ended.
    #[must_use]
    #[inline]
    pub fn is_over(&self, now: Now) -> bool {
        let end = Now::from_nanos(self.end.load(READ_END));
        end.nanos_since(now) == 0 || end.nanos_since(now) > LONGEST
    }

    /// Where the limit stands; none until a call has ended under rules of it. Only for the holder of the target's lock.
    pub(crate) fn control(&self) -> impl std::ops::DerefMut<Target = Option<Control>> + '_ {
        self.control.lock()
    }

    /// Begins anew with the next call that ends. Only for the holder of the target's lock.
    pub(crate) fn restart(&self) {
        *self.control() = None;
        self.end_at(0);
    }

    /// Sets when the window ends.
    pub fn end_at(&self, nanos: u64) {
        self.end.store(nanos, SET_END);
    }

    /// Sets how many nanoseconds one call counts for at most, so that a few that take a hundred times as long as others don't move the mean.
    pub fn count_at_most(&self, nanos: u64) {
        self.most.store(nanos, SET_MOST);
    }

    /// What is there, left where it is.
    #[must_use]
    pub fn look(&self) -> Sums {
        self.sums(Cell::load)
    }

    /// Takes out what is there. Only for the holder of the target's lock.
    pub fn take(&self) -> Sums {
        self.sums(Cell::take)
    }

    fn sums(&self, of: impl Fn(&Cell) -> Word) -> Sums {
        self.lanes().fold(Sums::default(), |sums, lane| Sums {
            good: sums.good.and(of(&lane.good)),
            failed: sums.failed.and(of(&lane.failed)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_counted_with_what_it_took_and_no_more_than_fits() {
        let cell = Cell::default();
        assert!(!cell.add(1_999) && !cell.add(u64::MAX));
        let word = cell.take();
        assert_eq!((word.calls(), word.micros()), (2, 1 + MOST_MICROS));
        assert_eq!(cell.load(), Word::from_bits(0));
    }

    #[test]
    fn a_full_word_stands_still_and_nothing_carries() {
        let cell = Cell(AtomicU64::new(Word::of_call(u64::MAX).bits() * (FULL - 1)));
        assert!(!cell.load().is_full() && cell.add(u64::MAX));
        let full = cell.load();
        assert!(cell.add(u64::MAX));
        assert_eq!((cell.load(), full.calls(), full.micros()), (full, FULL, FULL * MOST_MICROS));
    }

    #[test]
    fn a_full_word_ends_the_window() {
        let samples = Samples::default();
        samples.end_at(LONGEST);
        samples.first.good.0.fetch_add(CALLS.one() * (FULL - 2), ADD);
        for is_over in [false, true, true] {
            samples.add(0, false, false, 1_000);
            assert_eq!(samples.is_over(Now::from_millis(1)), is_over);
        }
        assert_eq!(samples.take().calls(), FULL);
    }

    #[test]
    fn one_call_counts_for_no_more_than_is_set() {
        let samples = Samples::default();
        samples.count_at_most(5_000);
        for nanos in [4_000, 5_000, u64::MAX] {
            samples.add(0, false, false, nanos);
        }
        assert_eq!(samples.take().good, Sum { calls: 3, nanos: 14_000 });
    }

    #[test]
    fn samples_of_all_stripes_are_summed_and_taken_once() {
        let samples = Samples::default();
        for thread in 0..9 {
            samples.add(thread, thread > 0, thread == 3, 1_000 * thread as u64);
        }
        let sums = samples.look();
        assert_eq!(sums.good, Sum { calls: 8, nanos: 33_000 });
        assert_eq!((sums.failed.mean(), sums.calls()), (3_000, 9));
        assert_eq!((samples.take(), samples.take()), (sums, Sums::default()));
        assert_eq!(Sum::default().mean(), 0);
    }

    #[test]
    fn a_window_is_over_at_its_end_and_where_the_clock_stepped_back() {
        let samples = Samples::default();
        samples.end_at(LONGEST + 5);
        let is_over = |nanos| samples.is_over(Now::from_nanos(nanos));
        assert_eq!([4, 5, LONGEST + 4, LONGEST + 5, u64::MAX].map(is_over), [true, false, false, true, true]);
    }
}
