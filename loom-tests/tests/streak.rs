//! The streak: failures in a row, and the success that ends it.

use loom_tests::model;
use portcullis::internals::streak::Cell;
use portcullis::internals::{Gate, GateWord, Now, Recorded};

#[derive(Debug)]
struct Run {
    streak: Cell,
    gate: Gate,
}

impl Run {
    /// Of generation 1, with a streak of that many failures.
    fn of(failures: usize) -> Self {
        let run = Self { streak: Cell::default(), gate: Gate::from_bits(GateWord::closed(1, 0).bits()) };
        for _ in 0..failures {
            run.fail(1);
        }
        run
    }

    /// The streak's length with this failure; none if it was stale.
    fn fail(&self, generation: u32) -> Option<u64> {
        match self.streak.failed(generation, &self.gate) {
            Recorded::Counted(length) => Some(length),
            Recorded::Stale => None,
        }
    }

    fn succeed(&self, generation: u32) -> Option<u64> {
        self.streak.succeeded(generation);
        None
    }

    /// Begins generation 2 and fails in it.
    fn begin(&self) -> Option<u64> {
        let _ = self.gate.apply(|word| word.restart(Now::default()));
        self.fail(2)
    }
}

#[test]
fn two_failures_count_two() {
    model(
        "streak: two failures count two",
        &[[Some(1), Some(2)], [Some(2), Some(1)]],
        || Run::of(0),
        [|run: &Run| run.fail(1); 2],
        |run, lengths| {
            assert_eq!(run.streak.count(1), 2);
            lengths
        },
    );
}

#[test]
fn exactly_one_of_three_failures_is_the_third() {
    model(
        "streak: exactly one of three failures is the third",
        &[
            [Some(1), Some(2), Some(3)],
            [Some(1), Some(3), Some(2)],
            [Some(2), Some(1), Some(3)],
            [Some(2), Some(3), Some(1)],
            [Some(3), Some(1), Some(2)],
            [Some(3), Some(2), Some(1)],
        ],
        || Run::of(0),
        [|run: &Run| run.fail(1); 3],
        |run, lengths| {
            assert_eq!(run.streak.count(1), 3);
            lengths
        },
    );
}

#[test]
fn a_success_ends_what_came_before_it_and_nothing_else() {
    model(
        "streak: a success ends what came before it and nothing else",
        // The lengths that the failures saw, and what is left: 2 if the success came first, 1 if between them, 0 if last.
        &[
            ([Some(1), Some(2), None], 2),
            ([Some(2), Some(1), None], 2),
            ([Some(1), Some(2), None], 1),
            ([Some(2), Some(1), None], 1),
            ([Some(2), Some(3), None], 0),
            ([Some(3), Some(2), None], 0),
        ],
        || Run::of(1),
        [|run: &Run| run.fail(1), |run| run.fail(1), |run| run.succeed(1)],
        |run, lengths| (lengths, run.streak.count(1)),
    );
}

#[test]
fn a_straggler_of_the_old_generation_cannot_touch_the_new_streak() {
    model(
        "streak: a straggler of the old generation cannot touch the new streak",
        &[[Some(2), None, Some(1)], [Some(1), None, Some(1)], [None, None, Some(1)]],
        || Run::of(1),
        [|run: &Run| run.fail(1), |run| run.succeed(1), |run| run.begin()],
        |run, lengths| {
            assert_eq!(run.streak.count(2), 1);
            lengths
        },
    );
}

/// The word was never written in the straggler's own generation, so only the gate can tell which of the two is older.
#[test]
fn a_straggler_of_an_unused_streak_cannot_wipe_the_new_one() {
    model(
        "streak: a straggler of an unused streak cannot wipe the new one",
        &[[Some(1), Some(1)], [None, Some(1)]],
        || Run::of(0),
        [|run: &Run| run.fail(1), |run| run.begin()],
        |run, lengths| {
            assert_eq!(run.streak.count(2), 1);
            lengths
        },
    );
}
