//! The window of time: calls and failures are two words, and both roll to the next bucket while others write and read them.

use loom_tests::model;
use portcullis::internals::buckets::View;
use portcullis::internals::lane::{Again, Lane};
use portcullis::internals::marks::Marks;
use portcullis::internals::ring::{self, Ring};
use portcullis::internals::{Counts, Gate, GateWord, Now, Recorded};

/// The window of one stripe with one outcome in its first bucket, and the gate of its generation.
#[derive(Debug)]
struct Track {
    lane: Lane,
    marks: Marks,
    gate: Gate,
}

/// The window of `buckets` of 1 s, seen at `millis`.
fn view(buckets: u32, millis: u64) -> View {
    View::new(1, 0, 1_000, buckets, Now::from_millis(millis))
}

impl Track {
    fn used(buckets: u32) -> Self {
        let gate = Gate::from_bits(GateWord::closed(1, 0).bits());
        let track = Self { lane: Lane::default(), marks: Marks::default(), gate };
        track.record(buckets, 0, true);
        track
    }

    /// Calls and failures as the outcome left the window; none if it was stale.
    fn record(&self, buckets: u32, millis: u64, failed: bool) -> Option<(u64, u64)> {
        self.record_in(&view(buckets, millis), failed)
    }

    fn record_in(&self, view: &View, failed: bool) -> Option<(u64, u64)> {
        let ring = Ring::new(&self.lane, std::iter::once(&self.lane), &self.marks);
        match ring.record(view, failed, false, &self.gate) {
            Recorded::Counted(()) => ring.look(view, |_| true).map(calls_and_failures),
            Recorded::Stale => None,
        }
    }

    fn read_in(&self, view: &View) -> (u64, u64) {
        calls_and_failures(ring::counts(view, &self.marks, &std::iter::once(&self.lane)))
    }

    /// Ends a call well in a window of two buckets, as the engine does.
    fn succeed(&self, millis: u64) {
        if !matches!(self.lane.count_again(1, millis), Again::Counted(_)) {
            assert!(self.record(2, millis, false).is_some());
        }
    }

    fn read(&self, buckets: u32, millis: u64) -> (u64, u64) {
        self.read_in(&view(buckets, millis))
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

/// Each writes words of its own bucket and reads those of the other.
#[test]
fn of_two_failures_on_either_side_of_a_border_one_sees_both() {
    model(
        "buckets: of two failures on either side of a border one sees both",
        &[
            [Some((2, 2)), Some((1, 1))],
            [Some((2, 2)), Some((2, 1))],
            [Some((2, 2)), Some((2, 2))],
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
                track.record_in(&view, true).is_some()
            },
        ],
        |track, [straggler, new]| {
            assert!(new);
            assert_eq!(track.read_in(&View::new(2, 0, 1_000, 1, Now::default())), (1, 1));
            straggler
        },
    );
}

/// Successes that count where the last one did, one of them by a clock that lags, while another opens the next bucket.
#[test]
fn a_success_counted_at_once_at_a_border_is_not_lost() {
    model(
        "buckets: a success counted at once at a border is not lost",
        &[()],
        || Track::used(2),
        [|track: &Track| track.succeed(999), |track| track.succeed(1_000), |track| track.succeed(999)],
        |track, _| assert_eq!(track.read(2, 1_000), (4, 1)),
    );
}

/// A straggler counts at once by a hint of its own generation, while the next one begins.
#[test]
fn a_success_counted_at_once_is_of_its_own_generation() {
    model(
        "buckets: a success counted at once is of its own generation",
        &[()],
        || Track::used(2),
        [
            |track: &Track| {
                let _ = track.lane.count_again(1, 999);
            },
            |track| {
                let _ = track.gate.apply(|word| word.restart(Now::default()));
                let _ = track.record_in(&View::new(2, 0, 1_000, 2, Now::default()), false);
                let _ = track.lane.count_again(2, 999);
            },
        ],
        |track, _| assert_eq!(track.read_in(&View::new(2, 0, 1_000, 2, Now::default())), (2, 0)),
    );
}
