//! Running calls of one generation after another, over two stripes, as the models count them; and scenes of them that have a twin.
//!
//! A tick is as wide as `stall_after`: a call of tick n has stalled in tick n + 2, which takes its bucket.

use std::time::Duration;

use portcullis::internals::running::{Lane, stalled};
use portcullis::internals::{Ending, Gate, Now, Ticks, Words};
use portcullis::{Cause, Outcome, Policy};

use crate::desk::{Desk, build};
use crate::model;

/// Wide enough for its count: 10 ms.
const WIDTH: u64 = 10_000_000;

/// What counts calls that run.
pub trait Running: Send + Sync + 'static {
    fn new() -> Self;
    /// Counts a call of the present generation in a stripe; the generation, if it could be counted.
    fn begin(&self, stripe: usize, tick: u64) -> Option<u32>;
    /// Counts out a call of `generation`, if that is the present one.
    fn end(&self, stripe: usize, generation: u32, tick: u64);
    /// How many calls of the present generation have stalled.
    fn stalled(&self, now: u64) -> i64;
    /// Begins the next generation.
    fn restart(&self);
}

/// The real words.
#[derive(Debug)]
pub struct Lanes {
    gate: Gate,
    lanes: [Lane; 2],
}

impl Lanes {
    fn ticks(&self) -> Ticks {
        Ticks::new(self.gate.load(), WIDTH)
    }
}

impl Running for Lanes {
    fn new() -> Self {
        Self { gate: Gate::default(), lanes: <_>::default() }
    }

    fn begin(&self, stripe: usize, tick: u64) -> Option<u32> {
        let ticks = self.ticks();
        self.lanes[stripe].begin(&ticks, tick, &self.gate).then_some(ticks.generation())
    }

    fn end(&self, stripe: usize, generation: u32, tick: u64) {
        let ticks = self.ticks();
        if ticks.generation() == generation {
            self.lanes[stripe].end(&ticks, tick, &self.gate);
        }
    }

    fn stalled(&self, now: u64) -> i64 {
        stalled(self.lanes.iter(), &self.ticks(), now).cast_signed()
    }

    fn restart(&self) {
        let _ = self.gate.apply(|gate| gate.restart(Now::default()));
    }
}

/// With a call that began in tick 0, counted in stripe 0.
fn with_one<R: Running>() -> R {
    let running = R::new();
    assert_eq!(running.begin(0, 0), Some(0));
    running
}

/// Its bucket is needed for a call of tick 2, and somebody looks.
pub fn moving<R: Running>(name: &str) {
    model(
        name,
        // While it moves it may be missed.
        &[Some(0), Some(1)],
        with_one::<R>,
        [
            |running: &R| {
                assert_eq!(running.begin(0, 2), Some(0));
                None
            },
            |running| Some(running.stalled(2)),
        ],
        |running, [_, seen]| {
            assert!(seen.is_some_and(|seen| seen <= 1), "a call was counted twice");
            assert_eq!((running.stalled(2), running.stalled(4)), (1, 2), "a call is lost");
            seen
        },
    );
}

/// It ends as its bucket is needed for another.
pub fn ending<R: Running>(name: &str) {
    model(
        name,
        &[()],
        with_one::<R>,
        [|running: &R| running.end(0, 0, 0), |running| assert_eq!(running.begin(0, 2), Some(0))],
        |running, _| assert_eq!((running.stalled(2), running.stalled(4)), (0, 1), "a call that ended still runs"),
    );
}

/// Two calls need its bucket at once.
pub fn opening<R: Running>(name: &str) {
    model(name, &[()], with_one::<R>, [|running: &R| assert_eq!(running.begin(0, 2), Some(0)); 2], |running, _| {
        assert_eq!((running.stalled(2), running.stalled(4)), (1, 3), "a call is lost")
    });
}

/// It ends as the next generation begins, and has a call in the same tick.
pub fn restarting<R: Running>(name: &str) {
    model(
        name,
        &[()],
        with_one::<R>,
        [
            |running: &R| running.end(0, 0, 0),
            |running| {
                running.restart();
                assert_eq!(running.begin(0, 0), Some(1));
            },
        ],
        |running, _| assert_eq!(running.stalled(2), 1, "a straggler spoiled the next generation"),
    );
}

/// The ticks of two policies, in milliseconds.
pub const NARROW: u64 = 60;
const WIDE: u64 = 150;

#[must_use]
pub fn watching(stall_after: u64) -> Policy {
    let policy = Policy::builder().no_window().max_in_flight(4).successes_to_close(1);
    build(policy.stall_after(Duration::from_millis(stall_after)).stalled_calls(1))
}

/// One call began at 0.
#[must_use]
pub fn hung() -> Desk {
    Desk::with_calls(watching(NARROW), 1)
}

/// How a policy with other ticks comes into force.
pub type Adopt = fn(&Desk);

/// The generation ends between the two.
pub fn in_order(desk: &Desk) {
    let (before, after) = (watching(NARROW), watching(WIDE));
    desk.words.adopt(&before, &after);
    assert!(desk.words.must_forget_running(&before, &after));
    desk.by_hand(Cause::PolicyChanged, |gate| Words::forget_running(gate, Now::default()));
    desk.words.watch_from_now(&after);
}

/// As above, but the generation goes on.
pub fn in_one_generation(desk: &Desk) {
    let (before, after) = (watching(NARROW), watching(WIDE));
    desk.words.adopt(&before, &after);
    desk.words.watch_from_now(&after);
}

/// As above, but a gate that isn't closed just then is left alone.
pub fn unless_closed(desk: &Desk) {
    let (before, after) = (watching(NARROW), watching(WIDE));
    desk.words.adopt(&before, &after);
    desk.by_hand(Cause::PolicyChanged, |gate| gate.restart(Now::default()));
    desk.words.watch_from_now(&after);
}

/// A call begins in the fourth of the narrow ticks, and ends.
fn pass(desk: &Desk) -> &'static str {
    let (token, _) = desk.admit(3 * NARROW + 1);
    token.map_or("refused", |token| desk.end(token, Ending::Settled(Outcome::Success), 3 * NARROW + 1).0)
}

fn nothing_runs(desk: &Desk) {
    let late = Now::from_millis(1_000 * WIDE);
    assert_eq!(desk.words.stalled(desk.gate(), late), 0, "a call that ended still runs");
    let (token, _) = desk.admit(1_000 * WIDE);
    assert!(token.is_ok());
    assert_eq!(desk.words.stalled(desk.gate(), Now::from_millis(1_002 * WIDE)), 1, "a call isn't counted");
}

/// A call begins and ends as a policy comes with other ticks.
pub fn a_call_meets_other_ticks(name: &str, adopt: Adopt, expected: &[&'static str]) {
    model(
        name,
        expected,
        move || (Desk::new(watching(NARROW)), adopt),
        [
            |(desk, _): &(Desk, Adopt)| pass(desk),
            |(desk, adopt)| {
                adopt(desk);
                ""
            },
        ],
        |(desk, _), [passed, _]| {
            nothing_runs(desk);
            passed
        },
    );
}

/// A probe closes the target as a policy comes with other ticks, and a call begins and ends at once.
pub fn a_closing_meets_other_ticks(name: &str, adopt: Adopt, expected: &[&'static str]) {
    model(
        name,
        expected,
        move || {
            let mut desk = Desk::new(watching(NARROW));
            desk.by_hand(Cause::StalledCalls, |gate| gate.trip(0, 1));
            desk.grant(1);
            assert!(desk.granted(0).is_probe());
            (desk, adopt)
        },
        [
            |(desk, _): &(Desk, Adopt)| {
                let _ = desk.end(desk.granted(0), Ending::Settled(Outcome::Success), 1);
                pass(desk)
            },
            |(desk, adopt)| {
                adopt(desk);
                ""
            },
        ],
        |(desk, _), [passed, _]| {
            nothing_runs(desk);
            passed
        },
    );
}
