//! A window of calls and the sign that it is clean: the real words, or a twin that does one step wrong.

use portcullis::internals::{Ending, Glance, Now, Token};
use portcullis::{Cause, Outcome, Policy, Window};

use crate::desk::{Desk, build};
use crate::model;

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    Recorded,
    /// A success that the sign was enough for: nothing was written.
    Unchanged,
    Stale,
}

use Told::{Recorded, Stale, Unchanged};

/// What the models do with a window.
pub trait Ledger: Send + Sync + 'static {
    /// A window of `size` in generation 0, as these calls left it.
    fn holding(size: u32, failures: &[bool]) -> Self;
    /// Takes the sign away, as a failure does that turns out to be stale.
    fn take_sign_away(&self);
    /// Settles a call of generation 0.
    fn settle(&self, failed: bool) -> Told;
    /// Begins the next generation.
    fn begin(&self);
    /// Admits a call and settles it.
    fn call(&self, failed: bool) -> Told;
    /// Calls and failures of the newest so many in the window of the gate's generation.
    fn counts(&self, newest: u32) -> (u32, u32);
}

/// The calls of a window, oldest first: `F` is a failure, `s` a success.
fn window(ledger: &impl Ledger, size: u32) -> String {
    let failures = |newest| ledger.counts(newest).1;
    (1..=ledger.counts(size).0)
        .rev()
        .map(|place| if failures(place) > failures(place - 1) { 'F' } else { 's' })
        .collect()
}

/// The usual conclusion: the window as the race left it, and no failure in it is hidden from the successes that follow.
fn shown<L: Ledger, R>(size: u32) -> impl Fn(&L, R) -> (R, String) {
    move |ledger, told| {
        let left = window(ledger, size);
        for _ in 0..size {
            ledger.settle(false);
        }
        assert_eq!(window(ledger, size), "s".repeat(size as usize), "a failure is hidden by the sign");
        (told, left)
    }
}

/// One success cleans the window and sets the sign, another may go by it, and a failure comes.
pub fn a_failure_and_two_successes<L: Ledger>(name: &str) {
    model(
        name,
        &[
            ([Recorded; 3], "sF".into()),
            ([Recorded; 3], "Fs".into()),
            ([Recorded; 3], "ss".into()),
            ([Recorded, Unchanged, Recorded], "sF".into()),
            ([Unchanged, Recorded, Recorded], "sF".into()),
        ],
        || L::holding(2, &[true, false]),
        [|ledger: &L| ledger.settle(false), |ledger| ledger.settle(false), |ledger| ledger.settle(true)],
        shown(2),
    );
}

/// The window is clean, and the sign isn't set: the success that finds it so sets it.
pub fn a_failure_and_a_success_that_signs<L: Ledger>(name: &str) {
    model(
        name,
        &[([Recorded; 2], "sF".into()), ([Recorded; 2], "Fs".into())],
        || {
            let ledger = L::holding(2, &[false, false]);
            ledger.take_sign_away();
            ledger
        },
        [|ledger: &L| ledger.settle(false), |ledger| ledger.settle(true)],
        shown(2),
    );
}

/// Two failures, which take the sign away from each other.
pub fn two_failures_and_a_success_that_signs<L: Ledger>(name: &str) {
    model(
        name,
        &[([Recorded; 3], "FF".into()), ([Recorded; 3], "sF".into()), ([Recorded; 3], "Fs".into())],
        || {
            let ledger = L::holding(2, &[false, false]);
            ledger.take_sign_away();
            ledger
        },
        [|ledger: &L| ledger.settle(false), |ledger| ledger.settle(true), |ledger| ledger.settle(true)],
        shown(2),
    );
}

/// Whoever has seen a failure in the window, before the one that wrote it is through, doesn't go by the sign.
pub fn a_failure_that_is_seen<L: Ledger>(name: &str) {
    model(
        name,
        &[
            (Unchanged, false, "sF".into()),
            (Recorded, false, "sF".into()),
            (Recorded, false, "Fs".into()),
            (Recorded, true, "Fs".into()),
        ],
        || L::holding(2, &[false, false]),
        [
            |ledger: &L| (ledger.settle(true), false),
            |ledger| {
                let is_seen = ledger.counts(2).1 > 0;
                (ledger.settle(false), is_seen)
            },
        ],
        |ledger: &L, [_, (told, is_seen)]| {
            let (_, left) = shown(2)(ledger, ());
            assert!(!is_seen || left == "Fs", "a success came before the failure that it followed");
            (told, is_seen, left)
        },
    );
}

/// Two successes set the sign and go by it while a generation begins, whose own window is empty.
pub fn a_sign_of_an_earlier_generation<L: Ledger>(name: &str) {
    model(
        name,
        &[[Recorded, Unchanged], [Recorded, Stale], [Stale, Stale]],
        || L::holding(2, &[false]),
        [
            |ledger: &L| vec![ledger.settle(false), ledger.settle(false)],
            |ledger| {
                ledger.begin();
                vec![ledger.call(false)]
            },
        ],
        |ledger: &L, [earlier, called]| {
            let left = (called, window(ledger, 2));
            assert_eq!(left, (vec![Recorded], "s".into()), "a sign of an earlier generation counts");
            [earlier[0], earlier[1]]
        },
    );
}

/// A failure of an earlier generation is late, in a window whose sign is set.
pub fn a_late_failure<L: Ledger>(name: &str) {
    model(
        name,
        // It takes the sign away, even where it is stale.
        &[[Recorded, Recorded], [Recorded, Unchanged], [Stale, Recorded], [Stale, Unchanged]],
        || L::holding(2, &[false, false]),
        [
            |ledger: &L| ledger.settle(true),
            |ledger| {
                ledger.begin();
                assert_eq!([ledger.call(false), ledger.call(false)], [Recorded; 2]);
                ledger.call(false)
            },
        ],
        |ledger: &L, told| {
            assert_eq!(window(ledger, 2), "ss");
            told
        },
    );
}

/// The words of a target, whose policy has no rule to trip by.
#[derive(Debug)]
pub struct Real(Desk);

impl Real {
    fn end(&self, token: Token, failed: bool) -> Told {
        let ending = Ending::Settled(if failed { Outcome::Failure } else { Outcome::Success });
        // As the engine does; the permit is kept, since the models are about the window.
        if self.0.words.glance(token, ending) == Glance::Unchanged {
            return Unchanged;
        }
        if self.0.record(token, ending, 0).0 == "recorded" { Recorded } else { Stale }
    }
}

impl Ledger for Real {
    fn holding(size: u32, failures: &[bool]) -> Self {
        // Too few permits for stashes, which would be steps of their own.
        let policy = Policy::builder().window(Window::calls(size)).no_failure_rate().max_in_flight(3);
        let ledger = Self(Desk::with_calls(build(policy), 1));
        for failed in failures {
            ledger.settle(*failed);
        }
        ledger
    }

    fn take_sign_away(&self) {
        self.0.words.clean.while_marking(|| ());
    }

    fn settle(&self, failed: bool) -> Told {
        self.end(self.0.granted(0), failed)
    }

    fn begin(&self) {
        self.0.by_hand(Cause::PolicyChanged, |gate| gate.restart(Now::default()));
    }

    fn call(&self, failed: bool) -> Told {
        let (token, _) = self.0.admit(0);
        let told = token.map(|token| self.end(token, failed)).unwrap_or_else(|reason| panic!("{reason}"));
        self.0.words.release();
        told
    }

    fn counts(&self, newest: u32) -> (u32, u32) {
        self.0.words.calls.counts(self.0.words.gate.load().generation(), newest)
    }
}
