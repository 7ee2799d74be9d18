//! Which numbers there are of a target: one table each of gauges and counters, read out of a snapshot in its order.

use crate::gate::State;
use crate::policy::UNLIMITED;
use crate::snapshot::Snapshot;

/// Whether a number rises only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It rises only, but for a process that begins anew.
    Counter,
    /// It rises and falls.
    Gauge,
}

/// A metric: what its series have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Family {
    /// Its name, with the unit and `_total` where Prometheus wants them.
    pub name: &'static str,
    /// Whether it rises only.
    pub kind: Kind,
    /// What it says, in a line.
    pub help: &'static str,
}

/// One series of each target: a metric with its labels beside `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Series {
    /// The metric.
    pub family: Family,
    /// Names and values of the labels.
    pub labels: &'static [(&'static str, &'static str)],
}

impl Family {
    /// A metric that rises and falls.
    #[must_use]
    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: Kind::Gauge, help }
    }

    /// A metric that rises only; its name ends in `_total`.
    #[must_use]
    pub const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: Kind::Counter, help }
    }
}

impl Series {
    /// One of a metric's series.
    #[must_use]
    pub const fn new(family: Family, labels: &'static [(&'static str, &'static str)]) -> Self {
        Self { family, labels }
    }
}

const STATE: Family = Family::gauge(
    "portcullis_target_state",
    "1 for the state that a caller would meet, 0 for the others; of several targets, how many are in it.",
);
const CALLS: Family = Family::counter("portcullis_calls_total", "Calls that have ended, by how.");
const REFUSED: Family = Family::counter("portcullis_refusals_total", "Calls that weren't admitted, by reason.");
const TRANSITIONS: Family = Family::counter("portcullis_transitions_total", "Changes of the target's state.");

/// The gauges of a target.
pub const GAUGES: [Series; 13] = [
    Series::new(STATE, &[("state", "CLOSED")]),
    Series::new(STATE, &[("state", "OPEN")]),
    Series::new(STATE, &[("state", "HALF_OPEN")]),
    Series::new(STATE, &[("state", "FORCED_OPEN")]),
    Series::new(STATE, &[("state", "DISABLED")]),
    Series::new(Family::gauge("portcullis_in_flight", "Calls in flight, probes among them."), &[]),
    Series::new(Family::gauge("portcullis_probes_in_flight", "Probes in flight."), &[]),
    Series::new(Family::gauge("portcullis_stalled", "Calls that have been running for stall_after."), &[]),
    Series::new(Family::gauge("portcullis_waiting", "Calls that wait for a permit."), &[]),
    Series::new(
        Family::gauge(
            "portcullis_limit",
            "The limit on calls in flight that is in force; +Inf if they are only counted.",
        ),
        &[],
    ),
    Series::new(
        Family::gauge("portcullis_full_limit", "The limit that was set: what a ramp or an adaptive limit leads to."),
        &[],
    ),
    Series::new(
        Family::gauge("portcullis_reopenings", "Failed probes in a row, and relapses while the limit ramped, to 31."),
        &[],
    ),
    Series::new(
        Family::gauge(
            "portcullis_last_transition_timestamp_seconds",
            "When the state last changed, in unix time; 0 if it never did.",
        ),
        &[],
    ),
];

/// Which gauge of a sum of targets is the largest of theirs.
pub(super) const LATEST: usize = GAUGES.len() - 1;

/// The counters of a target that its snapshot has.
pub const COUNTERS: [Series; 14] = [
    Series::new(Family::counter("portcullis_admitted_total", "Calls that were admitted."), &[]),
    Series::new(CALLS, &[("outcome", "success")]),
    Series::new(CALLS, &[("outcome", "failure")]),
    Series::new(CALLS, &[("outcome", "ignored")]),
    Series::new(CALLS, &[("outcome", "abandoned")]),
    Series::new(CALLS, &[("outcome", "stale")]),
    Series::new(
        Family::counter("portcullis_slow_calls_total", "Successes and failures that took at least slow_call."),
        &[],
    ),
    Series::new(REFUSED, &[("reason", "open")]),
    Series::new(REFUSED, &[("reason", "probing")]),
    Series::new(REFUSED, &[("reason", "saturated")]),
    Series::new(REFUSED, &[("reason", "shed")]),
    Series::new(REFUSED, &[("reason", "forced")]),
    Series::new(Family::counter("portcullis_waited_total", "Calls that ever waited for a permit."), &[]),
    Series::new(Family::counter("portcullis_probes_total", "Calls that were admitted as probes."), &[]),
];

pub(super) fn gauges(snapshot: &Snapshot, last_transition: f64) -> [f64; GAUGES.len()] {
    let state = |state| f64::from(snapshot.state == state);
    let limit = |limit| if limit == UNLIMITED { f64::INFINITY } else { f64::from(limit) };
    [
        state(State::Closed),
        state(State::Open),
        state(State::HalfOpen),
        state(State::ForcedOpen),
        state(State::Disabled),
        f64::from(snapshot.in_flight),
        f64::from(snapshot.probes_in_flight),
        snapshot.stalled as f64,
        f64::from(snapshot.waiting),
        limit(snapshot.limit),
        limit(snapshot.full_limit),
        f64::from(snapshot.reopens),
        last_transition,
    ]
}

pub(super) fn counters(snapshot: &Snapshot) -> [u64; COUNTERS.len()] {
    let (totals, refusals) = (snapshot.totals, snapshot.refusals);
    [
        totals.admitted,
        totals.success,
        totals.failure,
        totals.ignored,
        totals.abandoned,
        totals.stale,
        totals.slow,
        refusals.open,
        refusals.probing,
        refusals.saturated,
        refusals.shed,
        refusals.forced,
        snapshot.waited,
        snapshot.probes_granted,
    ]
}

/// The place of a state in the tables.
const fn place(state: State) -> usize {
    match state {
        State::Closed => 0,
        State::Open => 1,
        State::HalfOpen => 2,
        State::ForcedOpen => 3,
        State::Disabled => 4,
    }
}

macro_rules! moves {
    ($($from:literal),*) => {
        [$([
            Series::new(TRANSITIONS, &[("from", $from), ("to", "CLOSED")]),
            Series::new(TRANSITIONS, &[("from", $from), ("to", "OPEN")]),
            Series::new(TRANSITIONS, &[("from", $from), ("to", "HALF_OPEN")]),
            Series::new(TRANSITIONS, &[("from", $from), ("to", "FORCED_OPEN")]),
            Series::new(TRANSITIONS, &[("from", $from), ("to", "DISABLED")]),
        ],)*]
    };
}

const STATES: usize = 5;
const BY_STATE: [[Series; STATES]; STATES] = moves!["CLOSED", "OPEN", "HALF_OPEN", "FORCED_OPEN", "DISABLED"];

/// The counters of a target's transitions.
pub const MOVES: &[Series] = BY_STATE.as_flattened();

/// How often a target made each of [`MOVES`].
pub type Moves = [u64; STATES * STATES];

/// The place of a transition among [`MOVES`].
pub(super) const fn moved(from: State, to: State) -> usize {
    place(from) * STATES + place(to)
}

/// Whether a transition is shown before there was one, so that the first is seen as an increase: those of a breaker by itself.
pub(super) fn is_usual(at: usize) -> bool {
    use State::{Closed, HalfOpen, Open};
    [(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed), (HalfOpen, Open)].iter().any(|&(a, b)| moved(a, b) == at)
}

#[cfg(feature = "call")]
pub(super) mod calls {
    use super::{Family, Series};
    use crate::call::CallCounts;

    const DEADLINE: Family = Family::counter(
        "portcullis_deadlines_total",
        "Deadlines that ended a call or an attempt: passed on arrival, or while an attempt ran.",
    );
    const TIMEOUTS: Family = Family::counter("portcullis_timeouts_total", "Attempts without an answer in their time.");
    const KEPT: Family = Family::counter("portcullis_retries_refused_total", "Retries that weren't made, by reason.");
    const FALLBACKS: Family = Family::counter(
        "portcullis_fallbacks_total",
        "Failures answered by a fallback, by its kind; failed if it failed, too.",
    );

    /// The counters of a target that its whole calls have.
    pub const CALLS: [Series; 16] = [
        Series::new(Family::counter("portcullis_whole_calls_total", "Whole calls."), &[]),
        Series::new(
            Family::counter(
                "portcullis_whole_calls_failed_total",
                "Whole calls that failed, whatever their callers got.",
            ),
            &[],
        ),
        Series::new(
            Family::counter(
                "portcullis_whole_calls_refused_total",
                "Whole calls that ended with a refusal by the engine.",
            ),
            &[],
        ),
        Series::new(Family::counter("portcullis_attempts_total", "Attempts of whole calls that were admitted."), &[]),
        Series::new(Family::counter("portcullis_retries_total", "Attempts that weren't their call's first."), &[]),
        Series::new(TIMEOUTS, &[("probe", "false")]),
        Series::new(TIMEOUTS, &[("probe", "true")]),
        Series::new(DEADLINE, &[("when", "arrival")]),
        Series::new(DEADLINE, &[("when", "attempt")]),
        Series::new(KEPT, &[("reason", "budget")]),
        Series::new(KEPT, &[("reason", "deadline")]),
        Series::new(KEPT, &[("reason", "body")]),
        Series::new(FALLBACKS, &[("kind", "value")]),
        Series::new(FALLBACKS, &[("kind", "function")]),
        Series::new(FALLBACKS, &[("kind", "stale")]),
        Series::new(FALLBACKS, &[("kind", "failed")]),
    ];

    /// The values of [`CALLS`].
    #[must_use]
    pub fn call_counters(counts: &CallCounts) -> [u64; CALLS.len()] {
        [
            counts.calls,
            counts.failed,
            counts.rejected,
            counts.attempts,
            counts.retries,
            counts.timeouts.saturating_sub(counts.probe_timeouts),
            counts.probe_timeouts,
            counts.deadline_refused,
            counts.deadline_cut,
            counts.budget_refused,
            counts.deadline_kept,
            counts.not_replayable,
            counts.fallback_value,
            counts.fallback_function,
            counts.fallback_stale,
            counts.fallback_failed,
        ]
    }
}

/// The metrics of the engine as a whole, but for [`TARGETS`], with their readings in the same order.
pub const ENGINE: [Family; 3] = [
    Family::counter("portcullis_exhausted_total", "Calls refused because the engine had no room for their target."),
    Family::counter("portcullis_observer_panics_total", "Panics of observers that were caught."),
    Family::counter(
        "portcullis_transitions_dropped_total",
        "Transitions that the log has no room for any more, or never got.",
    ),
];

/// How many targets the engine holds.
pub const TARGETS: Family = Family::gauge("portcullis_targets", "Targets that the engine holds.");

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Series> {
        let all = GAUGES.iter().chain(&COUNTERS).chain(MOVES);
        #[cfg(feature = "call")]
        let all = all.chain(&calls::CALLS);
        all.copied()
    }

    #[test]
    fn no_series_is_there_twice_and_those_of_a_family_stand_together() {
        let mut seen: Vec<Series> = Vec::new();
        for series in all() {
            let again = seen.iter().rposition(|before| before.family.name == series.family.name);
            assert!(again.is_none_or(|place| place + 1 == seen.len()), "{series:?}");
            assert!(!seen.contains(&series), "{series:?}");
            seen.push(series);
        }
    }

    #[test]
    fn names_are_such_as_prometheus_wants() {
        for Series { family, labels } in all() {
            assert_eq!(family.name.ends_with("_total"), family.kind == Kind::Counter, "{family:?}");
            assert!(family.name.starts_with("portcullis_") && family.help.ends_with('.'), "{family:?}");
            let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            assert!(is_plain(family.name) && labels.iter().all(|(name, _)| is_plain(name) && *name != "target"));
        }
    }

    #[test]
    fn the_chapter_tells_how_to_read_each() {
        let chapter = include_str!("../docs/metrics.rs");
        for name in all().map(|series| series.family.name).chain([TARGETS.name]).chain(ENGINE.map(|family| family.name))
        {
            assert!(chapter.contains(&format!("`{name}`")), "{name}");
        }
    }

    #[test]
    fn every_state_is_written_as_everywhere_else() {
        let all = [State::Closed, State::Open, State::HalfOpen, State::ForcedOpen, State::Disabled];
        for (state, series) in all.iter().zip(&GAUGES) {
            assert_eq!(series.labels, [("state", state.as_str())]);
        }
        for (from, to) in all.iter().flat_map(|from| all.iter().map(move |to| (*from, *to))) {
            assert_eq!(MOVES[moved(from, to)].labels, [("from", from.as_str()), ("to", to.as_str())]);
        }
    }
}
