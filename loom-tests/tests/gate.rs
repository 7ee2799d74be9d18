//! The gate: who may probe, and which outcome moves the state.

use loom::sync::atomic::{AtomicU32, Ordering};
use loom_tests::model;
use portcullis::State;
use portcullis::internals::{Admission, Applied, Gate, GateWord, Now, ProbeRules, Step};

const NOW: Now = Now::from_millis(20_000);
const ONE: ProbeRules = ProbeRules { max_probes: 1, successes_to_close: 1, lease_s: 10 };
/// What a lease that begins now ends at.
const LEASE_END: u64 = 30;

/// What came of asking or of an event.
#[derive(Debug, PartialEq)]
enum Told {
    Enters,
    /// In this generation.
    Probes(u32),
    Refused,
    Stale,
    Stayed,
    Moved,
}

use Told::{Enters, Moved, Probes, Refused, Stale, Stayed};

/// Asks as an admission does: a lost CAS decides again.
fn ask(gate: &Gate, rules: ProbeRules) -> Told {
    let mut word = gate.load();
    loop {
        match word.admit(NOW, rules) {
            Admission::Enter => return Enters,
            Admission::Refuse(_) => return Refused,
            Admission::Probe(next) => match gate.take_probe(word, next) {
                Ok(_) => return Probes(next.generation()),
                Err(seen) => word = seen,
            },
        }
    }
}

fn apply(gate: &Gate, event: impl Fn(GateWord) -> Step) -> Told {
    match gate.apply(event) {
        Applied::Stale => Stale,
        Applied::Stayed => Stayed,
        Applied::Moved(_) => Moved,
    }
}

fn closed() -> Gate {
    Gate::from_bits(GateWord::closed(7, 0).bits())
}

fn elapsed() -> Gate {
    Gate::from_bits(GateWord::open(7, 0, NOW.tick()).bits())
}

fn probing(probes: u32, lease_end: u64) -> Gate {
    Gate::from_bits(GateWord::half_open(8, 0, probes, 0, lease_end).bits())
}

#[test]
fn two_callers_at_the_end_of_the_wait_make_one_probe() {
    model(
        "gate: two callers at the end of the wait make one probe",
        &[[Probes(8), Refused], [Refused, Probes(8)]],
        elapsed,
        [|gate: &Gate| ask(gate, ONE); 2],
        |gate, told| {
            assert_eq!(gate.load(), GateWord::half_open(8, 0, 1, 0, LEASE_END));
            told
        },
    );
}

#[test]
fn three_callers_at_the_end_of_the_wait_make_one_probe() {
    model(
        "gate: three callers at the end of the wait make one probe",
        &[[Probes(8), Refused, Refused], [Refused, Probes(8), Refused], [Refused, Refused, Probes(8)]],
        elapsed,
        [|gate: &Gate| ask(gate, ONE); 3],
        |gate, told| {
            assert_eq!(gate.load(), GateWord::half_open(8, 0, 1, 0, LEASE_END));
            told
        },
    );
}

#[test]
fn two_slots_go_to_two_of_three() {
    model(
        "gate: two slots go to two of three",
        &[[Probes(8), Probes(8), Refused], [Probes(8), Refused, Probes(8)], [Refused, Probes(8), Probes(8)]],
        elapsed,
        [|gate: &Gate| ask(gate, ProbeRules { max_probes: 2, ..ONE }); 3],
        |gate, told| {
            assert_eq!(gate.load(), GateWord::half_open(8, 0, 2, 0, LEASE_END));
            told
        },
    );
}

#[test]
fn a_probe_settles_while_its_lease_ends() {
    model(
        "gate: a probe settles while its lease ends",
        // In time, and the caller enters; or too late, and the caller probes in its place.
        &[[Moved, Enters], [Stale, Probes(9)]],
        || probing(1, NOW.second()),
        [|gate: &Gate| apply(gate, |word| word.probe_succeeded(8, NOW, ONE)), |gate| ask(gate, ONE)],
        |_, told| told,
    );
}

#[test]
fn two_callers_at_the_end_of_a_lease_make_one_takeover() {
    model(
        "gate: two callers at the end of a lease make one takeover",
        &[[Probes(9), Refused], [Refused, Probes(9)]],
        || probing(1, NOW.second()),
        [|gate: &Gate| ask(gate, ONE); 2],
        |gate, told| {
            assert_eq!(gate.load(), GateWord::half_open(9, 0, 1, 0, LEASE_END));
            told
        },
    );
}

#[test]
fn a_dropped_probe_hands_its_slot_to_the_next_caller() {
    model(
        "gate: a dropped probe hands its slot to the next caller",
        &[[Stayed, Probes(8)], [Stayed, Refused]],
        || probing(1, LEASE_END),
        [|gate: &Gate| apply(gate, |word| word.probe_returned(8)), |gate| ask(gate, ONE)],
        |gate, told| {
            assert_eq!(gate.load().probes(), u32::from(told[1] == Probes(8)));
            told
        },
    );
}

#[test]
fn three_failing_threads_trip_once() {
    model(
        "gate: three failing threads trip once",
        &[[Moved, Stale, Stale], [Stale, Moved, Stale], [Stale, Stale, Moved]],
        closed,
        [|gate: &Gate| apply(gate, |word| word.trip(7, 25_000)); 3],
        |gate, told| {
            assert_eq!(gate.load(), GateWord::open(8, 0, 25_000));
            told
        },
    );
}

#[test]
fn of_a_success_and_a_failure_of_two_probes_the_first_decides() {
    model(
        "gate: of a success and a failure of two probes the first decides",
        &[[Moved, Stale], [Stale, Moved]],
        || probing(2, LEASE_END),
        [
            |gate: &Gate| apply(gate, |word| word.probe_succeeded(8, NOW, ONE)),
            |gate| apply(gate, |word| word.probe_failed(8, NOW, |_| 5)),
        ],
        |gate, told| {
            assert_eq!(gate.load().state(), if told[0] == Moved { State::Closed } else { State::Open });
            told
        },
    );
}

#[test]
fn a_hand_closes_the_gate_whatever_a_probe_does() {
    model(
        "gate: a hand closes the gate whatever a probe does",
        &[[Moved, Moved], [Stale, Moved]],
        || probing(1, LEASE_END),
        [
            |gate: &Gate| apply(gate, |word| word.probe_succeeded(8, NOW, ONE)),
            |gate| apply(gate, |word| word.force(State::ForcedOpen, NOW)),
        ],
        |gate, told| {
            assert_eq!(gate.load().state(), State::ForcedOpen);
            told
        },
    );
}

/// What a mover wrote before is there for whoever meets its generation: the lowered limit of a ramp, a fresh pool.
#[test]
fn a_new_generation_carries_what_was_written_before_it() {
    model(
        "gate: a new generation carries what was written before it",
        &[(7, 0), (7, 1), (8, 1)],
        || (closed(), AtomicU32::new(0)),
        [
            |(gate, written): &(Gate, AtomicU32)| {
                written.store(1, Ordering::Relaxed);
                let _ = gate.apply(|word| word.trip(7, 25_000));
                (0, 0)
            },
            |(gate, written)| (gate.load().generation(), written.load(Ordering::Relaxed)),
        ],
        |_, [_, seen]| seen,
    );
}
