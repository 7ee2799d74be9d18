//! R13 and R14: time is read at most once and only where it is needed, and looking changes nothing.

use std::cell::Cell;

use portcullis::internals::{Ending, Now, Reading, Signs, Terms, Words};
use portcullis::{Outcome, Policy, PolicyBuilder, Settled, State, Window};

use crate::common::{Bench, T, ms, secs, textbook};

/// A target's words with a clock that counts its readings.
struct Counted {
    words: Words,
    policy: Policy,
    at_ms: Cell<u64>,
    readings: Cell<u32>,
}

impl Counted {
    fn new(policy: PolicyBuilder) -> Self {
        let policy = policy.build().expect("the policy of a test builds");
        let words = Words::new(&policy);
        Self { words, policy, at_ms: Cell::new(0), readings: Cell::new(0) }
    }

    fn time(&self) -> Reading<impl Fn() -> Now> {
        Reading::new(|| {
            self.readings.set(self.readings.get() + 1);
            Now::from_millis(self.at_ms.get())
        })
    }

    /// One call; how often the clock was read by the admission and by the settlement.
    fn call(&self, ending: Ending) -> (u32, u32) {
        self.call_as(false, ending)
    }

    fn call_as(&self, is_async: bool, ending: Ending) -> (u32, u32) {
        self.readings.set(0);
        let (token, _) = self.words.admit(&self.policy, is_async, &self.time());
        let admission = self.readings.replace(0);
        let Ok(token) = token else { return (admission, 0) };
        let terms = Terms { policy: &self.policy, policy_version: 0 };
        let _ = self.words.record(token, Signs::default(), ending, || terms, &self.time());
        self.words.release();
        (admission, self.readings.get())
    }
}

const SUCCESS: Ending = Ending::Settled(Outcome::Success);
const FAILURE: Ending = Ending::Settled(Outcome::Failure);

#[test]
fn r13_a_closed_target_without_timed_rules_reads_no_clock() {
    for policy in [
        textbook(),
        textbook().failures(9),
        Policy::builder().no_window().consecutive_failures(100),
        Policy::builder().no_window(),
    ] {
        let counted = Counted::new(policy);
        for ending in [SUCCESS, SUCCESS, SUCCESS, FAILURE, Ending::Settled(Outcome::Ignored), Ending::Abandoned] {
            assert_eq!(counted.call(ending), (0, 0), "{ending:?}");
        }
    }
}

#[test]
fn r13_an_async_call_is_stamped_when_it_starts_and_read_again_only_if_abandoned() {
    let counted = Counted::new(textbook());
    for (ending, settlement) in [(SUCCESS, 0), (FAILURE, 0), (Ending::Panicked, 0), (Ending::Abandoned, 1)] {
        assert_eq!(counted.call_as(true, ending), (1, settlement), "{ending:?}");
    }
    // With a rule on slow calls every answer is timed, and a call that says nothing isn't.
    let timed = Counted::new(textbook().slow_call(secs(1)));
    for (ending, settlement) in [(SUCCESS, 1), (FAILURE, 1), (Ending::Settled(Outcome::Ignored), 0)] {
        assert_eq!(timed.call(ending), (1, settlement), "{ending:?}");
    }
}

#[test]
fn r13_a_refusal_by_a_full_bulkhead_reads_no_clock() {
    let counted = Counted::new(textbook().max_in_flight(1));
    let (token, _) = counted.words.admit(&counted.policy, false, &counted.time());
    assert!(token.is_ok());
    assert_eq!(counted.call(SUCCESS), (0, 0));
}

#[test]
fn r13_each_decision_reads_the_clock_at_most_once() {
    let timed = textbook().slow_call(secs(1)).window(Window::time(secs(10)));
    for policy in [textbook(), timed, textbook().on_abandon(portcullis::OnAbandon::FailureAfter(ms(1)))] {
        let counted = Counted::new(policy);
        let mut most = (0, 0);
        for step in 0..40 {
            let ending = if step % 3 == 0 { SUCCESS } else { FAILURE };
            let (admission, settlement) = counted.call(ending);
            assert!(admission <= 1 && settlement <= 1, "step {step}: {admission} and {settlement} readings");
            most = (most.0.max(admission), most.1.max(settlement));
            counted.at_ms.set(counted.at_ms.get() + 20_000);
        }
        assert_eq!(most, (1, 1), "trips, refusals and probes do need it");
    }
}

#[test]
fn r13_a_clock_that_leaps_about_has_no_say_in_a_closed_count_window() {
    let bench = Bench::new(textbook().consecutive_failures(20));
    bench.advance(secs(100));
    for step in 0..50_u64 {
        if step % 2 == 0 {
            bench.advance(secs(step));
        } else {
            bench.time.decrement(secs(step));
        }
        bench.succeed(1);
        bench.succeed(1);
        bench.fail(1);
    }
    assert_eq!((bench.state(), bench.window().0), (State::Closed, 10));
}

#[test]
fn r13_a_clock_that_steps_back_neither_panics_nor_underflows() {
    let policy = textbook()
        .window(Window::time(secs(10)))
        .slow_call(ms(1))
        .on_abandon(portcullis::OnAbandon::FailureAfter(ms(1)));
    let bench = Bench::new(policy);
    bench.advance(secs(1_000));
    let (early, dropped) = (bench.enter(), bench.enter());
    bench.fail(1);
    bench.time.decrement(secs(900));
    assert_eq!(early.success(), Settled::Recorded);
    drop(dropped);
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.totals.slow, snapshot.totals.abandoned), (0, 1));
    bench.time.decrement(secs(50));
    (0..10).filter(|_| bench.last_state() == State::Closed).for_each(|_| bench.fail(1));
    bench.time.decrement(secs(20));
    assert_eq!(bench.refusal().retry_after(), Some(secs(50)));
}

#[test]
fn r13_an_open_wait_goes_on_when_the_clock_steps_back() {
    let bench = Bench::new(textbook());
    bench.advance(secs(100));
    bench.fail(5);
    bench.time.decrement(secs(40));
    assert_eq!(bench.refusal().retry_after(), Some(secs(70)));
    bench.advance(secs(70));
    bench.probe().success();
}

#[test]
fn r13_two_years_from_now_nothing_wedges() {
    let bench = Bench::new(textbook().window(Window::time(secs(10))));
    // Past the end of both kinds of tick: 2.13 and 2.18 years.
    bench.advance(secs(3 * 365 * 86_400));
    for _ in 0..3 {
        bench.fail(5);
        assert_ne!(bench.last_state(), State::Closed);
        bench.advance(secs(400));
        bench.engine.admit(T).expect("waits and leases are over at once").success();
        assert_eq!(bench.last_state(), State::Closed);
    }
}

#[test]
fn r14_looking_shows_half_open_and_changes_nothing() {
    let bench = Bench::tripped(textbook());
    let target = bench.engine.target(T).unwrap();
    assert_eq!(target.state(), State::Open);
    bench.advance(secs(30) - std::time::Duration::from_nanos(1));
    assert_eq!(target.state(), State::Open);
    bench.advance(std::time::Duration::from_nanos(1));
    let generation = bench.snapshot().generation;
    for _ in 0..100 {
        assert_eq!(target.state(), State::HalfOpen);
        let snapshot = bench.snapshot();
        assert_eq!((snapshot.state, snapshot.generation, snapshot.probes_in_flight), (State::HalfOpen, generation, 0));
    }
    assert_eq!(bench.log().len(), 1, "no transition was made by looking");
    // A balancer that looked at it hasn't taken the probe away.
    bench.probe().success();
}

#[test]
fn r14_an_elapsed_open_stays_ready_for_ever() {
    let bench = Bench::tripped(textbook());
    bench.advance(secs(86_400 * 30));
    assert_eq!((bench.state(), bench.snapshot().reopen_in), (State::HalfOpen, Some(ms(0))));
    bench.probe().success();
    assert_eq!(bench.state(), State::Closed);
}
