//! What a target went through of late: kept for those who look, however much the engine's log has had to forget since.

use std::collections::VecDeque;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use portcullis::{State, Transition};

/// The transitions that are kept of a target.
const KEPT: usize = 8;

/// The last transitions of a target, oldest first, and the last of them all that has evidence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story {
    pub(crate) recent: VecDeque<Transition>,
    pub(crate) trip: Option<Transition>,
}

impl Story {
    /// Takes note of a transition. Two threads may come in either order.
    pub(crate) fn note(&mut self, transition: &Transition) {
        let number = |transition: &Transition| (transition.incarnation, transition.sequence);
        let is_earlier = |kept: &&Transition| number(kept) > number(transition);
        let after = self.recent.iter().rev().take_while(is_earlier).count();
        self.recent.insert(self.recent.len() - after, transition.clone());
        if self.recent.len() > KEPT {
            self.recent.pop_front();
        }
        let is_newer = self.trip.as_ref().is_none_or(|trip| number(trip) < number(transition));
        if transition.evidence.is_some() && is_newer {
            self.trip = Some(transition.clone());
        }
    }

    pub(crate) fn last(&self) -> Option<&Transition> {
        self.recent.back()
    }

    /// When its wait to be probed ends, if it is open.
    pub(crate) fn reopens_at(&self) -> Option<SystemTime> {
        let last = self.last().filter(|last| last.to == State::Open)?;
        last.wall.checked_add(last.wait?)
    }
}

/// Milliseconds since 1970.
pub(crate) fn wall_ms(wall: SystemTime) -> u64 {
    let since = wall.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use portcullis::{Engine, Policy};

    use super::*;

    /// A trip and many changes by hand after it.
    fn transitions() -> Vec<Transition> {
        let policy = Policy::builder().consecutive_failures(1).build().unwrap();
        let engine: Engine = Engine::builder().policy(policy).build();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let _guard = engine.observe(move |transition: &Transition| noted.lock().unwrap().push(transition.clone()));
        engine.admit("t").unwrap().failure();
        for _ in 0..5 {
            engine.force_open("t").unwrap();
            engine.release("t").unwrap();
        }
        seen.lock().unwrap().clone()
    }

    #[test]
    fn the_last_are_kept_in_order_however_they_come_and_the_trip_as_well() {
        let all = transitions();
        assert_eq!(all.len(), 11);
        let mut story = Story::default();
        story.note(&all[0]);
        assert_eq!(story.reopens_at(), Some(all[0].wall + all[0].wait.unwrap()));
        for pair in all[1..].chunks(2) {
            pair.iter().rev().for_each(|transition| story.note(transition));
        }
        let sequences: Vec<u64> = story.recent.iter().map(|transition| transition.sequence).collect();
        assert_eq!(sequences, [4, 5, 6, 7, 8, 9, 10, 11]);
        assert_eq!(story.trip.as_ref().unwrap().sequence, 1);
        assert_eq!(story.reopens_at(), None);
    }
}
