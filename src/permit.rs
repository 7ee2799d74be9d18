//! The right to run one call: settled once, by value, or dropped.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use crate::engine::{Engine, Key};
use crate::outcome::{Outcome, Settled};
use crate::slot::Slot;
use crate::target::{Ending, Signs, Token};

/// The right to run one call against a target.
///
/// Settle it by value with what came of the call. Dropped unsettled it gives back everything it holds, and means to the target's
/// health what its policy says of abandoned calls; dropped by a panic it is a failure. While it lives it counts as in
/// flight, and pins its target. A leaked one ([`std::mem::forget`]) keeps its bulkhead slot for the engine's life, and its probe slot
/// for the lease.
///
/// # Memory ordering
///
/// Settling releases: whoever takes the permit's slot afterwards sees what this call did before.
#[must_use = "a permit that is dropped at once is an abandoned call"]
pub struct Permit<'e, K: Key = String> {
    engine: &'e Engine<K>,
    slot: &'e Slot<K>,
    token: Token,
}

impl<'e, K: Key> Permit<'e, K> {
    #[inline]
    pub(crate) fn new(engine: &'e Engine<K>, slot: &'e Slot<K>, token: Token) -> Self {
        Self { engine, slot, token }
    }

    /// Settles as a success: the target answered, be it with a business refusal.
    #[inline]
    pub fn success(self) -> Settled {
        self.settle(Outcome::Success)
    }

    /// Settles as a failure: no answer, no connection, a system error.
    #[inline]
    pub fn failure(self) -> Settled {
        self.settle(Outcome::Failure)
    }

    /// Settles as a failure whose answer said when to come back, as in `Retry-After`.
    ///
    /// If this failure opens the target, or is a probe's, the wait is at least that long, within the policy's `open_wait_max`, rounded up
    /// to whole milliseconds. Any other failure's word is forgotten: what is open already stays open as long as it was to (R6).
    #[inline(never)]
    pub fn failure_retry_after(self, wait: Duration) -> Settled {
        let (engine, slot, token) = self.into_parts();
        let mut signs = Signs::default();
        signs.ask_back(wait);
        engine.settle_seen(slot, token, signs, Ending::Settled(Outcome::Failure), None)
    }

    /// Settles without evidence about the target, in no window and no streak.
    #[inline]
    pub fn ignore(self) -> Settled {
        self.settle(Outcome::Ignored)
    }

    /// Settles with an outcome. All that follows from it has happened when this returns.
    #[inline]
    pub fn settle(self, outcome: Outcome) -> Settled {
        let (engine, slot, token) = self.into_parts();
        engine.settle(slot, token, Ending::Settled(outcome))
    }

    /// Records the outcome now and keeps the bulkhead slot until the returned value is dropped: for streams, whose verdict is
    /// known at the headers while their body goes on.
    pub fn record(self, outcome: Outcome) -> Held<'e, K> {
        let (engine, slot, token) = self.into_parts();
        let settled = engine.record(slot, token, Signs::default(), Ending::Settled(outcome));
        Held { slot, token, settled }
    }

    /// Whether this call is a probe: its target is being felt out.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.token.is_probe()
    }

    /// The generation of the target that granted it.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.token.generation()
    }

    /// Leaves the debt to whoever takes the parts.
    #[inline]
    pub(crate) fn into_parts(self) -> (&'e Engine<K>, &'e Slot<K>, Token) {
        let parts = (self.engine, self.slot, self.token);
        std::mem::forget(self);
        parts
    }
}

impl<K: Key> Drop for Permit<'_, K> {
    fn drop(&mut self) {
        self.engine.settle(self.slot, self.token, dropped());
    }
}

/// What dropping a permit means just now.
fn dropped() -> Ending {
    if std::thread::panicking() { Ending::Panicked } else { Ending::Abandoned }
}

impl<K: Key> fmt::Debug for Permit<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").field("slot", &self.slot.index).field("token", &self.token).finish_non_exhaustive()
    }
}

/// The bulkhead slot of a call whose outcome is recorded; dropping it gives the slot back.
#[must_use = "dropping it gives the bulkhead slot back"]
pub struct Held<'e, K: Key = String> {
    slot: &'e Slot<K>,
    token: Token,
    settled: Settled,
}

impl<K: Key> Held<'_, K> {
    /// What came of the outcome.
    #[must_use]
    pub fn settled(&self) -> Settled {
        self.settled
    }
}

impl<K: Key> Drop for Held<'_, K> {
    fn drop(&mut self) {
        self.slot.words.let_go(self.token);
    }
}

impl<K: Key> fmt::Debug for Held<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("slot", &self.slot.index).field("settled", &self.settled).finish_non_exhaustive()
    }
}

/// A [`Permit`] that owns a pointer to its engine, such as an `Arc`, so that it can move into a task or a response body.
///
/// An `Arc` costs two writes to a shared counter per call; a `static` engine gives [`Permit<'static>`](Permit) without.
#[must_use = "a permit that is dropped at once is an abandoned call"]
pub struct OwnedPermit<E, K = String>
where
    E: Deref<Target = Engine<K>>,
    K: Key,
{
    engine: E,
    slot: u32,
    /// None once settled or recorded.
    token: Option<Token>,
    signs: Signs,
    /// Whether the outcome is recorded and only the bulkhead slot is held.
    is_recorded: bool,
}

impl<E: Deref<Target = Engine<K>>, K: Key> OwnedPermit<E, K> {
    pub(crate) fn new(engine: E, slot: u32, token: Token) -> Self {
        Self { engine, slot, token: Some(token), signs: Signs::default(), is_recorded: false }
    }

    /// Settles as a success.
    #[inline]
    pub fn success(self) -> Settled {
        self.settle(Outcome::Success)
    }

    /// Settles as a failure.
    #[inline]
    pub fn failure(self) -> Settled {
        self.settle(Outcome::Failure)
    }

    /// Settles as a failure whose answer said when to come back; see [`Permit::failure_retry_after`].
    pub fn failure_retry_after(mut self, wait: Duration) -> Settled {
        self.note_retry_after(wait);
        self.failure()
    }

    /// Settles without evidence about the target.
    #[inline]
    pub fn ignore(self) -> Settled {
        self.settle(Outcome::Ignored)
    }

    /// Settles with an outcome; see [`Permit::settle`].
    #[inline]
    pub fn settle(mut self, outcome: Outcome) -> Settled {
        match (self.token.take(), self.engine.slot(self.slot)) {
            (Some(token), Some(slot)) if self.signs.are_none() => {
                self.engine.settle(slot, token, Ending::Settled(outcome))
            }
            (Some(token), Some(slot)) => {
                self.engine.settle_seen(slot, token, self.signs, Ending::Settled(outcome), None)
            }
            // A permit's slot exists as long as its engine, and its token until it is settled.
            _ => Settled::Stale,
        }
    }

    /// Records the outcome now and keeps the bulkhead slot until the returned value is dropped; see [`Permit::record`].
    pub fn record(mut self, outcome: Outcome) -> OwnedHeld<E, K> {
        let settled = match (self.token, self.engine.slot(self.slot)) {
            (Some(token), Some(slot)) => self.engine.record(slot, token, self.signs, Ending::Settled(outcome)),
            _ => Settled::Stale,
        };
        self.is_recorded = true;
        OwnedHeld { permit: self, settled }
    }

    /// Whether this call is a probe.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.token.is_some_and(Token::is_probe)
    }

    /// The generation of the target that granted it.
    #[must_use]
    pub fn generation(&self) -> u32 {
        self.token.map_or(0, Token::generation)
    }

    /// Times the call from now on.
    #[cfg(feature = "tower")]
    pub(crate) fn begin(&mut self) {
        let (now, slot) = (self.engine.read_clock(), self.engine.slot(self.slot));
        self.token = self.token.map(|token| slot.map_or(token, |slot| slot.words.begun(token, now)));
        self.signs.waits = false;
    }

    /// Takes the call as not begun: abandoned like that, it says nothing by its length.
    #[cfg(feature = "tower")]
    pub(crate) fn not_begun(mut self) -> Self {
        self.signs.waits = true;
        self
    }

    #[cfg(feature = "tower")]
    pub(crate) fn has_begun(&self) -> bool {
        !self.signs.waits
    }

    /// Notes when the target said to come back, should this call be settled or recorded as a failure; see
    /// [`Permit::failure_retry_after`]. The last word counts.
    pub fn note_retry_after(&mut self, wait: Duration) {
        self.signs.ask_back(wait);
    }

    /// Notes a sign of life, for answers that arrive in parts. Abandoned from now on, the call counts as silent since this moment, not
    /// since its start: a caller who leaves a flowing download says nothing about the target. The first sign also ends the time that
    /// is held against `slow_call`, and the call no longer counts as stalled: how long a body takes is as much its reader's doing.
    pub fn touch(&mut self) {
        let now = self.engine.read_clock();
        if self.signs.answered.is_none()
            && let (Some(token), Some(slot)) = (self.token, self.engine.slot(self.slot))
        {
            self.token = Some(slot.words.answered(token));
        }
        self.signs.answered.get_or_insert(now);
        self.signs.alive = Some(now);
    }
}

impl<E: Deref<Target = Engine<K>>, K: Key> Drop for OwnedPermit<E, K> {
    fn drop(&mut self) {
        let (Some(token), Some(slot)) = (self.token.take(), self.engine.slot(self.slot)) else { return };
        if self.is_recorded {
            slot.words.let_go(token);
        } else {
            self.engine.settle_seen(slot, token, self.signs, dropped(), None);
        }
    }
}

impl<E: Deref<Target = Engine<K>>, K: Key> fmt::Debug for OwnedPermit<E, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").field("slot", &self.slot).field("token", &self.token).finish_non_exhaustive()
    }
}

/// The bulkhead slot of a call whose outcome is recorded, owning a pointer to its engine; dropping it gives the slot back.
#[must_use = "dropping it gives the bulkhead slot back"]
pub struct OwnedHeld<E, K = String>
where
    E: Deref<Target = Engine<K>>,
    K: Key,
{
    permit: OwnedPermit<E, K>,
    settled: Settled,
}

impl<E: Deref<Target = Engine<K>>, K: Key> OwnedHeld<E, K> {
    /// What came of the outcome.
    #[must_use]
    pub fn settled(&self) -> Settled {
        self.settled
    }
}

impl<E: Deref<Target = Engine<K>>, K: Key> fmt::Debug for OwnedHeld<E, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedHeld")
            .field("slot", &self.permit.slot)
            .field("settled", &self.settled)
            .finish_non_exhaustive()
    }
}
