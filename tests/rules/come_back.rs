//! A target that says when to come back is believed.

use std::sync::Arc;
use std::time::Duration;

use portcullis::{Outcome, PolicyBuilder, Settled, State};

use crate::common::{Bench, T, secs, textbook};

/// A wait of 30 s, doubled at each reopening, of 300 s at most.
fn asked(wait: Duration) -> Bench {
    let bench = Bench::new(textbook());
    bench.fail(4);
    assert_eq!(bench.enter().failure_retry_after(wait), Settled::Recorded);
    bench
}

#[test]
fn come_back_the_failure_that_trips_sets_the_least_wait_within_the_longest() {
    let ns = Duration::from_nanos;
    for (word, wait, told) in [
        (secs(0), secs(30), None),
        (secs(29), secs(30), Some(secs(29))),
        (secs(31), secs(31), Some(secs(31))),
        (secs(31) + ns(1), secs(31) + Duration::from_millis(1), Some(secs(31) + Duration::from_millis(1))),
        (secs(300), secs(300), Some(secs(300))),
        (secs(301), secs(300), Some(secs(301))),
    ] {
        let bench = asked(word);
        let last = bench.log().last().cloned().unwrap();
        assert_eq!((last.to, last.wait, last.retry_after), (State::Open, Some(wait), told), "{word:?}");
        assert_eq!(bench.snapshot().reopen_in, Some(wait));
        bench.advance(wait - ns(1));
        assert_eq!(bench.refusal().retry_after(), Some(ns(1)));
        bench.advance(ns(1));
        bench.probe().success();
        assert_eq!(bench.log().last().unwrap().wait, None);
    }
    assert_eq!(asked(Duration::MAX).snapshot().reopen_in, Some(secs(300)));
}

#[test]
fn come_back_a_failing_probe_says_it_too() {
    let bench = Bench::tripped(textbook());
    bench.advance(secs(30));
    assert_eq!(bench.probe().failure_retry_after(secs(100)), Settled::Recorded);
    let (snapshot, last) = (bench.snapshot(), bench.log().last().cloned().unwrap());
    assert_eq!((snapshot.reopens, snapshot.reopen_in, last.retry_after), (1, Some(secs(100)), Some(secs(100))));
    // The backoff goes on where it would have been.
    bench.advance(secs(100));
    bench.probe().failure();
    let last = bench.log().last().cloned().unwrap();
    assert_eq!((bench.snapshot().reopen_in, last.retry_after), (Some(secs(120)), None));
}

#[test]
fn come_back_only_what_opens_is_heard() {
    let bench = Bench::new(textbook());
    let straggler = bench.enter();
    assert_eq!(bench.enter().failure_retry_after(secs(200)), Settled::Recorded);
    bench.fail(4);
    assert_eq!(bench.snapshot().reopen_in, Some(secs(30)), "the last one said nothing");
    assert_eq!(straggler.failure_retry_after(secs(200)), Settled::Stale);
    assert_eq!(bench.snapshot().reopen_in, Some(secs(30)), "R6: the deadline is fixed");
}

#[test]
fn come_back_an_owned_permit_takes_note_before_it_is_settled_or_recorded() {
    let bench = |policy: PolicyBuilder| {
        let bench = Bench::new(policy);
        bench.fail(4);
        (Arc::new(bench.engine), bench.time)
    };
    let wait = |engine: &portcullis::Engine| engine.snapshot(T).unwrap().reopen_in;
    let (engine, _time) = bench(textbook());
    let mut permit = engine.admit_owned(T).unwrap();
    permit.note_retry_after(secs(90));
    permit.note_retry_after(secs(50));
    let held = permit.record(Outcome::Failure);
    assert_eq!((held.settled(), wait(&engine)), (Settled::Recorded, Some(secs(50))));
    let (engine, _time) = bench(textbook());
    engine.admit_owned(T).unwrap().failure_retry_after(secs(70));
    assert_eq!(wait(&engine), Some(secs(70)));
    // What isn't a failure opens nothing by its word: here the rate is met by the success that completes five calls.
    let (engine, _time) = bench(textbook());
    let mut permit = engine.admit_owned(T).unwrap();
    permit.note_retry_after(secs(90));
    permit.success();
    assert_eq!(wait(&engine), Some(secs(30)));
}

#[test]
fn come_back_counts_on_a_ramp_and_in_a_window_of_time() {
    let bench = Bench::tripped(textbook().max_in_flight(9).ramp(secs(10)).window(portcullis::Window::time(secs(60))));
    bench.advance(secs(30));
    bench.probe().success();
    bench.fail(2);
    bench.enter().failure_retry_after(secs(200));
    assert_eq!((bench.snapshot().reopens, bench.snapshot().reopen_in), (1, Some(secs(200))));
}
