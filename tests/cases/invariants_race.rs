use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use portcullis::{Clock, Engine, OnAbandon, Outcome, PolicyBuilder, State, Transition, Window};

use super::invariants::Random;
use super::kit::{Overlap, assert_ordered, c0, race, t0};
use crate::common::{Bench, T, ms};

fn policies() -> [PolicyBuilder; 3] {
    let quick = c0().open_wait(ms(1)).open_wait_max(ms(1)).max_in_flight(3).max_probes(2).successes_to_close(2);
    let timed = quick.clone().window(Window::time(ms(20)).buckets(4)).slow_call(ms(2)).slow_rate(0.7);
    let all = timed.clone().consecutive_failures(3).failures(7).on_abandon(OnAbandon::FailureAfter(ms(1)));
    [quick, timed, all]
}

/// Invariants 1, 2, 3, 7 and 8 with threads: what is left when all is said is consistent.
#[test]
fn sm18_whatever_threads_do_nothing_is_lost() {
    for (number, policy) in policies().into_iter().enumerate() {
        let (bench, overlap) = (Bench::new(policy), Overlap::default());
        let subscription = bench.engine.subscribe(1_000_000);
        race(3, |thread| {
            let mut random = Random(1 + thread as u64 + 10 * number as u64);
            let mut permits = Vec::new();
            for _ in 0..6_000 {
                overlap.during(|| match random.draw(12) {
                    0..5 => permits.extend(bench.engine.admit(T)),
                    5 => bench.time.increment(random.draw(3_000_000)),
                    6 if random.draw(40) == 0 => drop(bench.engine.disable(T)),
                    6 | 7 => drop(bench.engine.release(T)),
                    way => {
                        let Some(permit) = permits.pop() else { return };
                        match way {
                            8 => drop(permit),
                            9 => drop(permit.record(Outcome::Failure)),
                            10 => drop(permit.failure()),
                            _ => drop(permit.success()),
                        }
                    }
                });
                if let Some(snapshot) = bench.engine.snapshot(T) {
                    assert!(snapshot.in_flight <= 3 && snapshot.probes_in_flight <= 2, "{snapshot}");
                }
            }
        });
        overlap.assert_met();
        let snapshot = bench.snapshot();
        let totals = snapshot.totals;
        let ended = totals.success + totals.failure + totals.ignored + totals.abandoned + totals.stale;
        assert_eq!((snapshot.in_flight, ended), (0, totals.admitted), "{totals:?}");
        let moves = assert_ordered(&bench, &subscription);
        assert!(moves > 100, "{moves} transitions, {totals:?}");
    }
}

/// Invariant 10: no sequence of readings panics, and every permit ends.
#[test]
fn tm03_no_sequence_of_readings_panics() {
    for (number, policy) in policies().into_iter().enumerate() {
        let (clock, time) = Clock::mock();
        time.increment(1_u64 << 62);
        let engine: Engine = Engine::builder().policy(policy.build().unwrap()).clock(clock).seed(1).build();
        let mut random = Random(77 + number as u64);
        let (mut value, mut permits) = (1_i128 << 62, Vec::new());
        for _ in 0..30_000 {
            let bits = random.draw(63);
            let by = random.draw(u64::MAX) >> bits.min(31) << (bits / 2);
            if random.draw(2) == 0 && value >= i128::from(by) {
                time.decrement(by);
                value -= i128::from(by);
            } else if value + i128::from(by) <= i128::from(u64::MAX) {
                time.increment(by);
                value += i128::from(by);
            }
            permits.extend(engine.admit(T));
            let shown = engine.snapshot(T).unwrap();
            assert!(shown.window.unwrap().failures <= shown.window.unwrap().calls);
            if let Some(permit) = permits.pop() {
                match random.draw(4) {
                    0 => drop(permit.success()),
                    1 => drop(permit),
                    _ => drop(permit.failure()),
                }
            }
            if random.draw(50) == 0 {
                engine.sweep();
            }
        }
        drop(permits);
        assert_eq!(engine.snapshots().iter().map(|(_, shown)| shown.in_flight).sum::<u32>(), 0);
    }
}

/// Invariant 12: a panic in any hook leaves all of the above true.
#[test]
fn ev09_panics_in_every_hook_lose_nothing() {
    let bench = Bench::new(t0().max_in_flight(2).open_wait(ms(1)).open_wait_max(ms(1)));
    let _guard = bench.engine.observe(|_: &Transition| panic!("a hook's"));
    let (mut random, mut panics) = (Random(5), 0);
    for _ in 0..3_000 {
        bench.advance(Duration::from_micros(700));
        let way = random.draw(4);
        let call = || {
            let judge = |value: &u64| match value {
                1 => panic!("the classifier's"),
                2 => Outcome::Failure,
                _ => Outcome::Success,
            };
            bench.engine.call(T, judge, || if way == 0 { panic!("the call's") } else { way })
        };
        panics += u64::from(catch_unwind(AssertUnwindSafe(call)).is_err());
    }
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.probes_in_flight), (0, 0));
    let totals = snapshot.totals;
    assert_eq!(totals.success + totals.failure, totals.admitted);
    assert!(panics > 100 && totals.failure >= panics && bench.engine.observer_panics() > 100, "{panics} {totals:?}");
    assert_eq!(bench.engine.observer_panics(), u64::from(snapshot.generation));
}

/// Invariant 13: the packed words give back what was put in, at every field's end.
#[test]
fn tm07_the_gates_word_gives_back_what_was_put_in() {
    use portcullis::internals::{GateWord, Now, Step};
    let (generation_max, tick_max) = ((1 << 20) - 1, (1_u64 << 36) - 1);
    let mut words = 0;
    for generation in [0, 1, 255, 65_535, generation_max - 1, generation_max] {
        for tick in [0, 1, 30_000, tick_max - 1, tick_max] {
            for reopens in [0, 1, 30, 31] {
                let word = GateWord::open(generation, reopens, tick);
                let got = (word.state(), word.generation(), word.reopens(), word.tick());
                assert_eq!(got, (State::Open, generation, reopens, tick));
                assert_eq!(GateWord::from_bits(word.bits()), word);
                for (probes, successes) in [(0, 0), (31, 31), (1, 30), (30, 1)] {
                    let lease = (1 << 26) - 1;
                    let word = GateWord::half_open(generation, reopens, probes, successes, lease);
                    let got = (word.generation(), word.reopens(), word.probes(), word.successes(), word.lease_end());
                    assert_eq!(got, (generation, reopens, probes, successes, lease));
                }
                words += 1;
            }
            let closed = GateWord::closed(generation, tick);
            assert_eq!((closed.state(), closed.generation(), closed.tick()), (State::Closed, generation, tick));
            // The last generation is followed by the first, in any state.
            let Step::Move(next) = closed.trip(generation, tick) else { panic!("it trips") };
            assert_eq!(next.generation(), (generation + 1) & generation_max);
            assert_eq!(next.state_at(Now::from_nanos(u64::MAX)), State::HalfOpen, "no tick means never");
        }
    }
    assert_eq!(words, 6 * 5 * 4);
}
