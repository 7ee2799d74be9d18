//! The right to run one call, and the answer to whoever asks for it, as plain data that travels in two registers.

use super::Refused;
use crate::bits::Field;
use crate::counters::{Counter, Refusals};
use crate::gate;
use crate::priority::Priority;
use crate::rejection::Rejection;
use crate::time::Now;
use std::time::Duration;

const GENERATION: Field = Field::lowest(gate::GENERATION_BITS);
const PROBE: Field = GENERATION.above(1);
/// Whether shadows follow the call, by the ticket.
const SHADOWED: Field = PROBE.above(1);
const ASYNC: Field = SHADOWED.above(1);
/// What a refusal has instead of all others.
const REASON: Field = ASYNC.above(4);
const TICKET: Field = REASON.above(32);
const _: () = assert!(TICKET.end() <= 64);

/// When it started, in nanoseconds: 292 years of them.
const STARTED: Field = Field::lowest(63);
/// Whether it is counted among the running calls of its generation, by that.
const WATCHED: Field = STARTED.above(1);
const _: () = assert!(WATCHED.end() == 64);

/// A call that isn't timed.
const UNTIMED: u64 = STARTED.max();

/// The right to run one call. Whoever holds it owes the target a settlement and a release.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// `ticket | async | shadowed | probe | generation`.
    grant: u64,
    /// `watched | started`.
    started: u64,
}

impl Token {
    #[inline]
    pub(super) fn new(gate: gate::Word, is_probe: bool, is_async: bool, started: Option<Now>) -> Self {
        let grant = GENERATION.set(0, gate.generation().into());
        let grant = ASYNC.set(PROBE.set(grant, is_probe.into()), is_async.into());
        Self { grant, started: UNTIMED }.begun(started)
    }

    /// That of a call which no gate let in.
    pub(crate) fn outside(is_async: bool, started: Option<Now>) -> Self {
        Self { grant: ASYNC.set(0, is_async.into()), started: UNTIMED }.begun(started)
    }

    /// The generation that granted it.
    #[must_use]
    #[inline]
    pub const fn generation(self) -> u32 {
        GENERATION.get(self.grant) as u32
    }

    #[must_use]
    #[inline]
    pub const fn is_probe(self) -> bool {
        PROBE.get(self.grant) == 1
    }

    /// Whether its end takes no more than any call's: it is no probe, and no shadow follows it.
    #[inline]
    pub(super) const fn is_plain(self) -> bool {
        self.grant & (PROBE.one() | SHADOWED.one()) == 0
    }

    /// Where the shadows of its target keep what they make of it, if any follow it.
    #[inline]
    pub(crate) const fn ticket(self) -> Option<u32> {
        if SHADOWED.get(self.grant) == 1 { Some(TICKET.get(self.grant) as u32) } else { None }
    }

    /// The same call, followed by shadows or not.
    pub(crate) const fn with_ticket(self, ticket: Option<u32>) -> Self {
        let (is_shadowed, number) = match ticket {
            Some(ticket) => (1, ticket as u64),
            None => (0, 0),
        };
        Self { grant: TICKET.set(SHADOWED.set(self.grant, is_shadowed), number), ..self }
    }

    #[must_use]
    pub const fn is_watched(self) -> bool {
        WATCHED.get(self.started) == 1
    }

    #[inline]
    pub(super) const fn watched(self, is_watched: bool) -> Self {
        Self { started: WATCHED.set(self.started, is_watched as u64), ..self }
    }

    /// Whether dropping it unsettled means what it means for async calls.
    pub(crate) const fn is_async(self) -> bool {
        ASYNC.get(self.grant) == 1
    }

    /// When the call began, if anything is judged by that.
    pub(crate) fn started(self) -> Option<Now> {
        let started = STARTED.get(self.started);
        (started != UNTIMED).then(|| Now::from_nanos(started))
    }

    /// The same call, begun then, and not counted.
    #[inline]
    pub(crate) fn begun(self, at: Option<Now>) -> Self {
        Self { started: at.map_or(UNTIMED, |at| at.nanos() & STARTED.max()), ..self }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct("Token");
        fields.field("generation", &self.generation()).field("is_probe", &self.is_probe());
        fields.field("is_async", &self.is_async()).field("started", &self.started());
        fields.field("is_watched", &self.is_watched()).field("ticket", &self.ticket()).finish()
    }
}

/// What a caller is answered: a token, or a refusal with its one number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    grant: u64,
    value: u64,
}

const OPEN: u64 = 1;
const PROBING: u64 = 2;
const SATURATED: u64 = 3;
const FORCED: u64 = 4;
const EXHAUSTED: u64 = 5;
const RETIRED: u64 = 6;
const SHED: u64 = 7;

impl Answer {
    pub(super) const FORCED_OPEN: Self = Self::refusal(FORCED, 0);
    /// The slot has no tenant, or another: ask the map.
    pub(crate) const RETIRED: Self = Self::refusal(RETIRED, 0);

    #[inline]
    const fn refusal(reason: u64, value: u64) -> Self {
        Self { grant: REASON.set(0, reason), value }
    }

    /// The wait has so many nanoseconds left.
    #[inline]
    pub(crate) const fn open(nanos: u64) -> Self {
        Self::refusal(OPEN, nanos)
    }

    /// The lease has so many nanoseconds left.
    pub(super) const fn probing(nanos: u64) -> Self {
        Self::refusal(PROBING, nanos)
    }

    #[inline]
    pub(crate) const fn saturated(limit: u32) -> Self {
        Self::refusal(SATURATED, limit as u64)
    }

    /// The call is of this priority.
    pub(super) const fn shed(priority: Priority) -> Self {
        Self::refusal(SHED, priority as u64)
    }

    /// Where a refusal is counted.
    pub(super) const fn counter(self, refusals: &Refusals) -> &Counter {
        match REASON.get(self.grant) {
            OPEN => &refusals.open,
            PROBING => &refusals.probing,
            SATURATED => &refusals.saturated,
            SHED => &refusals.shed,
            _ => &refusals.forced,
        }
    }

    /// The engine has no room for more than so many targets.
    pub(crate) const fn exhausted(max_targets: usize) -> Self {
        Self::refusal(EXHAUSTED, max_targets as u64)
    }

    /// The same, with the time to come back put off by so many nanoseconds.
    #[inline]
    pub(crate) const fn later(self, nanos: u64) -> Self {
        match REASON.get(self.grant) {
            OPEN | PROBING => Self { value: self.value.saturating_add(nanos), ..self },
            _ => self,
        }
    }

    /// The answer as a result.
    ///
    /// # Errors
    ///
    /// [`Refused`]
    #[inline(always)]
    pub(crate) const fn told(self) -> Result<Token, Refused> {
        let Self { grant, value } = self;
        Err(Refused::Rejected(match REASON.get(grant) {
            0 => return Ok(Token { grant, started: value }),
            OPEN => Rejection::Open { retry_after: Duration::from_nanos(value) },
            PROBING => Rejection::Probing { retry_after: Duration::from_nanos(value) },
            SATURATED => Rejection::Saturated { limit: value as u32 },
            SHED if value == Priority::Sheddable as u64 => Rejection::Shed { priority: Priority::Sheddable },
            SHED => Rejection::Shed { priority: Priority::Normal },
            FORCED => Rejection::ForcedOpen,
            EXHAUSTED => Rejection::Exhausted { max_targets: value as usize },
            _ => return Err(Refused::Retired),
        }))
    }
}

impl From<Token> for Answer {
    #[inline]
    fn from(Token { grant, started }: Token) -> Self {
        Self { grant, value: started }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_keeps_what_it_is_told() {
        let gate = gate::Word::closed((1 << 20) - 1, 0);
        for (is_probe, is_async, started) in
            [(false, false, None), (true, false, Some(Now::from_nanos(0))), (false, true, Some(Now::from_millis(7)))]
        {
            let token = Token::new(gate, is_probe, is_async, started);
            let Ok(told) = Answer::from(token).told() else { panic!("{token:?} was granted") };
            assert_eq!(told, token);
            assert_eq!((told.generation(), told.is_probe()), ((1 << 20) - 1, is_probe));
            assert_eq!((told.is_async(), told.started(), told.is_watched()), (is_async, started, false));
            let watched = told.watched(true);
            assert_eq!((watched.is_watched(), watched.started(), watched.watched(false)), (true, started, told));
            let followed = told.with_ticket(Some(u32::MAX));
            let Ok(kept) = Answer::from(followed).told() else { panic!("{followed:?} was granted") };
            assert_eq!((kept.ticket(), kept.is_plain(), told.ticket()), (Some(u32::MAX), false, None));
            assert_eq!((kept.generation(), kept.is_async(), kept.with_ticket(None)), ((1 << 20) - 1, is_async, told));
            assert_eq!(told.is_plain(), !is_probe);
        }
    }

    #[test]
    fn a_refusal_keeps_its_number() {
        let rejected = |rejection| Err(Refused::Rejected(rejection));
        let retry_after = Duration::new(7, 5);
        let nanos = 7_000_000_005;
        assert_eq!(Answer::open(nanos).told(), rejected(Rejection::Open { retry_after }));
        assert_eq!(Answer::open(nanos - 5).later(5).told(), rejected(Rejection::Open { retry_after }));
        assert_eq!(Answer::probing(nanos - 5).later(5).told(), rejected(Rejection::Probing { retry_after }));
        let limit = crate::UNLIMITED;
        assert_eq!(Answer::saturated(limit).later(5).told(), rejected(Rejection::Saturated { limit }));
        assert_eq!(Answer::FORCED_OPEN.later(5).told(), rejected(Rejection::ForcedOpen));
        for priority in [Priority::Normal, Priority::Sheddable] {
            assert_eq!(Answer::shed(priority).later(5).told(), rejected(Rejection::Shed { priority }));
        }
        let max_targets = usize::MAX;
        assert_eq!(Answer::exhausted(max_targets).later(5).told(), rejected(Rejection::Exhausted { max_targets }));
        assert_eq!(Answer::RETIRED.later(5).told(), Err(Refused::Retired));
    }
}
