//! One stripe's calls of a stretch of time, by bucket.
//!
//! A success on a healthy target counts here and nowhere else. It finds its bucket without a division: a hint says which one the last
//! call used and how wide it is, and the bucket's own word says whether that goes on. A hint is of one generation and is
//! written after a call was counted where it points, so it never leads to a bucket of another window.

use crossbeam_utils::CachePadded;

use super::Recorded;
use super::buckets::{Cell, MOST_BUCKETS, View, Word};
use crate::bits::Field;
use crate::gate;
use crate::stall;
use crate::sync::{AtomicU64, Lazy, Ordering, Role, role};

/// As many buckets as fit beside the rest in the two cache lines that the processor fetches at once.
const NEAR: usize = if cfg!(portcullis_loom) { 2 } else { 11 };
const FAR: usize = MOST_BUCKETS as usize - NEAR;

const INDEX: Field = Field::lowest(6);
const WIDTH: Field = INDEX.above(27);
const GENERATION: Field = WIDTH.above(gate::GENERATION_BITS);
const _: () = assert!(GENERATION.end() <= 64 && INDEX.max() + 1 >= MOST_BUCKETS as u64);
const _: () = assert!(WIDTH.max() as u128 >= super::LONGEST.as_millis());

/// Relaxed: a hint, that the bucket's word confirms.
const HINT: Role = role("lane.hint", Ordering::Relaxed);
/// Relaxed: it speaks of the sign that its reader has read itself.
const JUDGED: Role = role("lane.judged", Ordering::Relaxed);
/// Relaxed: calls that were counted stay so while the bucket is the newest.
const KNOWN: Role = role("lane.known", Ordering::Relaxed);

/// The calls of one stripe.
#[derive(Debug)]
pub struct Lane {
    /// `generation | width | index` of the bucket that the last call used.
    hint: AtomicU64,
    /// The bucket and the count of the sign under which no rule could be met.
    judged: AtomicU64,
    /// The newest bucket, and how many calls all stripes had in the window when they were summed there.
    known: AtomicU64,
    far: Lazy<Far>,
    /// Calls that are running, where the policy has a stall rule.
    pub(crate) running: Lazy<CachePadded<stall::lane::Lane>>,
    near: [Cell; NEAR],
}

/// The buckets of a window that is cut more finely than most.
#[derive(Debug)]
struct Far([Cell; FAR]);

/// What a stripe's calls take, and what more than `NEAR` buckets do.
#[cfg(test)]
pub(crate) const BYTES: (usize, usize) = (size_of::<CachePadded<Lane>>(), size_of::<Far>());

impl Default for Far {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Cell::default()))
    }
}

impl Default for Lane {
    fn default() -> Self {
        let [hint, judged, known] = [0; 3].map(AtomicU64::new);
        Self { hint, judged, known, far: Lazy::default(), running: Lazy::default(), near: <_>::default() }
    }
}

/// What came of counting a call where the last one was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// Counted; the bucket as it was before.
    Counted(Word),
    /// Another thread was met there; nothing is counted.
    Met,
    /// It belongs in another bucket; nothing is counted.
    Elsewhere,
}

impl Lane {
    /// Counts a call in the bucket that the last one used, if that goes on at `tick` and `generation` is the gate's.
    #[inline]
    pub fn count_again(&self, generation: u32, tick: u64) -> Again {
        let hint = self.hint.load(HINT);
        let cell = self.cell(INDEX.get(hint), Lazy::get).filter(|_| GENERATION.get(hint) == u64::from(generation));
        let Some(cell) = cell else { return Again::Elsewhere };
        let word = cell.load();
        // A tick before the start wraps to a large one.
        if !word.is_of(generation) || tick.wrapping_sub(word.start()) >= WIDTH.get(hint) {
            return Again::Elsewhere;
        }
        // A full one stands still.
        if word.is_full() || cell.count_one(word) { Again::Counted(word) } else { Again::Met }
    }

    /// Counts a call in its bucket.
    pub fn record(&self, view: &View, gate: &gate::Cell) -> Recorded<Word> {
        let index = view.index();
        let Some(cell) = self.cell(index, |far| Some(far.force())) else { return Recorded::Stale };
        let recorded = cell.record(view.generation(), view.start(), gate);
        if let Recorded::Counted(_) = recorded {
            let hint = GENERATION.set(WIDTH.set(INDEX.set(0, index), view.width_ms()), view.generation().into());
            if self.hint.load(HINT) != hint {
                self.hint.store(hint, HINT);
            }
        }
        recorded
    }

    /// Whether a success in the bucket of `call` can meet no rule as long as the sign stays as it is.
    #[must_use]
    #[inline]
    pub fn is_judged(&self, generation: u32, call: Word, sign: Word) -> bool {
        self.judged.load(JUDGED) == Word::new(generation, call.start(), sign.count()).bits()
    }

    /// Notes that no success in the newest bucket can meet a rule as long as the sign stays as it is: calls only lower a rate.
    pub fn note_judged(&self, view: &View, sign: Word) {
        self.judged.store(Word::new(view.generation(), view.start(), sign.count()).bits(), JUDGED);
    }

    /// So many calls or more that the window covers: of all stripes as last summed in its newest bucket, or of this one alone.
    #[must_use]
    pub fn calls_at_least(&self, view: &View) -> u64 {
        let known = Word::from_bits(self.known.load(KNOWN));
        if known.is_of(view.generation()) && known.start() == view.start() && known.count() > 0 {
            known.count()
        } else {
            self.calls(view)
        }
    }

    /// Notes how many calls all stripes have.
    pub fn note_calls(&self, view: &View, calls: u64) {
        self.known.store(Word::new(view.generation(), view.start(), calls).bits(), KNOWN);
    }

    /// The word of the bucket at `index`.
    #[must_use]
    pub fn bucket(&self, index: u64) -> Option<Word> {
        self.cell(index, Lazy::get).map(Cell::load)
    }

    /// The calls of this stripe that the window covers.
    fn calls(&self, view: &View) -> u64 {
        let covered = (0..view.buckets()).filter_map(|index| self.bucket(index)).filter(|word| view.covers(*word));
        covered.map(Word::count).sum()
    }

    /// The newest start of any bucket in use, of whatever generation; none if none is.
    #[must_use]
    pub fn newest_start(&self) -> Option<u64> {
        let used = (0..MOST_BUCKETS.into()).filter_map(|index| self.bucket(index)).filter(|word| word.count() > 0);
        used.map(Word::start).max()
    }

    #[cfg(test)]
    pub(super) fn beginning_with(first: Cell) -> Self {
        let mut lane = Self::default();
        lane.near[0] = first;
        lane
    }

    #[inline]
    fn cell<'a>(&'a self, index: u64, far: impl FnOnce(&'a Lazy<Far>) -> Option<&'a Far>) -> Option<&'a Cell> {
        let index = usize::try_from(index).ok()?;
        if index < NEAR { self.near.get(index) } else { far(&self.far)?.0.get(index - NEAR) }
    }
}
