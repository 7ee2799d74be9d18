//! The registry: keys that come and go while others call, over the real engine with one shard for its map.
//!
//! `sync/modelled.rs` gives the map a lock of loom's; the arena isn't instrumented, and its slots come in pairs.

use std::mem::forget;
use std::sync::atomic::{AtomicBool, Ordering};

use loom_tests::desk::{build, touchy};
use loom_tests::house::{House, KEY, OTHER, patient};
use loom_tests::model;
use portcullis::{Outcome, Rejection};

#[test]
fn two_callers_of_a_new_key_make_one_target() {
    model(
        "registry: two callers of a new key make one target",
        &[[true, true]],
        || House::new(patient(), 2),
        [|house: &House| house.enter(KEY); 2],
        |house, entered| {
            assert_eq!((house.engine.len(), house.look(KEY)), (1, Some((1, 2, 0))));
            entered
        },
    );
}

#[test]
fn the_last_place_goes_to_exactly_one_of_two_keys() {
    model(
        "registry: the last place goes to exactly one of two keys",
        &[[true, false], [false, true]],
        || House::new(patient(), 1),
        [|house: &House| house.enter(KEY), |house| house.enter(OTHER)],
        |house, entered| {
            assert_eq!((house.engine.len(), house.engine.exhausted()), (1, 1));
            entered
        },
    );
}

#[test]
fn an_evicted_target_admits_nobody() {
    model(
        "registry: an evicted target admits nobody",
        // Stayed, its caller in the first tenant; or gone, and its caller in the second.
        &[(0, Some((1, 1, 0))), (1, Some((2, 1, 0)))],
        || House::idle(patient(), 2),
        [
            |house: &House| {
                assert!(house.enter(KEY), "a caller was turned away by a target that went");
                0
            },
            |house| house.engine.sweep(),
        ],
        |house, [_, gone]| (gone, house.look(KEY)),
    );
}

#[test]
fn an_eviction_loses_no_failure() {
    model(
        "registry: an eviction loses no failure",
        &[(0, Some((1, 0, 1))), (1, Some((2, 0, 1)))],
        || House::idle(patient(), 2),
        [
            |house: &House| {
                assert!(house.fail(KEY), "a caller was turned away by a target that went");
                0
            },
            |house| house.engine.sweep(),
        ],
        |house, [_, gone]| (gone, house.look(KEY)),
    );
}

#[test]
fn an_eviction_between_two_callers_loses_neither() {
    model(
        "registry: an eviction between two callers loses neither",
        &[(0, Some((1, 1, 1))), (1, Some((2, 1, 1)))],
        || House::idle(patient(), 2),
        [
            |house: &House| {
                assert!(house.fail(KEY), "a caller was turned away by a target that went");
                0
            },
            |house| {
                assert!(house.enter(KEY), "a caller was turned away by a target that went");
                0
            },
            |house| house.engine.sweep(),
        ],
        |house, [_, _, gone]| (gone, house.look(KEY)),
    );
}

#[test]
fn a_target_with_a_call_in_flight_stays_until_it_settled() {
    model(
        "registry: a target with a call in flight stays until it settled",
        &[[0, 0]],
        || {
            let house = House::idle(patient(), 2);
            house.grant();
            house
        },
        [
            |house: &House| {
                house.end(|permit| {
                    permit.failure();
                });
                0
            },
            |house| house.engine.sweep(),
        ],
        |house, gone| {
            assert_eq!(house.look(KEY), Some((1, 0, 1)));
            gone
        },
    );
}

#[test]
fn a_held_target_is_never_let_go() {
    model(
        "registry: a held target is never let go",
        &[(0, Some((1, 1, 0))), (1, Some((2, 1, 0)))],
        || House::idle(patient(), 2),
        [
            |house: &House| {
                let target = house.engine.target(&KEY);
                let admitted = target.and_then(|target| target.admit().map(forget));
                assert_eq!(admitted, Ok(()), "a held target turned its holder away");
                0
            },
            |house| house.engine.sweep(),
        ],
        |house, [_, gone]| (gone, house.look(KEY)),
    );
}

/// The hand lets its handle go; what it did must be there for whoever finds nobody holding the target.
#[test]
fn a_target_forced_by_hand_stays() {
    model(
        "registry: a target forced by hand stays",
        &[[1, 0], [1, 1]],
        || House::idle(patient(), 2),
        [|house: &House| usize::from(house.engine.force_open(&KEY) == Ok(true)), |house| house.engine.sweep()],
        |house, told| {
            assert_eq!(
                house.engine.admit(&KEY).map(forget),
                Err(Rejection::ForcedOpen),
                "a forced target was forgotten"
            );
            told
        },
    );
}

#[test]
fn a_target_whose_limit_was_set_by_hand_stays() {
    model(
        "registry: a target whose limit was set by hand stays",
        &[[0, 0], [0, 1]],
        || House::idle(patient(), 2),
        [
            |house: &House| {
                assert_eq!(house.engine.set_limit(&KEY, 0), Ok(()));
                0
            },
            |house| house.engine.sweep(),
        ],
        |house, told| {
            assert_eq!(house.engine.admit(&KEY).map(forget), Err(Rejection::Saturated { limit: 0 }));
            told
        },
    );
}

/// One key wants the place of another that is idle, while that one is asked for.
#[test]
fn a_newcomer_takes_the_place_of_the_idle_or_is_refused() {
    model(
        "registry: a newcomer takes the place of the idle or is refused",
        &[[true, false], [false, true]],
        || House::idle(patient(), 1),
        [|house: &House| house.enter(KEY), |house| house.enter(OTHER)],
        |house, entered| {
            assert_eq!(house.engine.len(), 1);
            let (key, other) = (house.look(KEY), house.look(OTHER));
            assert_eq!(if entered[0] { (key, other) } else { (other, key) }.1, None);
            entered
        },
    );
}

#[test]
fn two_sweeps_let_a_target_go_once() {
    model(
        "registry: two sweeps let a target go once",
        &[[1, 0], [0, 1]],
        || House::idle(patient(), 2),
        [|house: &House| house.engine.sweep(); 2],
        |house, gone| {
            assert_eq!((house.engine.len(), house.look(KEY)), (0, None));
            gone
        },
    );
}

/// The ending is counted before its call is, so the difference is never too large.
#[test]
fn a_snapshot_shows_no_success_that_was_none() {
    model(
        "registry: a snapshot shows no success that was none",
        &[0, 1],
        || {
            let house = House::new(patient(), 2);
            house.grant();
            house
        },
        [
            |house: &House| {
                house.end(|permit| {
                    permit.failure();
                });
                0
            },
            |house| shown(house),
        ],
        |_, [_, failures]| failures,
    );
}

#[test]
fn a_snapshot_shows_no_success_while_a_failed_call_is_held() {
    model(
        "registry: a snapshot shows no success while a failed call is held",
        &[0, 1],
        || {
            let house = House::new(patient(), 2);
            house.grant();
            house
        },
        [
            |house: &House| {
                house.end(|permit| drop(permit.record(Outcome::Failure)));
                0
            },
            |house| shown(house),
        ],
        |_, [_, failures]| failures,
    );
}

/// The failures that a snapshot shows, which shows no success.
fn shown(house: &House) -> u64 {
    let totals = house.engine.snapshot(&KEY).map(|snapshot| snapshot.totals).unwrap_or_default();
    assert_eq!(totals.success, 0, "a success was shown that was none");
    totals.failure
}

#[test]
fn two_snapshots_never_go_back() {
    model(
        "registry: two snapshots never go back",
        &[[0, 0], [0, 1]],
        || {
            let house = House::new(build(touchy()), 2);
            house.grant();
            house
        },
        [
            |house: &House| {
                let first = successes(house);
                house.end(|permit| {
                    permit.success();
                });
                let second = successes(house);
                assert!(first <= second && second == 1);
                first
            },
            |house| {
                let (first, second) = (successes(house), successes(house));
                assert!(first <= second, "a snapshot went back");
                second
            },
        ],
        |_, seen| seen,
    );
}

fn successes(house: &House) -> u64 {
    house.engine.snapshot(&KEY).map_or(0, |snapshot| snapshot.totals.success)
}

/// The slot of the one goes to the other, with the counts that it had.
#[test]
fn a_newcomer_counts_from_zero() {
    model(
        "registry: a newcomer counts from zero",
        // The calls that either has made, if it is there; the first may have gone and come back.
        &[(Some(2), None), (Some(1), None), (None, Some(1))],
        || House::idle(build(touchy()), 1),
        [|house: &House| house.pass(KEY), |house| house.pass(OTHER)],
        |house, _| {
            let calls = |key| house.engine.snapshot(&key).map(|snapshot| snapshot.totals.success);
            (calls(KEY), calls(OTHER))
        },
    );
}

/// What the sweeper saw of the last tenant's counts doesn't make the next one look idle.
#[test]
fn a_target_that_was_called_since_it_was_seen_stays() {
    model(
        "registry: a target that was called since it was seen stays",
        // Whether the call ended after the sweeper's visit, and whether the next visit lets its target go.
        &[(false, 0), (false, 1), (true, 0)],
        || {
            // Of the free slot's counts there is one call.
            let house = House::idle(patient(), 1);
            assert_eq!(house.engine.sweep(), 1);
            (house, AtomicBool::new(false))
        },
        [
            |(house, has_swept): &(House, AtomicBool)| {
                let permit = house.engine.admit(&OTHER);
                let is_after = has_swept.load(Ordering::Relaxed);
                let _ = permit.map(|permit| permit.success());
                is_after
            },
            |(house, has_swept)| {
                house.engine.sweep();
                has_swept.store(true, Ordering::Relaxed);
                false
            },
        ],
        |(house, _), [is_after, _]| (is_after, house.engine.sweep()),
    );
}
