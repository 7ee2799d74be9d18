//! What keys cost, and whether the ones that never come back are ever let go. Keys come from outside: somebody will send a million.

use std::ops::Range;
use std::time::Duration;

use super::steps::needs;
use super::{Answer, Cell, Scenario, Void};
use crate::alloc;
use crate::subject::{Cannot, Ending, Held, Rule, Settings};

const KEYS: usize = 1_000_000;
/// Enough for a ratio, at half the time of the run.
const TURNING: usize = 250_000;
const BOUND: usize = 10_000;

/// A window of 100 calls where there is one: that is what a breaker's key costs.
const RULE: Rule = Rule::Calls { window: 100, min_calls: 10 };

fn key(number: usize) -> String {
    format!("tenant-{number:08}.example")
}

/// One successful call for each of many keys; how many were admitted.
fn visit<P: Held>(subject: &P, keys: Range<usize>, pace: Duration) -> usize {
    let call = |number: usize| {
        if !pace.is_zero() {
            subject.advance(pace);
        }
        subject.once(&key(number), Ending::Success)
    };
    keys.filter(|number| call(*number)).count()
}

pub const EACH: Scenario = Scenario {
    id: "bytes_per_key",
    short: "bytes a key, of a million",
    question: "A million keys of 23 bytes, one successful call each, room for all: the bytes held for each, key and map among them.",
    right: "-",
};

pub fn each<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Key])?;
    let before = alloc::held();
    let subject = P::build(&Settings { keys: KEYS, ..Settings::of::<P>(RULE) }, None);
    let admitted = visit(&subject, 0..KEYS, Duration::ZERO);
    let held = alloc::held() - before;
    if admitted < KEYS {
        return Err(Void::Unprepared("refuses keys"));
    }
    Ok(Cell::plain((held / KEYS as isize).to_string()))
}

pub const TURNOVER: Scenario = Scenario {
    id: "keys_turned_over",
    short: "memory when keys turn over",
    question: "250,000 keys, a day of silence (on the subject's clock, if it has one), the subject's own cleaning, then 250,000 others: the \
               memory held, as a multiple of that for the first.",
    right: "1.0 x",
};

pub fn turnover<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Key])?;
    let before = alloc::held();
    let subject = P::build(&Settings { keys: 2 * TURNING, ..Settings::of::<P>(RULE) }, None);
    visit(&subject, 0..TURNING, Duration::ZERO);
    let first = alloc::held() - before;
    if P::can(Cannot::MoveClock) {
        subject.advance(Duration::from_secs(24 * 3_600));
    }
    subject.tidy();
    let admitted = visit(&subject, TURNING..2 * TURNING, Duration::ZERO);
    let tenths = (alloc::held() - before) * 10 / first.max(1);
    if admitted < TURNING {
        return Err(Void::Unprepared("refuses keys"));
    }
    Ok(Cell::judged(format!("{}.{} x", tenths / 10, tenths % 10), tenths <= 11))
}

pub const BOUND_KEPT: Scenario = Scenario {
    id: "bytes_under_a_bound",
    short: "MB under a bound of 10,000",
    question: "A bound of 10,000 keys, and a million of them, 100 in a second: the most memory held at the end, if none was refused.",
    right: "< 10 MB",
};

pub fn bounded<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Key, Cannot::BoundKeys])?;
    let before = alloc::held();
    let subject = P::build(&Settings { keys: BOUND, ..Settings::of::<P>(RULE) }, None);
    let admitted = visit(&subject, 0..KEYS, Duration::from_millis(10));
    let tenths = (alloc::held() - before) / 100_000;
    if admitted < KEYS {
        return Ok(Cell::judged(format!("{} refused", KEYS - admitted), false));
    }
    Ok(Cell::judged(format!("{}.{} MB", tenths / 10, tenths % 10), tenths < 100))
}
