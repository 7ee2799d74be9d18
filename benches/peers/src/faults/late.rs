//! Results that arrive in another state than their call was admitted in: they describe another time.

use super::steps::{KEY, ask, needs, recover, trip, wait_out, within_wait};
use super::{Answer, Cell, Scenario, Void};
use crate::subject::{Cannot, Ending, Held, Rule, Settings};

/// Calls in flight from before the outage: more than any rule here needs.
const LATE: usize = 20;

pub const SUCCESS_OPEN: Scenario = Scenario {
    id: "late_success_open",
    short: "late successes while OPEN",
    question: "20 calls from before the outage succeed while it is open: is it closed by them, before its wait is over?",
    right: "stays open",
};

pub fn success_while_open<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Break])?;
    let subject = P::build(&Settings::of::<P>(Rule::Any), None);
    let early = ask(&subject, LATE);
    let opened = trip(&subject)?;
    for call in early {
        subject.settle(call, Ending::Success);
    }
    let admitted = ask(&subject, LATE).len();
    within_wait::<P>(opened)?;
    Ok(if admitted == 0 { Cell::judged("stays open", true) } else { Cell::judged("closes", false) })
}

pub const SUCCESS_HALF_OPEN: Scenario = Scenario {
    id: "late_success_half_open",
    short: "late successes that close",
    question: "While a probe is in flight, calls from before the outage succeed, and then the probe fails: after how many such \
               successes (1, 2 or 20) was the circuit closed, so that the failing probe doesn't reopen it?",
    right: "none",
};

pub fn success_while_half_open<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Break])?;
    for late in [1, 2, LATE] {
        let subject = P::build(&Settings::of::<P>(Rule::Any), None);
        let early = ask(&subject, late);
        trip(&subject)?;
        wait_out(&subject);
        let probe = subject.admit(KEY).ok_or(Void::Unprepared("no probe"))?;
        for call in early {
            subject.settle(call, Ending::Success);
        }
        let reopened = std::time::Instant::now();
        subject.settle(probe, Ending::Failure);
        if subject.admit(KEY).is_some() && is_closed(&subject) {
            return Ok(Cell::judged(format!("{late} closes"), false));
        }
        within_wait::<P>(reopened)?;
    }
    Ok(Cell::judged("none", true))
}

/// Whether one more failure leaves a crowd admitted. A circuit that is half-open yet reopens at it.
fn is_closed<P: Held>(subject: &P) -> bool {
    subject.once(KEY, Ending::Failure);
    let admitted = ask(subject, LATE).len();
    admitted == LATE
}

pub const FAILURE_HALF_OPEN: Scenario = Scenario {
    id: "late_failure_half_open",
    short: "late failures end probing",
    question: "While a probe is in flight, 20 calls from before the outage fail; then the probe succeeds, and so do callers after it: is it \
               closed without another wait?",
    right: "closes",
};

pub fn failure_while_half_open<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Break])?;
    let subject = P::build(&Settings::of::<P>(Rule::Any), None);
    let early = ask(&subject, LATE);
    trip(&subject)?;
    wait_out(&subject);
    let probe = subject.admit(KEY).ok_or(Void::Unprepared("no probe"))?;
    let start = std::time::Instant::now();
    for call in early {
        subject.settle(call, Ending::Failure);
    }
    subject.settle(probe, Ending::Success);
    let recovered = recover(&subject, 0).is_some();
    within_wait::<P>(start)?;
    Ok(if recovered { Cell::judged("closes", true) } else { Cell::judged("reopens", false) })
}

pub const FAILURE_RECOVERED: Scenario = Scenario {
    id: "late_failure_recovered",
    short: "late failures after recovery",
    question: "It opened, probed and closed again. Now 20 calls from before the outage fail: is it opened by them?",
    right: "stays closed",
};

pub fn failure_after_recovery<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Break])?;
    let subject = P::build(&Settings::of::<P>(Rule::Any), None);
    let early = ask(&subject, LATE);
    trip(&subject)?;
    wait_out(&subject);
    // One probe's success closes, so what comes before the late failures is as little as can be: they outweigh it in any window.
    for _ in 0..2 {
        let probe = subject.admit(KEY).ok_or(Void::Unprepared("no probe"))?;
        subject.settle(probe, Ending::Success);
    }
    subject.ripen();
    let start = std::time::Instant::now();
    for call in early {
        subject.settle(call, Ending::Failure);
    }
    let admitted = ask(&subject, LATE).len();
    within_wait::<P>(start)?;
    Ok(if admitted == LATE { Cell::judged("stays closed", true) } else { Cell::judged("reopens", false) })
}
