//! R12: a refusal is never an outcome, and is counted by its reason, once.

use portcullis::{Refusals, Rejection, State};

use crate::common::{Bench, T, race, secs, take, textbook};

fn counted(bench: &Bench) -> [u64; 5] {
    let Refusals { open, probing, saturated, shed, forced, .. } = bench.snapshot().refusals;
    [open, probing, saturated, shed, forced]
}

#[test]
fn r12_each_reason_is_counted_once() {
    let bench = Bench::tripped(textbook().max_in_flight(2));
    assert!(matches!(bench.refusal(), Rejection::Open { .. }));
    assert_eq!(counted(&bench), [1, 0, 0, 0, 0]);
    bench.advance(secs(30));
    let probe = bench.probe();
    assert!(matches!(bench.refusal(), Rejection::Probing { .. }));
    assert_eq!(counted(&bench), [1, 1, 0, 0, 0]);
    probe.success();
    let full = take(&bench, 2);
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 2 });
    assert_eq!(counted(&bench), [1, 1, 1, 0, 0]);
    drop(full);
    bench.engine.force_open(T).unwrap();
    assert_eq!(bench.refusal(), Rejection::ForcedOpen);
    assert_eq!(counted(&bench), [1, 1, 1, 0, 1]);
    assert_eq!(bench.snapshot().refusals.total(), 4);
    assert_eq!(bench.engine.exhausted(), 0);
}

#[test]
fn r12_exhausted_is_counted_by_the_engine() {
    let bench = Bench::with(textbook(), |builder| builder.max_targets(1));
    bench.succeed(1);
    for refused in 1..=3 {
        assert_eq!(bench.engine.admit("claims").unwrap_err(), Rejection::Exhausted { max_targets: 1 });
        assert_eq!(bench.engine.exhausted(), refused);
    }
    assert_eq!(bench.snapshot().refusals.total(), 0);
    assert!(bench.engine.snapshot("claims").is_none());
}

#[test]
fn r12_a_refusal_is_no_call_of_the_window() {
    let bench = Bench::new(textbook().max_in_flight(1).consecutive_failures(2));
    let permit = bench.enter();
    (0..100).for_each(|_| _ = bench.refusal());
    let snapshot = bench.snapshot();
    assert_eq!((bench.window(), snapshot.streak, snapshot.totals.admitted), ((0, 0), 0, 1));
    permit.success();
    assert_eq!((bench.window(), bench.state()), ((1, 0), State::Closed));
}

#[test]
fn r12_refusals_of_many_threads_are_all_counted() {
    let bench = Bench::tripped(textbook());
    race(8, |_| (0..500).for_each(|_| _ = bench.refusal()));
    assert_eq!(counted(&bench), [4_000, 0, 0, 0, 0]);
}

#[test]
fn r12_codes_reasons_and_words_are_stable() {
    let after = secs(3);
    for (rejection, code, reason, words) in [
        (Rejection::Open { retry_after: after }, "E904", "open", "circuit open, retry after 3000 ms"),
        (
            Rejection::Probing { retry_after: after },
            "E904",
            "probing",
            "recovery is being probed, retry within 3000 ms",
        ),
        (Rejection::ForcedOpen, "E904", "forced", "target closed to calls by hand"),
        (Rejection::Saturated { limit: 7 }, "E905", "saturated", "all 7 calls that the target may hold are in flight"),
        (
            Rejection::Shed { priority: portcullis::Priority::Sheddable },
            "E905",
            "shed",
            "calls of priority sheddable are being shed",
        ),
        (Rejection::Exhausted { max_targets: 9 }, "E905", "exhausted", "all 9 targets are in use"),
    ] {
        assert_eq!((rejection.code(), rejection.reason(), rejection.to_string().as_str()), (code, reason, words));
    }
    assert!(size_of::<Rejection>() <= 24);
    assert!(size_of::<Result<portcullis::Permit<'_>, Rejection>>() <= 128);
}
