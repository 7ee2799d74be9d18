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

/// The counts of generation 1 after both: whoever comes second sees both, so whichever completes `min_calls` judges all.
#[test]
fn success_and_failure_completing_min_calls_are_both_judged_by_the_second() {
    model(
        "calls: success and failure completing min_calls are both judged by the second",
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
fn a_full_window_forgets_the_oldest_once_per_call() {
    model(
        "calls: a full window forgets the oldest once per call",
        &[[None; 3]],
        || Window::holding(&[true, false, false]),
        [|window: &Window| window.record(true, 1), |window| window.record(true, 1), |window| window.record(false, 1)],
        |window, seen| {
            assert_eq!(window.calls.counts(1, SIZE), (3, 2));
            seen
        },
    );
}

#[test]
fn a_straggler_cannot_wipe_a_new_window() {
    model(
        "calls: a straggler cannot wipe a new window",
        &[[None; 2]],
        || Window::holding(&[true]),
        [|window: &Window| window.record(true, 1), |window| window.begin()],
        |window, seen| {
            assert_eq!(window.calls.counts(2, SIZE), (1, 1));
            seen
        },
    );
}

#[test]
fn stragglers_of_an_unused_window_cannot_wipe_a_new_one() {
    model(
        "calls: stragglers of an unused window cannot wipe a new one",
        &[[None; 3]],
        || Window::holding(&[]),
        [|window: &Window| window.record(true, 1), |window| window.record(false, 1), |window| window.begin()],
        |window, seen| {
            assert_eq!(window.calls.counts(2, SIZE), (1, 1));
            seen
        },
    );
}
