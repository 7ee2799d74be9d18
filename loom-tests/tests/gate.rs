//! The gate: who may probe, and which outcome moves the state.

use loom_tests::model;
use portcullis::internals::{Admission, Applied, Gate, GateWord, Now, ProbeRules};

const ONE: ProbeRules = ProbeRules { max_probes: 1, successes_to_close: 1, lease_s: 10 };
const NOW: Now = Now::from_millis(20_000);

/// Asks as an admission does: a lost CAS decides again. The generation that it probes in, if it may.
fn ask(gate: &Gate, now: Now, rules: ProbeRules) -> Option<u32> {
    let mut word = gate.load();
    loop {
        match word.admit(now, rules) {
            Admission::Enter => panic!("no model here is closed when asked"),
            Admission::Refuse(_) => return None,
            Admission::Probe(next) => match gate.take_probe(word, next) {
                Ok(_) => return Some(next.generation()),
                Err(seen) => word = seen,
            },
        }
    }
}

fn elapsed() -> Gate {
    Gate::from_bits(GateWord::open(7, 0, 20_000).bits())
}

#[test]
fn two_callers_at_the_end_of_the_wait_make_one_probe() {
    model(
        "gate: two callers at the end of the wait make one probe",
        &[[None, Some(8)], [Some(8), None]],
        elapsed,
        [|gate: &Gate| ask(gate, NOW, ONE); 2],
        |gate, probes| {
            assert_eq!(gate.load(), GateWord::half_open(8, 0, 1, 0, 30));
            probes
        },
    );
}
