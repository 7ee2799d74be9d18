//! Retries multiply: three layers of three attempts are 27 for one call. The retry storm keeps down what was coming up.

use portcullis::call::{Backup, CallPolicy, CallPolicyBuilder, Caller, Verdict};
use portcullis::{Policy, PolicyError};

use super::lab::{Lab, TARGET, grouped, ms};
use super::{Lesson, Taught};

/// One process of the chain, and its clock.
type Layer = (Lab, Caller);

fn pass_on(chain: &[Layer], reached: &mut usize) -> Result<(), &'static str> {
    let Some(((lab, caller), below)) = chain.split_first() else {
        *reached += 1;
        return Err("down");
    };
    let call = caller.to(TARGET).idempotent(true);
    let result = call.run_blocking_or(Backup::refuse(), Verdict::of, lab, |_| pass_on(below, reached));
    result.map(drop).map_err(|_| "down")
}

/// How often 100 calls reach a dead target behind these layers, the outermost first. No breaker, so that only retries are seen.
fn outage(layers: [CallPolicyBuilder; 3]) -> Result<usize, PolicyError> {
    let layer = |policy| {
        let lab = Lab::new(Policy::builder().no_window())?;
        let caller = lab.caller(policy)?;
        Ok((lab, caller))
    };
    let chain: Vec<Layer> = layers.into_iter().map(layer).collect::<Result<_, PolicyError>>()?;
    let mut reached = 0;
    for _ in 0..100 {
        assert!(pass_on(&chain, &mut reached).is_err());
    }
    Ok(reached)
}

pub(crate) fn lesson() -> Taught {
    let three = || CallPolicy::builder().attempts(3).backoff(ms(0)).backoff_max(ms(0));
    // WRONG: whoever calls tries three times.
    let eager = || three().no_retry_budget();
    let wrong = outage([eager(), eager(), eager()])?;
    // RIGHT: only who is next to the target tries again, and all its retries together are a share of its calls.
    let (once, thrifty) = (CallPolicy::builder, || three().retry_budget(0.1).retry_floor(0));
    let right = outage([once(), once(), thrifty()])?;
    // Where the other layers can't be had to stop, the budget bounds what they do.
    let everywhere = outage([thrifty(), thrifty(), thrifty()])?;

    assert_eq!((wrong, right, everywhere), (2_700, 110, 133));
    Ok(Lesson {
        wrong: format!("3 attempts at each of 3 layers: 100 calls reached the dead target {} times", grouped(wrong)),
        right: format!("3 at the last, within a budget of 10 %: {right} times; with that budget at each: {everywhere}"),
    })
}
