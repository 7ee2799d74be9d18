//! How many are let through: probes at the end of the wait, probes minted by results that should free none, permits.

use super::steps::{CALLERS, KEY, ask, crowd as throng, ignore, lease_out, needs, trip, wait_out};
use super::{Answer, Cell, Scenario, Void};
use crate::subject::{Cannot, Ending, Held, Rule, Settings};

pub const CROWD: Scenario = Scenario {
    id: "probes_of_200",
    short: "probes admitted of 200",
    question: "One probe is allowed. At the end of the wait 200 threads ask at once: the most that were admitted, of 5 rounds.",
    right: "1",
};

pub fn crowd<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Break])?;
    let mut most = 0;
    for _ in 0..5 {
        let subject = P::build(&Settings::of::<P>(Rule::Any), None);
        trip(&subject)?;
        wait_out(&subject);
        most = most.max(throng(&subject));
    }
    Ok(Cell::judged(most.to_string(), most == 1))
}

pub const MINTED: Scenario = Scenario {
    id: "probes_minted",
    short: "probes minted by late results",
    question: "A probe hangs, another fails: open again. After the wait the new probes are in flight. Now the hung probe is ignored, and \
               so are 20 calls from before the outage, and 200 ask: how many more of the new probes are in flight than allowed?",
    right: "0",
};

pub fn minted<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Break, Cannot::LimitProbes])?;
    // Two probes where that can be chosen; elsewhere the second comes when the first has lost its hold.
    let probes = if P::can(Cannot::ChooseProbes) { 2 } else { 1 };
    let settings = Settings { probes, ..Settings::of::<P>(Rule::Any) };
    let subject = P::build(&settings, None);
    let early = ask(&subject, 20);
    trip(&subject)?;
    wait_out(&subject);
    let hung = subject.admit(KEY).ok_or(Void::Unprepared("no probe"))?;
    let failing = subject.admit(KEY).or_else(|| {
        lease_out(&subject);
        subject.admit(KEY)
    });
    subject.settle(failing.ok_or(Void::Unprepared("no 2nd probe"))?, Ending::Failure);
    // Where a failed probe of many doesn't reopen by itself, more failures do; nobody is admitted after that.
    super::steps::open(&subject, 1_000)?;
    wait_out(&subject);
    let start = std::time::Instant::now();
    let probing = ask(&subject, CALLERS);
    ignore(&subject, hung);
    early.into_iter().for_each(|call| ignore(&subject, call));
    let more = ask(&subject, CALLERS).len();
    // A hold that ran out meanwhile would free a slot by right.
    super::steps::within_wait::<P>(start)?;
    // The hung one may have counted as in flight until it was ignored: what it frees then is due to others.
    let minted = (probing.len() + more).saturating_sub(probes as usize);
    drop(probing);
    Ok(Cell::judged(minted.to_string(), minted == 0))
}

pub const PERMITS: Scenario = Scenario {
    id: "permits",
    short: "permits of a limit of 10",
    question: "A limit of 10 calls in flight: how many of 200 threads that ask at once are admitted, and how many of 200 callers once \
               those have succeeded?",
    right: "10, 10",
};

pub fn permits<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Permit])?;
    let subject = P::build(&Settings { limit: 10, ..Settings::of::<P>(Rule::Any) }, None);
    let first = throng(&subject);
    let then = ask(&subject, CALLERS).len();
    Ok(Cell::judged(format!("{first}, {then}"), (first, then) == (10, 10)))
}
