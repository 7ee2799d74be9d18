//! Running calls: counted when they begin and end, judged by who comes meanwhile.
//!
//! Who judges: the first caller of each stripe in each tick, before it takes a permit, whether or not there is one; and each snapshot. Such a
//! caller that finds a rule met trips the target, and is refused like all after it. Nothing becomes stalled between two ticks, so the
//! others needn't look. With no caller and no snapshot nobody looks, and nobody is hurt; the next one looks first.
//!
//! A width of ticks is one generation's. A policy with another sets it to none, ends the generation, and only then puts the new one in
//! its place: whoever sees the new width finds that generation over, and whoever sees the next generation no longer finds the old width.

use super::{Change, Terms, Token, Words};
use crate::bulkhead::stripe;
use crate::gate::{self, State, Step};
use crate::policy::Policy;
use crate::stall::{self, Ticks, lane};
use crate::sync::{AtomicU64, Ordering, Role, role};
use crate::time::Now;
use crate::trip::Evidence;

/// Acquire: pairs with `SET`; whoever sees a width finds the generations over that had another.
const READ: Role = role("stall.width_read", Ordering::Acquire);
/// Release: pairs with `READ`. That it is none is published by the gate, which is moved after that.
const SET: Role = role("stall.width_set", Ordering::Release);

/// How wide ticks are, in nanoseconds.
#[derive(Debug)]
pub(super) struct Width(AtomicU64);

impl Default for Width {
    fn default() -> Self {
        Self(AtomicU64::new(NONE))
    }
}

/// Calls aren't counted.
const NONE: u64 = 0;

fn width(policy: &Policy) -> u64 {
    policy.stall.map_or(NONE, |stall| stall::width(stall.after_nanos))
}

impl Words {
    /// The ticks of the gate's generation; none if calls aren't counted in it.
    #[inline]
    fn ticks(&self, gate: gate::Word) -> Option<Ticks> {
        let width = self.rare.get()?.width.0.load(READ);
        (width != NONE && gate.state() == State::Closed).then(|| Ticks::new(gate, width))
    }

    fn own_lane(&self) -> &lane::Lane {
        self.bulkhead.stripe(stripe::own()).lane.force().running.force()
    }

    fn running(&self) -> impl Iterator<Item = &lane::Lane> + Clone {
        self.lanes().filter_map(|lane| lane.running.get()).map(|lane| &**lane)
    }

    /// Whether calls are counted while they run.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        self.brief().is_watched()
    }

    /// Whether a caller that comes now has to judge running calls before it is answered: the first of its stripe in this tick.
    pub(crate) fn must_judge(&self, now: impl FnOnce() -> Now) -> bool {
        self.is_watched() && self.is_judgement_due(self.gate.load(), now())
    }

    fn is_judgement_due(&self, gate: gate::Word, now: Now) -> bool {
        self.ticks(gate).is_some_and(|ticks| !self.own_lane().is_judged(&ticks, ticks.at(now)))
    }

    /// Counts a call that the gate let in; false, and its permit is given back, if a judgement is due before that, or it takes more.
    #[inline(never)]
    pub(super) fn watch_or_cancel(&self, gate: gate::Word, at: Now) -> bool {
        let is_counted = self.ticks(gate).is_some_and(|ticks| {
            let (lane, tick) = (self.own_lane(), ticks.at(at));
            lane.is_judged(&ticks, tick) && lane.begin(&ticks, tick, &self.gate)
        });
        if !is_counted {
            self.bulkhead.cancel(stripe::own());
        }
        is_counted
    }

    /// The token of a call that the gate let in, counted among those that run.
    #[cold]
    pub(super) fn watched(&self, gate: gate::Word, token: Token) -> Token {
        let begins = |at| {
            let ticks = self.ticks(gate)?;
            Some(self.own_lane().begin(&ticks, ticks.at(at), &self.gate))
        };
        token.watched(token.started().and_then(begins) == Some(true))
    }

    /// Counts a call out, if it is counted: it has ended, or given a sign of life.
    pub(crate) fn unwatched(&self, token: Token) -> Token {
        if !token.is_watched() {
            return token;
        }
        let gate = self.gate.load();
        // Of an earlier generation it is counted nowhere any more.
        if gate.generation() == token.generation()
            && let (Some(ticks), Some(started)) = (self.ticks(gate), token.started())
        {
            self.own_lane().end(&ticks, ticks.at(started), &self.gate);
        }
        token.watched(false)
    }

    /// The same call, begun at another time than its permit was granted.
    #[cfg(feature = "tower")]
    pub(crate) fn begun(&self, token: Token, at: Now) -> Token {
        self.tell_shadows_of_begin(token, at);
        let begun = token.begun(Some(at));
        let gate = self.gate.load();
        let tick = |token: Token| Some(self.ticks(gate)?.at(token.started()?));
        if !token.is_watched() {
            return begun;
        }
        if tick(token) == tick(begun) {
            // Counted there already.
            return begun.watched(true);
        }
        let unwatched = self.unwatched(token).begun(Some(at));
        if gate.generation() == token.generation() { self.watched(gate, unwatched) } else { unwatched }
    }

    /// How many calls of this generation have stalled by now.
    #[must_use]
    pub fn stalled(&self, gate: gate::Word, now: Now) -> u64 {
        self.ticks(gate).map_or(0, |ticks| lane::stalled(self.running(), &ticks, ticks.at(now)))
    }

    /// Judges running calls. A transition that it made must be reported, and who waits [turned away](Self::turn_away) by it. The caller keeps the
    /// tenant: by a handle, or the shard's lock.
    pub fn judge_running(&self, terms: Terms<'_>, now: Now) -> Option<Change> {
        let Terms { policy, policy_version } = terms;
        policy.stall?;
        let gate = self.gate.load();
        let stalled = self.stalled(gate, now);
        if stalled == 0 {
            return None;
        }
        let known = || {
            let streak = if policy.counts_streaks() { self.streak.count(gate.generation()) } else { 0 };
            (streak, self.window(gate, policy, now).unwrap_or_default())
        };
        // While another moves the limit, a later look judges: whoever asks to be admitted waits for nobody.
        let limit = self.limits_at_once(now)?.now;
        let evidence = Evidence::judge_stalled(policy, policy_version, (stalled, limit), known)?;
        self.trip_under_lock(gate.generation(), policy, evidence, 0, now)
    }

    /// Notes that this stripe's callers needn't judge again in this tick.
    pub(super) fn note_judged(&self, now: Now) {
        if let Some(ticks) = self.ticks(self.gate.load()) {
            self.own_lane().note_judged(&ticks, ticks.at(now));
        }
    }

    /// What must be done to the gate between [`Words::adopt`] and [`Words::watch_from_now`]: whether words are there that were counted in
    /// other ticks.
    #[must_use]
    pub fn must_forget_running(&self, before: &Policy, after: &Policy) -> bool {
        let (before, after) = (width(before), width(after));
        after != NONE && before != after && (before != NONE || self.running().next().is_some())
    }

    /// Ends a generation that counts in other ticks. Where none does, the gate is written as it is: whoever closes it after that finds no
    /// width, as whoever closed it before that is ended here.
    pub fn forget_running(gate: gate::Word, begins: Now) -> Step {
        match gate.restart(begins) {
            Step::Stale => Step::Stay(gate),
            step => step,
        }
    }

    /// Counts no more in the ticks of `before`, if those of `after` differ.
    pub(super) fn watch_no_more(&self, before: &Policy, after: &Policy) {
        if width(before) != width(after)
            && let Some(rare) = self.rare.get()
        {
            rare.width.0.store(NONE, SET);
            if width(before) != NONE {
                // A caller may be about to make one: what it counts then must be known to be there.
                let _ = self.own_lane();
            }
        }
    }

    /// Counts calls in the ticks of a policy, from now on.
    pub fn watch_from_now(&self, policy: &Policy) {
        let width = width(policy);
        if width != NONE {
            self.rare.force().width.0.store(width, SET);
        } else if let Some(rare) = self.rare.get() {
            rare.width.0.store(NONE, SET);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generation_that_counts_in_other_ticks_ends_and_another_is_written_as_it_is() {
        let forgotten = |gate| Words::forget_running(gate, Now::from_millis(7));
        assert_eq!(forgotten(gate::Word::closed(3, 5)), Step::Move(gate::Word::closed(4, 7)));
        for gate in [gate::Word::open(3, 1, 9), gate::Word::half_open(3, 1, 1, 0, 9)] {
            assert_eq!(forgotten(gate), Step::Stay(gate));
        }
    }

    #[cfg(feature = "tower")]
    #[test]
    fn a_call_that_began_in_the_tick_of_its_permit_is_counted_out() {
        use crate::outcome::Outcome;
        use crate::target::{Ending, Signs};

        let policy = Policy::builder().stall_after(std::time::Duration::from_secs(8)).stalled_calls(3);
        let policy = policy.build().unwrap();
        let words = Words::new(&policy);
        let terms = || Terms { policy: &policy, policy_version: 0 };
        for millis in 1..6 {
            let time = crate::time::Reading::new(|| Now::from_millis(millis));
            let token = words.admit(&policy, true, &time).0.unwrap();
            let token = words.begun(token, Now::from_millis(millis + 1));
            assert!(token.is_watched());
            let _ = words.record(token, Signs::default(), Ending::Settled(Outcome::Success), terms, &time);
            words.release();
        }
        assert_eq!(words.stalled(words.gate.load(), Now::from_millis(30_000)), 0);
    }
}
