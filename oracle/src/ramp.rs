//! The limit that comes back after HALF_OPEN closed.

use portcullis::UNLIMITED;

use crate::target::{LAST_MS, NANOS_PER_MS, Phase, Target};

/// Reopenings in a row that are counted.
pub(crate) const MOST_REOPENS: u32 = 31;

/// When it began, in ms, rounded up, and how long it takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ramp {
    pub(crate) since_ms: u64,
    pub(crate) length_ms: u64,
}

impl Ramp {
    pub(crate) fn is_over(self, now_ms: u64) -> bool {
        now_ms >= self.since_ms + self.length_ms
    }
}

impl Target {
    /// The limit in force, and the milliseconds that it ramps for.
    pub(crate) fn limit_at(&self, now: u64) -> (u32, Option<u64>) {
        let now_ms = now / NANOS_PER_MS;
        let Some(ramp) = self.ramp.filter(|ramp| !ramp.is_over(now_ms)) else { return (self.limit, None) };
        let top = u64::from(if self.limit == UNLIMITED { self.terms.rules.limit } else { self.limit });
        let from = u64::from(self.terms.rules.probes).min(top);
        let risen = (top - from) * now_ms.saturating_sub(ramp.since_ms) / ramp.length_ms;
        ((from + risen) as u32, Some(ramp.since_ms + ramp.length_ms - now_ms))
    }

    /// Whether by the length that the policy says, since the window began, the ramp is over.
    pub(crate) fn is_ramp_due(&self, now: u64) -> bool {
        let Phase::Closed(window) = &self.phase else { return true };
        now / NANOS_PER_MS >= window.begun_ms().min(LAST_MS) + self.terms.rules.ramp_ms.unwrap_or(0)
    }

    /// An admission ends a ramp that is over.
    pub(crate) fn see_ramp_end(&mut self, now: u64) {
        let is_over = self.ramp.is_some_and(|ramp| ramp.is_over(now / NANOS_PER_MS));
        if is_over && self.is_ramp_due(now) {
            self.end_ramp();
        }
    }

    /// A trip counts as one reopening more in a ramp, and as none else.
    pub(crate) fn reopened(&mut self) {
        self.reopens = if self.ramp.take().is_some() { (self.reopens + 1).min(MOST_REOPENS) } else { 0 };
    }

    /// What was reopened in a row is forgotten with it.
    pub(crate) fn end_ramp(&mut self) {
        if self.ramp.take().is_some() {
            self.reopens = 0;
        }
    }

    /// By another policy: over at once if it has none, or one that is shorter than what has passed.
    pub(crate) fn adopt_ramp(&mut self, now: u64) {
        let length_ms = self.terms.rules.ramp_ms;
        if let Some(ramp) = &mut self.ramp {
            ramp.length_ms = length_ms.unwrap_or(0);
            if length_ms.is_none() || ramp.is_over(now / NANOS_PER_MS) {
                self.end_ramp();
            }
        }
    }
}
