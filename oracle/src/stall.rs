//! Calls that run: which have stalled, and who notices.

use portcullis::{Cause, Rejection, Rule};

use crate::Twin;
use crate::target::{LAST_MS, NANOS_PER_MS, Phase, Proof, Target, Token};

/// Ticks in `stall_after`.
const TICKS: u64 = 8;
/// Where ticks stand still.
const LAST: u64 = LAST_MS * NANOS_PER_MS;

impl Target {
    /// How wide a tick is, if running calls are counted now.
    fn width(&self) -> Option<u64> {
        let Phase::Closed(_) = self.phase else { return None };
        Some((self.terms.rules.stall_ms? * NANOS_PER_MS).div_ceil(TICKS))
    }

    fn tick(&self, width: u64, at: u64) -> u64 {
        let Phase::Closed(window) = &self.phase else { return 0 };
        at.max(window.begun_ms().min(LAST_MS) * NANOS_PER_MS).min(LAST) / width
    }

    /// How many calls have stalled: those of whose tick every moment is `stall_after` ago.
    pub(crate) fn stalled(&self, now: u64) -> u64 {
        let Some(width) = self.width() else { return 0 };
        let least = if self.twin == Twin::StallsEarly { TICKS } else { TICKS + 1 };
        let now = self.tick(width, now);
        self.running.iter().filter(|begun| now >= self.tick(width, **begun) + least).count() as u64
    }

    /// When the next call has stalled.
    pub(crate) fn stalls_at(&self, now: u64) -> Option<u64> {
        let width = self.width()?;
        let ends = self.running.iter().map(|begun| (self.tick(width, *begun) + TICKS + 1) * width);
        ends.filter(|end| *end > now).min()
    }

    /// Counts a call that begins.
    pub(crate) fn begins(&mut self, now: u64) -> bool {
        let is_watched = self.width().is_some();
        if is_watched {
            self.running.push(now);
        }
        is_watched
    }

    /// Counts a call out: it ended or gave a sign of life.
    pub(crate) fn counts_out(&mut self, token: &mut Token) {
        if std::mem::take(&mut token.is_watched)
            && token.generation == self.generation
            && let Some(index) = self.running.iter().position(|begun| Some(*begun) == token.started)
        {
            self.running.swap_remove(index);
        }
    }

    /// As a caller judges who is the first in this tick: why it is refused, if that trips.
    pub(crate) fn judged_by_caller(&mut self, now: u64) -> Option<Rejection> {
        let width = self.width()?;
        self.has_counted = true;
        let tick = self.tick(width, now);
        if self.twin == Twin::JudgesOnlyWhenShown || self.judged == Some(tick) {
            return None;
        }
        if !self.judge_running(now) {
            self.judged = Some(tick);
            return None;
        }
        self.refusals.open += 1;
        let Phase::Open { reopen_ms, .. } = self.phase else { return None };
        let retry_after = (reopen_ms * NANOS_PER_MS).saturating_sub(now);
        Some(Rejection::Open { retry_after: std::time::Duration::from_nanos(retry_after) })
    }

    /// Trips if too many calls have stalled.
    pub(crate) fn judge_running(&mut self, now: u64) -> bool {
        let stalled = self.stalled(now);
        let (rules, limit) = (&self.terms.rules, u64::from(self.limit_at(now).0));
        let Phase::Closed(window) = &self.phase else { return false };
        let mut met = Vec::new();
        if rules.stalled_calls.is_some_and(|most| stalled > 0 && stalled >= most) {
            met.push((Rule::StalledCalls, stalled, limit, rules.stalled_calls.unwrap_or(0)));
        }
        if rules.stalled_share_bp.is_some_and(|bp| stalled > 0 && stalled * 10_000 >= bp * limit) {
            met.push((Rule::StalledShare, stalled, limit, rules.stalled_share_bp.unwrap_or(0)));
        }
        let Some((rule, ..)) = met.first() else { return false };
        let cause = if *rule == Rule::StalledCalls { Cause::StalledCalls } else { Cause::StalledShare };
        let streak = if rules.counts_streaks() { window.streak } else { 0 };
        let counts = window.counts(rules.shape, now / NANOS_PER_MS);
        let proof = Proof { met, streak, counts, stalled, policy_version: self.policy_version };
        self.asked_ms = 0;
        self.reopened();
        self.go(self.open(now, self.reopens), cause, now, Some(proof));
        true
    }
}
