//! The arithmetic of policies, with sources.
//!
//! | question | formula |
//! | --- | --- |
//! | how many calls are in flight | [`little`], [`limit`], [`in_flight_quantile`] |
//! | how often is a limit full, how often does a call wait | [`erlang_b`], [`erlang_c`], [`servers_for`], [`waits_longer`] |
//! | how often does noise trip a streak rule | [`streak_trips_per_call`] (exact), [`streak_trips_per_call_usual`] |
//! | how often does noise trip a window rule | [`CallsWindow`], [`TimeWindow`] |
//! | how many attempts does a call make | [`attempts_per_call`], [`attempts_through_layers`], [`budgeted_attempts_per_call`] |
//! | do the attempts fit the deadline | [`worst_case`], [`attempts_within`], [`longest_timeout`] |
//! | how sure is a share or a count | [`wilson`], [`poisson_interval`] |
//! | the tails beneath | [`binomial_at_least`], [`poisson_at_least`] |
//!
//! Pure functions of `f64` and whole numbers. An argument outside the stated domain, NaN included, gives NaN, or `None` where the result is a
//! whole number: nothing here panics. Shares and probabilities are 0 to 1, times are seconds or [`Duration`](std::time::Duration), rates are per
//! second. Small probabilities are computed as themselves, never as 1 minus a large one, so that 1e-30 is as exact as 0.1.

mod confidence;
mod queues;
mod retries;
mod streaks;
mod tails;
mod windows;

pub use confidence::{Interval, normal_quantile, poisson_interval, wilson};
pub use queues::{erlang_b, erlang_c, in_flight_quantile, limit, little, servers_for, waits_longer};
pub use retries::{
    attempts_per_call, attempts_through_layers, attempts_within, budgeted_attempts_per_call, longest_timeout,
    worst_case,
};
pub use streaks::{calls_between_streaks, streak_trips_per_call, streak_trips_per_call_usual};
pub use tails::{binomial_at_least, binomial_pmf, poisson_at_least, poisson_pmf};
pub use windows::{CallsWindow, Rules, TimeWindow};

/// Whether a number is a probability.
fn is_share(share: f64) -> bool {
    (0.0..=1.0).contains(&share)
}

/// Whether a number is finite and at least 0.
fn is_amount(amount: f64) -> bool {
    amount.is_finite() && amount >= 0.0
}
