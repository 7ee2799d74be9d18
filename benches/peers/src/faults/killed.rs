//! Calls that end without a word: killed by an outer timeout because the upstream hangs, or left by clients in a hurry.

use std::time::{Duration, Instant};

use super::steps::{KEY, ask, needs, within_wait};
use super::{Answer, Cell, Scenario, Void};
use crate::subject::{Cannot, Ending, Held, Rule, Settings};

const CALLS: usize = 100;

pub const HUNG: Scenario = Scenario {
    id: "killed_by_timeout",
    short: "100 calls killed by timeout",
    question: "100 calls hang until an outer timeout drops their futures (or their permits, where there are no futures): does it open?",
    right: "opens",
};

pub fn hung_upstream<P: Held>() -> Answer {
    Ok(if opens::<P>(0, P::SILENCE)? { Cell::judged("opens", true) } else { Cell::judged("stays closed", false) })
}

pub const IMPATIENT: Scenario = Scenario {
    id: "left_by_clients",
    short: "100 clients hang up at once",
    question: "20 calls of a healthy upstream succeed; then 100 clients hang up 1 ms after they called it: is it opened by them?",
    right: "stays closed",
};

pub fn impatient_clients<P: Held>() -> Answer {
    Ok(if opens::<P>(20, Duration::from_millis(1))? {
        Cell::judged("opens", false)
    } else {
        Cell::judged("stays closed", true)
    })
}

fn opens<P: Held>(successes: usize, silence: Duration) -> Result<bool, Void> {
    needs::<P>(&[Cannot::Break])?;
    let subject = P::build(&Settings::of::<P>(Rule::Any), None);
    subject.ripen();
    (0..successes).for_each(|_| {
        subject.once(KEY, Ending::Success);
    });
    let calls: Vec<_> = (0..CALLS).filter_map(|_| subject.hang(KEY)).collect();
    if calls.len() < CALLS {
        return Err(Void::Unprepared("refuses the well"));
    }
    subject.advance(silence);
    let start = Instant::now();
    drop(calls);
    let admitted = ask(&subject, 1).len();
    within_wait::<P>(start)?;
    Ok(admitted == 0)
}
