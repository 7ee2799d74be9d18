use super::*;

/// The reference sequence of splitmix64 from the seed 1,234,567.
#[test]
fn the_jitters_hash_is_splitmix64() {
    let states = (0..5_u64).map(|step| 1_234_567_u64.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let reference = [
        6_457_827_717_110_365_317,
        3_203_168_211_198_807_973,
        9_817_491_932_198_370_423,
        4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
    ];
    assert!(states.map(mix).eq(reference));
}

#[test]
fn what_the_window_took_is_recorded_though_the_streak_came_too_late() {
    let ten_seconds = crate::Window::time(std::time::Duration::from_secs(10));
    let policy = Policy::builder().window(ten_seconds).consecutive_failures(9).build().unwrap();
    let words = Words::new(&policy);
    let terms = Terms { policy: &policy, policy_version: 0 };
    let at = Now::from_millis(5);
    let _ = words.by_hand(Cause::PolicyChanged, at, |word| word.restart(at));
    let settle = |outcome, time: &Reading<&dyn Fn() -> Now>| {
        let (token, _) = words.admit(&policy, false, time);
        let (settled, _) = words.record(token.unwrap(), Signs::default(), Ending::Settled(outcome), || terms, time);
        words.release();
        settled
    };
    assert_eq!(settle(Outcome::Success, &Reading::new(&|| at)), Settled::Recorded);
    // The target is forced open once the call has looked at the gate, and before it counts.
    let forcing = || {
        let _ = words.by_hand(Cause::ForcedOpen, at, |word| word.force(State::ForcedOpen, at));
        at
    };
    assert_eq!(settle(Outcome::Failure, &Reading::new(&forcing)), Settled::Recorded);
    assert_eq!((words.counters().failure.get(), words.counters().stale.get()), (1, 0));
}
