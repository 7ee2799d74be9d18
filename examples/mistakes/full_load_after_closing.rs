//! A target that has just come back bears less than the load that it had: all of it at once, and it is gone again.

use std::error::Error;

use portcullis::{Permit, PolicyBuilder};

use super::lab::{Lab, TARGET, five_in_a_row, grouped, ms, secs};
use super::{Lesson, Taught};

/// Bears 5 calls at once when it starts, and 50 after 20 s, when its caches are warm. One more, and it is down for 5 s.
#[derive(Default)]
struct Upstream {
    up_at: u64,
    crashes: u32,
}

impl Upstream {
    fn bears(&self, now: u64) -> Option<usize> {
        let up_for = now.checked_sub(self.up_at)?;
        usize::try_from(5 + 45 * up_for.min(20_000) / 20_000).ok()
    }
}

/// Five minutes of 100 calls a second of 400 ms each, 40 at once, from a cold start: how often it went down, and the calls that it answered.
fn five_minutes(policy: PolicyBuilder) -> Result<(u32, u32), Box<dyn Error>> {
    let lab = Lab::new(policy.max_in_flight(50))?;
    let mut upstream = Upstream::default();
    let mut running: Vec<(u64, Permit<'_>)> = Vec::new();
    let mut answered = 0;
    for now in (0..300_000).step_by(10) {
        for (_, permit) in running.extract_if(.., |(end, _)| *end <= now) {
            permit.success();
            answered += 1;
        }
        if let Ok(permit) = lab.engine.admit(TARGET) {
            running.push((now + 400, permit));
            // While it is down it bears none.
            if upstream.bears(now).is_none_or(|most| running.len() > most) {
                if upstream.bears(now).is_some() {
                    upstream.up_at = now + 5_000;
                    upstream.crashes += 1;
                }
                for (_, permit) in running.drain(..) {
                    permit.failure();
                }
            }
        }
        lab.time.increment(ms(10));
    }
    Ok((upstream.crashes, answered))
}

pub(crate) fn lesson() -> Taught {
    // WRONG: closed is closed.
    let wrong = five_minutes(five_in_a_row())?;
    // RIGHT: from one call at once to all of them, over more time than it takes to get warm.
    let right = five_minutes(five_in_a_row().ramp(secs(30)))?;

    assert!(wrong.0 > 20 && wrong.1 < 1_000, "{wrong:?}");
    assert!(right.0 == 1 && right.1 > 27_000, "{right:?}");
    let answered = |calls| format!("answered {} of 30,000 calls", grouped(calls));
    Ok(Lesson {
        wrong: format!("the target went down {} times and {}", wrong.0, answered(wrong.1)),
        right: format!("with ramp = 30s it went down once and {}", answered(right.1)),
    })
}
