//! A whole engine as the models of the registry and of snapshots use it.

use std::mem::forget;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use portcullis::{Clock, Engine, OwnedPermit, Policy};

use crate::desk::build;

type Owned = OwnedPermit<Arc<Engine<u8>>, u8>;

/// The key that all ask for.
pub const KEY: u8 = 1;
/// One that needs a place, too.
pub const OTHER: u8 = 2;

/// An engine, and permits that were granted before the race.
#[derive(Debug)]
pub struct House {
    pub engine: Arc<Engine<u8>>,
    /// Plain std, and never held across an operation of loom's.
    granted: Mutex<Vec<Owned>>,
}

/// Counts failures and never trips.
#[must_use]
pub fn patient() -> Policy {
    build(Policy::builder().no_window().consecutive_failures(9))
}

impl House {
    /// With a standing clock, where nobody is idle for too short.
    #[must_use]
    pub fn new(policy: Policy, max_targets: usize) -> Self {
        let (clock, _) = Clock::mock();
        let builder = Engine::builder().policy(policy).clock(clock).max_targets(max_targets).seed(1);
        let engine = builder.idle_after(Duration::ZERO).forget_after(Duration::ZERO).build();
        Self { engine: Arc::new(engine), granted: Mutex::default() }
    }

    /// Where [`KEY`] has been idle for long enough: the next visit lets it go.
    #[must_use]
    pub fn idle(policy: Policy, max_targets: usize) -> Self {
        let house = Self::new(policy, max_targets);
        assert!(house.pass(KEY));
        assert_eq!(house.engine.sweep(), 0);
        house
    }

    /// Lets a call in before the race.
    pub fn grant(&self) {
        let permit = self.engine.admit_owned(&KEY);
        self.granted.lock().unwrap_or_else(PoisonError::into_inner).extend(permit.ok());
    }

    /// Ends the call that was granted before the race.
    pub fn end(&self, end: impl FnOnce(Owned)) {
        let granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner).pop();
        end(granted.unwrap_or_else(|| panic!("no call was granted")));
    }

    /// Comes in and stays.
    pub fn enter(&self, key: u8) -> bool {
        self.engine.admit(&key).map(forget).is_ok()
    }

    /// Whether a call came in and succeeded.
    pub fn pass(&self, key: u8) -> bool {
        self.engine.admit(&key).map(|permit| permit.success()).is_ok()
    }

    /// Whether a call came in and failed.
    pub fn fail(&self, key: u8) -> bool {
        self.engine.admit(&key).map(|permit| permit.failure()).is_ok()
    }

    /// Incarnation, calls in flight and streak of a key; none if it isn't there.
    #[must_use]
    pub fn look(&self, key: u8) -> Option<(u64, u32, u64)> {
        self.engine.snapshot(&key).map(|snapshot| (snapshot.incarnation, snapshot.in_flight, snapshot.streak))
    }
}
