//! Whether a window forgets, and whether its least number of calls is met by whoever comes.

use super::steps::{KEY, needs, open};
use super::{Answer, Cell, Scenario, Void};
use crate::subject::{Cannot, Ending, Held, Rule, Settings};

pub const SLIDES: Scenario = Scenario {
    id: "failures_to_open",
    short: "failures to open after 10k good",
    question: "A window of the last 100 calls and a rate of 50 %. After 10,000 successes every call fails: how many until it opens?",
    right: "50",
};

/// Failures after which it won't open any more.
const MOST: u32 = 20_000;

pub fn slides<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Break, Cannot::CallsWindow])?;
    let subject = P::build(&Settings::of::<P>(Rule::Calls { window: 100, min_calls: 10 }), None);
    for _ in 0..10_000 {
        if !subject.once(KEY, Ending::Success) {
            return Err(Void::Unprepared("refuses the well"));
        }
    }
    let failures = open(&subject, MOST)?;
    Ok(Cell::judged(failures.to_string(), failures == 50))
}

pub const MIN_CALLS: Scenario = Scenario {
    id: "success_completes_min_calls",
    short: "success completing min_calls",
    question: "A window of 10 calls (or of time), at least 10 of them, and a rate of 50 %. 9 fail and the 10th succeeds: open?",
    right: "opens",
};

pub fn completes_min_calls<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Break, Cannot::MinCalls])?;
    let rule = if P::can(Cannot::CallsWindow) {
        Rule::Calls { window: 10, min_calls: 10 }
    } else {
        Rule::Time { window: P::WINDOW, min_calls: 10 }
    };
    let subject = P::build(&Settings::of::<P>(rule), None);
    subject.ripen();
    let admitted = (0..9).filter(|_| subject.once(KEY, Ending::Failure)).count();
    if admitted < 9 {
        return Err(Void::Unprepared("opens sooner"));
    }
    subject.once(KEY, Ending::Success);
    Ok(if subject.admit(KEY).is_none() { Cell::judged("opens", true) } else { Cell::judged("stays closed", false) })
}
