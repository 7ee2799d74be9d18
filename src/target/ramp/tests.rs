use std::cell::Cell as Count;
use std::time::Duration;

use super::*;
use crate::PolicyBuilder;
use crate::outcome::Outcome;
use crate::target::{Ending, Signs, Terms};
use crate::time::Reading;

fn ramping() -> PolicyBuilder {
    Policy::builder().no_window().consecutive_failures(1).successes_to_close(1).max_in_flight(101)
}

fn build(policy: PolicyBuilder) -> Policy {
    policy.open_wait(Duration::from_millis(10)).jitter(0.0).ramp(Duration::from_secs(10)).build().unwrap()
}

#[test]
fn the_limit_is_the_line_rounded_down_and_full_at_its_end() {
    let policy = build(ramping());
    let ramp = Ramp::new(101, &policy, 7);
    let at = |millis: u64| Now::from_millis(7 + millis);
    assert_eq!([0, 99, 100, 9_999, 10_000, 1 << 40].map(|millis| ramp.limit_at(at(millis))), [1, 1, 2, 100, 101, 101]);
    assert_eq!([0, 9_999].map(|millis| ramp.left_ms(at(millis))), [10_000, 1]);
    assert_eq!([9_999, 10_000].map(|millis| ramp.is_over(at(millis))), [false, true]);
    // A clock that stepped back.
    assert_eq!((ramp.limit_at(Now::default()), ramp.is_over(Now::default())), (1, false));
    // Fewer than the probes, none at all, and no limit.
    let limits = |full| [5_000, 10_000].map(|millis| Ramp::new(full, &policy, 7).limit_at(at(millis)));
    assert_eq!([limits(1), limits(0), limits(UNLIMITED)], [[1, 1], [0, 0], [51, UNLIMITED]]);
    let wide = build(ramping().max_in_flight(UNLIMITED - 1).max_probes(31));
    let longest = Ramp { length_ms: 365 * 24 * 3_600_000, ..Ramp::new(UNLIMITED - 1, &wide, 0) };
    assert_eq!(longest.limit_at(Now::from_millis(longest.length_ms - 1)), UNLIMITED - 2);
}

/// R13: only what closed and isn't through with its ramp asks for the time.
#[test]
fn the_clock_is_read_in_the_ramp_and_neither_before_nor_after() {
    let policy = build(ramping());
    let words = Words::new(&policy);
    let (millis, reads) = (Count::new(0), Count::new(0));
    let time = || {
        Reading::new(|| {
            reads.set(reads.get() + 1);
            Now::from_millis(millis.get())
        })
    };
    let terms = || Terms { policy: &policy, policy_version: 0 };
    let call = |outcome| {
        reads.set(0);
        let token = words.admit(&policy, false, &time()).0.unwrap();
        let asked = reads.get();
        let _ = words.record(token, Signs::default(), Ending::Settled(outcome), terms, &time());
        words.release();
        asked
    };
    assert_eq!((call(Outcome::Success), words.gate.load().lets_pass()), (0, true));
    call(Outcome::Failure);
    millis.set(10);
    assert_eq!((call(Outcome::Success), words.gate.load().is_ramping()), (1, true));
    assert_eq!((call(Outcome::Success), words.gate.load().is_ramping()), (1, true));
    millis.set(10_010);
    assert_eq!((call(Outcome::Success), words.gate.load().lets_pass()), (1, true));
    assert_eq!((call(Outcome::Success), words.gate.load().reopens()), (0, 0));
}

/// Whoever finds the lock taken refuses by the limit as it is, and waits for nobody (R21).
#[test]
fn a_caller_never_waits_for_the_lock() {
    let policy = build(ramping());
    let words = Words::new(&policy);
    let at = |millis| Reading::new(move || Now::from_millis(millis));
    let end = |millis, outcome| {
        let token = words.admit(&policy, false, &at(millis)).0.unwrap();
        let terms = || Terms { policy: &policy, policy_version: 0 };
        let _ = words.record(token, Signs::default(), Ending::Settled(outcome), terms, &at(millis));
        words.release();
    };
    end(0, Outcome::Failure);
    end(10, Outcome::Success);
    let _held = words.admit(&policy, false, &at(10)).0.unwrap();
    let guard = words.limiter().lock();
    assert!(words.admit(&policy, false, &at(5_010)).0.is_err());
    drop(guard);
    assert!(words.admit(&policy, false, &at(5_010)).0.is_ok());
    assert_eq!(words.bulkhead.limit(), 51);
}
