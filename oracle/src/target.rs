//! One target: its state, and who may enter.

use std::rc::Rc;
use std::time::Duration;

use portcullis::{Cause, Policy, Priority, Refusals, Rejection, State, Totals};

use crate::Twin;
use crate::ramp::Ramp;
use crate::rules::Rules;
use crate::window::{Counts, Window};

pub(crate) const NANOS_PER_MS: u64 = 1_000_000;
const NANOS_PER_S: u64 = 1_000_000_000;
/// Where ticks stand still, 2.18 and 2.13 years from the start: waits and leases that end later are over by then.
pub(crate) const LAST_MS: u64 = (1 << 36) - 1;
const LAST_S: u64 = (1 << 26) - 1;
const GENERATIONS: u32 = 1 << 20;

#[derive(Clone, Debug)]
pub(crate) enum Phase {
    Closed(Window),
    /// The two differ until the engine's own draw is known.
    Open {
        reopen_ms: u64,
        latest_ms: u64,
    },
    HalfOpen {
        probes: u32,
        successes: u32,
        ignored: u64,
        lease_end_s: u64,
    },
    ForcedOpen,
    Disabled,
}

impl Phase {
    pub(crate) fn state(&self) -> State {
        match self {
            Self::Closed(_) => State::Closed,
            Self::Open { .. } => State::Open,
            Self::HalfOpen { .. } => State::HalfOpen,
            Self::ForcedOpen => State::ForcedOpen,
            Self::Disabled => State::Disabled,
        }
    }
}

/// The settings in force, and the same as the real engine has them.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) rules: Rules,
    pub(crate) policy: Policy,
}

/// The right to run one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) place: usize,
    pub(crate) generation: u32,
    pub(crate) is_probe: bool,
    pub(crate) is_async: bool,
    pub(crate) started: Option<u64>,
    pub(crate) answered: Option<u64>,
    pub(crate) alive: Option<u64>,
    /// Whether it is counted among the running calls of its generation.
    pub(crate) is_watched: bool,
    pub(crate) asked_ms: u64,
}

/// Why a CLOSED target opened: rule, count, calls and threshold of all that was met, and what was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) met: Vec<(portcullis::Rule, u64, u64, u64)>,
    pub(crate) streak: u64,
    pub(crate) counts: Counts,
    pub(crate) stalled: u64,
    pub(crate) policy_version: u32,
}

/// What a transition must say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct News {
    pub(crate) key: u8,
    pub(crate) from: State,
    pub(crate) to: State,
    pub(crate) cause: Cause,
    pub(crate) sequence: u64,
    pub(crate) generation: u32,
    pub(crate) incarnation: u64,
    pub(crate) at: Duration,
    pub(crate) proof: Option<Proof>,
    pub(crate) asked: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) twin: Twin,
    pub(crate) key: u8,
    pub(crate) place: usize,
    pub(crate) incarnation: u64,
    pub(crate) terms: Rc<Terms>,
    pub(crate) policy_version: u32,
    pub(crate) phase: Phase,
    pub(crate) generation: u32,
    pub(crate) sequence: u64,
    pub(crate) reopens: u32,
    /// The full limit, of the policy or set by hand.
    pub(crate) limit: u32,
    pub(crate) ramp: Option<Ramp>,
    /// The wait that the failure at hand asked for, in ms; 0 if none.
    pub(crate) asked_ms: u64,
    pub(crate) in_flight: u32,
    pub(crate) settled: u64,
    pub(crate) totals: Totals,
    pub(crate) refusals: Refusals,
    /// The newest bucket of any window that this place had.
    pub(crate) newest_ms: Option<u64>,
    /// When the calls of this generation that run began, if they are counted.
    pub(crate) running: Vec<u64>,
    /// The tick in which a caller last judged them.
    pub(crate) judged: Option<u64>,
    /// Whether this place ever counted running calls.
    pub(crate) has_counted: bool,
    pub(crate) is_configured: bool,
    pub(crate) handles: u32,
    /// What moved when the sweeper last saw something new, and when that was.
    pub(crate) sighting: Option<(u64, u64)>,
    pub(crate) news: Vec<News>,
}

impl Target {
    /// The tenant of a fresh place.
    pub(crate) fn new(twin: Twin, key: u8, place: usize, incarnation: u64, terms: Rc<Terms>) -> Self {
        Self {
            twin,
            key,
            place,
            incarnation,
            limit: terms.rules.limit,
            terms,
            policy_version: 0,
            phase: Phase::Closed(Window::new(0)),
            generation: 0,
            sequence: 0,
            reopens: 0,
            ramp: None,
            asked_ms: 0,
            in_flight: 0,
            settled: 0,
            totals: Totals::default(),
            refusals: Refusals::default(),
            newest_ms: None,
            running: Vec::new(),
            judged: None,
            has_counted: false,
            is_configured: false,
            handles: 0,
            sighting: None,
            news: Vec::new(),
        }
    }

    pub(crate) fn shown(&self, now: u64) -> State {
        match self.phase {
            Phase::Open { reopen_ms, .. } if self.has_elapsed(reopen_ms, now) => State::HalfOpen,
            _ => self.phase.state(),
        }
    }

    fn has_elapsed(&self, reopen_ms: u64, now: u64) -> bool {
        let now_ms = now / NANOS_PER_MS;
        if self.twin == Twin::WaitsTooLong { now_ms > reopen_ms } else { now_ms >= reopen_ms }
    }

    /// When something is due, in nanoseconds: the wait's or lease's end, or the end of the present bucket.
    pub(crate) fn due(&self, now: u64) -> Option<u64> {
        match &self.phase {
            Phase::Open { reopen_ms, .. } => Some(reopen_ms * NANOS_PER_MS),
            Phase::HalfOpen { lease_end_s, .. } => Some(lease_end_s * NANOS_PER_S),
            Phase::Closed(_) if self.stalls_at(now).is_some() => self.stalls_at(now),
            Phase::Closed(window) => {
                let end = window.bucket_end(self.terms.rules.shape, now / NANOS_PER_MS);
                end.map(|end_ms| end_ms * NANOS_PER_MS)
            }
            Phase::ForcedOpen | Phase::Disabled => None,
        }
    }

    /// A window that begins now: after every bucket that was, so that none can be taken for one of its own.
    pub(crate) fn fresh(&self, now: u64) -> Phase {
        let after = self.newest_ms.map_or(0, |newest_ms| newest_ms + 1);
        Phase::Closed(Window::new((now / NANOS_PER_MS).max(after)))
    }

    /// OPEN from now on, for the wait after so many failed probes (R6, R7).
    pub(crate) fn open(&self, now: u64, reopens: u32) -> Phase {
        let deaf = self.twin == Twin::DeafToRetryAfter;
        let asked = if deaf { 0 } else { self.asked_ms.min(self.terms.rules.longest_ms) };
        let (least, longest) = self.terms.rules.wait(if self.twin == Twin::ForgetsReopens { 0 } else { reopens });
        let end = |wait_ms: u64| (now.div_ceil(NANOS_PER_MS) + wait_ms).min(LAST_MS);
        Phase::Open { reopen_ms: end(least.max(asked)), latest_ms: end(longest.max(asked)) }
    }

    /// One state change: a new generation, reported once (R20).
    pub(crate) fn go(&mut self, to: Phase, cause: Cause, now: u64, proof: Option<Proof>) {
        let from = self.phase.state();
        let asked_ms = if to.state() == State::Open { self.asked_ms } else { 0 };
        self.phase = to;
        self.judged = None;
        if self.twin != Twin::KeepsRunning {
            self.running.clear();
        }
        self.generation = (self.generation + 1) % GENERATIONS;
        self.sequence += 1;
        self.news.push(News {
            key: self.key,
            from,
            to: self.phase.state(),
            cause,
            sequence: self.sequence,
            generation: self.generation,
            incarnation: self.incarnation,
            at: Duration::from_nanos(now),
            proof,
            asked: (asked_ms > 0).then(|| Duration::from_millis(asked_ms)),
        });
    }

    pub(crate) fn admit(&mut self, now: u64, is_async: bool, priority: Priority) -> Result<Token, Rejection> {
        if let Some(rejection) = self.judged_by_caller(now) {
            return Err(rejection);
        }
        self.see_ramp_end(now);
        let rules = &self.terms.rules;
        let (limit, _) = self.limit_at(now);
        let room = if self.twin == Twin::ShedsNobody { limit } else { rules.room(priority, limit) };
        let has_room = self.in_flight < room;
        let lease_end_s = (now.div_ceil(NANOS_PER_S) + rules.lease_s).min(LAST_S);
        let half_open = Phase::HalfOpen { probes: 1, successes: 0, ignored: 0, lease_end_s };
        let spends = has_room || self.twin == Twin::ProbesWhileFull;
        let is_probe = match &mut self.phase {
            Phase::Closed(_) | Phase::Disabled => false,
            Phase::ForcedOpen => {
                self.refusals.forced += 1;
                return Err(Rejection::ForcedOpen);
            }
            &mut Phase::Open { reopen_ms, .. } => {
                if !self.has_elapsed(reopen_ms, now) {
                    self.refusals.open += 1;
                    let retry_after = Duration::from_nanos((reopen_ms * NANOS_PER_MS).saturating_sub(now));
                    return Err(Rejection::Open { retry_after });
                }
                if spends {
                    self.go(half_open, Cause::WaitElapsed, now, None);
                }
                true
            }
            Phase::HalfOpen { probes, lease_end_s: end_s, .. } if *probes < rules.probes => {
                if spends {
                    *probes += 1;
                    if self.twin != Twin::LeaseOnlyAtEntry {
                        *end_s = lease_end_s;
                    }
                }
                true
            }
            &mut Phase::HalfOpen { lease_end_s: end_s, .. } => {
                if now / NANOS_PER_S < end_s {
                    self.refusals.probing += 1;
                    let retry_after = Duration::from_nanos(end_s * NANOS_PER_S - now);
                    return Err(Rejection::Probing { retry_after });
                }
                if spends {
                    self.go(half_open, Cause::LeaseExpired, now, None);
                }
                true
            }
        };
        if !has_room && self.in_flight < limit {
            self.refusals.shed += 1;
            return Err(Rejection::Shed { priority });
        }
        if !has_room {
            self.refusals.saturated += 1;
            return Err(Rejection::Saturated { limit });
        }
        self.in_flight += 1;
        self.totals.admitted += 1;
        let started = (is_async || self.terms.rules.times_calls()).then_some(now);
        let is_watched = self.begins(now);
        let (place, generation) = (self.place, self.generation);
        Ok(Token {
            place,
            generation,
            is_probe,
            is_async,
            started,
            answered: None,
            alive: None,
            is_watched,
            asked_ms: 0,
        })
    }

    /// Learns the engine's draw: any whole millisecond between the least and the longest wait will do.
    pub(crate) fn learn(&mut self, reopen_in: Option<Duration>, now: u64) {
        if let (Phase::Open { reopen_ms, latest_ms }, Some(reopen_in)) = (&mut self.phase, reopen_in) {
            let reopen_at = now + reopen_in.as_nanos() as u64;
            if *reopen_ms != *latest_ms {
                assert_eq!(reopen_at % NANOS_PER_MS, 0, "a wait ends on a whole millisecond");
                let drawn = reopen_at / NANOS_PER_MS;
                assert!((*reopen_ms..=*latest_ms).contains(&drawn), "drew {drawn}, not {reopen_ms} to {latest_ms} ms");
                (*reopen_ms, *latest_ms) = (drawn, drawn);
            }
        }
    }
}
