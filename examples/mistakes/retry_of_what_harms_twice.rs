//! An answer that is lost isn't work that wasn't done: only what does no harm twice is tried again.

use std::collections::HashSet;

use portcullis::call::{Backup, CallPolicy, Verdict};
use portcullis::{Policy, PolicyError};

use super::lab::{Lab, TARGET, ms};
use super::{Lesson, Taught};

/// Charges cards, and loses the answer to the first request for each tenth order.
#[derive(Default)]
struct Payments {
    charged: Vec<u32>,
    seen: HashSet<u32>,
    lost: HashSet<u32>,
}

impl Payments {
    fn charge(&mut self, order: u32, idempotency_key: Option<u32>) -> Result<(), &'static str> {
        // Who is asked with a key that it has seen, answers as it did then.
        if idempotency_key.is_none_or(|key| self.seen.insert(key)) {
            self.charged.push(order);
        }
        if order.is_multiple_of(10) && self.lost.insert(order) { Err("connection reset") } else { Ok(()) }
    }
}

/// 100 orders: how many charges were made, and how many callers got an error.
fn orders(is_idempotent: bool, has_key: bool) -> Result<(usize, u32), PolicyError> {
    let lab = Lab::new(Policy::builder().no_window())?;
    let policy = CallPolicy::builder().attempts(3).backoff(ms(0)).backoff_max(ms(0));
    let caller = lab.caller(policy.retry_budget(1.0))?;
    let mut payments = Payments::default();
    let mut errors = 0;
    for order in 0..100 {
        let call = caller.to(TARGET).idempotent(is_idempotent);
        let key = has_key.then_some(order);
        let result = call.run_blocking_or(Backup::refuse(), Verdict::of, &lab, |_attempt| payments.charge(order, key));
        errors += u32::from(result.is_err());
    }
    Ok((payments.charged.len(), errors))
}

pub(crate) fn lesson() -> Taught {
    // WRONG: said to be idempotent, and isn't.
    let wrong = orders(true, false)?;
    // RIGHT: once, and the caller is told that nobody knows. Or again, with a key by which the target knows it.
    let (once, keyed) = (orders(false, false)?, orders(true, true)?);

    assert_eq!((wrong, once, keyed), ((110, 0), (100, 10), (100, 0)));
    Ok(Lesson {
        wrong: format!("{} charges for 100 orders, and no error", wrong.0),
        right: format!("{} charges and {} errors; with an idempotency key {} and {}", once.0, once.1, keyed.0, keyed.1),
    })
}
