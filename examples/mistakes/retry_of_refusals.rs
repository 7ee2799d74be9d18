//! A refusal says when to come back. Who asks again at once is refused again, and has spent its attempts when the target is back.

use std::error::Error;

use portcullis::Permit;
use portcullis::call::{Backup, CallPolicy, Verdict};

use super::lab::{Lab, TARGET, five_in_a_row, ms};
use super::{Lesson, Taught};

/// A target that failed five times and is well again, though nobody knows yet.
fn just_tripped() -> Result<Lab, Box<dyn Error>> {
    let lab = Lab::new(five_in_a_row())?;
    for _ in 0..5 {
        lab.engine.admit(TARGET)?.failure();
    }
    Ok(lab)
}

fn refusals(lab: &Lab) -> u64 {
    lab.engine.snapshot(TARGET).map_or(0, |snapshot| snapshot.refusals.open)
}

/// WRONG: three attempts 50 ms apart, whatever the error. Refusals, and callers of 100 that were answered.
fn at_once() -> Result<(u64, u32), Box<dyn Error>> {
    let lab = just_tripped()?;
    // All at the same time, one attempt after the other.
    let answered: usize = (0..3)
        .map(|_| {
            let admitted = (0..100).filter(|_| lab.engine.admit(TARGET).map(Permit::success).is_ok()).count();
            lab.time.increment(ms(50));
            admitted
        })
        .sum();
    Ok((refusals(&lab), u32::try_from(answered)?))
}

/// RIGHT: one refusal, and the next attempt when it says.
fn when_told() -> Result<(u64, u32), Box<dyn Error>> {
    let lab = just_tripped()?;
    let caller = lab.caller(CallPolicy::builder().attempts(3).backoff(ms(50)))?;
    let call = || {
        let call = caller.to(TARGET).idempotent(true);
        call.run_blocking_or(Backup::refuse(), Verdict::of, &lab, |_| Ok::<_, &str>(()))
    };
    let told = (0..100).filter_map(|_| call().err()?.retry_after()).max().ok_or("nobody was refused")?;
    lab.time.increment(told);
    let answered = (0..100).filter(|_| call().is_ok()).count();
    Ok((refusals(&lab), u32::try_from(answered)?))
}

pub(crate) fn lesson() -> Taught {
    let (wrong, right) = (at_once()?, when_told()?);
    assert_eq!((wrong, right), ((300, 0), (100, 100)));
    Ok(Lesson {
        wrong: format!("100 callers were refused {} times, and {} of them answered", wrong.0, wrong.1),
        right: format!("refused {} times, and {} answered once the wait was over", right.0, right.1),
    })
}
