//! R16: forced states are entered and left by hand only.

use portcullis::{Cause, Rejection, Settled, State, Window};

use crate::common::{Bench, T, ms, secs, take, textbook};

#[test]
fn r16_no_time_leaves_forced_open() {
    let bench = Bench::new(textbook());
    bench.succeed(3);
    assert!(bench.engine.force_open(T).unwrap());
    for wait in [ms(1), secs(30), secs(86_400), secs(86_400 * 300)] {
        bench.advance(wait);
        assert_eq!(bench.refusal(), Rejection::ForcedOpen);
        assert_eq!((bench.state(), bench.snapshot().reopen_in), (State::ForcedOpen, None));
    }
    assert_eq!(bench.log().len(), 1);
}

#[test]
fn r16_no_outcome_leaves_disabled() {
    let bench = Bench::new(textbook().window(Window::calls(10)).consecutive_failures(3).failures(2));
    bench.engine.disable(T).unwrap();
    bench.fail(100);
    bench.succeed(100);
    bench.advance(secs(1_000));
    bench.fail(100);
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.state, snapshot.totals.failure, snapshot.totals.success), (State::Disabled, 200, 100));
    assert_eq!((bench.window(), snapshot.streak), ((0, 0), 0));
    assert_eq!(bench.log().len(), 1);
}

#[test]
fn r16_disabled_still_holds_and_still_counts() {
    let bench = Bench::new(textbook().max_in_flight(3));
    bench.engine.disable(T).unwrap();
    let permits = take(&bench, 3);
    assert_eq!(bench.refusal(), Rejection::Saturated { limit: 3 });
    assert_eq!(bench.snapshot().in_flight, 3);
    drop(permits);
    assert_eq!(bench.snapshot().totals.abandoned, 3);
}

#[test]
fn r16_a_probe_in_flight_moves_no_forced_state() {
    for force in [Bench::force_open, Bench::disable] {
        for outcome in [portcullis::Outcome::Success, portcullis::Outcome::Failure, portcullis::Outcome::Ignored] {
            let bench = Bench::tripped(textbook());
            bench.advance(secs(30));
            let probe = bench.probe();
            let state = force(&bench);
            assert_eq!(probe.settle(outcome), Settled::Stale);
            assert_eq!((bench.state(), bench.log().len()), (state, 3));
        }
    }
}

impl Bench {
    fn force_open(&self) -> State {
        assert!(self.engine.force_open(T).unwrap());
        State::ForcedOpen
    }

    fn disable(&self) -> State {
        assert!(self.engine.disable(T).unwrap());
        State::Disabled
    }
}

#[test]
fn r16_leaving_goes_to_closed_with_an_empty_window() {
    for force in [Bench::force_open, Bench::disable] {
        for window in [Window::calls(10), Window::time(secs(1_000))] {
            let bench = Bench::new(textbook().window(window).consecutive_failures(9));
            bench.fail(4);
            force(&bench);
            assert!(bench.engine.release(T).unwrap());
            let snapshot = bench.snapshot();
            assert_eq!((snapshot.state, bench.window(), snapshot.streak), (State::Closed, (0, 0), 0));
            bench.fail(4);
            assert_eq!(bench.state(), State::Closed);
        }
    }
}

#[test]
fn r16_forcing_wins_over_every_state() {
    for advance in [secs(0), secs(30)] {
        for force in [Bench::force_open, Bench::disable] {
            let bench = Bench::tripped(textbook());
            bench.advance(advance);
            let state = force(&bench);
            assert_eq!(bench.state(), state);
            assert!(bench.engine.release(T).unwrap());
            assert_eq!((bench.state(), bench.snapshot().reopens), (State::Closed, 0));
            bench.enter().success();
        }
    }
}

#[test]
fn r16_doing_it_twice_or_where_there_is_nothing_to_do_is_no_event() {
    let bench = Bench::new(textbook());
    assert!(!bench.engine.release(T).unwrap());
    assert!(bench.engine.force_open(T).unwrap());
    assert!(!bench.engine.force_open(T).unwrap());
    assert!(bench.engine.disable(T).unwrap());
    assert!(!bench.engine.disable(T).unwrap());
    assert!(bench.engine.force_open(T).unwrap());
    assert!(bench.engine.release(T).unwrap());
    assert!(!bench.engine.release(T).unwrap());
    use State::{Closed, Disabled, ForcedOpen};
    assert_eq!(
        bench.path(),
        [(Closed, ForcedOpen), (ForcedOpen, Disabled), (Disabled, ForcedOpen), (ForcedOpen, Closed)]
    );
    let causes: Vec<_> = bench.log().iter().map(|transition| transition.cause).collect();
    assert_eq!(causes, [Cause::ForcedOpen, Cause::Disabled, Cause::ForcedOpen, Cause::Released]);
}

#[test]
fn r16_release_is_no_way_out_of_open() {
    let bench = Bench::tripped(textbook());
    assert!(!bench.engine.release(T).unwrap());
    assert!(matches!(bench.refusal(), Rejection::Open { .. }));
    bench.advance(secs(30));
    let probe = bench.probe();
    assert!(!bench.engine.release(T).unwrap());
    assert_eq!(probe.success(), Settled::Recorded);
}

#[test]
fn r16_an_unknown_key_is_made_by_the_hand_that_names_it() {
    let bench = Bench::with(textbook(), |builder| builder.max_targets(2));
    assert!(bench.engine.force_open("a").unwrap());
    assert!(bench.engine.disable("b").unwrap());
    assert_eq!(bench.engine.admit("a").unwrap_err(), Rejection::ForcedOpen);
    let exhausted = Rejection::Exhausted { max_targets: 2 };
    assert_eq!(bench.engine.force_open("c").unwrap_err(), exhausted);
    assert_eq!(bench.engine.disable("c").unwrap_err(), exhausted);
    assert_eq!(bench.engine.release("c").unwrap_err(), exhausted);
    assert_eq!(bench.engine.set_limit("c", 1).unwrap_err(), exhausted);
    assert_eq!(bench.engine.set_policy("c", portcullis::Policy::default()).unwrap_err(), exhausted);
    assert_eq!(bench.engine.exhausted(), 5);
}
