//! What a round is made of: the policies, the keys, and the random numbers that choose between them.

use std::time::Duration;

use portcullis::{OnAbandon, Policy, PolicyBuilder, Window};

/// Keys that hold a handle for the whole round, so that they stay and their totals can be compared.
pub(crate) const PINNED: usize = 8;
/// Keys that come and go.
pub(crate) const LOOSE: usize = 14;
/// Fewer than there are keys, so that the sweeper has work and some are refused.
pub(crate) const MAX_TARGETS: usize = 20;
pub(crate) const IDLE_AFTER: Duration = Duration::from_millis(20);
pub(crate) const FORGET_AFTER: Duration = Duration::from_secs(2);
/// No policy here waits or leases for longer.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);
pub(crate) const LONGEST_LEASE: Duration = Duration::from_secs(60);
/// Permits that may be leaked for each pinned key: fewer than any limit that a round ends with.
pub(crate) const MOST_LEAKED: u32 = 2;
/// Limits on both sides of 128, where stashes begin; 0 is the kill switch.
pub(crate) const LIMITS: [u32; 9] = [0, 1, 2, 5, 40, 127, 128, 200, 600];

/// A policy with the numbers that the checks need.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) policy: Policy,
    pub(crate) limit: u32,
    pub(crate) max_probes: u32,
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Policies that differ in all that a race could depend on: windows, rules, limits, probes, waits.
///
/// # Panics
///
/// If one of them doesn't build.
#[must_use]
pub(crate) fn policies() -> Vec<Planned> {
    let secs = Duration::from_secs;
    let hasty = || Policy::builder().open_wait(ms(1)).open_wait_max(ms(50)).probe_lease(secs(1));
    let (quick, streak) = (|| hasty().min_calls(5), || hasty().no_window().no_failure_rate().consecutive_failures(4));
    let plan: [(PolicyBuilder, u32, u32); 7] = [
        (quick().window(Window::calls(10)).successes_to_close(1), 3, 1),
        (quick().window(Window::calls(100)).min_calls(20).successes_to_close(3).jitter(0.5), 200, 2),
        (quick().window(Window::time(ms(20)).buckets(4)).slow_call(ms(2)).slow_rate(0.7), 5, 3),
        (quick().window(Window::time(secs(10)).buckets(10)).failures(7).ignored_probes(2), 300, 31),
        (streak().on_abandon(OnAbandon::FailureAfter(ms(1))), 128, 2),
        (
            quick().window(Window::calls(50)).slow_call(ms(1)).consecutive_failures(9).on_abandon(OnAbandon::Failure),
            40,
            5,
        ),
        (Policy::builder().open_wait_max(LONGEST_WAIT).probe_lease(LONGEST_LEASE).successes_to_close(31), 600, 31),
    ];
    let build = |(builder, limit, max_probes): (PolicyBuilder, u32, u32)| Planned {
        policy: builder.max_in_flight(limit).max_probes(max_probes).build().expect("the policies here build"),
        limit,
        max_probes,
    };
    plan.into_iter().map(build).collect()
}

/// xorshift64*, seeded through a mixer so that neighbouring seeds have nothing in common.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    #[must_use]
    pub(crate) fn new(seed: u64, round: u64, thread: u64) -> Self {
        let mut bits = seed ^ round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ thread.wrapping_mul(0xd1b5_4a32_d192_ed03);
        for _ in 0..2 {
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(1);
        }
        Self(bits | 1)
    }

    /// 0 to `below` - 1.
    pub(crate) fn draw(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % below
    }

    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.draw(times) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.draw(from.len() as u64) as usize]
    }
}
