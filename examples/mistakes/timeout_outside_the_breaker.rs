//! A timeout around the breaker drops a call in which nothing has been said yet: a target that hangs looks like callers who leave.

use std::error::Error;
use std::future::pending;
use std::time::Duration;

use portcullis::State;
use portcullis::call::CallPolicy;

use super::lab::{Lab, TARGET, five_in_a_row, ms, paused};
use super::{Lesson, Taught};

/// 100 calls, one after the other, to a target that hangs: what they waited in all, and its state then.
type Waited = (Duration, Option<State>);

/// WRONG: the call is cut from outside, and its permit dropped without a word.
fn outside() -> Result<Waited, Box<dyn Error>> {
    let lab = Lab::new(five_in_a_row())?;
    let caller = lab.caller(CallPolicy::builder())?;
    paused(&lab, async {
        let started = tokio::time::Instant::now();
        for _ in 0..100 {
            let call = caller.call(TARGET, pending::<Result<(), ()>>);
            assert!(tokio::time::timeout(ms(200), call).await.is_err());
        }
        Ok((started.elapsed(), lab.state()))
    })?
}

/// RIGHT: the timeout is the policy's, inside of the admission, and a failure of the target.
fn inside() -> Result<Waited, Box<dyn Error>> {
    let lab = Lab::new(five_in_a_row())?;
    let caller = lab.caller(CallPolicy::builder().timeout(ms(200)))?;
    paused(&lab, async {
        let started = tokio::time::Instant::now();
        for _ in 0..100 {
            assert!(caller.call(TARGET, pending::<Result<(), ()>>).await.is_err());
        }
        Ok((started.elapsed(), lab.state()))
    })?
}

pub(crate) fn lesson() -> Taught {
    let (wrong, right) = (outside()?, inside()?);
    assert_eq!(wrong, (ms(20_000), Some(State::Closed)));
    assert_eq!(right, (ms(1_000), Some(State::Open)));
    Ok(Lesson {
        wrong: format!("100 calls waited {} s for a hung target, and it is still closed", wrong.0.as_secs()),
        right: format!("they waited {} s, then it was open", right.0.as_secs()),
    })
}
