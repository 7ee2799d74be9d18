//! Outages told from normal failures, call by call: see [`super`] for the definition.

use std::time::Duration;

use super::noise::{Noise, Tail};

/// So many calls are looked at before the first is judged.
const WARM_UP: usize = 512;
/// What is believed of a target that no call has told anything about yet: one failure in a hundred calls, as if it had been seen so often.
const PRIOR: (f64, f64) = (1.0, 100.0);
/// The sum at which an outage is believed: ln 10⁹.
const CERTAIN: f64 = 20.723_265_836_946_41;
/// Shorter ones are blips.
const SHORTEST: Duration = Duration::from_secs(1);
/// More lengths than these aren't kept: the first ones are.
const LENGTHS: usize = 4096;

/// The outages of a target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outages {
    /// How many began, those that hadn't ended with the log included.
    pub count: u64,
    /// How long those lasted that began and ended within the log, shortest first; the first 4096.
    pub lengths: Vec<Duration>,
    /// The time of all together.
    pub time: Duration,
    /// Calls that ended in them.
    pub calls: u64,
    /// Those that failed.
    pub failures: u64,
    /// Whether the last was still on when the log ended.
    pub is_on: bool,
    /// How many were over within a second.
    pub blips: u64,
}

impl Outages {
    /// The median length, if there were any that ended.
    #[must_use]
    pub fn median(&self) -> Option<Duration> {
        self.lengths.get(self.lengths.len() / 2).copied()
    }
}

/// What came of the calls so far.
#[derive(Debug, Default)]
pub(super) struct Detector {
    /// The first calls, until there are enough of them to judge.
    warm_up: Vec<(u64, bool)>,
    is_warm: bool,
    /// Failures believed in among the calls of the prior.
    prior: f64,
    /// When the first call ended.
    first: Option<u64>,
    outages: Outages,
    calm: Tally,
    noise: Noise,
    tail: Tail,
    phase: Phase,
}

/// Calls, and failures among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) calls: u64,
    pub(super) failures: u64,
}

impl Tally {
    fn count(&mut self, failed: bool) {
        self.calls += 1;
        self.failures += u64::from(failed);
    }

    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.failures += other.failures;
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum Phase {
    /// The sum is zero.
    #[default]
    Calm,
    Doubt(Doubt),
    Out(Out),
}

/// Calls since a failure that may turn out to be the first of an outage.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    since: u64,
    sum: f64,
    weights: Weights,
    tally: Tally,
    noise: Noise,
}

/// An outage; its sum speaks for its end.
#[derive(Clone, Copy, Debug)]
struct Out {
    since: u64,
    sum: f64,
    weights: Weights,
    /// The calls that surely belong to it.
    tally: Tally,
    /// Those since the sum was last zero, and the first of them.
    after: Tally,
    ended: u64,
}

/// What a call adds to the sum that speaks for an outage.
#[derive(Clone, Copy, Debug)]
struct Weights {
    failure: f64,
    success: f64,
}

impl Weights {
    fn of(self, failed: bool) -> f64 {
        if failed { self.failure } else { self.success }
    }
}

impl Detector {
    /// Takes in the end of a call that says something about the target's health. Ends must come in order.
    pub(super) fn call(&mut self, end: u64, failed: bool) {
        self.first.get_or_insert(end);
        if self.is_warm {
            return self.judge(end, failed);
        }
        self.warm_up.push((end, failed));
        if self.warm_up.len() == WARM_UP {
            self.warm();
        }
    }

    /// Whether an outage is on.
    pub(super) fn is_out(&self) -> bool {
        matches!(self.phase, Phase::Out(_))
    }

    /// Judges the calls that were held back, by the share of failures in the quietest quarter of them.
    fn warm(&mut self) {
        self.is_warm = true;
        let calls = std::mem::take(&mut self.warm_up);
        let quarters = calls.chunks(calls.len().div_ceil(4).max(1));
        let failed = |quarter: &[(u64, bool)]| quarter.iter().filter(|(_, failed)| *failed).count();
        let quietest = quarters.map(|quarter| failed(quarter) as f64 / quarter.len() as f64).fold(1.0, f64::min);
        // Where even the quietest quarter fails mostly, it is an outage that was on before the log began.
        self.prior = if quietest <= 0.5 { (PRIOR.1 * quietest).max(PRIOR.0) } else { PRIOR.0 };
        for (end, failed) in calls {
            self.judge(end, failed);
        }
    }

    fn judge(&mut self, end: u64, failed: bool) {
        self.phase = match self.phase {
            Phase::Calm if !failed => {
                self.calm.count(failed);
                self.noise = self.noise.or(self.tail.push(failed));
                Phase::Calm
            }
            Phase::Calm => {
                let weights = self.weights();
                self.doubt(
                    end,
                    failed,
                    Doubt { since: end, sum: 0.0, weights, tally: Tally::default(), noise: Noise::default() },
                )
            }
            Phase::Doubt(doubt) => self.doubt(end, failed, doubt),
            Phase::Out(out) => self.out(end, failed, out),
        };
    }

    /// What a call says if a target that is sick fails every second call, or half as often again if it fails more often than not when well.
    fn weights(&self) -> Weights {
        let usual = (self.calm.failures as f64 + self.prior) / (self.calm.calls as f64 + PRIOR.1);
        let usual = usual.clamp(1e-4, 0.99);
        let sick = f64::midpoint(1.0, usual).max(0.5);
        Weights { failure: libm::log(sick / usual), success: libm::log((1.0 - sick) / (1.0 - usual)) }
    }

    fn doubt(&mut self, end: u64, failed: bool, mut doubt: Doubt) -> Phase {
        doubt.sum += doubt.weights.of(failed);
        doubt.tally.count(failed);
        doubt.noise = doubt.noise.or(self.tail.push(failed));
        if doubt.sum <= 0.0 {
            self.clear(doubt);
            return Phase::Calm;
        }
        if doubt.sum < CERTAIN {
            return Phase::Doubt(doubt);
        }
        self.tail = Tail::default();
        let Doubt { since, weights, tally, .. } = doubt;
        Phase::Out(Out { since, sum: 0.0, weights, tally, after: Tally::default(), ended: end })
    }

    /// It was nothing.
    fn clear(&mut self, doubt: Doubt) {
        self.calm.add(doubt.tally);
        self.noise = self.noise.or(doubt.noise);
    }

    fn out(&mut self, end: u64, failed: bool, mut out: Out) -> Phase {
        out.sum -= out.weights.of(failed);
        if out.after.calls == 0 {
            out.ended = end;
        }
        out.after.count(failed);
        if out.sum >= CERTAIN {
            self.calm.add(out.after);
            self.end(out.since, out.ended, out.tally);
            return Phase::Calm;
        }
        if out.sum <= 0.0 {
            out.sum = 0.0;
            out.tally.add(out.after);
            out.after = Tally::default();
            out.ended = end;
        }
        Phase::Out(out)
    }

    fn end(&mut self, since: u64, ended: u64, tally: Tally) {
        let length = Duration::from_nanos(ended.saturating_sub(since));
        if length < SHORTEST {
            self.outages.blips += 1;
            return;
        }
        self.count(length, tally);
        // One that was on when the log began was longer than what is seen of it.
        if self.first != Some(since) && self.outages.lengths.len() < LENGTHS {
            self.outages.lengths.push(length);
        }
    }

    fn count(&mut self, length: Duration, tally: Tally) {
        self.outages.count += 1;
        self.outages.time += length;
        self.outages.calls += tally.calls;
        self.outages.failures += tally.failures;
    }

    /// Tells what came of all calls, the last of which ended at `last`.
    pub(super) fn finish(mut self, last: u64) -> (Tally, Noise, Outages) {
        if !self.is_warm {
            self.warm();
        }
        match self.phase {
            Phase::Calm => {}
            Phase::Doubt(doubt) => self.clear(doubt),
            Phase::Out(mut out) => {
                out.tally.add(out.after);
                self.count(Duration::from_nanos(last.saturating_sub(out.since)), out.tally);
                self.outages.is_on = true;
            }
        }
        self.outages.lengths.sort_unstable();
        (self.calm, self.noise, self.outages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Ten calls a second: for each letter a second, of whose calls as many failed as it says.
    fn seen(seconds: &str) -> (Tally, Noise, Outages) {
        let mut detector = Detector::default();
        let mut last = 0;
        for (second, failures) in (1_u64..).zip(seconds.chars().map(|c| u64::from(c.to_digit(11).unwrap()))) {
            for n in 0..10 {
                last = second * SECOND + n * SECOND / 10;
                // Spread over the second: 3 of 10 are calls 2, 5 and 8.
                let failed = (n + 1) * failures / 10 > n * failures / 10;
                detector.call(last, failed);
            }
        }
        detector.finish(last)
    }

    fn steady(seconds: usize, failures: &str) -> String {
        failures.repeat(seconds)
    }

    #[test]
    fn an_outage_has_its_length_and_the_rest_is_calm() {
        let log = steady(100, "0") + &steady(30, "a") + &steady(100, "0");
        let (calm, noise, outages) = seen(&log);
        assert_eq!(outages.lengths, [Duration::from_secs(30)]);
        assert_eq!((outages.calls, outages.failures, outages.count, outages.is_on), (300, 300, 1, false));
        assert_eq!(calm, Tally { calls: 2_000, failures: 0 });
        assert_eq!(noise, Noise::default());
    }

    #[test]
    fn normal_failures_are_no_outage_however_many() {
        for failures in ["1", "2", "3"] {
            let (calm, _, outages) = seen(&steady(2_000, failures));
            assert_eq!(outages, Outages::default(), "{failures}");
            assert_eq!(calm.calls, 20_000);
        }
    }

    #[test]
    fn a_target_that_fails_half_of_its_calls_is_out() {
        let log = steady(100, "1") + &steady(60, "6") + &steady(100, "1");
        let (calm, _, outages) = seen(&log);
        assert_eq!(outages.count, 1);
        assert!((58..=62).contains(&outages.lengths[0].as_secs()), "{outages:?}");
        assert!(calm.failures.abs_diff(200) < 10, "{calm:?}");
    }

    #[test]
    fn what_the_log_only_saw_a_part_of_has_no_length() {
        let (calm, _, outages) = seen(&(steady(60, "a") + &steady(100, "0") + &steady(60, "a")));
        assert_eq!((outages.count, outages.is_on, outages.lengths.len()), (2, true, 0));
        assert_eq!(calm, Tally { calls: 1_000, failures: 0 });
        let (calm, _, outages) = seen(&steady(500, "a"));
        assert_eq!((outages.count, calm.calls), (1, 0));
    }

    #[test]
    fn a_blip_is_neither_an_outage_nor_normal() {
        let (calm, noise, outages) = seen(&(steady(100, "0") + "8" + &steady(100, "0")));
        assert_eq!((outages.count, outages.blips), (0, 1));
        assert_eq!(calm.failures, 0);
        assert_eq!(noise, Noise::default());
    }

    #[test]
    fn few_calls_are_judged_too() {
        let mut detector = Detector::default();
        detector.call(SECOND, true);
        assert_eq!(
            detector.finish(SECOND),
            (Tally { calls: 1, failures: 1 }, Noise { run: 1, stretch: [1, 1] }, Outages::default())
        );
    }
}
