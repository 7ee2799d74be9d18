//! What becomes of a window of samples: the limit's next move, and when to look again.
//!
//! ```text
//!  start --> PROBE ----------------------------------> USUAL <---+
//!              ^      (baseline measured at half         |       | each window moves the limit by the law
//!              |       the limit, the limit restored)    +-------+
//!              +-----------------------------------------+
//!                 it is time, or the limit has halved
//! ```
//!
//! A window lasts twice the latency, so that what one move did is seen before the next, but no less than 100 ms, and until it holds
//! 200 samples, a probe 800, for its mean to mean something. After a move down, and before and after a probe, one such time passes whose
//! samples are dropped: the calls that end in it began under the limit before.
//!
//! A probe halves the limit for as long as it takes to measure the latency without a queue, the baseline (BBR's `PROBE_RTT`; the `min_rtt` windows of
//! Envoy's adaptive concurrency filter). It is due after 10 s or twenty times what the last one took, whatever is longer, so that at
//! most a twentieth of the time goes to it; and at once when the limit has fallen to half of what it was at the last, since then either the
//! target can do half as much, or it is slower without a queue and the baseline is wrong. If the limit was more than twice the knee, half
//! of it still queues: the next probe halves that again.
//!
//! A target whose calls in flight, by Little's law the sum of their latencies over the time, are under half of the limit doesn't show what it
//! could do. Its limit stays, up and down; the baseline follows the latency where that is tolerable, and needs no probe.
//!
//! A call counts for at most eight times the latency or the baseline, whichever is longer: beyond four times the law goes no
//! further, and one call that takes a hundred times as long as the others would double the mean of a hundred.
//!
//! With few samples a mean is uncertain by about one part in the root of their number: latencies of one target vary like an exponential
//! distribution or less. So a latency below the baseline lowers that only if it is
//! lower by four times as much, and a probe that differs by less is averaged with the baseline that it confirms.

use super::samples::{Samples, Sums};
use super::{Law, Rules, aimd, gradient};
use crate::time::Now;

/// The shortest window, in nanoseconds.
const SHORTEST: u64 = 100_000_000;
/// The longest, without what it takes to get enough samples.
const LONGEST: u64 = 30_000_000_000;
const _: () = assert!(LONGEST <= super::samples::LONGEST);
/// Latencies in a window.
const MULTIPLE: u64 = 2;
/// Samples that a window needs to move the limit.
const ENOUGH: u64 = if cfg!(portcullis_loom) { 1 } else { 200 };
/// Samples that a probe needs.
const ENOUGH_TO_PROBE: u64 = if cfg!(portcullis_loom) { 1 } else { 800 };
/// The shortest time between two probes, in nanoseconds.
const PROBE_EVERY: u64 = 10_000_000_000;
/// How much longer than a probe the time to the next is.
const PROBE_SHARE: u64 = 20;
/// What a call counts for at most, in latencies or baselines.
const OUTLIER: u64 = 8;
/// One call in so many failed: too many.
const FAILED_SHARE: u64 = 10;

/// The limit of one target on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// In thousandths of a call, so that small limits grow too.
    limit: u64,
    /// Mean nanoseconds of a call in the last window; 0 before the first.
    latency: u64,
    /// Nanoseconds of a call that doesn't queue; 0 before the first probe.
    baseline: u64,
    began: Now,
    /// Whether the limit has never been lowered by the law.
    is_first: bool,
    /// Whether the samples of this time are to be dropped.
    settles: bool,
    /// The probe under way.
    probe: Option<Probe>,
    probe_due: Now,
    /// The limit that the last probe halved.
    probed: u64,
}

/// A probe under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    began: Now,
    /// While it lasts.
    limit: u64,
}

impl Control {
    /// At the limit that the rules start with, and a window that begins.
    #[must_use]
    pub fn begin(rules: &Rules, samples: &Samples, now: Now) -> Self {
        let _ = samples.take();
        samples.end_at(now.nanos().saturating_add(SHORTEST));
        samples.count_at_most(u64::MAX);
        let limit = milli(rules.start);
        let probe = matches!(rules.law, Law::Gradient { .. }).then_some(Probe { began: now, limit: limit / 2 });
        Self {
            limit,
            latency: 0,
            baseline: 0,
            began: now,
            is_first: true,
            settles: false,
            probe,
            probe_due: now,
            probed: limit,
        }
    }

    /// The limit to be in force.
    #[must_use]
    pub fn limit(&self, rules: &Rules) -> u32 {
        let limit = self.probe.map_or(self.limit, |probe| probe.limit);
        // At most `max`, which fits.
        u32::try_from(limit / 1_000).unwrap_or(u32::MAX).clamp(rules.min, rules.max)
    }

    /// Mean nanoseconds of a call in the last window that counted; none before that.
    #[must_use]
    pub fn latency(&self) -> Option<u64> {
        (self.latency > 0).then_some(self.latency)
    }

    /// Nanoseconds of a call that doesn't queue; none before they are measured, or where the law needs none.
    #[must_use]
    pub fn baseline(&self) -> Option<u64> {
        (self.baseline > 0).then_some(self.baseline)
    }

    /// Goes on by other rules of the same law: within their bounds.
    pub fn adopt(&mut self, rules: &Rules) {
        self.limit = self.limit.clamp(milli(rules.min), milli(rules.max));
    }

    /// Closes the window if it is over: false if it isn't. Only for the holder of the target's lock.
    pub fn close(&mut self, rules: &Rules, samples: &Samples, now: Now) -> bool {
        if !samples.is_over(now) {
            return false;
        }
        let needed = if self.probe.is_some() { ENOUGH_TO_PROBE } else { ENOUGH };
        if !self.settles && samples.look().calls() < needed {
            samples.end_at(now.nanos().saturating_add(SHORTEST));
            return true;
        }
        let sums = samples.take();
        if self.settles {
            self.settles = false;
        } else {
            self.judge(rules, sums, now);
        }
        self.began = now;
        samples.count_at_most(match self.latency.max(self.baseline) {
            0 => u64::MAX,
            usual => usual.saturating_mul(OUTLIER),
        });
        let length = self.latency.saturating_mul(MULTIPLE).clamp(SHORTEST, LONGEST);
        samples.end_at(now.nanos().saturating_add(length));
        true
    }

    fn judge(&mut self, rules: &Rules, sums: Sums, now: Now) {
        self.latency = latency(sums).max(1);
        // Calls in flight on average, in thousandths. A clock that stood still or stepped back makes them many: the limit counts as used.
        let taken = u128::from(sums.good.nanos) + u128::from(sums.failed.nanos);
        let in_flight = (taken * 1_000).checked_div(now.nanos_since(self.began).into()).unwrap_or(u128::MAX);
        let is_used = in_flight >= u128::from(self.limit / 2);
        let fails = sums.failed.calls.saturating_mul(FAILED_SHARE) >= sums.calls();
        let before = self.limit;
        match rules.law {
            Law::Aimd { latency } => self.limit = aimd::step(before, !fails && self.latency <= latency, is_used),
            Law::Gradient { tolerance_milli } => {
                if let Some(Probe { began, .. }) = self.probe {
                    self.probed(began, tolerance_milli, sums.good.calls, now);
                } else if is_used {
                    self.sees_less(sums.good.calls);
                    let limit = gradient::step(before, tolerance_milli, self.baseline, self.latency, self.is_first);
                    self.limit = if fails { limit.min(aimd::backed_off(before)) } else { limit };
                    self.is_first &= self.limit >= before;
                } else {
                    self.sees_idle(tolerance_milli, sums.good.calls, now);
                }
            }
        }
        self.limit = self.limit.clamp(milli(rules.min), milli(rules.max));
        self.settles |= self.limit < before - before / 20;
        let has_halved = self.limit < self.probed / 2;
        if matches!(rules.law, Law::Gradient { .. }) && self.probe.is_none() && (now >= self.probe_due || has_halved) {
            // Where the limit has halved, hardly anything queues any more.
            let limit = if has_halved { self.limit - self.limit / 4 } else { self.limit / 2 };
            self.probe = Some(Probe { began: now, limit });
            self.settles = true;
        }
    }

    /// Ends a probe, if there were successes enough: what was measured is the baseline.
    fn probed(&mut self, began: Now, tolerance_milli: u32, successes: u64, now: Now) {
        if successes < ENOUGH {
            return;
        }
        self.probe = None;
        let (before, measured) = (self.baseline, self.latency);
        let is_slower = before > 0 && u128::from(measured) * 1_000 > u128::from(before) * u128::from(tolerance_milli);
        if is_slower {
            // Without a queue, too: what lowered the limit since was none.
            self.limit = self.limit.max(self.probed);
        }
        let uncertain = 4 * before / successes.isqrt().max(1);
        self.baseline = if before.abs_diff(measured) <= uncertain { before.midpoint(measured) } else { measured };
        let took = now.nanos_since(began);
        let until = took.saturating_mul(PROBE_SHARE).max(PROBE_EVERY);
        self.probe_due = Now::from_nanos(now.nanos().saturating_add(until));
        self.probed = self.limit;
        self.settles = true;
    }

    /// Lowers the baseline to a latency that can't be below it by chance.
    fn sees_less(&mut self, successes: u64) {
        let uncertain = self.baseline / successes.isqrt().max(1);
        if self.latency < self.baseline.saturating_sub(4 * uncertain) {
            self.baseline = self.latency;
        }
    }

    /// Follows the latency of a target that has calls to spare.
    fn sees_idle(&mut self, tolerance_milli: u32, successes: u64, now: Now) {
        let tolerable = u128::from(self.baseline) * u128::from(tolerance_milli) / 1_000;
        if successes >= ENOUGH && u128::from(self.latency) <= tolerable {
            self.baseline = self.baseline - self.baseline / 8 + self.latency / 8;
        }
        self.probe_due = self.probe_due.max(Now::from_nanos(now.nanos().saturating_add(PROBE_EVERY)));
    }
}

/// Mean nanoseconds of the successes, and of the failures where those took longer: a call that timed out was slow, one that was
/// turned away at once says nothing of what work takes.
fn latency(sums: Sums) -> u64 {
    let (good, failed) = (sums.good.mean(), sums.failed.mean());
    if failed > good {
        let nanos = u128::from(sums.good.nanos) + u128::from(sums.failed.nanos);
        return u64::try_from(nanos / u128::from(sums.calls().max(1))).unwrap_or(u64::MAX);
    }
    good
}

fn milli(calls: u32) -> u64 {
    u64::from(calls) * 1_000
}

#[cfg(test)]
mod tests;
