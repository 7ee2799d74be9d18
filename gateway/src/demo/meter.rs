//! What an upstream itself saw: the calls that reached it, and how many of them at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The counters of an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The calls that began.
    pub calls: u64,
    /// The calls that haven't ended.
    pub in_flight: u64,
    /// The most that were in flight at once.
    pub max_concurrent: u64,
    /// Of the calls that began while the circuit wasn't closed, the most that were in flight at once.
    pub max_probes: u64,
}

#[derive(Debug, Default)]
struct Inside {
    counts: Counts,
    probes: u64,
    guarded: bool,
}

/// Counts the calls of an upstream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Arc<Mutex<Inside>>);

/// A call in flight.
#[derive(Debug)]
pub(crate) struct Call {
    meter: Meter,
    probe: bool,
}

impl Meter {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(&self) -> Call {
        let mut inside = self.inside();
        let probe = inside.guarded;
        inside.counts.calls += 1;
        inside.counts.in_flight += 1;
        inside.probes += u64::from(probe);
        inside.counts.max_concurrent = inside.counts.max_concurrent.max(inside.counts.in_flight);
        inside.counts.max_probes = inside.counts.max_probes.max(inside.probes);
        drop(inside);
        Call { meter: self.clone(), probe }
    }

    pub(crate) fn counts(&self) -> Counts {
        self.inside().counts
    }

    /// Begins to count anew, from the calls in flight.
    pub(crate) fn restart(&self) {
        let mut inside = self.inside();
        let (in_flight, max_probes) = (inside.counts.in_flight, inside.probes);
        inside.counts = Counts { calls: 0, in_flight, max_concurrent: in_flight, max_probes };
    }

    /// Says whether the circuit in front of the upstream is other than closed.
    pub(crate) fn set_guarded(&self, guarded: bool) {
        self.inside().guarded = guarded;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut inside = self.meter.inside();
        inside.counts.in_flight -= 1;
        inside.probes -= u64::from(self.probe);
    }
}
