//! Good answers, kept for the time when there are none.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use moka::policy::EvictionPolicy;
use moka::sync::Cache;

/// A bounded store of last good answers, each under a name, with the time at which it came.
///
/// moka keeps it bounded; ages are of the engine's clock, and judged when an answer is asked for.
pub struct LastGood<T> {
    kept: Cache<String, Arc<(T, Duration)>>,
}

// Two handles of one store.
impl<T> Clone for LastGood<T> {
    fn clone(&self) -> Self {
        Self { kept: self.kept.clone() }
    }
}

impl<T: Clone + Send + Sync + 'static> LastGood<T> {
    /// Keeps up to so many answers; the one that wasn't asked for longest goes first.
    #[must_use]
    pub fn new(answers: u64) -> Self {
        Self::weighed(answers, |_, _| 1)
    }

    /// Keeps answers up to a weight in all, such as the bytes of name and answer.
    #[must_use]
    pub fn weighed(most: u64, weigh: impl Fn(&str, &T) -> u32 + Send + Sync + 'static) -> Self {
        let kept = Cache::builder()
            .max_capacity(most)
            .eviction_policy(EvictionPolicy::lru())
            .weigher(move |name: &String, kept: &Arc<(T, Duration)>| weigh(name, &kept.0))
            .build();
        Self { kept }
    }

    /// Keeps an answer that came at `now`.
    pub fn keep(&self, name: String, answer: T, now: Duration) {
        self.kept.insert(name, Arc::new((answer, now)));
    }

    /// The answer kept under a name and its age, if that is at most `max_age`. An older one stays: another caller may take it.
    #[must_use]
    pub fn get(&self, name: &str, max_age: Duration, now: Duration) -> Option<(T, Duration)> {
        let kept = self.kept.get(name)?;
        let age = now.saturating_sub(kept.1);
        (age <= max_age).then(|| (kept.0.clone(), age))
    }
}

impl<T> fmt::Debug for LastGood<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastGood").finish_non_exhaustive()
    }
}
