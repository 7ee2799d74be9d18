//! R20: each change is reported once, in order, with its reasons.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use portcullis::{Cause, Evidence, Met, Rule, State, Transition, Window};

use crate::common::{Bench, Draw, T, listener, ms, race, secs, textbook};

#[test]
fn r20_a_trip_carries_its_evidence() {
    let policy = textbook().consecutive_failures(3).failures(4).slow_call(secs(1)).slow_rate(0.4);
    let bench = Bench::new(policy.min_calls(6).failure_rate(0.5));
    bench.engine.set_policy(T, bench.snapshot_policy().to_builder().failures(3).build().unwrap()).unwrap();
    bench.succeed(3);
    bench.fail(2);
    bench.advance(ms(77));
    let slow = bench.enter();
    bench.advance(secs(1));
    slow.failure();
    let trip = bench.log()[0].clone();
    let Evidence { met, streak, calls, failures, slow, policy_version, .. } = *trip.evidence.clone().unwrap();
    assert_eq!((streak, calls, failures, slow, policy_version), (3, 6, 3, 1, 1));
    let met: Vec<_> =
        met.iter().map(|Met { rule, count, calls, threshold, .. }| (*rule, *count, *calls, *threshold)).collect();
    assert_eq!(
        met,
        [(Rule::ConsecutiveFailures, 3, 3, 3), (Rule::FailureRate, 3, 6, 5_000), (Rule::Failures, 3, 6, 3)]
    );
    assert_eq!((trip.cause, trip.at), (Cause::ConsecutiveFailures, ms(1_077)));
    assert_eq!((trip.from, trip.to, trip.sequence, trip.generation), (State::Closed, State::Open, 1, 1));
    assert_eq!(trip.target.as_str(), T);
    assert!(SystemTime::now().duration_since(trip.wall).unwrap_or_default() < secs(3_600));
}

impl Bench {
    fn snapshot_policy(&self) -> portcullis::Policy {
        let _known = self.engine.target(T).expect("there is room");
        self.snapshot().policy
    }
}

#[test]
fn r20_a_slow_trip_names_its_numbers() {
    let bench = Bench::new(textbook().window(Window::time(secs(60))).slow_call(secs(1)).slow_rate(0.25).min_calls(4));
    bench.succeed(3);
    let slow = bench.enter();
    bench.advance(secs(1));
    slow.success();
    let evidence = bench.log()[0].evidence.clone().unwrap();
    assert_eq!((evidence.rule(), evidence.met.len()), (Rule::SlowRate, 1));
    assert_eq!((evidence.met[0].count, evidence.met[0].calls, evidence.met[0].threshold), (1, 4, 2_500));
}

#[test]
fn r20_only_trips_carry_evidence_and_evidence_is_frozen() {
    let bench = Bench::new(textbook());
    let late = bench.enter();
    bench.fail(5);
    bench.advance(secs(30));
    bench.probe().failure();
    late.failure();
    bench.engine.force_open(T).unwrap();
    bench.engine.release(T).unwrap();
    let log = bench.log();
    assert!(log[1..].iter().all(|transition| transition.evidence.is_none()));
    assert_eq!(log[0].evidence.as_ref().unwrap().failures, 5);
}

#[test]
fn r20_every_cause_is_reported_with_its_own_name() {
    let bench = Bench::new(textbook().slow_call(secs(1)).probe_lease(secs(5)).successes_to_close(2));
    bench.fail(5);
    bench.advance(secs(30));
    bench.probe().failure();
    bench.advance(secs(60));
    let slow = bench.probe();
    bench.advance(secs(2));
    slow.success();
    bench.advance(secs(120));
    std::mem::forget(bench.probe());
    bench.advance(secs(6));
    bench.probe().success();
    bench.probe().success();
    bench.succeed(1);
    bench.engine.set_policy(T, textbook().window(Window::calls(9)).build().unwrap()).unwrap();
    bench.engine.disable(T).unwrap();
    bench.engine.force_open(T).unwrap();
    bench.engine.release(T).unwrap();
    let log = bench.log();
    let causes: Vec<_> = log.iter().map(|transition| transition.cause.to_string()).collect();
    let opened = ["failure_rate", "wait_elapsed", "probe_failed", "wait_elapsed", "probe_slow"];
    let closed = ["wait_elapsed", "lease_expired", "probes_succeeded", "policy_changed"];
    assert_eq!(causes, [&opened[..], &closed, &["disabled", "forced_open", "released"]].concat());
    unbroken(&log.iter().map(|transition| Transition::clone(transition)).collect::<Vec<_>>());
}

/// Per target and incarnation: numbers from 1 without a gap, each state the one before ended in.
fn unbroken(transitions: &[Transition]) {
    let mut lives: HashMap<(String, u64), Vec<&Transition>> = HashMap::new();
    for transition in transitions {
        lives.entry((transition.target.to_string(), transition.incarnation)).or_default().push(transition);
    }
    for (life, mut transitions) in lives {
        transitions.sort_by_key(|transition| transition.sequence);
        let mut state = State::Closed;
        for (number, transition) in (1..).zip(transitions) {
            assert_eq!(transition.sequence, number, "{life:?} has a gap or a double");
            assert_eq!(transition.from, state, "{life:?} breaks its chain at {number}");
            state = transition.to;
        }
    }
}

/// Random load of 8 threads over 3 targets in which everything happens that can.
fn storm(bench: &Bench, seed: u64) {
    let policies = [textbook().build().unwrap(), textbook().window(Window::time(secs(10))).build().unwrap()];
    race(8, |thread| {
        let mut draw = Draw(seed + thread as u64);
        for _ in 0..1_500 {
            let key = ["a", "b", "c"][draw.below(3) as usize];
            match draw.below(400) {
                0 => drop(bench.engine.force_open(key)),
                1 => drop(bench.engine.disable(key)),
                2..=8 => drop(bench.engine.release(key)),
                9 => drop(bench.engine.set_policy(key, policies[draw.below(2) as usize].clone())),
                10..=60 => bench.advance(secs(draw.below(20))),
                choice => {
                    if let Ok(permit) = bench.engine.admit(key) {
                        match choice % 8 {
                            0..=3 => drop(permit.failure()),
                            4..=5 => drop(permit.success()),
                            6 => drop(permit),
                            _ => drop(permit.ignore()),
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn r20_under_load_nothing_is_missed_or_told_twice() {
    let bench = Bench::with(textbook().probe_lease(secs(1)), |builder| builder.log_capacity(1_000_000));
    let (heard, observer) = listener();
    let _guard = bench.engine.observe(observer);
    let channel = bench.engine.subscribe(1_000_000);
    storm(&bench, 1);
    let heard = heard.lock().unwrap().clone();
    assert!(heard.len() > 200, "{} transitions are too few to collide", heard.len());
    unbroken(&heard);
    // The last number of each target is the number of its changes of generation.
    for key in ["a", "b", "c"] {
        let last =
            heard.iter().filter(|transition| *transition.target == key).map(|transition| transition.sequence).max();
        let snapshot = bench.engine.snapshot(key).unwrap();
        assert_eq!(last.unwrap_or(0), u64::from(snapshot.generation), "{key}");
    }
    // The log and the channel have the same ones, in order and without a gap as they stand.
    let log = bench.log();
    let received: Vec<_> = std::iter::from_fn(|| channel.try_recv().ok()).collect();
    assert_eq!(channel.dropped(), 0);
    // A thread that sleeps between its CAS and its report leaves a hole that may be given up, but is counted.
    let dropped = bench.engine.transitions_dropped() as usize;
    for delivered in [&log, &received] {
        assert_eq!(delivered.len() + dropped, heard.len());
        let mut last: HashMap<&str, u64> = HashMap::new();
        for transition in delivered {
            let last = last.entry(transition.target.as_str()).or_insert(0);
            assert!(transition.sequence > *last, "{} out of order", transition.target);
            *last = transition.sequence;
        }
    }
}

#[test]
fn r20_generations_wrap_and_numbers_do_not() {
    let bench = Bench::with(textbook(), |builder| builder.log_capacity(4));
    let target = bench.engine.target(T).unwrap();
    let flips = 1_u64 << 20;
    for _ in 0..flips / 2 {
        assert!(target.force_open() && target.release());
    }
    assert_eq!(target.snapshot().generation, 0, "1,048,576 transitions later");
    target.force_open();
    let last = bench.log().last().cloned().unwrap();
    assert_eq!((last.sequence, last.generation), (flips + 1, 1));
    assert_eq!(bench.engine.transitions_dropped(), flips + 1 - 4);
}

#[test]
fn r20_the_log_is_bounded_and_counts_what_fell_out() {
    for capacity in [0, 1, 3] {
        let bench = Bench::with(textbook(), |builder| builder.log_capacity(capacity));
        let target = bench.engine.target(T).unwrap();
        (0..5).for_each(|_| assert!(target.force_open() && target.release()));
        let numbers: Vec<_> = bench.log().iter().map(|transition| transition.sequence).collect();
        assert_eq!(numbers, (11 - capacity as u64..=10).collect::<Vec<_>>(), "the newest stay, oldest first");
        assert_eq!(bench.engine.transitions_dropped(), 10 - capacity as u64);
    }
}

#[test]
fn r20_at_is_the_engine_s_time_of_the_decision() {
    let bench = Bench::new(textbook());
    bench.advance(secs(10));
    bench.fail(5);
    bench.advance(secs(31));
    bench.probe().success();
    let at: Vec<Duration> = bench.log().iter().map(|transition| transition.at).collect();
    assert_eq!(at, [secs(10), secs(41), secs(41)]);
}
