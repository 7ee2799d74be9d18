//! The settings of a target in whole numbers, and the waits that follow from them.

use std::time::Duration;

use arbitrary::Arbitrary;
use portcullis::{OnAbandon, Policy, Priority, UNLIMITED, Window};

const DAY_MS: u64 = 24 * 3_600_000;
const YEAR_MS: u64 = 365 * DAY_MS;

/// Any bytes; [`Rules`] makes legal settings of them, small ones mostly, since small ones meet their own edges.
#[derive(Arbitrary, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    pub limit: u8,
    pub streak: u8,
    pub window: u8,
    pub size: u8,
    pub min_calls: u8,
    pub rate: u16,
    pub failures: u8,
    pub slow_ms: u8,
    pub slow_rate: u16,
    pub wait: u8,
    pub backoff: u8,
    pub longest: u8,
    pub jitter: u8,
    pub probes: u8,
    pub successes: u8,
    pub lease: u8,
    pub abandon: u8,
    pub ignored: u8,
    pub shares: u8,
    pub stall: u8,
    pub stalled: u8,
    pub ramp: u8,
    pub ramp_failures: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    None,
    Calls(usize),
    Time { width_ms: u64, buckets: u64 },
}

impl Shape {
    pub(crate) fn length_ms(self) -> u64 {
        match self {
            Self::None | Self::Calls(_) => 0,
            Self::Time { width_ms, buckets } => width_ms * buckets,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Abandon {
    Unset,
    Ignore,
    Failure,
    FailureAfter(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) limit: u32,
    pub(crate) streak: Option<u64>,
    pub(crate) shape: Shape,
    pub(crate) min_calls: u64,
    pub(crate) rate_bp: Option<u64>,
    pub(crate) failures: Option<u64>,
    pub(crate) slow_ms: Option<u64>,
    pub(crate) slow_rate_bp: Option<u64>,
    pub(crate) stall_ms: Option<u64>,
    pub(crate) stalled_calls: Option<u64>,
    pub(crate) stalled_share_bp: Option<u64>,
    pub(crate) wait_ms: u64,
    backoff_milli: u64,
    pub(crate) longest_ms: u64,
    jitter_bp: u64,
    pub(crate) probes: u32,
    pub(crate) successes: u32,
    pub(crate) lease_s: u64,
    pub(crate) abandon: Abandon,
    pub(crate) ignored: u64,
    /// Of the limit, in basis points: of normal calls, and of sheddable ones.
    shares_bp: [u64; 2],
    pub(crate) ramp_ms: Option<u64>,
    pub(crate) ramp_failures: u64,
}

fn pick<T: Copy>(from: &[T], by: u8) -> T {
    from[usize::from(by) % from.len()]
}

fn rate(draft: u16) -> u64 {
    match draft % 8 {
        0 => 1,
        1 | 2 => 5_000,
        3 => 3_333,
        4 => 6_667,
        5 => 10_000,
        _ => u64::from(draft) % 10_000 + 1,
    }
}

impl Rules {
    pub(crate) fn new(draft: &Draft) -> Self {
        let most = if draft.window < 160 { 8 } else { 100 };
        let shape = match draft.window % 8 {
            0 => Shape::None,
            1..=4 => Shape::Calls(usize::from(draft.size) % most + 1),
            _ => Shape::Time {
                width_ms: pick(&[1, 7, 100, 1_000, 60_000], draft.size),
                buckets: pick(&[1, 2, 3, 10, 64], draft.size / 5),
            },
        };
        let has_window = shape != Shape::None;
        let most_calls = if let Shape::Calls(calls) = shape { calls as u64 } else { 20 };
        let wait_ms = pick(&[1, 2, 10, 1_000, 5_000, 60_000, DAY_MS, YEAR_MS], draft.wait);
        let backoff_milli = pick(&[1_000, 1_500, 2_000, 3_000, 1_000_000], draft.backoff);
        // A constant wait can't reach anything longer.
        let longest = if backoff_milli == 1_000 { 1 } else { pick(&[1, 2, 5, 100], draft.longest) };
        let limit = pick(&[1, 2, 3, 130, 700, UNLIMITED], draft.limit);
        let stall_ms = (!draft.stall.is_multiple_of(3)).then(|| pick(&[50, 80, 81, 1_000, 60_000], draft.stall / 3));
        let has_share = limit != UNLIMITED && !draft.stalled.is_multiple_of(3);
        let has_number = !has_share || draft.stalled % 3 == 1;
        let slow_ms = draft.slow_ms.is_multiple_of(3).then_some(u64::from(draft.slow_ms) + 1);
        let has_ramp = limit != UNLIMITED && !draft.ramp.is_multiple_of(3);
        Self {
            limit,
            streak: draft.streak.is_multiple_of(3).then_some(u64::from(draft.streak) / 3 % 6 + 1),
            shape,
            min_calls: u64::from(draft.min_calls) % most_calls + 1,
            rate_bp: (has_window && !draft.rate.is_multiple_of(5)).then(|| rate(draft.rate / 5)),
            failures: (has_window && draft.failures.is_multiple_of(4))
                .then(|| u64::from(draft.failures) / 4 % most_calls + 1),
            slow_ms,
            slow_rate_bp: slow_ms.filter(|_| has_window).map(|_| rate(draft.slow_rate)),
            stall_ms,
            stalled_calls: stall_ms
                .filter(|_| has_number)
                .map(|_| u64::from(draft.stalled) / 3 % u64::from(limit.min(4)) + 1),
            stalled_share_bp: stall_ms.filter(|_| has_share).map(|_| rate(u16::from(draft.stalled) / 3)),
            wait_ms,
            backoff_milli,
            longest_ms: (wait_ms * longest).min(YEAR_MS),
            jitter_bp: pick(&[0, 0, 0, 1_000, 10_000], draft.jitter),
            probes: pick(&[1, 1, 2, 3, 31], draft.probes),
            successes: pick(&[1, 2, 3, 31], draft.successes),
            lease_s: pick(&[1, 2, 10, 3_600, YEAR_MS / 1_000], draft.lease),
            abandon: match draft.abandon % 6 {
                0..=2 => Abandon::Unset,
                3 => Abandon::Ignore,
                4 => Abandon::Failure,
                _ => Abandon::FailureAfter(u64::from(draft.abandon)),
            },
            ignored: pick(&[1, 2, 3, 10], draft.ignored),
            shares_bp: pick(&[[10_000, 10_000], [10_000, 5_000], [6_667, 6_667], [9_999, 1]], draft.shares),
            ramp_ms: has_ramp.then(|| pick(&[1, 7, 1_000, 60_000, DAY_MS], draft.ramp / 3)),
            ramp_failures: pick(&[1, 2, 3, 1_000], draft.ramp_failures),
        }
    }

    /// The same for the real engine.
    pub(crate) fn policy(&self) -> Policy {
        let (ms, share) = (Duration::from_millis, |bp: u64| bp as f64 / 10_000.0);
        let mut policy = Policy::builder()
            .max_in_flight(self.limit)
            .open_wait(ms(self.wait_ms))
            .backoff(self.backoff_milli as f64 / 1_000.0)
            .open_wait_max(ms(self.longest_ms))
            .jitter(share(self.jitter_bp))
            .max_probes(self.probes)
            .successes_to_close(self.successes)
            .probe_lease(Duration::from_secs(self.lease_s))
            .ignored_probes(self.ignored as u32)
            .normal_share(share(self.shares_bp[0]))
            .sheddable_share(share(self.shares_bp[1]));
        policy = match self.shape {
            Shape::None => policy.no_window(),
            Shape::Calls(calls) => policy.window(Window::calls(calls as u32)).min_calls(self.min_calls as u32),
            Shape::Time { width_ms, buckets } => {
                let window = Window::time(ms(width_ms * buckets)).buckets(buckets as u32);
                policy.window(window).min_calls(self.min_calls as u32)
            }
        };
        policy = match self.rate_bp {
            Some(rate_bp) => policy.failure_rate(share(rate_bp)),
            None => policy.no_failure_rate(),
        };
        if let Some(failures) = self.streak {
            policy = policy.consecutive_failures(failures as u32);
        }
        if let Some(failures) = self.failures {
            policy = policy.failures(failures as u32);
        }
        if let Some(slow_ms) = self.slow_ms {
            policy = policy.slow_call(ms(slow_ms));
        }
        if let Some(rate_bp) = self.slow_rate_bp {
            policy = policy.slow_rate(share(rate_bp));
        }
        if let Some(stall_ms) = self.stall_ms {
            policy = policy.stall_after(ms(stall_ms));
        }
        if let Some(calls) = self.stalled_calls {
            policy = policy.stalled_calls(calls as u32);
        }
        if let Some(share_bp) = self.stalled_share_bp {
            policy = policy.stalled_share(share(share_bp));
        }
        policy = match self.abandon {
            Abandon::Unset => policy,
            Abandon::Ignore => policy.on_abandon(OnAbandon::Ignore),
            Abandon::Failure => policy.on_abandon(OnAbandon::Failure),
            Abandon::FailureAfter(least) => policy.on_abandon(OnAbandon::FailureAfter(ms(least))),
        };
        if let Some(ramp_ms) = self.ramp_ms {
            policy = policy.ramp(ms(ramp_ms)).ramp_failures(self.ramp_failures as u32);
        }
        policy.build().unwrap_or_else(|error| panic!("{self:?} is refused: {error}"))
    }

    /// The most in flight with a call of this priority, while so many may be.
    pub(crate) fn room(&self, priority: Priority, limit: u32) -> u32 {
        let basis_points = match priority {
            Priority::Critical => return limit,
            Priority::Normal => self.shares_bp[0],
            Priority::Sheddable => self.shares_bp[1],
        };
        if limit == UNLIMITED {
            return limit;
        }
        ((u64::from(limit) * basis_points / 10_000) as u32).max(limit.min(1))
    }

    /// The least and the longest wait after so many failed probes in a row (R7). The draw between them is the engine's own.
    pub(crate) fn wait(&self, reopens: u32) -> (u64, u64) {
        // In thousandths of a millisecond.
        let longest = u128::from(self.longest_ms) * 1_000;
        let longer = |wait: u128, _| (wait * u128::from(self.backoff_milli) / 1_000).min(longest);
        let wait = (0..reopens).fold(u128::from(self.wait_ms) * 1_000, longer).div_ceil(1_000) as u64;
        let span = wait * self.jitter_bp / 10_000;
        ((wait - span).max(1), (wait + span).min(self.longest_ms))
    }

    /// Whether failures in a row are counted.
    pub(crate) fn counts_streaks(&self) -> bool {
        self.streak.is_some() || self.ramp_ms.is_some()
    }

    /// Whether a call's start is noted, because something is judged by how long it ran (R13).
    pub(crate) fn times_calls(&self) -> bool {
        self.slow_ms.is_some() || self.stall_ms.is_some() || matches!(self.abandon, Abandon::FailureAfter(_))
    }

    /// How long anything that a target remembers can matter (R19).
    pub(crate) fn memory_ms(&self) -> u64 {
        self.shape.length_ms().max(self.longest_ms).max(self.ramp_ms.unwrap_or(0))
    }
}
