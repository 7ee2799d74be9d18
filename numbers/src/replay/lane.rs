//! What one policy would have done with the calls to one target.

use std::sync::Arc;
use std::time::Duration;

use portcullis::{Cause, Engine, Evidence, Outcome, Rejection, State, Transition};

use super::series::{Merge, Scale, Series};
use crate::policies::Terms;

/// Successes in a row after which an earlier failure is no part of what comes.
const OVER: u32 = 10;
/// Transitions that are kept of a target under a policy.
const KEPT: usize = 1_000;

/// A call as it was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// Nanoseconds since the beginning.
    pub(super) at: u64,
    pub(super) latency: u64,
    pub(super) outcome: Outcome,
}

/// How a call that was admitted ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// Nanoseconds since the beginning.
    pub(super) at: u64,
    pub(super) outcome: Outcome,
}

/// A state change of the engine.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    /// Nanoseconds since the beginning.
    pub(super) at: u64,
    pub(super) from: State,
    pub(super) to: State,
    pub(super) cause: Cause,
    pub(super) evidence: Option<Box<Evidence>>,
    pub(super) wait: Option<Duration>,
}

/// What was counted over all of the log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) admitted: u64,
    /// Refused while open, while probing, for want of room.
    pub(super) open: u64,
    pub(super) probing: u64,
    pub(super) saturated: u64,
    /// Refusals by what the log says came of the call.
    pub(super) refused_good: u64,
    pub(super) refused_failed: u64,
    pub(super) refused_left: u64,
    /// Ended by the policy's timeout, and those of them that the log has as successes.
    pub(super) cut: u64,
    pub(super) cut_good: u64,
    pub(super) probes: u64,
    pub(super) trips: u64,
    pub(super) reopened: u64,
    pub(super) peak: u32,
    /// Nanoseconds that callers didn't wait: for failed calls that were refused, and after the timeout of those that were cut.
    pub(super) spared: u128,
    /// Nanoseconds open, and half-open or ready to be.
    pub(super) open_for: u64,
    pub(super) half_open_for: u64,
    /// Nanoseconds from the first failure of an outage to the first trip.
    pub(super) first_trip_after: Option<u64>,
}

impl Counts {
    pub(super) fn refused(&self) -> u64 {
        self.open + self.probing + self.saturated
    }
}

/// A bucket's share of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Point {
    pub(super) admitted: u32,
    /// Because the circuit wasn't closed.
    pub(super) turned_away: u32,
    /// Because there was no room.
    pub(super) full: u32,
    /// Among those refused.
    pub(super) good: u32,
    pub(super) failed: u32,
    pub(super) peak: u32,
    /// None if calls are only counted.
    pub(super) limit: Option<u32>,
}

impl Merge for Point {
    fn merge(&mut self, later: &Self) {
        let Self { admitted, turned_away, full, good, failed, peak, limit } = later;
        self.admitted += admitted;
        self.turned_away += turned_away;
        self.full += full;
        self.good += good;
        self.failed += failed;
        self.peak = self.peak.max(*peak);
        self.limit = *limit;
    }
}

/// One target under one policy.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) engine: Arc<Engine>,
    pub(super) name: String,
    timeout: Option<u64>,
    probe_timeout: Option<u64>,
    state: State,
    since: u64,
    /// When the open wait is over.
    ready: u64,
    in_flight: u32,
    /// Since the last successes in a row.
    first_failure: Option<u64>,
    successes: u32,
    pub(super) counts: Counts,
    pub(super) moments: Vec<Moment>,
    pub(super) untold: u64,
    pub(super) series: Series<Point>,
}

impl Lane {
    pub(super) fn new(engine: Arc<Engine>, name: String, terms: &Terms) -> Self {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let timeout = terms.timeout.map(nanos);
        // One that isn't set is the timeout, be that set or not.
        let probe_timeout = terms.call.probe_timeout();
        let probe_timeout = (probe_timeout < terms.call.timeout()).then(|| nanos(probe_timeout));
        Self {
            engine,
            name,
            timeout,
            probe_timeout: probe_timeout.or(timeout),
            state: State::Closed,
            since: 0,
            ready: 0,
            in_flight: 0,
            first_failure: None,
            successes: 0,
            counts: Counts::default(),
            moments: Vec::new(),
            untold: 0,
            series: Series::default(),
        }
    }

    /// Counts a call that was admitted; how it ends.
    pub(super) fn admit(&mut self, call: Asked, is_probe: bool, scale: Scale) -> Ending {
        self.in_flight += 1;
        self.counts.admitted += 1;
        self.counts.probes += u64::from(is_probe);
        self.counts.peak = self.counts.peak.max(self.in_flight);
        let in_flight = self.in_flight;
        let point = self.point(call.at, scale);
        point.admitted += 1;
        point.peak = point.peak.max(in_flight);
        let timeout = if is_probe { self.probe_timeout } else { self.timeout };
        match timeout.filter(|timeout| call.latency > *timeout) {
            Some(timeout) => {
                self.counts.cut += 1;
                self.counts.cut_good += u64::from(call.outcome == Outcome::Success);
                self.counts.spared += u128::from(call.latency - timeout);
                Ending { at: call.at.saturating_add(timeout), outcome: Outcome::Failure }
            }
            None => Ending { at: call.at.saturating_add(call.latency), outcome: call.outcome },
        }
    }

    /// Counts a call that was refused.
    pub(super) fn refuse(&mut self, call: Asked, why: Rejection, scale: Scale) {
        let is_full = match why {
            Rejection::Probing { .. } => {
                self.counts.probing += 1;
                false
            }
            // Calls are asked for as critical, which are never shed, and the engine has room for every target of the file.
            Rejection::Saturated { .. } | Rejection::Shed { .. } | Rejection::Exhausted { .. } => {
                self.counts.saturated += 1;
                true
            }
            _ => {
                self.counts.open += 1;
                false
            }
        };
        match call.outcome {
            Outcome::Success => self.counts.refused_good += 1,
            Outcome::Failure => {
                self.counts.refused_failed += 1;
                self.counts.spared += u128::from(call.latency);
            }
            _ => self.counts.refused_left += 1,
        }
        let in_flight = self.in_flight;
        let point = self.point(call.at, scale);
        point.turned_away += u32::from(!is_full);
        point.full += u32::from(is_full);
        point.good += u32::from(call.outcome == Outcome::Success);
        point.failed += u32::from(call.outcome == Outcome::Failure);
        point.peak = point.peak.max(in_flight);
    }

    /// The bucket of now. The limit is looked at once for each, right after the engine was asked: another look would judge nothing new.
    fn point(&mut self, at: u64, scale: Scale) -> &mut Point {
        let (engine, name) = (&self.engine, self.name.as_str());
        let limit = || engine.snapshot(name).filter(|now| !now.is_unlimited()).map(|now| now.limit);
        self.series.at(scale.bucket(at), || Point { limit: limit(), ..Point::default() })
    }

    /// Counts a call that has ended.
    pub(super) fn end(&mut self, ending: Ending) {
        self.in_flight -= 1;
        match ending.outcome {
            Outcome::Success => {
                self.successes += 1;
                if self.successes >= OVER {
                    self.first_failure = None;
                }
            }
            Outcome::Failure => {
                self.successes = 0;
                self.first_failure = self.first_failure.or(Some(ending.at));
            }
            _ => {}
        }
    }

    pub(super) fn note(&mut self, transition: &Transition) {
        let at = u64::try_from(transition.at.as_nanos()).unwrap_or(u64::MAX);
        self.pass(at);
        self.state = transition.to;
        if transition.to == State::Open {
            self.ready = transition
                .wait
                .map_or(u64::MAX, |wait| at.saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)));
            if transition.from == State::Closed {
                self.counts.trips += 1;
                if self.counts.trips == 1 {
                    self.counts.first_trip_after = self.first_failure.map(|first| at.saturating_sub(first));
                }
            } else {
                self.counts.reopened += 1;
            }
        }
        if self.moments.len() == KEPT {
            self.untold += 1;
            return;
        }
        self.moments.push(Moment {
            at,
            from: transition.from,
            to: transition.to,
            cause: transition.cause,
            evidence: transition.evidence.clone(),
            wait: transition.wait,
        });
    }

    /// Counts the time in the present state, up to now.
    pub(super) fn pass(&mut self, now: u64) {
        let now = now.max(self.since);
        match self.state {
            State::Open => {
                // From then on it is ready to be probed, as the engine's own state says (R14).
                let ready = self.ready.clamp(self.since, now);
                self.counts.open_for += ready - self.since;
                self.counts.half_open_for += now - ready;
            }
            State::HalfOpen => self.counts.half_open_for += now - self.since,
            _ => {}
        }
        self.since = now;
    }
}
