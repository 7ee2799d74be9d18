//! The observer that hears every transition, and invariant 8: one event for each generation, in an unbroken chain.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use portcullis::{Cause, Engine, State, Subscription, Transition};

use crate::faults::Faults;

/// Generations wrap here.
const GENERATIONS: u32 = 1 << 20;

/// What is kept of a transition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) sequence: u64,
    pub(crate) generation: u32,
    pub(crate) from: State,
    pub(crate) to: State,
    pub(crate) cause: Cause,
}

#[derive(Debug, Default)]
pub(crate) struct Witness(Mutex<HashMap<u64, Vec<Seen>>>);

impl Witness {
    pub(crate) fn hear(&self, transition: &Transition) {
        let &Transition { sequence, generation, from, to, cause, incarnation, .. } = transition;
        self.lock().entry(incarnation).or_default().push(Seen { sequence, generation, from, to, cause });
    }

    #[must_use]
    pub(crate) fn heard(&self) -> u64 {
        self.lock().values().map(|seen| seen.len() as u64).sum()
    }

    #[must_use]
    pub(crate) fn heard_of(&self, cause: Cause) -> u64 {
        self.lock().values().flatten().filter(|seen| seen.cause == cause).count() as u64
    }

    /// Every target's chain, against the engine at rest.
    pub(crate) fn check(&self, engine: &Engine, faults: &Faults) {
        let mut heard = self.lock();
        for (incarnation, seen) in heard.iter_mut() {
            // Two threads may tell in either order.
            seen.sort_by_key(|seen| seen.sequence);
            chain(*incarnation, seen, faults);
        }
        let alive: HashMap<u64, _> =
            engine.snapshots().into_iter().map(|(key, now)| (now.incarnation, (key, now))).collect();
        for (incarnation, (key, now)) in &alive {
            let (state, generation) = heard
                .get(incarnation)
                .and_then(|seen| seen.last())
                .map_or((State::Closed, now.generation), |last| (last.to, last.generation));
            let is_elapsed = (state, now.state) == (State::Open, State::HalfOpen);
            faults.check((state == now.state || is_elapsed) && generation == now.generation, || {
                format!("{key}: the last event is {state} {generation}, but it shows {now}")
            });
        }
        for (incarnation, seen) in heard.iter().filter(|(incarnation, _)| !alive.contains_key(incarnation)) {
            let last = seen.last().map(|seen| seen.to);
            faults.check(last == Some(State::Closed), || format!("target {incarnation} went while {last:?}"));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Vec<Seen>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn chain(incarnation: u64, seen: &[Seen], faults: &Faults) {
    let mut state = State::Closed;
    for (number, at) in seen.iter().enumerate() {
        let follows = at.generation == seen[0].generation.wrapping_add(number as u32) % GENERATIONS;
        faults.check(at.sequence == number as u64 + 1 && at.from == state && follows, || {
            format!("target {incarnation}: event {} is {at:?} after {state}", number + 1)
        });
        state = at.to;
    }
}

/// What a subscription delivers, drained by whoever comes by.
#[derive(Debug)]
pub(crate) struct Reader {
    subscription: Subscription,
    last: HashMap<u64, (u64, State)>,
    came: u64,
}

impl Reader {
    #[must_use]
    pub(crate) fn new(subscription: Subscription) -> Self {
        Self { subscription, last: HashMap::new(), came: 0 }
    }

    /// In order; a hole is allowed, since the engine owns up to holes, but not an event that comes late.
    pub(crate) fn drain(&mut self, faults: &Faults) {
        while let Ok(next) = self.subscription.try_recv() {
            self.came += 1;
            let (sequence, state) = self.last.get(&next.incarnation).copied().unwrap_or((0, State::Closed));
            let fits = next.sequence > sequence && (next.sequence > sequence + 1 || next.from == state);
            faults.check(fits, || format!("subscription: {next:?} after {sequence} {state}"));
            self.last.insert(next.incarnation, (next.sequence, next.to));
        }
    }

    /// Events that came, or that it owns up to having lost.
    #[must_use]
    pub(crate) fn accounted(&self) -> u64 {
        self.came + self.subscription.dropped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(sequence: u64, from: State, to: State) -> Seen {
        Seen { sequence, generation: sequence as u32 + 4, from, to, cause: Cause::FailureRate }
    }

    fn faults(events: &[Seen]) -> u64 {
        let faults = Faults::default();
        chain(1, events, &faults);
        faults.found()
    }

    #[test]
    fn a_chain_with_a_missing_doubled_or_torn_event_is_found() {
        use State::{Closed, HalfOpen, Open};
        let good = [seen(1, Closed, Open), seen(2, Open, HalfOpen), seen(3, HalfOpen, Closed)];
        assert_eq!(faults(&good), 0);
        assert!(faults(&[good[0], good[2]]) > 0, "missing");
        assert!(faults(&[good[0], good[0], good[1]]) > 0, "doubled");
        assert!(faults(&[good[0], seen(2, Closed, HalfOpen)]) > 0, "torn");
        let skips = Seen { generation: 9, ..good[1] };
        assert!(faults(&[good[0], skips]) > 0, "a generation without an event");
    }
}
