//! Who has series of its own, and what is summed up: each number of `other` rises only, though targets come, go and change sides.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::label::{OTHER, label};
use super::moves::Ear;
use super::series::{self, COUNTERS, GAUGES, LATEST, MOVES, Moves, Series};
use crate::engine::{Engine, Key};
use crate::gate::State;
use crate::snapshot::Snapshot;

/// Targets with series of their own, unless it is set.
const MAX_TARGETS: usize = 1_000;

/// Collects the series of an engine's targets, for whoever writes them down: [`Publisher`](super::Publisher) does for the `metrics` facade.
///
/// At most [`max_targets`](Self::max_targets) have series of their own; all others are summed up under the name [`OTHER`]. A target that has its
/// own keeps them for as long as the engine holds it, so that no series flaps between two names. Where there are more targets than places,
/// those that aren't CLOSED come first, then those with the most calls.
///
/// For each target that is summed up it keeps what was counted last, about 200 bytes and 8 for each counter of the caller, so that the sums rise only.
pub struct Collector<K: Key = String> {
    ear: Ear<K>,
    most: usize,
    round: u64,
    own: HashMap<Arc<K>, Own>,
    labels: HashSet<String>,
    /// Those that are summed up or not shown.
    others: HashMap<Arc<K>, Account>,
    other: Other,
}

/// The numbers of one target, or of all that have none of their own.
#[derive(Debug)]
#[non_exhaustive]
pub struct Row<K> {
    /// The value of the label `target`: to be escaped by whoever writes it.
    pub label: String,
    /// The target's key; none in the sum of many.
    pub key: Option<Arc<K>>,
    /// The values of [`GAUGES`].
    pub gauges: [f64; GAUGES.len()],
    /// How far each counter came.
    pub total: Counts,
    /// How much of that is new since the last collection.
    pub fresh: Counts,
}

/// Values of counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of [`COUNTERS`], and then of what the caller added.
    pub counters: Vec<u64>,
    /// Of [`MOVES`].
    pub moves: Moves,
}

impl Counts {
    fn add(&mut self, more: &Self) {
        self.add_counters(&more.counters);
        self.moves.iter_mut().zip(more.moves).for_each(|(sum, more)| *sum += more);
    }

    /// To nothing as well.
    fn add_counters(&mut self, more: &[u64]) {
        self.counters.resize(self.counters.len().max(more.len()), 0);
        self.counters.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }
}

impl<K> Row<K> {
    /// The gauges with their values.
    pub fn gauges(&self) -> impl Iterator<Item = (&'static Series, f64)> {
        GAUGES.iter().zip(self.gauges)
    }

    /// The counters with their totals and with what is new, where `added` are the caller's own, or the first of them; but for transitions that
    /// nobody expects and there were none of.
    pub fn counters<'a>(&'a self, added: &'a [Series]) -> impl Iterator<Item = (&'a Series, u64, u64)> {
        let counters = COUNTERS.iter().chain(added).zip(self.total.counters.iter().zip(&self.fresh.counters));
        let moves = MOVES.iter().zip(self.total.moves.iter().zip(&self.fresh.moves)).enumerate();
        let moves = moves.filter(|&(at, (_, (count, _)))| *count > 0 || series::is_usual(at)).map(|(_, shown)| shown);
        counters.chain(moves).map(|(series, (count, fresh))| (series, *count, *fresh))
    }
}

/// What was counted of a target when it was last seen.
#[derive(Debug, Default)]
struct Account {
    round: u64,
    incarnation: u64,
    last: Box<[u64]>,
}

impl Account {
    /// What was counted since; a number that went back a little, as `admitted` may, waits until it is larger.
    fn fresh(&mut self, round: u64, incarnation: u64, counted: &[u64]) -> Vec<u64> {
        if self.incarnation != incarnation || self.last.len() != counted.len() {
            *self = Self { round, incarnation, last: vec![0; counted.len()].into() };
        }
        self.round = round;
        let since = |(last, &now): (&mut u64, &u64)| {
            let fresh = now.saturating_sub(*last);
            *last += fresh;
            fresh
        };
        self.last.iter_mut().zip(counted).map(since).collect()
    }
}

/// A target with series of its own.
#[derive(Debug)]
struct Own {
    label: String,
    account: Account,
    total: Counts,
    last_transition: f64,
}

/// The others in one.
#[derive(Debug, Default)]
struct Other {
    is_shown: bool,
    total: Counts,
    last_transition: f64,
}

impl<K: Key> Collector<K> {
    /// Collects from `engine`, and counts its transitions from now on.
    #[must_use]
    pub fn new(engine: &Engine<K>) -> Self {
        Self {
            ear: Ear::new(engine),
            most: MAX_TARGETS,
            round: 0,
            own: HashMap::new(),
            labels: HashSet::new(),
            others: HashMap::new(),
            other: Other::default(),
        }
    }

    /// Sets how many targets have series of their own: 1,000 by default, and 0 sums up all. A lower number takes no target's series away.
    #[must_use]
    pub fn max_targets(mut self, most: usize) -> Self {
        self.set_max_targets(most);
        self
    }

    /// As [`max_targets`](Self::max_targets), for one that is at work.
    pub fn set_max_targets(&mut self, most: usize) {
        self.most = most;
    }

    /// Reads all targets of the engine that it was made for, and sums up those without series of their own; that sum comes last.
    ///
    /// `more` adds counters of the caller's, always as many and in the same order, and says whether the target is to be shown at all. It may use the
    /// engine; nothing is locked. A target that the engine has let go of is in no row any more.
    pub fn collect(
        &mut self,
        engine: &Engine<K>,
        mut more: impl FnMut(&K, &Snapshot, &mut Vec<u64>) -> bool,
    ) -> Vec<Row<K>> {
        self.give_places(engine, &mut more);
        self.round += 1;
        let heard = self.ear.take();
        let mut rows = Vec::with_capacity(self.own.len() + 1);
        let mut sum = [0.0; GAUGES.len()];
        let mut rest = Counts { counters: Vec::new(), moves: heard.unnamed.moves };
        let mut last_of_rest = heard.unnamed.last;
        let mut counted = Vec::new();
        engine.visit(|key, snapshot| {
            counted.clear();
            counted.extend(series::counters(&snapshot));
            let is_shown = more(key, &snapshot, &mut counted);
            let Some(own) = self.own.get_mut(key).filter(|_| is_shown) else {
                let given = self.own.remove(key);
                let account = self.others.entry(Arc::clone(key)).or_default();
                if account.round == self.round {
                    return;
                }
                if let Some(own) = given {
                    self.labels.remove(&own.label);
                    *account = own.account;
                }
                rest.add_counters(&account.fresh(self.round, snapshot.incarnation, &counted));
                if is_shown {
                    self.other.is_shown = true;
                    sum.iter_mut().zip(series::gauges(&snapshot, 0.0)).for_each(|(sum, more)| *sum += more);
                }
                return;
            };
            // Met in this round, let go of, and made anew in a place that comes later: once is enough for a page.
            if own.account.round == self.round {
                return;
            }
            let news = heard.named.get(key).copied().unwrap_or_default();
            let counters = own.account.fresh(self.round, snapshot.incarnation, &counted);
            let fresh = Counts { counters, moves: news.moves };
            own.total.add(&fresh);
            own.last_transition = own.last_transition.max(news.last);
            rows.push(Row {
                label: own.label.clone(),
                key: Some(Arc::clone(key)),
                gauges: series::gauges(&snapshot, own.last_transition),
                total: own.total.clone(),
                fresh,
            });
        });
        self.forget_the_gone();
        // Also of those that are gone by now.
        for (_, news) in heard.named.iter().filter(|(key, _)| !self.own.contains_key(*key)) {
            rest.add(&Counts { counters: Vec::new(), moves: news.moves });
            last_of_rest = last_of_rest.max(news.last);
        }
        self.other.total.add(&rest);
        self.other.last_transition = self.other.last_transition.max(last_of_rest);
        sum[LATEST] = self.other.last_transition;
        if self.other.is_shown {
            rest.counters.resize(self.other.total.counters.len(), 0);
            let label = OTHER.to_owned();
            rows.push(Row { label, key: None, gauges: sum, total: self.other.total.clone(), fresh: rest });
        }
        rows
    }

    /// Gives the places that are free to those without one.
    fn give_places(&mut self, engine: &Engine<K>, more: &mut impl FnMut(&K, &Snapshot, &mut Vec<u64>) -> bool) {
        let free = self.most.saturating_sub(self.own.len());
        if free == 0 || engine.len() <= self.own.len() {
            return;
        }
        let mut waiting = Vec::new();
        engine.visit(|key, snapshot| {
            if !self.own.contains_key(key) && more(key, &snapshot, &mut Vec::new()) {
                waiting.push((snapshot.state == State::Closed, Reverse(snapshot.totals.admitted), Arc::clone(key)));
            }
        });
        waiting.sort_by_key(|(is_closed, calls, _)| (*is_closed, *calls));
        for (_, _, key) in waiting {
            if self.own.len() >= self.most {
                break;
            }
            let label = label(&*key);
            if label == OTHER || !self.labels.insert(label.clone()) {
                continue;
            }
            let account = self.others.remove(&key).unwrap_or_default();
            self.own.insert(key, Own { label, account, total: Counts::default(), last_transition: 0.0 });
        }
    }

    /// What this round hasn't met the engine doesn't hold any more.
    fn forget_the_gone(&mut self) {
        let round = self.round;
        self.others.retain(|_, account| account.round == round);
        let labels = &mut self.labels;
        self.own.retain(|_, own| {
            let stays = own.account.round == round;
            if !stays {
                labels.remove(&own.label);
            }
            stays
        });
    }
}

impl<K: Key> fmt::Debug for Collector<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (own, others) = (self.own.len(), self.others.len());
        f.debug_struct("Collector")
            .field("max_targets", &self.most)
            .field("own", &own)
            .field("others", &others)
            .finish()
    }
}
