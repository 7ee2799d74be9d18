//! A fallback that works hides the outage from everybody who watches errors.

use std::sync::{Arc, Mutex, PoisonError};

use portcullis::call::{Backup, CallPolicy, Verdict};
use portcullis::{State, Transition};

use super::lab::{Lab, TARGET, five_in_a_row, secs};
use super::{Lesson, Taught};

/// What is to be known of an open target at once: when, and by which rule with which numbers.
fn alert(transition: &Transition) -> Option<String> {
    let evidence = transition.evidence.as_ref()?;
    let met = evidence.met.first()?;
    (transition.to == State::Open).then(|| {
        format!(
            "{} opened after {} s by {}: {} of {}",
            transition.target,
            transition.at.as_secs(),
            transition.cause,
            met.count,
            met.threshold
        )
    })
}

pub(crate) fn lesson() -> Taught {
    let lab = Lab::new(five_in_a_row())?;
    let caller = lab.caller(CallPolicy::builder())?;
    let alerts: Arc<Mutex<Vec<String>>> = Arc::default();
    // RIGHT: somebody hears of every transition, with its evidence.
    let heard = Arc::clone(&alerts);
    let _guard = lab.engine.observe(move |transition: &Transition| {
        heard.lock().unwrap_or_else(PoisonError::into_inner).extend(alert(transition));
    });
    // Ten minutes without the target, a call a second.
    let mut errors = 0;
    for _ in 0..600 {
        let call = caller.to(TARGET);
        let answer =
            call.run_blocking_or(Backup::value("plain"), Verdict::of, &lab, |_| Err::<&str, _>("no connection"));
        // WRONG: this number alone.
        errors += u32::from(answer.is_err());
        lab.time.increment(secs(1));
    }
    // RIGHT: and what callers got instead is counted.
    let plain = caller.counts(TARGET).map_or(0, |counts| counts.fallback_value);
    let alerts = alerts.lock().unwrap_or_else(PoisonError::into_inner);

    assert_eq!((errors, plain), (0, 600));
    // The probes that fail go on as the same outage.
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert_eq!(alerts[0], "core-banking opened after 4 s by consecutive_failures: 5 of 5");
    Ok(Lesson {
        wrong: format!("ten minutes of outage, {errors} errors on the dashboard"),
        right: format!("{}; {plain} answers counted as the fallback's", alerts[0]),
    })
}
