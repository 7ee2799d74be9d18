//! The engine's own settings.

use std::marker::PhantomData;
use std::time::Duration;

use super::{Engine, Key};
use crate::cache::Cache;
use crate::event::hub::Hub;
use crate::policy::Policy;
use crate::registry::Registry;
use crate::slot::Patience;
use crate::time::Clock;

/// Collects the settings of an [`Engine`].
#[derive(Clone, Debug)]
#[must_use]
pub struct EngineBuilder<K = String> {
    policy: Policy,
    clock: Clock,
    max_targets: usize,
    patience: Patience,
    log_capacity: usize,
    seed: Option<u64>,
    key: PhantomData<fn() -> K>,
}

impl<K> Default for EngineBuilder<K> {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            clock: Clock::default(),
            max_targets: 10_000,
            patience: Patience { idle_after: Duration::from_secs(60), forget_after: Duration::from_secs(3_600) },
            log_capacity: 1_024,
            seed: None,
            key: PhantomData,
        }
    }
}

impl<K: Key> EngineBuilder<K> {
    /// Sets the policy of targets that have none of their own.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the clock: [`Clock::precise`] unless set.
    pub fn clock(mut self, clock: impl Into<Clock>) -> Self {
        self.clock = clock.into();
        self
    }

    /// Bounds the targets: 10,000 unless set. A key beyond them is refused unless an idle target can go.
    pub fn max_targets(mut self, targets: usize) -> Self {
        self.max_targets = targets;
        self
    }

    /// Lets a CLOSED target without failures go after this long without a call: 1 minute unless set.
    pub fn idle_after(mut self, duration: Duration) -> Self {
        self.patience.idle_after = duration;
        self
    }

    /// Lets any target but a forced one go after this long without a call: 1 hour unless set, and at least its longest wait and window.
    pub fn forget_after(mut self, duration: Duration) -> Self {
        self.patience.forget_after = duration;
        self
    }

    /// Bounds the log of transitions: 1,024 unless set.
    pub fn log_capacity(mut self, transitions: usize) -> Self {
        self.log_capacity = transitions;
        self
    }

    /// Makes the jitter of waits the same in every run of a build; drawn at random unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Builds the engine and starts its clock at zero.
    #[must_use]
    pub fn build(self) -> Engine<K> {
        let seed = self.seed.unwrap_or_else(|| ahash::RandomState::new().hash_one(0_u8));
        Engine {
            cache: Cache::default(),
            registry: Registry::new(self.max_targets, self.patience, seed, self.policy),
            clock: self.clock.start(),
            hub: Hub::new(self.log_capacity),
        }
    }
}
