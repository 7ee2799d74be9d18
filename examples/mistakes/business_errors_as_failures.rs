//! Declined cards, unknown customers and bad requests are answers of a target that works.

use portcullis::{Outcome, Policy, PolicyError, Window};

use super::lab::{Lab, TARGET, ms, secs};
use super::{Lesson, Taught};

/// 1,000 payments, ten a second, of which six of ten are declined. How many were refused by the engine, and how often it opened.
fn payments(verdict: fn(&u16) -> Outcome) -> Result<(u32, usize), PolicyError> {
    let half_of_ten = Policy::builder().window(Window::calls(10)).failure_rate(0.5);
    let lab = Lab::new(half_of_ten.open_wait(secs(5)).backoff(1.0).jitter(0.0).successes_to_close(1))?;
    let mut refused = 0;
    for payment in 0..1_000 {
        let answer = if payment % 10 < 6 { 402 } else { 200 };
        refused += u32::from(lab.engine.call(TARGET, verdict, || answer).is_err());
        lab.time.increment(ms(100));
    }
    Ok((refused, lab.trips()))
}

pub(crate) fn lesson() -> Taught {
    // WRONG: what isn't 2xx, is a failure.
    let wrong = payments(|status| if *status < 300 { Outcome::Success } else { Outcome::Failure })?;
    // RIGHT: only what the target itself failed at.
    let right = payments(|status| if *status < 500 { Outcome::Success } else { Outcome::Failure })?;

    assert!(wrong.0 > 500 && wrong.1 > 5, "{wrong:?}");
    assert_eq!(right, (0, 0));
    Ok(Lesson {
        wrong: format!("{} of 1,000 payments refused, {} trips, of a target that answered every one", wrong.0, wrong.1),
        right: format!("{} refused, {} trips", right.0, right.1),
    })
}
