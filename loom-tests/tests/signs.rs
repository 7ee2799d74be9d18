//! What a state and a window carry: whoever meets a generation, a probe slot or a count sees what was written before it.
//!
//! The signs are relaxed atomics of loom's, as the messages in `messages.rs` are.

use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom_tests::desk::{Desk, build};
use loom_tests::model;
use portcullis::internals::{
    Admission, Applied, Ending, Gate, GateWord, Glance, Now, ProbeRules, Recorded, calls, streak,
};
use portcullis::{Outcome, Policy, State, Window};

const NOW: Now = Now::from_millis(20_000);
const EITHER: &[[bool; 2]] = &[[true, true], [true, false], [false, true]];

#[derive(Debug)]
struct Sign {
    gate: Gate,
    written: AtomicU32,
}

impl Sign {
    fn on(word: GateWord) -> Self {
        Self { gate: Gate::from_bits(word.bits()), written: AtomicU32::new(0) }
    }

    /// Takes a slot if there is one; a lost CAS decides again.
    fn probe(&self) -> bool {
        const RULES: ProbeRules = ProbeRules { max_probes: 1, successes_to_close: 1, lease_s: 10 };
        let mut word = self.gate.load();
        while let Admission::Probe(next) = word.admit(NOW, RULES) {
            match self.gate.take_probe(word, next) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
        false
    }

    fn probe_and_give_back(&self) -> bool {
        if !self.probe() {
            return false;
        }
        self.written.store(self.written.load(Relaxed) + 1, Relaxed);
        matches!(self.gate.apply(|word| word.probe_returned(8)), Applied::Stayed)
    }
}

/// One slot makes probes exclude each other, as one permit does calls. Given back, the word looks as if nobody had probed.
#[test]
fn a_probe_slot_carries_what_the_last_probe_left() {
    model(
        "signs: a probe slot carries what the last probe left",
        EITHER,
        || Sign::on(GateWord::half_open(8, 0, 0, 0, 30)),
        [|sign: &Sign| sign.probe_and_give_back(); 2],
        |sign, probed| {
            let probes = probed.iter().filter(|probed| **probed).count();
            assert_eq!(
                sign.written.load(Relaxed) as usize,
                probes,
                "a probe started without what the one before it left"
            );
            probed
        },
    );
}

/// The first takes a slot and gives it back: the word is what it was. Whoever ends the generation after that has it behind him.
#[test]
fn the_end_of_a_generation_comes_after_the_probes_that_left() {
    model(
        "signs: the end of a generation comes after the probes that left",
        // Not given back, since the end came first.
        &[[true, true], [false, true], [false, false]],
        || Sign::on(GateWord::half_open(8, 0, 0, 0, 30)),
        [
            |sign: &Sign| sign.probe_and_give_back(),
            |sign| {
                let applied = sign.gate.apply(|word| word.force(State::ForcedOpen, NOW));
                assert!(matches!(applied, Applied::Moved(_)));
                sign.written.load(Relaxed) == 1
            },
        ],
        |_, [gave_back, seen]| {
            assert!(!gave_back || seen, "a generation ended without what its probes left");
            [gave_back, seen]
        },
    );
}

#[test]
fn a_probing_generation_carries_what_its_first_prober_wrote() {
    model(
        "signs: a probing generation carries what its first prober wrote",
        &[[true, true], [true, false]],
        || Sign::on(GateWord::open(7, 0, NOW.tick())),
        [
            |sign: &Sign| {
                sign.written.store(1, Relaxed);
                sign.probe()
            },
            |sign| {
                let probing = sign.gate.load().state() == State::HalfOpen;
                assert!(
                    !probing || sign.written.load(Relaxed) == 1,
                    "a generation came without what was written before"
                );
                probing
            },
        ],
        |_, told| told,
    );
}

/// Each word, seen by a failure, shows what the failure before it wrote; between them a success and a failure of one thread have left
/// the word as it was.
#[derive(Debug)]
struct Mark {
    streak: streak::Cell,
    calls: calls::Cell,
    gate: Gate,
    written: AtomicU32,
}

impl Mark {
    fn new() -> Self {
        let gate = Gate::from_bits(GateWord::closed(1, 0).bits());
        let (streak, calls) = (streak::Cell::default(), calls::Cell::default());
        let _ = streak.failed(1, &gate);
        for failed in [true, false, true] {
            let _ = calls.record(failed, 1, 3, &gate);
        }
        Self { streak, calls, gate, written: AtomicU32::new(0) }
    }
}

#[test]
fn a_streak_comes_after_the_failures_that_it_counts() {
    model(
        "signs: a streak comes after the failures that it counts",
        // What the second saw; whether the first had left the word as it was, and it came after that.
        &[(2, true), (2, false), (1, false)],
        Mark::new,
        [
            |mark: &Mark| {
                mark.streak.succeeded(1);
                mark.written.store(1, Relaxed);
                (length(mark.streak.failed(1, &mark.gate)), false)
            },
            |mark| (length(mark.streak.failed(1, &mark.gate)), mark.written.load(Relaxed) == 1),
        ],
        |mark, [(first, _), (second, seen)]| {
            let is_after = (first, second, mark.streak.count(1)) == (1, 2, 2);
            assert!(!is_after || seen, "a failure was counted without what was written before it");
            (second, is_after)
        },
    );
}

fn length(recorded: Recorded<u64>) -> u64 {
    match recorded {
        Recorded::Counted(length) => length,
        Recorded::Stale => 0,
    }
}

#[test]
fn a_window_comes_after_the_calls_that_it_counts() {
    model(
        "signs: a window comes after the calls that it counts",
        // The window that the second left, newest last, and whether it came after both of the first's, before or between them.
        &[(0b011, true), (0b011, false), (0b101, false)],
        Mark::new,
        [
            |mark: &Mark| {
                let _ = mark.calls.record(false, 1, 3, &mark.gate);
                mark.written.store(1, Relaxed);
                let _ = mark.calls.record(true, 1, 3, &mark.gate);
                (0, false)
            },
            |mark| {
                let Recorded::Counted(word) = mark.calls.record(true, 1, 3, &mark.gate) else { return (0, false) };
                (word.bits() & 0b111, mark.written.load(Relaxed) == 1)
            },
        ],
        |mark, [_, (window, seen)]| {
            // Before, its own was followed by a success.
            let is_last = window == 0b011 && mark.calls.counts(1, 2) == (2, 2);
            assert!(!is_last || seen, "a call was counted without what was written before it");
            (window, is_last)
        },
    );
}

/// Two successes close: the second mover has the first behind it.
#[test]
fn the_success_that_closes_comes_after_the_one_before() {
    model(
        "signs: the success that closes comes after the one before",
        &[[true, false], [false, true]],
        || (Sign::on(GateWord::half_open(8, 0, 2, 0, 30)), [AtomicU32::new(0), AtomicU32::new(0)]),
        [|scene: &Scene| close_after(scene, 0), |scene| close_after(scene, 1)],
        |_, told| told,
    );
}

type Scene = (Sign, [AtomicU32; 2]);

fn close_after((sign, written): &Scene, index: usize) -> bool {
    const RULES: ProbeRules = ProbeRules { max_probes: 2, successes_to_close: 2, lease_s: 10 };
    written[index].store(1, Relaxed);
    let applied = sign.gate.apply(|word| word.probe_succeeded(8, NOW, RULES));
    let closed = matches!(applied, Applied::Moved(_));
    assert!(!closed || written[1 - index].load(Relaxed) == 1, "it closed without what the success before had written");
    closed
}

/// No success changes a target without a window, as long as its policy is in force.
#[test]
fn a_policy_carries_what_its_setter_wrote() {
    model(
        "signs: a policy carries what its setter wrote",
        &[true, false],
        || (Desk::with_calls(build(Policy::builder().no_window()), 1), AtomicU32::new(0)),
        [
            |(desk, written): &(Desk, AtomicU32)| {
                written.store(1, Relaxed);
                desk.adopt(&build(Policy::builder().window(Window::calls(2))));
                true
            },
            |(desk, written)| {
                let is_before =
                    desk.words.glance(desk.granted(0), Ending::Settled(Outcome::Success)) == Glance::Unchanged;
                assert!(is_before || written.load(Relaxed) == 1, "a policy came without what its setter wrote");
                is_before
            },
        ],
        |_, [_, is_before]| is_before,
    );
}
