//! Settling: the gate again, the windows, the rules. The transition is in [`verdict`](super::verdict).

use super::verdict::Verdict;
use super::{Change, Ending, Glance, Signs, Terms, Token, Words};
use crate::adaptive::samples::Samples;
use crate::bulkhead::stripe;
use crate::gate::{self, State};
use crate::outcome::{Outcome, Settled};
use crate::policy::brief::{Brief, Clean};
use crate::policy::{OnAbandon, Policy};
use crate::time::{Now, Reading, saturating_nanos};
use crate::trip::Evidence;
use crate::window::clean::{self, Sign};
use crate::window::lane::Lane;
use crate::window::ring::{self, Counted, Ring};
use crate::window::{Counts, Geometry, Recorded, buckets, calls};

impl Words {
    /// What a call's end takes, by a glance at the words: a success on a healthy target next to nothing.
    #[inline(always)]
    pub fn glance(&self, token: Token, ending: Ending) -> Glance {
        self.glance_by(token, ending, |brief| brief)
    }

    #[inline(always)]
    fn glance_by(&self, token: Token, ending: Ending, of: impl FnOnce(Brief) -> Brief) -> Glance {
        let Ending::Settled(Outcome::Success) = ending else { return Glance::Further };
        let (gate, generation) = (self.gate.load(), token.generation());
        if !token.is_plain() || gate.generation() != generation || gate.state() != State::Closed {
            return Glance::Further;
        }
        let brief = of(self.brief());
        if brief.has_streak_or_is_watched() && (brief.is_watched() || self.streak.count(generation) > 0) {
            return Glance::Further;
        }
        match brief.clean() {
            Clean::Nothing => Glance::Unchanged,
            Clean::Calls(size) => {
                let sign = self.clean.load();
                if sign.is(Sign::Clean, generation, size) { Glance::Unchanged } else { Glance::Calls { size, sign } }
            }
            Clean::Time => Glance::Timed,
            Clean::Ask => Glance::Further,
        }
    }

    /// Counts a success, after a [glance](Self::glance) at a window of time, if its bucket is the one that its stripe's last call used.
    #[inline(always)]
    pub fn count_at_once(&self, token: Token, at: Now) -> Counted {
        let (Some(lane), Some(rare)) = (self.bulkhead.stripe(stripe::own()).lane.get(), self.rare.get()) else {
            return Counted::Elsewhere;
        };
        let counted = ring::count_at_once(lane, &rare.marks, token.generation(), at.tick());
        if counted == Counted::Met {
            self.bulkhead.meet();
        }
        counted
    }

    /// Writes a success, after a [glance](Self::glance) at a window of calls, if that needs no judgement; false if it does, or is stale.
    #[inline(never)]
    pub fn write_at_once(&self, token: Token, size: u32, sign: clean::Word) -> bool {
        let generation = token.generation();
        if !sign.is(Sign::Calm, generation, size) {
            return false;
        }
        let recorded = self.calls.record(false, generation, size, &self.gate);
        if recorded == Recorded::Counted(calls::Word::clean(generation, size)) {
            self.clean.set(sign, Sign::Clean, generation, size);
        }
        recorded != Recorded::Stale
    }

    /// Judges a success that was counted at once, by terms that were read after that.
    pub fn judge(&self, token: Token, sign: buckets::Word, at: Now, terms: Terms<'_>) -> Option<Change> {
        let (gate, policy) = (self.gate.load(), terms.policy);
        if gate.generation() != token.generation() {
            return None;
        }
        let view = policy.geometry?.view(gate, || at)?;
        let counts = self.ring().judge(&view, sign, |counts| policy.could_meet(gate.is_ramping(), 0, counts))?;
        let evidence = Evidence::judge(policy, terms.policy_version, gate.is_ramping(), 0, counts)?;
        self.trip(gate.generation(), policy, evidence, 0, at)
    }

    /// The window of time as the calling thread meets it.
    fn ring(&self) -> Ring<'_, impl Iterator<Item = &Lane> + Clone> {
        // The marks before the lane, so that whoever finds the lane finds them.
        let marks = &self.rare.force().marks;
        Ring::new(self.bulkhead.stripe(stripe::own()).lane.force(), self.lanes(), marks)
    }

    /// Records how a call ended; the permit stays held until [`Words::release`]. A transition must be reported after that.
    pub fn record<'a, F: Fn() -> Now>(
        &self,
        token: Token,
        signs: Signs,
        ending: Ending,
        terms: impl FnOnce() -> Terms<'a>,
        time: &Reading<F>,
    ) -> (Settled, Option<Change>) {
        let token = self.unwatched(token);
        // The sign before the policy: one that comes later takes it away.
        let mut before = clean::Word::UNSEEN;
        match self.glance_by(token, ending, Brief::unwatched) {
            Glance::Unchanged => return (Settled::Recorded, None),
            Glance::Timed => match self.count_at_once(token, time.now()) {
                Counted::Done => return (Settled::Recorded, None),
                Counted::Judge(sign) => return (Settled::Recorded, self.judge(token, sign, time.now(), terms())),
                Counted::Met | Counted::Elsewhere => {}
            },
            Glance::Calls { size, sign } => {
                if self.write_at_once(token, size, sign) {
                    return (Settled::Recorded, None);
                }
                before = sign;
            }
            Glance::Further => {}
        }
        let terms = terms();
        let started = token.started().filter(|_| !signs.waits);
        let ran = || started.map(|started| signs.answered.unwrap_or_else(|| time.now()).nanos_since(started));
        let silent = || signs.alive.or(started).map(|since| time.now().nanos_since(since));
        let outcome = ending.means(token.is_async(), silent, terms.policy);
        let slow = matches!(ending, Ending::Settled(Outcome::Success | Outcome::Failure))
            && terms.policy.slow_call_nanos.is_some_and(|slow_call| ran().is_some_and(|ran| ran >= slow_call));
        let back_in_ms = if outcome == Outcome::Failure { signs.back_in_ms } else { 0 };
        let verdict = Verdict { outcome, slow, back_in_ms };
        let gate = self.gate.load();
        let (settled, change) = if gate.generation() != token.generation() {
            (Settled::Stale, None)
        } else if token.is_probe() {
            self.probe_ended(token.generation(), verdict, ending, terms.policy, time)
        } else if outcome == Outcome::Ignored || gate.state() != State::Closed {
            (Settled::Recorded, None)
        } else {
            self.call_ended(gate, before, verdict, terms, time)
        };
        self.count(settled, ending, slow);
        if terms.policy.adaptive.is_some()
            && settled == Settled::Recorded
            && outcome != Outcome::Ignored
            && !token.is_probe()
            && let Some(ran) = ran()
        {
            self.sample(outcome == Outcome::Failure, ran);
        }
        (settled, change)
    }

    /// Adds what a call took to the samples that the limit follows.
    fn sample(&self, failed: bool, nanos: u64) {
        let samples = self.rare.force().samples.force();
        samples.add(stripe::own(), self.bulkhead.is_striped(), failed, nanos);
    }

    /// The samples, if the limit follows what calls take and it is time to look at them.
    pub(crate) fn samples_due(&self, now: impl FnOnce() -> Now) -> Option<&Samples> {
        if !self.brief().is_adaptive() {
            return None;
        }
        self.samples().filter(|samples| samples.is_over(now()))
    }

    /// Gives the permit of a recorded call back, to the stripe of whoever settles: a call may end on another thread than it began on.
    #[inline]
    pub fn release(&self) {
        self.bulkhead.release(stripe::own());
    }

    /// Gives a permit back that no call was made with.
    pub(crate) fn cancel(&self, token: Token) {
        let token = self.unfollowed(token);
        let _ = self.unwatched(token);
        self.bulkhead.cancel(stripe::own());
    }

    /// Notes that the permit of a recorded call is held on to.
    pub fn hold(&self) {
        self.counters().held.raise();
    }

    /// Gives such a permit back.
    pub fn release_held(&self) {
        // Before the call counts as settled: a snapshot then misses it for a moment, and never shows it twice.
        self.counters().held.lower();
        self.release();
    }

    fn call_ended<F: Fn() -> Now>(
        &self,
        gate: gate::Word,
        before: clean::Word,
        Verdict { outcome, slow, back_in_ms }: Verdict,
        terms: Terms<'_>,
        time: &Reading<F>,
    ) -> (Settled, Option<Change>) {
        let (policy, generation, failed) = (terms.policy, gate.generation(), outcome == Outcome::Failure);
        let view = policy.geometry.and_then(|geometry| geometry.view(gate, || time.now()));
        let recorded = match &view {
            Some(view) => self.ring().record(view, failed, slow, &self.gate).map(|()| Counts::default()),
            None => self.record_calls_and_slow(generation, before, failed, slow, policy),
        };
        let Recorded::Counted(counts) = recorded else { return (Settled::Stale, None) };
        let mut streak = 0;
        if policy.counts_streaks() {
            if failed {
                match self.streak.failed(generation, &self.gate) {
                    Recorded::Counted(length) => streak = length,
                    Recorded::Stale if policy.geometry.is_none() => return (Settled::Stale, None),
                    // The window has it, and another may have tripped on it: it is recorded, whatever came after.
                    Recorded::Stale => {}
                }
            } else {
                self.streak.succeeded(generation);
            }
        }
        let ramping = gate.is_ramping();
        let counts = match &view {
            Some(view) => {
                self.ring().look(view, |counts| policy.could_meet(ramping, streak, counts)).unwrap_or_default()
            }
            None => counts,
        };
        if streak == 0 && counts.failures == 0 && counts.slow == 0 {
            return (Settled::Recorded, None);
        }
        let change = Evidence::judge(policy, terms.policy_version, ramping, streak, counts)
            .and_then(|evidence| self.trip(generation, policy, evidence, back_in_ms, time.now()));
        (Settled::Recorded, change)
    }

    /// Counts an outcome in the window of calls and in that of slow calls, if the policy has them.
    fn record_calls_and_slow(
        &self,
        generation: u32,
        before: clean::Word,
        failed: bool,
        slow: bool,
        policy: &Policy,
    ) -> Recorded<Counts> {
        let Some(Geometry::Calls(size)) = policy.geometry else { return Recorded::Counted(Counts::default()) };
        let Recorded::Counted(window) = self.record_calls(before, failed, generation, size, policy) else {
            return Recorded::Stale;
        };
        let (mut calls, mut failures) = window.counts(size);
        let mut slow_calls = 0;
        if policy.slow_rate_bp.is_some()
            // Stale here: the other word has it already.
            && let Recorded::Counted(window) =
                self.rare.force().slow_calls.record(slow, generation, size, &self.gate)
        {
            slow_calls = window.counts(size).1;
            // The two words may have met the outcomes in different orders. Whoever is last in this one sees all calls in the
            // other, and judges what no one else could.
            (calls, failures) = self.calls.counts(generation, size);
        }
        Recorded::Counted(Counts { calls: calls.into(), failures: failures.into(), slow: slow_calls.into() })
    }

    /// Counts an outcome in the window of calls, and keeps the sign of what a success needn't do there.
    fn record_calls(
        &self,
        before: clean::Word,
        failed: bool,
        generation: u32,
        size: u32,
        policy: &Policy,
    ) -> Recorded<calls::Word> {
        let record = || self.calls.record(failed, generation, size, &self.gate);
        if failed {
            return self.clean.while_marking(record);
        }
        let recorded = record();
        if let Recorded::Counted(window) = recorded {
            let (calls, failures) = window.counts(size);
            let counts = Counts { calls: calls.into(), failures: failures.into(), slow: 0 };
            if window == calls::Word::clean(generation, size) {
                self.clean.set(before, Sign::Clean, generation, size);
            } else if calls == size && !policy.could_meet(false, 0, counts) {
                self.clean.set(before, Sign::Calm, generation, size);
            }
        }
        recorded
    }

    #[inline]
    fn count(&self, settled: Settled, ending: Ending, slow: bool) {
        if settled == Settled::Recorded && ending == Ending::Settled(Outcome::Success) && !slow {
            return;
        }
        let counters = self.counters();
        if slow && settled == Settled::Recorded {
            counters.slow.add(1);
        }
        match (settled, ending) {
            (Settled::Stale, _) => counters.stale.add(1),
            (_, Ending::Settled(Outcome::Success)) => 0,
            (_, Ending::Settled(Outcome::Failure) | Ending::Panicked) => counters.failure.add(1),
            (_, Ending::Settled(Outcome::Ignored)) => counters.ignored.add(1),
            (_, Ending::Abandoned) => counters.abandoned.add(1),
        };
    }
}

impl Ending {
    /// What it says about the target (R11); `silent` for how many nanoseconds, asked only where that decides (R13).
    pub(crate) fn means(self, is_async: bool, silent: impl Fn() -> Option<u64>, policy: &Policy) -> Outcome {
        match self {
            Self::Settled(outcome) => outcome,
            Self::Panicked => Outcome::Failure,
            Self::Abandoned => {
                let default = if is_async { OnAbandon::ASYNC } else { OnAbandon::Ignore };
                match policy.on_abandon.unwrap_or(default) {
                    OnAbandon::Ignore => Outcome::Ignored,
                    OnAbandon::Failure => Outcome::Failure,
                    OnAbandon::FailureAfter(least) => {
                        if silent().is_some_and(|silent| silent >= saturating_nanos(least)) {
                            Outcome::Failure
                        } else {
                            Outcome::Ignored
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
