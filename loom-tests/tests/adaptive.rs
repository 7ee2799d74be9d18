//! The adaptive limit: samples that are added while others are taken, and a window that two calls find over.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use loom_tests::desk::build;
use loom_tests::model;
use loom_tests::twins::{Blunder, Dial, Tray};
use portcullis::internals::samples::Cell;
use portcullis::{Adaptive, Clock, Engine, OwnedPermit, Policy};

type Owned = OwnedPermit<Arc<Engine<u8>>, u8>;

const KEY: u8 = 1;

fn seen(word: portcullis::internals::samples::Word) -> (u64, u64) {
    (word.calls(), word.micros())
}

#[test]
fn no_sample_is_lost_or_taken_twice() {
    model(
        "adaptive: no sample is lost or taken twice",
        &[(0, 0), (1, 1), (1, 2), (2, 3)],
        Cell::default,
        [
            |cell: &Cell| {
                cell.add(1_000);
                (0, 0)
            },
            |cell| {
                cell.add(2_000);
                (0, 0)
            },
            |cell| seen(cell.take()),
        ],
        |cell, [_, _, taken]| {
            let left = seen(cell.load());
            assert_eq!((taken.0 + left.0, taken.1 + left.1), (2, 3), "a sample was lost or taken twice");
            taken
        },
    );
}

#[test]
#[should_panic(expected = "a sample was lost or taken twice")]
fn a_word_of_samples_that_is_read_and_then_emptied() {
    model(
        "teeth: a word of samples that is read and then emptied",
        &[(0, 0), (1, 2)],
        Tray::default,
        [
            |tray: &Tray| {
                tray.add(2);
                (0, 0)
            },
            Tray::take,
        ],
        |tray, [_, taken]| {
            assert_eq!(tray.take().0 + taken.0, 1, "a sample was lost or taken twice");
            taken
        },
    );
}

/// An engine with a limit of 2 that one good window makes 3, at its end, with two calls in flight that took all of it.
#[derive(Debug)]
struct House {
    engine: Arc<Engine<u8>>,
    /// Plain std, and never held across an operation of loom's.
    granted: Mutex<Vec<Owned>>,
}

impl House {
    fn new() -> Self {
        let (clock, time) = Clock::mock();
        let adaptive = Adaptive::aimd(Duration::from_secs(1)).start(2);
        let policy = build(Policy::builder().no_window().max_in_flight(9).adaptive(adaptive));
        let engine: Arc<Engine<u8>> = Arc::new(Engine::builder().policy(policy).clock(clock).seed(1).build());
        // The first call begins a window.
        let _ = engine.admit(&KEY).map(|permit| permit.success());
        let permits = [engine.admit_owned(&KEY).ok(), engine.admit_owned(&KEY).ok()];
        time.increment(Duration::from_millis(200));
        Self { engine, granted: Mutex::new(permits.into_iter().flatten().collect()) }
    }

    fn end(&self) {
        let permit = self.granted.lock().unwrap_or_else(PoisonError::into_inner).pop();
        permit.unwrap_or_else(|| panic!("no call was granted")).success();
    }

    fn limit(&self) -> u32 {
        self.engine.snapshot(&KEY).map_or(0, |snapshot| snapshot.limit)
    }
}

#[test]
fn a_window_that_two_calls_find_over_moves_the_limit_once() {
    model(
        "adaptive: a window that two calls find over moves the limit once",
        &[3],
        House::new,
        [House::end; 2],
        |house, _| {
            let limit = house.limit();
            assert_eq!(limit, 3, "one window moved the limit twice, or not at all");
            limit
        },
    );
}

#[test]
fn a_limit_set_by_hand_stays_whoever_ends_a_window() {
    model(
        "adaptive: a limit set by hand stays whoever ends a window",
        &[0],
        House::new,
        [House::end, |house: &House| {
            let set = house.engine.set_limit(&KEY, 0);
            assert_eq!((set, house.limit()), (Ok(()), 0), "a limit set by hand was moved");
        }],
        |house, _| {
            let limit = house.limit();
            assert_eq!(limit, 0, "a limit set by hand was moved");
            limit
        },
    );
}

fn two_ends<const BLUNDER: u8>(name: &str) {
    model(name, &[6], Dial::<BLUNDER>::default, [Dial::end; 2], |dial, _| {
        assert_eq!(dial.limit(), 6, "one window moved the limit twice, or not at all");
        dial.limit()
    });
}

fn an_end_and_a_hand<const BLUNDER: u8>(name: &str) {
    model(name, &[0], Dial::<BLUNDER>::default, [Dial::end, |dial: &Dial<BLUNDER>| dial.set(0)], |dial, _| {
        assert_eq!(dial.limit(), 0, "a limit set by hand was moved");
        dial.limit()
    });
}

#[test]
fn a_dial_without_a_blunder_holds() {
    two_ends::<{ Blunder::NONE }>("teeth: a dial without a blunder, two ends");
    an_end_and_a_hand::<{ Blunder::NONE }>("teeth: a dial without a blunder, an end and a hand");
}

#[test]
#[should_panic(expected = "one window moved the limit twice")]
fn a_window_that_is_looked_at_only_before_the_lock() {
    two_ends::<{ Blunder::LOOKED_ONCE }>("teeth: a window that is looked at only before the lock");
}

#[test]
#[should_panic(expected = "a limit set by hand was moved")]
fn a_limit_that_is_set_when_the_lock_is_given_back() {
    an_end_and_a_hand::<{ Blunder::SET_UNLOCKED }>("teeth: a limit that is set when the lock is given back");
}
