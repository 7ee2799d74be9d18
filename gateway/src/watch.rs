//! What the gateway itself sees of each target, beside what the engine counts: how long attempts take, how they fail, how it moved of late.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use portcullis::Transition;
use portcullis::call::CallCounts;

use crate::latency::Latency;
use crate::story::Story;
use crate::upstream::CallError;

/// What is seen of one target.
#[derive(Debug)]
pub(crate) struct Watch {
    latency: Latency,
    failures: [AtomicU64; CallError::REASONS.len()],
    // Timeouts of attempts that are no part of a whole call, where the library would count them: not of probes, and of probes.
    lone_timeouts: [AtomicU64; 2],
    story: Mutex<Story>,
}

impl Watch {
    fn new() -> Self {
        Self {
            latency: Latency::new(Instant::now()),
            failures: Default::default(),
            lone_timeouts: Default::default(),
            story: Mutex::default(),
        }
    }

    /// Takes note of an attempt that was admitted at `begun` and has its head by now, or failed. Latencies are those of answers, whatever they say, and
    /// of attempts that had none within their time: a connection that is refused tells nothing of how long an answer takes.
    pub(crate) fn attempted<R>(&self, begun: Instant, result: &Result<R, CallError>) {
        if let Err(error) = result {
            self.failures[error.kind()].fetch_add(1, Ordering::Relaxed);
        }
        if matches!(result, Ok(_) | Err(CallError::Timeout { .. })) {
            self.latency.record(begun.elapsed());
        }
    }

    /// The same of an attempt that is a call by itself.
    pub(crate) fn attempted_alone<R>(&self, is_probe: bool, begun: Instant, result: &Result<R, CallError>) {
        if let Err(CallError::Timeout { .. }) = result {
            self.lone_timeouts[usize::from(is_probe)].fetch_add(1, Ordering::Relaxed);
        }
        self.attempted(begun, result);
    }

    /// Adds what the library doesn't see to what it counted.
    pub(crate) fn complete(&self, counts: &mut CallCounts) {
        let [others, probes] = [0, 1].map(|at: usize| self.lone_timeouts[at].load(Ordering::Relaxed));
        counts.timeouts += others + probes;
        counts.probe_timeouts += probes;
    }

    pub(crate) fn latency(&self) -> &Latency {
        &self.latency
    }

    /// Attempts without an answer, by [`CallError::REASONS`].
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CallError::REASONS.into_iter().zip(self.failures.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    /// The last transitions.
    pub(crate) fn story(&self) -> Story {
        self.story.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn moved(&self, transition: &Transition) {
        self.story.lock().unwrap_or_else(PoisonError::into_inner).note(transition);
    }
}

/// What is seen of all targets. As the engine does, it keeps those that a reload took away.
#[derive(Debug, Default)]
pub(crate) struct Watches(RwLock<HashMap<String, Arc<Watch>>>);

impl Watches {
    /// That of a target; it begins with the first call.
    pub(crate) fn of(&self, target: &str) -> Arc<Watch> {
        if let Some(watch) = self.get(target) {
            return watch;
        }
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(target.to_owned()).or_insert_with(|| Arc::new(Watch::new())))
    }

    pub(crate) fn get(&self, target: &str) -> Option<Arc<Watch>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(target).cloned()
    }

    /// Takes note of a transition. Called by whoever made it: off the hot path, and seldom.
    pub(crate) fn moved(&self, transition: &Transition) {
        if let Some(watch) = self.get(&transition.target) {
            watch.moved(transition);
        }
    }
}
