//! A breaker that closes when its time is over lets everybody find out what one probe would.

use std::cell::Cell;
use std::collections::VecDeque;
use std::error::Error;

use portcullis::Permit;

use super::lab::{Lab, TARGET, five_in_a_row, grouped, ms};
use super::{Lesson, Taught};

const CALL_MS: u64 = 1_000;

/// A minute of 100 calls a second to a target that holds each for a second and then fails. Calls that it got, and the most at once after
/// the first five seconds, when everybody could know.
fn minute<P>(mut admit: impl FnMut(u64) -> Option<P>, mut fail: impl FnMut(u64, P)) -> (usize, usize) {
    let mut running: VecDeque<(u64, P)> = VecDeque::new();
    let (mut calls, mut most) = (0, 0);
    for now in (0..60_000).step_by(10) {
        while let Some((_, permit)) = running.pop_front_if(|(end, _)| *end <= now) {
            fail(now, permit);
        }
        if let Some(permit) = admit(now) {
            running.push_back((now + CALL_MS, permit));
            calls += 1;
        }
        if now > 5_000 {
            most = most.max(running.len());
        }
    }
    (calls, most)
}

/// WRONG: open or closed, nothing between.
fn by_timer() -> (usize, usize) {
    let (failures, open_until) = (Cell::new(0), Cell::new(0));
    let admit = |now| (now >= open_until.get()).then_some(());
    let fail = |now, ()| {
        // What was under way when it opened has been heard.
        if now < open_until.get() {
            return;
        }
        failures.set(failures.get() + 1);
        if failures.get() == 5 {
            failures.set(0);
            open_until.set(now + 5_000);
        }
    };
    minute(admit, fail)
}

/// RIGHT: one probe, and what it says decides.
fn by_probe() -> Result<(usize, usize), Box<dyn Error>> {
    let lab = Lab::new(five_in_a_row())?;
    let at = |now| lab.time.increment(ms(now) - lab.engine.now());
    let admit = |now| {
        at(now);
        lab.engine.admit(TARGET).ok()
    };
    let fail = |now, permit: Permit<'_>| {
        at(now);
        permit.failure();
    };
    Ok(minute(admit, fail))
}

pub(crate) fn lesson() -> Taught {
    let (wrong, right) = (by_timer(), by_probe()?);
    assert!(wrong.0 > 900 && wrong.1 >= 100, "{wrong:?}");
    assert!(right.0 < 120 && right.1 == 1, "{right:?}");
    Ok(Lesson {
        wrong: format!(
            "closing by the clock: the dead target got {} calls in a minute, up to {} at once",
            grouped(wrong.0),
            wrong.1
        ),
        right: format!("closing by a probe: {} calls, after the first outbreak {} at once", right.0, right.1),
    })
}
