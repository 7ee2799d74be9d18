//! Puts the transitions of each target in the order of their numbers.
//!
//! Two threads may make transitions 5 and 6 of a target and report them as 6 and 5. A lane per slot holds early ones back until the
//! missing one has come. A winner that never reports (its thread was killed, or sleeps) may hold its lane up for `PATIENCE`, or for
//! `MOST_WAITING` transitions; then the hole is counted as dropped, and so is nobody's news for ever.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::Transition;

/// How long a hole may hold back what comes after it, on the engine's clock.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many transitions one hole may hold back.
const MOST_WAITING: usize = 1_024;

#[derive(Debug)]
pub(crate) struct Order<K> {
    lanes: HashMap<u32, Lane<K>>,
    /// Lanes with something held back; usually none.
    waiting: usize,
    dropped: u64,
}

#[derive(Debug)]
struct Lane<K> {
    incarnation: u64,
    next: u64,
    early: BTreeMap<u64, Arc<Transition<K>>>,
}

impl<K> Default for Order<K> {
    fn default() -> Self {
        Self { lanes: HashMap::new(), waiting: 0, dropped: 0 }
    }
}

impl<K> Order<K> {
    /// Takes a transition of `slot` in and hands out what is due.
    pub(crate) fn offer(
        &mut self,
        slot: u32,
        transition: Arc<Transition<K>>,
        deliver: &mut impl FnMut(Arc<Transition<K>>),
    ) {
        let incarnation = transition.incarnation;
        let lane = self.lanes.entry(slot).or_insert_with(|| Lane::new(incarnation));
        let was_waiting = !lane.early.is_empty();
        if lane.incarnation < incarnation {
            // A tenant leaves when all who moved it have written: nothing of it is outstanding.
            *lane = Lane::new(incarnation);
        }
        let now = transition.at;
        // A number that was given up has been counted as dropped.
        if lane.incarnation == incarnation && lane.next <= transition.sequence {
            lane.early.insert(transition.sequence, transition);
            lane.advance(deliver);
            if lane.is_stuck(now) {
                self.dropped += lane.skip(deliver);
            }
        }
        let is_waiting = !lane.early.is_empty();
        self.waiting = self.waiting + usize::from(is_waiting) - usize::from(was_waiting);
    }

    /// Gives up on holes that have held their lane up for too long.
    pub(crate) fn give_up(&mut self, now: Duration, deliver: &mut impl FnMut(Arc<Transition<K>>)) {
        if self.waiting == 0 {
            return;
        }
        for lane in self.lanes.values_mut().filter(|lane| !lane.early.is_empty()) {
            while lane.is_stuck(now) {
                self.dropped += lane.skip(deliver);
            }
        }
        self.waiting = self.lanes.values().filter(|lane| !lane.early.is_empty()).count();
    }

    /// Transitions that never came.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl<K> Lane<K> {
    fn new(incarnation: u64) -> Self {
        Self { incarnation, next: 1, early: BTreeMap::new() }
    }

    fn advance(&mut self, deliver: &mut impl FnMut(Arc<Transition<K>>)) {
        while let Some(transition) = self.early.remove(&self.next) {
            self.next += 1;
            deliver(transition);
        }
    }

    fn is_stuck(&self, now: Duration) -> bool {
        let waited = |first: &Arc<Transition<K>>| now.saturating_sub(first.at) >= PATIENCE;
        self.early.len() > MOST_WAITING || self.early.values().next().is_some_and(waited)
    }

    /// Goes on behind the hole; its size.
    fn skip(&mut self, deliver: &mut impl FnMut(Arc<Transition<K>>)) -> u64 {
        let Some(&first) = self.early.keys().next() else { return 0 };
        let hole = first - self.next;
        self.next = first;
        self.advance(deliver);
        hole
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::event::Cause;
    use crate::gate::State;

    fn numbered(incarnation: u64, sequence: u64, at_ms: u64) -> Arc<Transition<&'static str>> {
        Arc::new(Transition {
            target: Arc::new("t"),
            from: State::Closed,
            to: State::Open,
            cause: Cause::FailureRate,
            sequence,
            generation: 0,
            incarnation,
            at: Duration::from_millis(at_ms),
            wall: SystemTime::UNIX_EPOCH,
            evidence: None,
            wait: None,
            retry_after: None,
        })
    }

    fn offer(order: &mut Order<&'static str>, incarnation: u64, sequence: u64, at_ms: u64) -> Vec<u64> {
        let mut out = Vec::new();
        order.offer(0, numbered(incarnation, sequence, at_ms), &mut |transition| out.push(transition.sequence));
        out
    }

    #[test]
    fn r20_an_early_transition_waits_for_the_missing_one() {
        let mut order = Order::default();
        assert_eq!(offer(&mut order, 1, 2, 0), []);
        assert_eq!(offer(&mut order, 1, 3, 0), []);
        assert_eq!(offer(&mut order, 1, 1, 0), [1, 2, 3]);
        assert_eq!((order.dropped(), order.waiting), (0, 0));
    }

    #[test]
    fn r20_a_hole_is_given_up_after_a_second_and_counted() {
        let mut order = Order::default();
        assert_eq!(offer(&mut order, 1, 3, 0), []);
        assert_eq!(offer(&mut order, 1, 4, 1_000), [3, 4]);
        assert_eq!(order.dropped(), 2);
        assert_eq!(offer(&mut order, 1, 1, 1_001), []);
        assert_eq!(offer(&mut order, 1, 5, 1_001), [5]);
    }

    #[test]
    fn r20_a_reader_gives_up_too() {
        let mut order = Order::default();
        assert_eq!(offer(&mut order, 1, 2, 0), []);
        let mut out = Vec::new();
        order.give_up(Duration::from_millis(999), &mut |transition| out.push(transition.sequence));
        assert_eq!(out, []);
        order.give_up(Duration::from_secs(1), &mut |transition| out.push(transition.sequence));
        assert_eq!((out, order.dropped(), order.waiting), (vec![2], 1, 0));
    }

    #[test]
    fn r20_a_hole_holds_a_bounded_number_back() {
        let mut order = Order::default();
        let most = MOST_WAITING as u64 + 2;
        let late: Vec<u64> = (2..=most).flat_map(|sequence| offer(&mut order, 1, sequence, 0)).collect();
        assert_eq!(late, (2..=most).collect::<Vec<_>>());
        assert_eq!(order.dropped(), 1);
    }

    #[test]
    fn r20_a_new_tenant_starts_at_one() {
        let mut order = Order::default();
        assert_eq!(offer(&mut order, 1, 1, 0), [1]);
        assert_eq!(offer(&mut order, 2, 1, 0), [1]);
        assert_eq!(offer(&mut order, 2, 2, 0), [2]);
    }
}
