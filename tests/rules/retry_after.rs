//! R15: what `retry_after` promises.

use std::time::Duration;

use portcullis::{Clock, Engine, Rejection, Settled};
use proptest::prelude::*;

use crate::common::{Bench, T, ms, secs, textbook};

#[test]
fn r15_retry_after_is_the_deadline_itself() {
    let bench = Bench::tripped(textbook());
    for passed in [0, 1, 14_000, 15_998] {
        bench.advance(ms(passed));
        let snapshot = bench.snapshot();
        assert_eq!(bench.refusal().retry_after(), snapshot.reopen_in);
    }
    assert_eq!(bench.refusal(), Rejection::Open { retry_after: ms(1) });
}

#[test]
fn r15_the_last_nanosecond_is_still_refused_and_says_so() {
    let bench = Bench::tripped(textbook());
    bench.advance(secs(30) - Duration::from_nanos(1));
    assert_eq!(bench.refusal(), Rejection::Open { retry_after: Duration::from_nanos(1) });
    bench.advance(Duration::from_nanos(1));
    bench.probe().success();
}

#[test]
fn r15_a_lone_caller_gets_in_when_the_probes_lease_ends() {
    let bench = Bench::tripped(textbook().probe_lease(secs(7)));
    bench.advance(ms(30_250));
    std::mem::forget(bench.probe());
    let Rejection::Probing { retry_after } = bench.refusal() else { panic!("the slot is taken") };
    assert_eq!(retry_after, ms(7_750));
    bench.advance(retry_after - Duration::from_nanos(1));
    assert_eq!(bench.refusal(), Rejection::Probing { retry_after: Duration::from_nanos(1) });
    bench.advance(Duration::from_nanos(1));
    bench.probe().success();
}

#[test]
fn r15_only_refusals_that_time_ends_name_a_time() {
    for rejection in [
        Rejection::Saturated { limit: 1 },
        Rejection::Shed { priority: portcullis::Priority::Normal },
        Rejection::ForcedOpen,
        Rejection::Exhausted { max_targets: 1 },
    ] {
        assert_eq!(rejection.retry_after(), None);
    }
}

#[test]
fn r15_a_coarse_clock_rounds_up_by_its_resolution() {
    let interval = ms(250);
    let clock = Clock::coarse(interval).unwrap();
    let engine: Engine = Engine::builder().policy(textbook().build().unwrap()).clock(clock).build();
    (0..5).for_each(|_| assert_eq!(engine.admit(T).unwrap().failure(), Settled::Recorded));
    let left = engine.snapshot(T).unwrap().reopen_in.unwrap();
    let retry_after = engine.admit(T).unwrap_err().retry_after().unwrap();
    // The clock may have moved on between the two looks, by whole intervals; it never goes back.
    assert!(retry_after <= left + interval && retry_after + secs(20) > left + interval, "{left:?}, {retry_after:?}");
    assert!(retry_after > secs(10));
}

proptest! {
    #[test]
    fn r15_a_lone_caller_is_not_refused_for_the_same_reason_again(
        start in 0_u64..10_000_000_000_000,
        wait in 1_000_000_u64..500_000_000_000,
        jitter in 0_u32..=10_000,
        looks in prop::collection::vec(0_u64..600_000_000_000, 1..6),
        lease in 1_000_000_000_u64..90_000_000_000,
        reopens in 0_usize..5,
    ) {
        let wait = Duration::from_nanos(wait);
        let policy = textbook().open_wait(wait).open_wait_max(wait * 4).jitter(f64::from(jitter) / 10_000.0);
        let bench = Bench::new(policy.probe_lease(Duration::from_nanos(lease)));
        bench.advance(Duration::from_nanos(start));
        bench.fail(5);
        for _ in 0..reopens {
            bench.advance(bench.refusal().retry_after().unwrap());
            bench.probe().failure();
        }
        for look in looks {
            bench.advance(Duration::from_nanos(look));
            match bench.admit() {
                Ok(probe) => std::mem::forget(probe),
                Err(rejection) => {
                    let after = rejection.retry_after().unwrap();
                    prop_assert!(after > Duration::ZERO);
                    bench.advance(after - Duration::from_nanos(1));
                    let sooner = bench.admit();
                    prop_assert!(sooner.is_err(), "not a nanosecond too late either");
                    bench.advance(Duration::from_nanos(1));
                    let again = bench.admit();
                    prop_assert!(again.is_ok(), "{again:?} after {rejection:?}");
                    std::mem::forget(again);
                }
            }
        }
    }
}
