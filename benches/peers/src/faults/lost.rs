//! Probes that never report. Whoever loses one must find the way back by itself.

use super::steps::{KEY, needs, recover, trip, wait_out};
use super::{Answer, Cell, Scenario, Void};
use crate::subject::{Cannot, Ending, Held, Rule, Settings};

/// Leases after which it won't come back any more.
const MOST: u32 = 10;

pub const DROPPED: Scenario = Scenario {
    id: "probe_dropped",
    short: "back after a probe dropped",
    question: "The caller of the only probe is cancelled. The upstream is well: is it served again, and after how many leases or waits?",
    right: "at once or 1 wait",
};

pub fn dropped<P: Held>() -> Answer {
    lose::<P>(|subject, probe| {
        drop(probe);
        recover(subject, MOST)
    })
}

pub const HUNG: Scenario = Scenario {
    id: "probe_hung",
    short: "back while a probe hangs",
    question: "The only probe never ends. The upstream is well: is it served again meanwhile, and after how many leases or waits?",
    right: "at once or 1 wait",
};

pub fn hung<P: Held>() -> Answer {
    lose::<P>(|subject, probe| {
        let recovered = recover(subject, MOST);
        drop(probe);
        recovered
    })
}

pub const FORGOTTEN: Scenario = Scenario {
    id: "probe_forgotten",
    short: "back after a probe forgotten",
    question: "The only probe is leaked with `mem::forget`. The upstream is well: is it served again, and after how many leases or waits?",
    right: "at once or 1 wait",
};

pub fn forgotten<P: Held>() -> Answer {
    lose::<P>(|subject, probe| {
        std::mem::forget(probe);
        recover(subject, MOST)
    })
}

fn lose<P: Held>(way: impl for<'a> FnOnce(&'a P, P::Token<'a>) -> Option<u32>) -> Answer {
    needs::<P>(&[Cannot::Break])?;
    let subject = P::build(&Settings::of::<P>(Rule::Any), None);
    trip(&subject)?;
    wait_out(&subject);
    let probe = subject.admit(KEY).ok_or(Void::Unprepared("no probe"))?;
    Ok(told(way(&subject, probe)))
}

fn told(recovered: Option<u32>) -> Cell {
    match recovered {
        Some(0) => Cell::judged("at once", true),
        Some(1) => Cell::judged("1 wait", true),
        Some(waits) => Cell::judged(format!("{waits} waits"), false),
        None => Cell::judged("never", false),
    }
}

pub const TRICKLE: Scenario = Scenario {
    id: "probes_trickle",
    short: "back by probes far apart",
    question: "A window of time, two successful probes needed, and one caller in 1.5 windows: both succeed. Is it closed, so that it serves \
               again at once?",
    right: "at once",
};

pub fn trickle<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Break, Cannot::TimeWindow, Cannot::CountSuccesses])?;
    let rule = Rule::Time { window: P::WINDOW, min_calls: 10 };
    let settings = Settings { probes: 2, to_close: 2, ..Settings::of::<P>(rule) };
    let subject = P::build(&settings, None);
    trip(&subject)?;
    wait_out(&subject);
    for _ in 0..2 {
        subject.once(KEY, Ending::Success);
        subject.advance(P::WINDOW * 3 / 2);
    }
    Ok(match recover(&subject, MOST) {
        Some(0) => Cell::judged("at once", true),
        recovered => match told(recovered) {
            Cell::Ran { answer, .. } => Cell::judged(answer, false),
            cant @ Cell::Cant(_) => cant,
        },
    })
}
