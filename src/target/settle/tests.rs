use super::*;
use crate::event::Cause;

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
