//! The reports: numbered without a gap, and delivered in the order of their numbers, whoever comes first with his.
//!
//! The log is behind a mutex of loom's. The list of observers isn't, and what observers note here isn't either: the order in which they
//! are called is explored in part only.

use std::sync::{Arc, Mutex, PoisonError};

use loom_tests::desk::{build, touchy};
use loom_tests::model;
use portcullis::Cause::{self, ConsecutiveFailures, Disabled, ForcedOpen, Released};
use portcullis::{Clock, Engine, OwnedPermit};

const KEY: u8 = 1;

/// An engine with one target that trips at the first failure, and calls granted before the race.
#[derive(Debug)]
struct Office {
    engine: Arc<Engine<u8>>,
    granted: Mutex<Vec<OwnedPermit<Arc<Engine<u8>>, u8>>>,
    /// In the order in which the observer was called.
    observed: Arc<Mutex<Vec<u64>>>,
}

impl Office {
    fn new(calls: usize) -> Self {
        let (clock, _) = Clock::mock();
        let engine = Arc::new(Engine::builder().policy(build(touchy())).clock(clock).max_targets(1).seed(1).build());
        let observed = Arc::<Mutex<Vec<u64>>>::default();
        engine
            .observe({
                let observed = Arc::clone(&observed);
                move |transition: &portcullis::Transition<u8>| locked(&observed).push(transition.sequence)
            })
            .forever();
        let granted = (0..calls).filter_map(|_| engine.admit_owned(&KEY).ok()).collect();
        Self { engine, granted: Mutex::new(granted), observed }
    }

    /// A call fails; how many reports the log has then.
    fn fail(&self) -> usize {
        let permit = locked(&self.granted).pop();
        let _ = permit.map(|permit| permit.failure());
        self.engine.transitions().len()
    }

    fn by_hand(&self, step: fn(&Engine<u8>) -> Result<bool, portcullis::Rejection>) -> usize {
        assert!(step(&self.engine).is_ok());
        self.engine.transitions().len()
    }

    /// The causes in the log, whose numbers have no gap, and the numbers as the observer heard them.
    fn reported(&self) -> (Vec<Cause>, Vec<u64>) {
        let log = self.engine.transitions();
        let numbers: Vec<u64> = log.iter().map(|transition| transition.sequence).collect();
        assert_eq!(numbers, (1..=log.len() as u64).collect::<Vec<_>>(), "a gap, or not in order");
        for (before, after) in log.iter().zip(&log[1.min(log.len())..]) {
            assert_eq!(before.to, after.from, "a report that doesn't follow from the one before");
        }
        assert_eq!(self.engine.transitions_dropped(), 0);
        let observed = locked(&self.observed).clone();
        let mut sorted = observed.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, numbers, "each is observed once");
        (log.iter().map(|transition| transition.cause).collect(), observed)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn two_winners_that_report_in_either_order_are_logged_in_theirs() {
    model(
        "events: two winners that report in either order are logged in theirs",
        &[
            // In order; with the second's report held back (its log is empty then) until the first has come; and with a trip that
            // was too late.
            (vec![ConsecutiveFailures, ForcedOpen], vec![1, 2], [1, 2]),
            (vec![ConsecutiveFailures, ForcedOpen], vec![1, 2], [2, 2]),
            (vec![ConsecutiveFailures, ForcedOpen], vec![2, 1], [2, 0]),
            (vec![ConsecutiveFailures, ForcedOpen], vec![2, 1], [2, 2]),
            (vec![ForcedOpen], vec![1], [0, 1]),
            (vec![ForcedOpen], vec![1], [1, 1]),
        ],
        || Office::new(1),
        [|office: &Office| office.fail(), |office| office.by_hand(|engine| engine.force_open(&KEY))],
        |office, lengths| {
            let (causes, observed) = office.reported();
            (causes, observed, lengths)
        },
    );
}

#[test]
fn two_failing_threads_report_one_trip() {
    model(
        "events: two failing threads report one trip",
        &[(vec![ConsecutiveFailures], vec![1])],
        || Office::new(2),
        [|office: &Office| office.fail(); 2],
        |office, _| office.reported(),
    );
}

#[test]
fn two_hands_and_a_failure_are_logged_as_they_moved_the_gate() {
    model(
        "events: two hands and a failure are logged as they moved the gate",
        &[
            vec![ConsecutiveFailures, ForcedOpen, Disabled],
            vec![ConsecutiveFailures, Disabled, ForcedOpen],
            vec![ForcedOpen, Disabled],
            vec![Disabled, ForcedOpen],
        ],
        || Office::new(1),
        [
            |office: &Office| office.fail(),
            |office| office.by_hand(|engine| engine.force_open(&KEY)),
            |office| office.by_hand(|engine| engine.disable(&KEY)),
        ],
        |office, _| office.reported().0,
    );
}

#[test]
fn a_release_meets_a_force_and_each_change_has_its_number() {
    model(
        "events: a release meets a force and each change has its number",
        // The second force finds it forced, or released.
        &[vec![ForcedOpen, Released], vec![ForcedOpen, Released, ForcedOpen]],
        || {
            let office = Office::new(0);
            assert_eq!(office.engine.force_open(&KEY), Ok(true));
            office
        },
        [
            |office: &Office| office.by_hand(|engine| engine.release(&KEY)),
            |office| office.by_hand(|engine| engine.force_open(&KEY)),
        ],
        |office, _| office.reported().0,
    );
}
