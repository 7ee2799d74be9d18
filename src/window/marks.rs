//! The failures and slow calls of a stretch of time, by bucket, and a sign that there are any.
//!
//! All stripes share them: only what a healthy target doesn't have writes here. The sign is a bucket's word, too: `generation`, the tick
//! at which the last mark has left the window, and how many marks there were, which wraps. A success that finds the sign past has
//! nothing to judge; one that finds it as it was when it was judged last has nothing new to judge.

use super::Recorded;
use super::buckets::{Cell, MOST_BUCKETS, MOST_COUNTED, View, Word};
use crate::gate;
use crate::sync::Lazy;

/// Buckets are made in chunks, so that a target pays for those of its own policy, and never has to move one.
const CHUNK: usize = if cfg!(portcullis_loom) { 1 } else { 8 };
const CHUNKS: usize = MOST_BUCKETS as usize / CHUNK;

#[derive(Debug, Default)]
struct Bucket {
    failures: Cell,
    slow: Cell,
}

#[derive(Debug, Default)]
struct Chunk([Bucket; CHUNK]);

/// What each chunk of buckets takes.
#[cfg(test)]
pub(crate) const CHUNK_BYTES: usize = size_of::<Chunk>();

/// The failures and slow calls of one target.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Marks {
    sign: Cell,
    chunks: [Lazy<Chunk>; CHUNKS],
}

/// Whether no mark is in the window of `generation` at `tick`, by the sign.
#[must_use]
#[inline]
pub const fn is_quiet(sign: Word, generation: u32, tick: u64) -> bool {
    // The end of time never comes.
    !sign.is_of(generation) || (tick >= sign.start() && sign.start() < Word::new(0, u64::MAX, 0).start())
}

impl Marks {
    /// The sign; whoever counted a call and misses a mark here is seen by whoever made it.
    #[must_use]
    #[inline]
    pub fn sign(&self) -> Word {
        self.sign.load_sign()
    }

    /// Whether no mark is in the window, for whoever has counted a call and passed the fence.
    #[must_use]
    pub fn is_quiet(&self, view: &View) -> bool {
        is_quiet(self.sign.load(), view.generation(), view.start())
    }

    /// Marks a call that was counted in the newest bucket under `start`, which is later if this clock reading lags.
    pub fn mark(&self, view: &View, start: u64, failed: bool, slow: bool, gate: &gate::Cell) {
        let generation = view.generation();
        if let Some(bucket) = self.bucket(view.index(), |chunk| Some(chunk.force())) {
            for (is_marked, cell) in [(failed, &bucket.failures), (slow, &bucket.slow)] {
                if is_marked {
                    // Stale here means that the window is past; the call was in it.
                    let _: Recorded<Word> = cell.mark(generation, start, gate);
                }
            }
        }
        // After the marks: whoever sees the sign sees them.
        let until = view.until(start);
        let _: Recorded<Word> = self.sign.update(gate, generation, Word::new(generation, until, 1), |sign| {
            Word::new(generation, sign.start().max(until), next(sign.count()))
        });
    }

    /// Makes every success judge once more, by another policy.
    pub fn stir(&self, generation: u32, gate: &gate::Cell) {
        let _: Recorded<Word> = self.sign.update(gate, generation, Word::new(generation, 0, 1), |sign| {
            Word::new(generation, sign.start(), next(sign.count()))
        });
    }

    /// The words of the bucket at `index`: failures, slow calls.
    #[must_use]
    pub fn at(&self, index: u64) -> Option<[Word; 2]> {
        self.bucket(index, Lazy::get).map(|bucket| [bucket.failures.load(), bucket.slow.load()])
    }

    /// The failures and slow calls that the window covers, whatever became of their calls.
    #[must_use]
    pub fn sums(&self, view: &View) -> [u64; 2] {
        let mut sums = [0; 2];
        for words in (0..view.buckets()).filter_map(|index| self.at(index)) {
            for (sum, word) in sums.iter_mut().zip(words) {
                *sum += if view.covers(word) { word.count() } else { 0 };
            }
        }
        sums
    }

    fn bucket<'a>(&'a self, index: u64, chunk: impl Fn(&'a Lazy<Chunk>) -> Option<&'a Chunk>) -> Option<&'a Bucket> {
        let index = usize::try_from(index).ok()?;
        chunk(self.chunks.get(index / CHUNK)?)?.0.get(index % CHUNK)
    }
}

/// The count after `count`; never none, which a word is that was never written.
const fn next(count: u64) -> u64 {
    if count >= MOST_COUNTED as u64 { 1 } else { count + 1 }
}
