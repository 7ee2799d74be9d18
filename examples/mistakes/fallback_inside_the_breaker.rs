//! A fallback inside of the admission makes a success of every failure: the breaker sees a healthy target.

use std::error::Error;

use portcullis::call::{Backup, CallPolicy, Verdict};

use super::lab::{Lab, TARGET, five_in_a_row, secs};
use super::{Lesson, Taught};

/// 100 calls to a target that hangs, each given up after 1 s: how many reached it, and how many were answered somehow.
fn outage(inside: bool) -> Result<(u64, u32), Box<dyn Error>> {
    let lab = Lab::new(five_in_a_row().open_wait(secs(60)))?;
    let caller = lab.caller(CallPolicy::builder().timeout(secs(1)))?;
    let mut answered = 0;
    for _ in 0..100 {
        let hang = |_| {
            lab.time.increment(secs(1));
            Err("no answer in time")
        };
        let answer = if inside {
            // WRONG: what is settled is what the caller gets.
            caller
                .to(TARGET)
                .run_blocking_or(Backup::refuse(), Verdict::of, &lab, |attempt| hang(attempt).or(Ok("plain")))
        } else {
            // RIGHT: what is settled is what the target did.
            caller.to(TARGET).run_blocking_or(Backup::value("plain"), Verdict::of, &lab, hang)
        };
        answered += u32::from(answer.is_ok_and(|answer: portcullis::call::Answer<&str>| *answer == "plain"));
    }
    let reached = caller.counts(TARGET).map_or(0, |counts| counts.attempts);
    Ok((reached, answered))
}

pub(crate) fn lesson() -> Taught {
    let (wrong, right) = (outage(true)?, outage(false)?);
    assert_eq!((wrong, right), ((100, 100), (5, 100)));
    Ok(Lesson {
        wrong: format!(
            "all {} callers got the fallback, {} of them after waiting 1 s for the hung target",
            wrong.1, wrong.0
        ),
        right: format!("all {} got it, {} after waiting 1 s", right.1, right.0),
    })
}
