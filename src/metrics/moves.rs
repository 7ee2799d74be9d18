//! Transitions by state, counted as they happen: scrapes are seldom, and a target may open and close between two.

use std::collections::HashMap;
use std::sync::Arc;

use super::series::{self, Moves};
use crate::engine::{Engine, Key};
use crate::event::{ObserverGuard, Transition};
use crate::sync::Mutex;

/// Targets whose transitions are kept apart until somebody asks; those of further ones are known only as a sum.
const MOST: usize = 10_000;

/// What a target did since somebody asked.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    pub(super) moves: Moves,
    /// When the last was, in unix time.
    pub(super) last: f64,
}

#[derive(Debug)]
pub(super) struct Pending<K> {
    pub(super) named: HashMap<Arc<K>, News>,
    pub(super) unnamed: News,
}

impl<K> Default for Pending<K> {
    fn default() -> Self {
        Self { named: HashMap::new(), unnamed: News::default() }
    }
}

/// Counts from when it is made until it is dropped.
#[derive(Debug)]
pub(super) struct Ear<K: Key> {
    pending: Arc<Mutex<Pending<K>>>,
    _guard: ObserverGuard,
}

impl<K: Key> Ear<K> {
    pub(super) fn new(engine: &Engine<K>) -> Self {
        let pending: Arc<Mutex<Pending<K>>> = Arc::default();
        let heard = Arc::clone(&pending);
        let guard = engine.observe(move |transition: &Transition<K>| heard.lock().hear(transition));
        Self { pending, _guard: guard }
    }

    /// What was heard since the last time.
    pub(super) fn take(&self) -> Pending<K> {
        std::mem::take(&mut *self.pending.lock())
    }
}

impl<K: Key> Pending<K> {
    fn hear(&mut self, transition: &Transition<K>) {
        let is_full = self.named.len() >= MOST;
        let news = match self.named.get_mut(&transition.target) {
            Some(news) => news,
            None if is_full => &mut self.unnamed,
            None => self.named.entry(Arc::clone(&transition.target)).or_default(),
        };
        news.moves[series::moved(transition.from, transition.to)] += 1;
        let wall = transition.wall.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        news.last = news.last.max(wall.as_secs_f64());
    }
}
