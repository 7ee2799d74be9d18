//! Three attempts counted as one failure: a threshold of five means fifteen.

use portcullis::State;
use portcullis::call::{Backup, CallPolicy, Verdict};

use super::lab::{Lab, TARGET, five_in_a_row, ms, secs};
use super::{Lesson, Taught};

/// WRONG: admitted once, tried three times, settled once. How many attempts a target that hangs gets before it opens, and the seconds that
/// they take at 1 s each.
fn inside() -> Result<(u32, u64), Box<dyn std::error::Error>> {
    let lab = Lab::new(five_in_a_row())?;
    let mut attempts = 0;
    while lab.state() != Some(State::Open) {
        let permit = lab.engine.admit(TARGET)?;
        for _ in 0..3 {
            attempts += 1;
            lab.time.increment(secs(1));
        }
        permit.failure();
    }
    Ok((attempts, lab.engine.now().as_secs()))
}

/// RIGHT: each attempt is admitted and settled by itself.
fn outside() -> Result<(u32, u64), Box<dyn std::error::Error>> {
    let lab = Lab::new(five_in_a_row())?;
    let caller = lab.caller(CallPolicy::builder().timeout(secs(1)).attempts(3).backoff(ms(0)).backoff_max(ms(0)))?;
    let mut attempts = 0;
    while lab.state() != Some(State::Open) {
        let call = caller.to(TARGET).idempotent(true);
        let result = call.run_blocking_or(Backup::refuse(), Verdict::of, &lab, |attempt| {
            attempts += 1;
            lab.time.increment(attempt.timeout);
            Err::<(), _>("no answer in time")
        });
        assert!(result.is_err());
    }
    Ok((attempts, lab.engine.now().as_secs()))
}

pub(crate) fn lesson() -> Taught {
    let (wrong, right) = (inside()?, outside()?);
    assert_eq!((wrong, right), ((15, 15), (5, 5)));
    Ok(Lesson {
        wrong: format!("consecutive_failures = 5 opened after {} attempts and {} s", wrong.0, wrong.1),
        right: format!("consecutive_failures = 5 opened after {} attempts and {} s", right.0, right.1),
    })
}
