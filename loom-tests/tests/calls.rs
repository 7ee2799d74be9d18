//! The window of calls: one 128-bit word, its generation in it.

use loom_tests::model;
use portcullis::internals::calls::Cell;
use portcullis::internals::{Gate, GateWord, Now, Recorded};

const SIZE: u32 = 3;

#[derive(Debug)]
struct Window {
    calls: Cell,
    gate: Gate,
}

impl Window {
    /// Of generation 1, with these calls in it.
    fn holding(failures: &[bool]) -> Self {
        let window = Self { calls: Cell::default(), gate: Gate::from_bits(GateWord::closed(1, 0).bits()) };
        for failed in failures {
            window.record(*failed, 1);
        }
        window
    }

    /// Calls and failures as this outcome left them; none if it was stale.
    fn record(&self, failed: bool, generation: u32) -> Option<(u32, u32)> {
        match self.calls.record(failed, generation, SIZE, &self.gate) {
            Recorded::Counted(word) => Some(word.counts(SIZE)),
            Recorded::Stale => None,
        }
    }

    /// Begins generation 2 and records a failure in it.
    fn begin(&self) -> Option<(u32, u32)> {
        let _ = self.gate.apply(|word| word.restart(Now::default()));
        self.record(true, 2)
    }
}

/// With `min_calls` 2, whichever outcome comes second judges both.
#[test]
fn the_outcome_that_completes_min_calls_sees_both() {
    model(
        "calls: the outcome that completes min_calls sees both",
        &[[Some((1, 0)), Some((2, 1))], [Some((2, 1)), Some((1, 1))]],
        || Window::holding(&[]),
        [|window: &Window| window.record(false, 1), |window| window.record(true, 1)],
        |window, seen| {
            assert_eq!(window.calls.counts(1, SIZE), (2, 1));
            seen
        },
    );
}

#[test]
fn a_full_window_forgets_one_call_per_call() {
    model(
        "calls: a full window forgets one call per call",
        // The window held a failure and two successes. Each outcome sees three calls and, of the failures, its own and those before it.
        &[
            [Some((3, 1)), Some((3, 2)), Some((3, 2))],
            [Some((3, 1)), Some((3, 2)), Some((3, 1))],
            [Some((3, 2)), Some((3, 1)), Some((3, 2))],
            [Some((3, 2)), Some((3, 1)), Some((3, 1))],
            [Some((3, 1)), Some((3, 2)), Some((3, 0))],
            [Some((3, 2)), Some((3, 1)), Some((3, 0))],
        ],
        || Window::holding(&[true, false, false]),
        [|window: &Window| window.record(true, 1), |window| window.record(true, 1), |window| window.record(false, 1)],
        |window, seen| {
            assert_eq!(window.calls.counts(1, SIZE), (3, 2));
            seen
        },
    );
}

#[test]
fn a_success_on_a_clean_full_window_writes_nothing_and_hides_nothing() {
    model(
        "calls: a success on a clean full window writes nothing and hides nothing",
        &[[Some((3, 0)), Some((3, 1))], [Some((3, 1)), Some((3, 1))]],
        || Window::holding(&[false, false, false]),
        [|window: &Window| window.record(false, 1), |window| window.record(true, 1)],
        |window, seen| {
            assert_eq!(window.calls.counts(1, SIZE), (3, 1));
            seen
        },
    );
}

#[test]
fn a_straggler_cannot_wipe_a_new_window() {
    model(
        "calls: a straggler cannot wipe a new window",
        &[[Some((2, 2)), Some((1, 1))], [None, Some((1, 1))]],
        || Window::holding(&[true]),
        [|window: &Window| window.record(true, 1), |window| window.begin()],
        |window, seen| {
            assert_eq!(window.calls.counts(2, SIZE), (1, 1));
            seen
        },
    );
}

/// The word was never written in the stragglers' own generation, so only the gate can tell which of the two is older.
#[test]
fn stragglers_of_an_unused_window_cannot_wipe_a_new_one() {
    model(
        "calls: stragglers of an unused window cannot wipe a new one",
        &[
            [Some((1, 1)), Some((2, 1)), Some((1, 1))],
            [Some((2, 1)), Some((1, 0)), Some((1, 1))],
            [Some((1, 1)), None, Some((1, 1))],
            [None, Some((1, 0)), Some((1, 1))],
            [None, None, Some((1, 1))],
        ],
        || Window::holding(&[]),
        [|window: &Window| window.record(true, 1), |window| window.record(false, 1), |window| window.begin()],
        |window, seen| {
            assert_eq!(window.calls.counts(2, SIZE), (1, 1));
            seen
        },
    );
}
