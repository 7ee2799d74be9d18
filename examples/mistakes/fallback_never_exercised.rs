//! A fallback that first runs in an outage first fails in one.

use std::error::Error;

use portcullis::call::{Backup, CallPolicy, Caller, LastGood, Verdict};

use super::lab::{Lab, TARGET, five_in_a_row, ms, secs};
use super::{Lesson, Taught};

/// The flags of a user, or the last good ones that `name` has for this request; none if there are none.
fn flags(lab: &Lab, caller: &Caller, store: &LastGood<u32>, name: &str, is_down: bool) -> Option<u32> {
    let fetch = |_| if is_down { Err("no connection") } else { Ok(0b101) };
    let backup = Backup::last_good(store, name, secs(3_600));
    let answer = caller.to(TARGET).run_blocking_or(backup, Verdict::of, lab, fetch);
    answer.ok().map(portcullis::call::Answer::into_inner)
}

/// 1,000 calls of a healthy day, then an outage: callers of 100 that got flags. With a drill first if it is to be: calls that had none in it.
fn day(name: fn(u32) -> String, with_drill: bool) -> Result<(u32, u64), Box<dyn Error>> {
    let lab = Lab::new(five_in_a_row())?;
    let (caller, store) = (lab.caller(CallPolicy::builder())?, LastGood::new(10_000));
    let mut request = 0;
    let mut served = |calls, is_down| {
        let mut served = 0;
        for _ in 0..calls {
            request += 1;
            served += u32::from(flags(&lab, &caller, &store, &name(request), is_down).is_some());
            lab.time.increment(ms(10));
        }
        served
    };
    assert_eq!(served(1_000, false), 1_000);
    let mut without = 0;
    if with_drill {
        // On a quiet morning, for five calls.
        lab.engine.force_open(TARGET)?;
        served(5, false);
        lab.engine.release(TARGET)?;
        without = caller.counts(TARGET).map_or(0, |counts| counts.fallback_failed);
    }
    Ok((served(100, true), without))
}

pub(crate) fn lesson() -> Taught {
    // WRONG: answers are kept under the whole request, its number included, and nobody ever asked for one.
    let by_request = |request| format!("flags of user 7, request {request}");
    let (wrong, _) = day(by_request, false)?;
    // RIGHT: a drill finds it.
    let (_, found) = day(by_request, true)?;
    // And shows that it is mended.
    let (right, left) = day(|_| "flags of user 7".to_owned(), true)?;

    assert_eq!((wrong, found, right, left), (0, 5, 100, 0));
    Ok(Lesson {
        wrong: format!("{wrong} of 100 callers got the last good answer in the outage"),
        right: format!("a drill of 5 calls found {found} without one; mended, {right} of 100 got it"),
    })
}
