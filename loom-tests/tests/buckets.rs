//! The window of time: calls and failures are two words, and both roll to the next bucket while others write and read them.

use loom_tests::model;
use portcullis::internals::buckets::{Cell, Ring, View, Word};
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
        &[[None::<(u64, u64)>; 3]],
        || Track::used(1),
        [|track: &Track| track.record(1, 1_000, true), |track| track.record(1, 1_000, true), |track| track.record(1, 1_000, false)],
        |track, seen| {
            assert_eq!(track.read(1, 1_000), (3, 2));
            let _ = seen;
            [None; 3]
        },
    );
}

#[test]
fn two_failures_at_a_roll() {
    model(
        "buckets: two at a roll",
        &[[None; 2]],
        || Track::used(1),
        [|track: &Track| track.record(1, 1_000, true), |track| track.record(1, 1_000, true)],
        |track, seen| {
            assert_eq!(track.read(1, 1_000), (2, 2));
            seen
        },
    );
}

#[test]
fn a_reader() {
    model(
        "buckets: a reader",
        &[[None; 2]],
        || Track::used(1),
        [|track: &Track| track.record(1, 1_000, true), |track| Some(track.read(1, 1_000))],
        |track, seen| {
            assert_eq!(track.read(1, 1_000), (1, 1));
            seen
        },
    );
}

#[test]
fn a_laggard() {
    model(
        "buckets: a laggard",
        &[([None; 2], (0, 0))],
        || Track::used(1),
        [|track: &Track| track.record(1, 999, true), |track| track.record(1, 1_000, true)],
        |track, seen| (seen, track.read(1, 1_000)),
    );
}
#[test]
fn a_laggard_and_two() {
    model(
        "buckets: a laggard and two",
        &[((0, 0))],
        || Track::used(1),
        [|track: &Track| track.record(1, 999, true), |track| track.record(1, 1_000, true), |track| track.record(1, 1_000, false)],
        |track, _| (track.read(1, 1_000)),
    );
}
#[test]
fn two_buckets() {
    model(
        "buckets: two buckets",
        &[[None; 2]],
        || Track::used(2),
        [|track: &Track| track.record(2, 1_999, true), |track| track.record(2, 2_000, true)],
        |track, seen| {
            assert_eq!(track.read(2, 2_000), (2, 2));
            seen
        },
    );
}

#[test]
fn single_word() {
    model(
        "buckets: one word",
        &[([0u64; 2], Word::new(1, 0, 0))],
        || (Cell::default(), Gate::from_bits(GateWord::closed(1, 0).bits())),
        [|(cell, gate): &(Cell, Gate)| matches!(cell.record(1, 1_000, gate), Recorded::Counted(_)) as u64, 
         |(cell, gate)| {
            let moved = gate.apply(|word| word.restart(Now::default()));
            let _ = moved;
            matches!(cell.record(2, 1_000, gate), Recorded::Counted(_)) as u64
         }],
        |(cell, _), seen| (seen, cell.load()),
    );
}
