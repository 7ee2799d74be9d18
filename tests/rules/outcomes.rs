//! R5, R10 and R11: what an outcome does, when it is done, and what a dropped permit means.

use std::panic::{AssertUnwindSafe, catch_unwind};

use portcullis::{Cause, OnAbandon, Outcome, Permit, Settled, State, Window};

use crate::common::{Bench, T, ms, secs, take, textbook};

/// All ways to end a permit.
const ENDINGS: [fn(Permit<'_>) -> Option<Settled>; 6] = [
    |permit| Some(permit.success()),
    |permit| Some(permit.failure()),
    |permit| Some(permit.ignore()),
    |permit| Some(permit.record(Outcome::Failure).settled()),
    |permit| {
        drop(permit);
        None
    },
    |permit| {
        // Quiet: the hook isn't called for this.
        let unwound = catch_unwind(AssertUnwindSafe(move || {
            let _permit = permit;
            std::panic::resume_unwind(Box::new("a call that panics"));
        }));
        assert!(unwound.is_err());
        None
    },
];

type Move = fn(&Bench);

/// Brings a target that has one permit from CLOSED in flight into another state, by every way there is.
fn moves() -> Vec<(State, Move)> {
    fn trip(bench: &Bench) {
        bench.fail(5);
    }
    fn probe(bench: &Bench) {
        trip(bench);
        bench.advance(secs(30));
        std::mem::forget(bench.probe());
    }
    vec![
        (State::Open, trip),
        (State::HalfOpen, probe),
        (State::Closed, |bench| {
            trip(bench);
            bench.advance(secs(30));
            bench.probe().success();
        }),
        (State::ForcedOpen, |bench| assert!(bench.engine.force_open(T).unwrap())),
        (State::Disabled, |bench| assert!(bench.engine.disable(T).unwrap())),
        (State::Closed, |bench| {
            let target = bench.engine.target(T).unwrap();
            assert!(target.disable() && target.release());
        }),
        (State::Closed, |bench| {
            // Something must be forgotten, or the change is none.
            bench.succeed(1);
            let policy = textbook().window(Window::calls(20)).build().unwrap();
            bench.engine.set_policy(T, policy).unwrap();
        }),
    ]
}

#[test]
fn r05_a_stale_outcome_releases_and_counts_and_changes_nothing_else_in_any_state() {
    for (state, go) in moves() {
        for (index, end) in ENDINGS.into_iter().enumerate() {
            let bench = Bench::new(textbook().on_abandon(OnAbandon::Failure).slow_call(secs(1)));
            let old = bench.enter();
            go(&bench);
            bench.advance(secs(2));
            let before = bench.snapshot();
            assert!(matches!(end(old), None | Some(Settled::Stale)), "ending {index} in {state}");
            let after = bench.snapshot();
            assert_eq!(after.in_flight, before.in_flight - 1, "ending {index} in {state}");
            assert_eq!(after.totals.stale, before.totals.stale + 1, "ending {index} in {state}");
            let parts = |snapshot: &portcullis::Snapshot| {
                let totals = snapshot.totals;
                let ends =
                    (totals.success, totals.failure, totals.ignored, totals.abandoned, totals.slow, totals.admitted);
                let gate = (snapshot.state, snapshot.generation, snapshot.reopen_in, snapshot.reopens);
                let probes = (snapshot.probes_in_flight, snapshot.probe_successes);
                (gate, probes, snapshot.window, snapshot.streak, ends)
            };
            assert_eq!(parts(&after), parts(&before), "ending {index} in {state}");
            assert_eq!(after.state, state);
        }
    }
}

#[test]
fn r05_a_stale_outcome_frees_its_bulkhead_slot() {
    let bench = Bench::new(textbook().max_in_flight(6));
    let old = take(&bench, 1);
    bench.fail(5);
    bench.advance(secs(30));
    bench.probe().success();
    let more = take(&bench, 5);
    assert!(matches!(bench.refusal(), portcullis::Rejection::Saturated { .. }));
    drop(old);
    drop(bench.enter());
    drop(more);
}

#[test]
fn r10_the_next_admit_of_the_thread_sees_the_outcome() {
    let bench = Bench::new(textbook().max_in_flight(1));
    for _ in 0..4 {
        bench.enter().failure();
    }
    let last = bench.enter();
    assert_eq!(last.failure(), Settled::Recorded);
    assert_eq!(bench.refusal(), portcullis::Rejection::Open { retry_after: secs(30) });
    bench.advance(secs(30));
    bench.probe().success();
    bench.enter().success();
}

#[test]
fn r10_a_recorded_outcome_counts_before_its_slot_is_free() {
    let bench = Bench::new(textbook().max_in_flight(5));
    let held: Vec<_> = take(&bench, 5).into_iter().map(|permit| permit.record(Outcome::Failure)).collect();
    assert!(held.iter().all(|held| held.settled() == Settled::Recorded));
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.state, snapshot.in_flight, snapshot.totals.failure), (State::Open, 5, 5));
    drop(held);
    assert_eq!(bench.snapshot().in_flight, 0);
}

#[test]
fn r11_ignored_touches_no_window_and_no_streak() {
    for window in [Window::calls(10), Window::time(secs(10))] {
        let bench = Bench::new(textbook().window(window).consecutive_failures(4));
        bench.fail(3);
        (0..50).for_each(|_| assert_eq!(bench.enter().ignore(), Settled::Recorded));
        let snapshot = bench.snapshot();
        assert_eq!((bench.window(), snapshot.streak, snapshot.totals.ignored), ((3, 3), 3, 50));
        bench.fail(1);
        assert_eq!(bench.log()[0].cause, Cause::ConsecutiveFailures);
    }
}

#[test]
fn r11_a_dropped_permit_is_ignored_by_default() {
    let bench = Bench::new(textbook());
    (0..20).for_each(|_| drop(bench.enter()));
    let snapshot = bench.snapshot();
    assert_eq!((bench.window(), snapshot.totals.abandoned, snapshot.state), ((0, 0), 20, State::Closed));
}

#[test]
fn r11_every_choice_of_on_abandon_at_its_boundary() {
    for (choice, silent, fails) in [
        (OnAbandon::Ignore, secs(3_600), false),
        (OnAbandon::Failure, ms(0), true),
        (OnAbandon::FailureAfter(secs(1)), ms(999), false),
        (OnAbandon::FailureAfter(secs(1)), secs(1), true),
        (OnAbandon::FailureAfter(ms(0)), ms(0), true),
        (OnAbandon::FailureAfter(std::time::Duration::MAX), secs(3_600), false),
    ] {
        let bench = Bench::new(textbook().on_abandon(choice));
        let permits = take(&bench, 5);
        bench.advance(silent);
        drop(permits);
        assert_eq!(bench.state() == State::Open, fails, "{choice:?} after {silent:?}");
        let totals = bench.snapshot().totals;
        assert_eq!(totals.abandoned + totals.stale, 5, "counted as what they were");
        assert_eq!(totals.failure, 0);
    }
}

#[test]
fn r11_on_abandon_says_nothing_about_settled_calls() {
    let bench = Bench::new(textbook().on_abandon(OnAbandon::FailureAfter(ms(1))));
    let permits = take(&bench, 10);
    bench.advance(secs(10));
    permits.into_iter().for_each(|permit| assert_eq!(permit.ignore(), Settled::Recorded));
    assert_eq!((bench.state(), bench.window()), (State::Closed, (0, 0)));
}

#[test]
fn r11_a_panicking_thread_fails_its_permit_whatever_the_policy_says() {
    let bench = Bench::new(textbook().on_abandon(OnAbandon::Ignore));
    for _ in 0..5 {
        let permit = bench.enter();
        let thread = std::thread::scope(|scope| {
            let run = move || {
                let _permit = permit;
                std::panic::resume_unwind(Box::new("a call that panics"));
            };
            scope.spawn(run).join()
        });
        assert!(thread.is_err());
    }
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.state, snapshot.in_flight), (State::Open, 0));
    assert_eq!((snapshot.totals.failure, snapshot.totals.abandoned), (5, 0));
}

#[test]
fn r11_a_probe_that_panics_reopens() {
    let bench = Bench::tripped(textbook());
    bench.advance(secs(30));
    ENDINGS[5](bench.probe());
    assert_eq!((bench.state(), bench.log().last().unwrap().cause), (State::Open, Cause::ProbeFailed));
}

#[test]
fn r11_a_permit_settled_or_recorded_before_a_panic_keeps_its_outcome() {
    let bench = Bench::new(textbook());
    let held = bench.enter().record(Outcome::Success);
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _held = held;
        std::panic::resume_unwind(Box::new("after the verdict"));
    }));
    assert!(unwound.is_err());
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.totals.success, snapshot.totals.failure, snapshot.in_flight), (1, 0, 0));
}
