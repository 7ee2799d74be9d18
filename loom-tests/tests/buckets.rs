//! The window of time: calls and failures are two words, and both roll to the next bucket while others write and read them.

use loom_tests::model;
use portcullis::internals::buckets::{Ring, View};
use portcullis::internals::{Counts, Gate, GateWord, Now, Recorded};

/// A ring with one outcome in its first bucket, and the gate of its generation.
#[derive(Debug)]
struct Track {
    ring: Ring,
    gate: Gate,
}

/// The window of `buckets` of 1 s, seen at `millis`.
fn view(buckets: u32, millis: u64) -> View {
    View::new(1, 0, 1_000, buckets, Now::from_millis(millis))
}

impl Track {
    fn used(buckets: u32) -> Self {
        let track = Self { ring: Ring::default(), gate: Gate::from_bits(GateWord::closed(1, 0).bits()) };
        track.record(buckets, 0, true);
        track
    }

    /// Calls and failures as the outcome left the window; none if it was stale.
    fn record(&self, buckets: u32, millis: u64, failed: bool) -> Option<(u64, u64)> {
        match self.ring.record(&view(buckets, millis), failed, false, &self.gate) {
            Recorded::Counted(counts) => Some(calls_and_failures(counts)),
            Recorded::Stale => None,
        }
    }

    fn read(&self, buckets: u32, millis: u64) -> (u64, u64) {
        calls_and_failures(self.ring.counts(&view(buckets, millis)))
    }
}

fn calls_and_failures(counts: Counts) -> (u64, u64) {
    (counts.calls, counts.failures)
}

#[test]
fn no_outcome_of_the_new_bucket_is_lost_or_counted_twice() {
    model(
        "buckets: no outcome of the new bucket is lost or counted twice",
        &[()],
        || Track::used(1),
        [
            |track: &Track| track.record(1, 1_000, true),
            |track| track.record(1, 1_000, true),
            |track| track.record(1, 1_000, false),
        ],
        |track, _| assert_eq!(track.read(1, 1_000), (3, 2)),
    );
}

#[test]
fn of_two_failures_at_a_roll_the_second_sees_both() {
    model(
        "buckets: of two failures at a roll the second sees both",
        &[
            [Some((1, 1)), Some((2, 2))],
            [Some((2, 1)), Some((2, 2))],
            [Some((2, 2)), Some((1, 1))],
            [Some((2, 2)), Some((2, 1))],
            [Some((2, 2)), Some((2, 2))],
        ],
        || Track::used(1),
        [|track: &Track| track.record(1, 1_000, true); 2],
        |track, seen| {
            assert_eq!(track.read(1, 1_000), (2, 2));
            seen
        },
    );
}

#[test]
fn a_reader_at_a_roll_sees_no_failure_without_its_call() {
    model(
        "buckets: a reader at a roll sees no failure without its call",
        &[[Some((1, 1)), Some((0, 0))], [Some((1, 1)), Some((1, 0))], [Some((1, 1)), Some((1, 1))]],
        || Track::used(1),
        [|track: &Track| track.record(1, 1_000, true), |track| Some(track.read(1, 1_000))],
        |track, seen| {
            assert_eq!(track.read(1, 1_000), (1, 1));
            seen
        },
    );
}

/// The one whose clock lags is counted in the bucket that it finds, the old or the new, its failure with its call.
#[test]
fn a_failure_that_lags_is_counted_in_one_bucket_with_its_call() {
    model(
        "buckets: a failure that lags is counted in one bucket with its call",
        // The new bucket in the end: without the one that lags, or with it.
        &[(2, 1), (3, 2)],
        || Track::used(1),
        [
            |track: &Track| track.record(1, 999, true),
            |track| track.record(1, 1_000, true),
            |track| track.record(1, 1_000, false),
        ],
        |track, _| track.read(1, 1_000),
    );
}

/// Two failures on either side of a border. Each writes words of its own bucket and reads those of the other, and nothing
/// orders a write before a later read elsewhere: both may miss the other. Whoever comes next sees both.
#[test]
fn failures_on_both_sides_of_a_border_are_seen_by_the_next_at_the_latest() {
    model(
        "buckets: failures on both sides of a border are seen by the next at the latest",
        &[
            [Some((2, 2)), Some((1, 1))],
            [Some((2, 2)), Some((2, 1))],
            [Some((2, 2)), Some((2, 2))],
            [Some((2, 1)), Some((1, 1))],
            [Some((2, 1)), Some((2, 1))],
            [Some((2, 1)), Some((2, 2))],
        ],
        || Track::used(2),
        [|track: &Track| track.record(2, 1_999, true), |track| track.record(2, 2_000, true)],
        |track, seen| {
            assert_eq!(track.read(2, 2_000), (2, 2));
            seen
        },
    );
}

#[test]
fn a_straggler_of_the_old_generation_counts_in_no_new_bucket() {
    model(
        "buckets: a straggler of the old generation counts in no new bucket",
        &[true, false],
        || Track::used(1),
        [
            |track: &Track| track.record(1, 0, true).is_some(),
            |track| {
                let _ = track.gate.apply(|word| word.restart(Now::default()));
                let view = View::new(2, 0, 1_000, 1, Now::default());
                track.ring.record(&view, true, false, &track.gate) != Recorded::Stale
            },
        ],
        |track, [straggler, new]| {
            assert!(new);
            assert_eq!(calls_and_failures(track.ring.counts(&View::new(2, 0, 1_000, 1, Now::default()))), (1, 1));
            straggler
        },
    );
}
