//! A target that is slow and answers opens no breaker, and takes every worker of the process.

use std::error::Error;

use portcullis::{Permit, Policy, PolicyBuilder};

use super::lab::{Draw, Lab, grouped, ms};
use super::{Lesson, Taught};

const WORKERS: usize = 64;

/// A minute of 100 calls a second, to a target that takes 3 s for an answer or to one that takes 10 ms, as it is drawn. Calls to the quick
/// one, those that it answered, and the most that the slow one held.
fn minute(policy: PolicyBuilder) -> Result<(u32, u32, usize), Box<dyn Error>> {
    let lab = Lab::new(policy)?;
    let mut draw = Draw(1);
    let mut running: Vec<(u64, bool, Permit<'_>)> = Vec::new();
    let (mut calls, mut answered, mut most) = (0, 0, 0);
    for now in (0..60_000).step_by(10) {
        for (_, _, permit) in running.extract_if(.., |(end, _, _)| *end <= now) {
            permit.success();
        }
        let is_quick = draw.below(2) == 0;
        calls += u32::from(is_quick);
        let (key, takes) = if is_quick { ("quick", 10) } else { ("slow", 3_000) };
        if running.len() < WORKERS
            && let Ok(permit) = lab.engine.admit(key)
        {
            running.push((now + takes, is_quick, permit));
            answered += u32::from(is_quick);
        }
        most = most.max(running.iter().filter(|(_, is_quick, _)| !is_quick).count());
        lab.time.increment(ms(10));
    }
    Ok((calls, answered, most))
}

pub(crate) fn lesson() -> Taught {
    // WRONG: a breaker for each, and no limit.
    let wrong = minute(Policy::builder().consecutive_failures(5))?;
    // RIGHT: a limit for each, so that the others have room whatever it does.
    let right = minute(Policy::builder().consecutive_failures(5).max_in_flight(16))?;

    assert!(wrong.1 < wrong.0 / 2 && wrong.2 == WORKERS, "{wrong:?}");
    assert_eq!((right.1, right.2), (right.0, 16));
    let of = |(calls, answered, _)| format!("{} of {} calls", grouped(answered), grouped(calls));
    Ok(Lesson {
        wrong: format!("a slow target held {} of 64 workers, and its neighbour answered {}", wrong.2, of(wrong)),
        right: format!("with max_in_flight = 16 it held {}, and the neighbour answered {}", right.2, of(right)),
    })
}
