//! A callback that asks the subject it was called by: what a logger does that reads the state, or a shedder that reacts.

use std::cell::Cell as Flag;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use super::steps::{KEY, needs, trip, wait_out};
use super::{Answer, Cell, Scenario, Void};
use crate::bounded::{self, Ended};
use crate::subject::{Cannot, Ending, Held, Hook, Rule, Settings};

pub const REENTERS: Scenario = Scenario {
    id: "callback_reenters",
    short: "callback that asks back",
    question: "Its callback for changes of state asks for a call itself. It opens, probes, closes, opens again and is closed by hand: at \
               which step does it deadlock?",
    right: "returns",
};

/// A step that takes longer is deadlocked: each takes less than a few real waits.
const DEADLINE: Duration = Duration::from_secs(4);

thread_local! {
    /// Whether this thread is in the callback: what it changes there must not call it again and again.
    static INSIDE: Flag<bool> = const { Flag::new(false) };
}

/// A step of the scenario, run in a thread of its own.
type Step<P> = fn(&P) -> Result<(), Void>;

pub fn reenters<P: Held>() -> Answer {
    needs::<P>(&[Cannot::Break, Cannot::Observe])?;
    let (calls, home) = (Arc::new(AtomicUsize::new(0)), Arc::new(OnceLock::<Weak<P>>::new()));
    let subject = Arc::new(P::build(&Settings::of::<P>(Rule::Any), Some(hook(Arc::clone(&calls), Arc::clone(&home)))));
    // Weak, so that the subject doesn't hold itself.
    let _ = home.set(Arc::downgrade(&subject));
    let steps: [(&str, Step<P>); 3] =
        [("opening", |subject| trip(subject).map(drop)), ("closing", close), ("by hand", by_hand)];
    for (name, step) in steps {
        let subject = Arc::clone(&subject);
        match bounded::run(DEADLINE, move || step(&subject)) {
            Ended::Done(done) => done?,
            Ended::Panicked => return Ok(Cell::judged(format!("panics {name}"), false)),
            Ended::Stuck => return Ok(Cell::judged(format!("stuck {name}"), false)),
        }
    }
    if calls.load(Ordering::SeqCst) == 0 {
        Err(Void::Unprepared("never called"))
    } else {
        Ok(Cell::judged("returns", true))
    }
}

fn hook<P: Held>(calls: Arc<AtomicUsize>, home: Arc<OnceLock<Weak<P>>>) -> Hook {
    Arc::new(move || {
        if INSIDE.replace(true) {
            return;
        }
        calls.fetch_add(1, Ordering::SeqCst);
        if let Some(subject) = home.get().and_then(Weak::upgrade)
            && let Some(call) = subject.admit(KEY)
        {
            subject.settle(call, Ending::Success);
        }
        INSIDE.set(false);
    })
}

fn close<P: Held>(subject: &P) -> Result<(), Void> {
    wait_out(subject);
    // The callback may have been the probe.
    if let Some(probe) = subject.admit(KEY) {
        subject.settle(probe, Ending::Success);
    }
    if subject.once(KEY, Ending::Success) { Ok(()) } else { Err(Void::Unprepared("doesn't close")) }
}

fn by_hand<P: Held>(subject: &P) -> Result<(), Void> {
    trip(subject)?;
    subject.close_by_hand();
    Ok(())
}
