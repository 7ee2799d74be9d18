//! What a permit, a limit and a generation carry: whoever takes one sees what was written before it was given.
//!
//! The messages are relaxed atomics of loom's, which shows a stale value wherever nothing forbids it. A call adds one by a load and
//! a store, so one that starts without what the call before it left loses it.

use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom_tests::model;
use portcullis::State;
use portcullis::internals::magazine::SETTLED_LAP;
use portcullis::internals::{Admission, Applied, Bulkhead, Gate, GateWord, Now, ProbeRules, Recorded, calls, streak};

const NOW: Now = Now::from_millis(20_000);
const EITHER: &[[bool; 2]] = &[[true, true], [true, false], [false, true]];

/// A bulkhead with one permit left, so that calls come one after another, and what they leave.
#[derive(Debug)]
struct Booth<const N: usize> {
    permits: Bulkhead<N>,
    calls: AtomicU32,
}

impl<const N: usize> Booth<N> {
    /// Of this limit, all but one held for good; the one in stripe 0's stash if `stashed`, else in the pool.
    fn with_one_left(limit: u32, stashed: bool) -> Self {
        let permits = Bulkhead::new(limit);
        for _ in 0..limit - u32::from(!stashed) {
            assert!(permits.acquire(0).is_ok());
        }
        if stashed {
            permits.release(0);
        }
        Self { permits, calls: AtomicU32::new(0) }
    }

    fn call(&self) {
        self.calls.store(self.calls.load(Relaxed) + 1, Relaxed);
    }

    fn pass(&self, stripe: usize) -> bool {
        let entered = self.permits.acquire(stripe).is_ok();
        if entered {
            self.call();
            self.permits.release(stripe);
        }
        entered
    }

    /// Leaves as if no call had been made: the words look the same as before it came.
    fn pass_unseen(&self, stripe: usize) -> bool {
        let entered = self.permits.acquire(stripe).is_ok();
        if entered {
            self.call();
            self.permits.cancel(stripe);
        }
        entered
    }
}

fn nothing_lost<const N: usize, const R: usize>(booth: &Booth<N>, passed: [bool; R]) -> [bool; R] {
    let calls = passed.iter().filter(|passed| **passed).count();
    assert_eq!(booth.calls.load(Relaxed) as usize, calls, "a call started without what the one before it left");
    passed
}

#[test]
fn a_permit_of_the_pool_carries_what_the_last_call_left() {
    model(
        "messages: a permit of the pool carries what the last call left",
        EITHER,
        || Booth::<1>::with_one_left(1, false),
        [|booth: &Booth<1>| booth.pass(0); 2],
        nothing_lost,
    );
}

#[test]
fn a_stashed_permit_carries_what_the_last_call_left() {
    model(
        "messages: a stashed permit carries what the last call left",
        EITHER,
        || Booth::<1>::with_one_left(4, true),
        [|booth: &Booth<1>| booth.pass(0); 2],
        nothing_lost,
    );
}

#[test]
fn a_stashed_permit_carries_it_though_the_magazine_looks_untouched() {
    model(
        "messages: a stashed permit carries it though the magazine looks untouched",
        EITHER,
        || Booth::<1>::with_one_left(4, true),
        [|booth: &Booth<1>| booth.pass_unseen(0); 2],
        nothing_lost,
    );
}

#[test]
fn a_permit_swept_from_another_stripe_carries_it() {
    model(
        "messages: a permit swept from another stripe carries it",
        EITHER,
        || Booth::<2>::with_one_left(8, true),
        [|booth: &Booth<2>| booth.pass_unseen(0), |booth| booth.pass(1)],
        nothing_lost,
    );
}

#[test]
fn a_permit_swept_by_a_third_carries_it() {
    model(
        "messages: a permit swept by a third carries it",
        // While the sweeper has it in hand, both may be told that there is none (R21).
        &[[true, false, true], [true, false, false], [false, false, true], [false; 3]],
        || Booth::<2>::with_one_left(8, true),
        [
            |booth: &Booth<2>| booth.pass_unseen(0),
            |booth| {
                booth.permits.sweep();
                false
            },
            |booth| booth.pass(1),
        ],
        nothing_lost,
    );
}

/// A magazine is opened by one, filled by the next and emptied by a sweep, and the permit comes through all of it.
#[test]
fn a_permit_that_opens_a_magazine_carries_it() {
    model(
        "messages: a permit that opens a magazine carries it",
        EITHER,
        || {
            let booth = Booth::<2>::with_one_left(8, true);
            booth.permits.sweep();
            booth
        },
        [|booth: &Booth<2>| booth.pass_unseen(0), |booth| booth.pass_unseen(0)],
        nothing_lost,
    );
}

/// Two permits and what their calls wrote before they gave them back.
#[derive(Debug)]
struct Pair {
    permits: Bulkhead<1>,
    written: [AtomicU32; 2],
}

impl Pair {
    fn held(limit: u32, held: u32, left: u32) -> Self {
        let permits = Bulkhead::new(limit);
        for _ in 0..held {
            assert!(permits.acquire(0).is_ok());
        }
        for _ in 0..left {
            permits.release(0);
        }
        Self { permits, written: [AtomicU32::new(0), AtomicU32::new(0)] }
    }

    fn leave(&self, index: usize) -> bool {
        self.written[index].store(1, Relaxed);
        self.permits.release(0);
        true
    }

    /// Takes so many permits, if there are so many: then those who gave them back are behind this thread.
    fn take(&self, permits: usize, givers: usize) -> bool {
        let taken = (0..permits).all(|_| self.permits.acquire(0).is_ok());
        if taken {
            let written = self.written.iter().take(givers).all(|written| written.load(Relaxed) == 1);
            assert!(written, "a permit came without what its last call wrote");
        }
        taken
    }
}

/// The magazine is closed: either may bring the other's permit home.
#[test]
fn a_permit_brought_home_by_another_carries_what_its_call_wrote() {
    model(
        "messages: a permit brought home by another carries what its call wrote",
        &[[true, true, true], [true, true, false]],
        || Pair::held(2, 2, 0),
        [|pair: &Pair| pair.leave(0), |pair| pair.leave(1), |pair| pair.take(2, 2)],
        |_, told| told,
    );
}

#[test]
fn a_spilled_permit_carries_what_its_call_wrote() {
    model(
        "messages: a spilled permit carries what its call wrote",
        &[[true, true], [true, false]],
        || Pair::held(4, 4, 2),
        [|pair: &Pair| pair.leave(0), |pair| pair.take(3, 1)],
        |_, told| told,
    );
}

#[test]
fn two_spills_carry_what_their_calls_wrote() {
    model(
        "messages: two spills carry what their calls wrote",
        &[[true, true, true], [true, true, false]],
        || Pair::held(4, 4, 2),
        [|pair: &Pair| pair.leave(0), |pair| pair.leave(1), |pair| pair.take(4, 2)],
        |_, told| told,
    );
}

#[test]
fn a_raised_limit_carries_what_its_setter_wrote() {
    model(
        "messages: a raised limit carries what its setter wrote",
        &[[true, true], [true, false]],
        || Pair::held(1, 1, 0),
        [
            |pair: &Pair| {
                pair.written[0].store(1, Relaxed);
                pair.permits.set_limit(2);
                true
            },
            |pair| pair.take(1, 1),
        ],
        |_, told| told,
    );
}

#[test]
fn a_reinstated_slot_carries_what_its_owner_wrote() {
    model(
        "messages: a reinstated slot carries what its owner wrote",
        &[[true, true], [true, false]],
        || {
            let pair = Pair::held(1, 0, 0);
            assert!(pair.permits.retire());
            pair
        },
        [
            |pair: &Pair| {
                pair.written[0].store(1, Relaxed);
                pair.permits.reinstate(1);
                true
            },
            |pair| pair.take(1, 1),
        ],
        |_, told| told,
    );
}

/// What the evictor judges is all that the last call recorded; the pool looks as if nobody had come.
#[test]
fn a_retired_slot_shows_what_the_last_call_left() {
    model(
        "messages: a retired slot shows what the last call left",
        &[[true, true], [true, false], [false, true]],
        || Booth::<1>::with_one_left(1, false),
        [
            |booth: &Booth<1>| booth.pass_unseen(0),
            |booth| {
                let retired = booth.permits.retire();
                // Retired, nobody is inside and nobody comes: whoever came has left.
                if retired {
                    booth.call();
                }
                retired
            },
        ],
        nothing_lost,
    );
}

/// The limit falls from 4 to 1 with 1 in flight. Whoever sees the version sees what was written before the limit fell.
#[test]
fn a_lowered_limit_is_seen_by_whoever_sees_its_version() {
    model(
        "messages: a lowered limit is seen by whoever sees its version",
        &[[true, true], [false, true]],
        || Pair::held(8, 2, 1),
        [
            |pair: &Pair| {
                let entered = pair.permits.acquire(0).is_ok();
                // Refused, it saw the new limit.
                assert!(entered || pair.written[0].load(Relaxed) == 1, "a limit came without what its setter wrote");
                entered
            },
            |pair| {
                pair.written[0].store(1, Relaxed);
                pair.permits.set_limit(1);
                true
            },
        ],
        |_, told| told,
    );
}

/// The pool first, then the magazines: a look may count a call twice on its way out, and never misses it.
#[test]
fn a_call_that_ends_is_in_flight_or_settled_at_every_look() {
    model(
        "messages: a call that ends is in flight or settled at every look",
        &[Some((1, 0)), Some((0, 1)), Some((1, 1))],
        || Pair::held(1, 1, 0).permits,
        [
            |permits: &Bulkhead<1>| {
                permits.release(0);
                None
            },
            |permits| {
                let usage = permits.usage();
                assert!(usage.in_flight + usage.settled > 0, "a look missed a call");
                Some((usage.in_flight, usage.settled))
            },
        ],
        |_, [_, seen]| seen,
    );
}

/// The count of settled calls starts again in its magazine, and the lap is counted elsewhere.
#[test]
fn a_lap_is_missed_for_a_moment_and_never_counted_twice() {
    model(
        "messages: a lap is missed for a moment and never counted twice",
        &[Some(SETTLED_LAP - 1), Some(0), Some(SETTLED_LAP)],
        || {
            let permits = Bulkhead::<1>::with_settled(1, SETTLED_LAP - 1);
            assert!(permits.acquire(0).is_ok());
            permits
        },
        [
            |permits: &Bulkhead<1>| {
                permits.release(0);
                None
            },
            |permits| Some(permits.usage().settled),
        ],
        |permits, [_, seen]| {
            assert!(seen.is_some_and(|settled| settled <= SETTLED_LAP), "a lap was counted twice");
            assert_eq!(permits.usage().settled, SETTLED_LAP);
            seen
        },
    );
}

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
        "messages: a probe slot carries what the last probe left",
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
        "messages: the end of a generation comes after the probes that left",
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
        "messages: a probing generation carries what its first prober wrote",
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
        "messages: a streak comes after the failures that it counts",
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
        "messages: a window comes after the calls that it counts",
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
        "messages: the success that closes comes after the one before",
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
