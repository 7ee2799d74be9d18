//! The reported faults, as scenarios: the same steps on every subject, and what it answered.
//!
//! A scenario knows a subject by what its callers see: who is admitted, and when. It reads no state, so that nothing
//! depends on what a subject calls its states.

pub mod callback;
pub mod keys;
pub mod killed;
pub mod late;
pub mod lost;
pub mod probes;
pub mod steps;
pub mod window;

use std::time::Duration;

use crate::bounded::{self, Ended};
use crate::subject::{Cannot, Held};

/// One question to all subjects.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The name in the JSON.
    pub id: &'static str,
    /// The row's head.
    pub short: &'static str,
    /// What was done, and what is counted.
    pub question: &'static str,
    /// The answer that a caller may rely on.
    pub right: &'static str,
}

/// What one subject answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// It ran. `is_right` says whether the answer is the one that callers may rely on; None where there is no right or wrong.
    Ran { answer: String, is_right: Option<bool> },
    /// The subject has no such feature.
    Cant(Cannot),
}

impl Cell {
    pub(crate) fn judged(answer: impl Into<String>, is_right: bool) -> Self {
        Self::Ran { answer: answer.into(), is_right: Some(is_right) }
    }

    pub(crate) fn plain(answer: impl Into<String>) -> Self {
        Self::Ran { answer: answer.into(), is_right: None }
    }
}

/// Why a run says nothing.
#[derive(Clone, Copy, Debug)]
pub enum Void {
    /// The machine stalled: steps that belong inside a real wait took longer than it. Run again.
    Stalled,
    /// The subject lacks a feature that the steps need.
    Cant(Cannot),
    /// The steps that lead up to the question didn't: it never opened, or never let a probe pass.
    Unprepared(&'static str),
}

pub type Answer = Result<Cell, Void>;

/// No scenario takes longer than this, its repetitions included; one that does is stuck.
const DEADLINE: Duration = Duration::from_secs(60);
const REPEATS: usize = 8;

/// A scenario, and its steps on one kind of subject.
pub type Row = (Scenario, fn() -> Answer);

/// All scenarios, in the order of the report.
#[must_use]
pub fn rows<P: Held>() -> Vec<Row> {
    vec![
        (probes::CROWD, probes::crowd::<P>),
        (late::SUCCESS_OPEN, late::success_while_open::<P>),
        (late::SUCCESS_HALF_OPEN, late::success_while_half_open::<P>),
        (late::FAILURE_HALF_OPEN, late::failure_while_half_open::<P>),
        (late::FAILURE_RECOVERED, late::failure_after_recovery::<P>),
        (probes::MINTED, probes::minted::<P>),
        (lost::DROPPED, lost::dropped::<P>),
        (lost::HUNG, lost::hung::<P>),
        (lost::FORGOTTEN, lost::forgotten::<P>),
        (lost::TRICKLE, lost::trickle::<P>),
        (window::SLIDES, window::slides::<P>),
        (window::MIN_CALLS, window::completes_min_calls::<P>),
        (killed::HUNG, killed::hung_upstream::<P>),
        (killed::IMPATIENT, killed::impatient_clients::<P>),
        (probes::PERMITS, probes::permits::<P>),
        (keys::EACH, keys::each::<P>),
        (keys::TURNOVER, keys::turnover::<P>),
        (keys::BOUND_KEPT, keys::bounded::<P>),
        (callback::REENTERS, callback::reenters::<P>),
    ]
}

/// One subject's column.
#[must_use]
pub fn column<P: Held>() -> Vec<Cell> {
    rows::<P>().into_iter().map(|(scenario, steps)| run(P::NAME, scenario, steps)).collect()
}

fn run(name: &str, scenario: Scenario, steps: fn() -> Answer) -> Cell {
    let repeated = move || {
        let runs = (0..REPEATS).map(|_| steps());
        runs.into_iter().find(|answer| !matches!(answer, Err(Void::Stalled))).unwrap_or(Err(Void::Stalled))
    };
    match bounded::run(DEADLINE, repeated) {
        Ended::Done(Ok(cell)) => cell,
        Ended::Done(Err(Void::Cant(what))) => Cell::Cant(what),
        Ended::Done(Err(Void::Stalled)) => {
            eprintln!("{name}: {}: the machine is too busy for real waits", scenario.id);
            Cell::plain("too busy")
        }
        Ended::Done(Err(Void::Unprepared(why))) => Cell::judged(why, false),
        Ended::Panicked => Cell::judged("panics", false),
        Ended::Stuck => Cell::judged("stuck", false),
    }
}
