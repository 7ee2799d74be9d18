//! Many histories of one shape, and what they came to.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use crate::check::is_linearizable;
use crate::drive::{self, MakeDoor};
use crate::history::History;
use crate::plan::Dice;
use crate::shape::Shape;

/// What the histories of a shape came to.
#[derive(Debug, Default)]
pub struct Tally {
    /// Histories with overlap; the others don't count.
    pub counted: usize,
    pub run: usize,
    /// The sum of the most acts at once, over those that count.
    pub widths: usize,
    /// Histories by everything that the threads did and were answered, in whatever interleaving.
    pub outcomes: HashSet<u64>,
    pub kinds: BTreeMap<&'static str, usize>,
    pub driving: Duration,
    pub checking: Duration,
    /// The longest that the checker took for one.
    pub slowest: Duration,
    pub rejected: Option<History>,
}

impl Tally {
    /// Adds another shape's.
    pub fn add(&mut self, other: &Self) {
        self.counted += other.counted;
        self.run += other.run;
        self.widths += other.widths;
        self.outcomes.extend(&other.outcomes);
        for (kind, times) in &other.kinds {
            *self.kinds.entry(kind).or_default() += times;
        }
        self.driving += other.driving;
        self.checking += other.checking;
        self.slowest = self.slowest.max(other.slowest);
    }

    fn note(&mut self, history: &History) {
        self.counted += 1;
        self.widths += history.width();
        let mut entries: Vec<_> = history.entries.iter().map(|entry| (entry.act, entry.done)).collect();
        entries.sort_unstable_by_key(|(act, _)| *act);
        let mut hasher = DefaultHasher::new();
        (history.shape.name, entries).hash(&mut hasher);
        self.outcomes.insert(hasher.finish());
        for entry in &history.entries {
            *self.kinds.entry(entry.done.kind()).or_default() += 1;
        }
    }
}

/// Histories that the same threads run.
const BATCH: usize = 64;

/// Runs histories until so many had overlap, or one is rejected. Gives up where hardly any has.
#[must_use]
pub fn run(shape: &'static Shape, make: MakeDoor, histories: usize, seed: u64) -> Tally {
    let mut tally = Tally::default();
    let mut dice = Dice::new(seed);
    while tally.counted < histories && tally.run < histories * 50 + BATCH {
        let begun = Instant::now();
        let batch = drive::run(shape, make, dice.roll(usize::MAX) as u64, BATCH);
        tally.driving += begun.elapsed();
        for history in batch {
            tally.run += 1;
            if !history.has_overlap() {
                continue;
            }
            let begun = Instant::now();
            let is_linearizable = is_linearizable(&history);
            let took = begun.elapsed();
            tally.checking += took;
            tally.slowest = tally.slowest.max(took);
            tally.note(&history);
            if !is_linearizable {
                tally.rejected = Some(history);
                return tally;
            }
        }
    }
    tally
}
