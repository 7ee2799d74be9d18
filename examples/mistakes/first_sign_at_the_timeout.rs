//! Every rule that judges answers waits for the first one: a target that hangs is healthy until the first timeout.

use std::error::Error;

use portcullis::{Permit, PolicyBuilder, State};

use super::lab::{Lab, TARGET, five_in_a_row, grouped, ms, secs};
use super::{Lesson, Taught};

/// 20 calls a second, that may take 10 s each, to a target that hangs: after how long it opened, and the calls that hung by then.
fn hang(policy: PolicyBuilder) -> Result<(u128, usize), Box<dyn Error>> {
    let lab = Lab::new(policy.max_in_flight(1_000))?;
    let mut running: Vec<(u64, Permit<'_>)> = Vec::new();
    for now in (0..20_000).step_by(50) {
        for (_, permit) in running.extract_if(.., |(end, _)| *end <= now) {
            permit.failure();
        }
        running.extend(lab.engine.admit(TARGET).map(|permit| (now + 10_000, permit)));
        if lab.state() == Some(State::Open) {
            break;
        }
        lab.time.increment(ms(50));
    }
    Ok((lab.engine.now().as_millis(), running.len()))
}

pub(crate) fn lesson() -> Taught {
    // WRONG: failures only.
    let wrong = hang(five_in_a_row())?;
    // RIGHT: and calls that take longer than the slowest answer of a good day, which came after 1.5 s.
    let right = hang(five_in_a_row().stall_after(secs(2)).stalled_calls(10))?;

    assert!(wrong.0 > 10_000 && wrong.1 > 190, "{wrong:?}");
    assert!(right.0 < 3_000 && right.1 < 60, "{right:?}");
    Ok(Lesson {
        wrong: format!("a hung target opened after {} ms, when {} calls hung in it", grouped(wrong.0), wrong.1),
        right: format!(
            "with stalled_calls = 10 and stall_after = 2s after {} ms and {} calls",
            grouped(right.0),
            right.1
        ),
    })
}
