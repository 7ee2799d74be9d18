//! How long a call may take, and what retries fit.

use std::time::Duration;

use super::{Aims, Entry, Value, say};
use crate::formulas::{attempts_per_call, wilson, worst_case};
use crate::observe::Observed;

/// Times p99: so much slower than nearly all is no answer to wait for.
const HEADROOM: u32 = 2;
/// What p99 needs: ten calls beyond it.
pub const CALLS: u64 = 1_000;
/// What a first guess on the safe side needs.
const CALLS_FEW: u64 = 30;
/// What p99.9 needs.
const CALLS_FAR: u64 = 10_000;
/// Shorter ones would cut what a scheduler's hiccup delays.
const SHORTEST: Duration = Duration::from_millis(10);
/// The longest that a file may hold.
const LONGEST: Duration = Duration::from_hours(1);
/// The share of good calls that a budget may cost; above it a retry is given up instead.
pub const CUT: f64 = 0.01;
/// The wait before the first retry, if the budget allows: the default, and the least.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(10));
/// The engine's own bound of backoffs.
const BACKOFF_MAX: Duration = Duration::from_secs(1);
/// Retries per call: the least worth having, and the most that an outage may add to the load.
const RETRIES: (f64, f64) = (0.02, 0.2);

/// Derives `timeout`, and of the whole call what the aims ask for.
#[must_use]
pub fn derive(seen: &Observed, aims: &Aims) -> Vec<Entry> {
    let good = seen.calm.latency.weight();
    if good < CALLS_FEW {
        let why = format!("{} good calls outside outages: a timeout needs {CALLS_FEW}", say::count(good));
        return vec![Entry::missing("timeout", why)];
    }
    if seen.calm.latency.largest() == 0 {
        return vec![Entry::missing("timeout", "the log has no latencies but zero".to_owned())];
    }
    let (wanted, basis) = wanted(seen);
    let (timeout, attempts, fit) = match aims.budget {
        Some(budget) => within(seen, budget, aims.retries, wanted),
        None => (wanted, aims.retries + 1, String::new()),
    };
    let why = format!("{basis}; it cuts {} of good calls{fit}", say::share(seen.calm.cut(timeout)));
    let mut entries = vec![Entry::new("timeout", Value::Time(timeout), why)];
    if aims.retries > 0 {
        entries.extend(retries(seen, aims, timeout, attempts));
    }
    if let Some(budget) = aims.budget {
        let backoff = backoff(Some(budget), timeout, attempts);
        let worst = worst_case(timeout, attempts, backoff, BACKOFF_MAX.max(backoff));
        let backoffs = if attempts > 1 {
            format!(" + backoffs of {} at most", say::time(worst - timeout * attempts))
        } else {
            String::new()
        };
        let sum = format!("{attempts} x {}{backoffs} = {}", say::time(timeout), say::time(worst));
        entries.push(Entry::new("deadline", Value::Time(budget), format!("the budget; the worst case is {sum}")));
    }
    entries
}

/// The timeout that latencies ask for, and why.
fn wanted(seen: &Observed) -> (Duration, String) {
    let good = seen.calm.latency.weight();
    if good < CALLS {
        let longest = Duration::from_micros(seen.calm.latency.largest());
        let basis = format!(
            "{} good calls are too few for p99, which needs {}: on the safe side, the longest of them, {}, x {HEADROOM}",
            say::count(good),
            say::count(CALLS),
            say::time(longest)
        );
        return (say::round_up(longest * HEADROOM).clamp(SHORTEST, LONGEST), basis);
    }
    let p99 = seen.calm.latency_at(0.99);
    // The ranks between which the true quantile lies: binomial, by its normal approximation.
    let spread = 1.96 * (0.99 * 0.01 / good as f64).sqrt();
    let (low, high) = (seen.calm.latency_at(0.99 - spread), seen.calm.latency_at((0.99 + spread).min(1.0)));
    let p99 = p99.max(Duration::from_micros(1));
    let measured = format!(
        "p99 of {} good calls is {} (95 %: {} to {})",
        say::count(good),
        say::time(p99),
        say::time(low),
        say::time(high),
    );
    let doubled = say::round_up(p99 * HEADROOM).min(LONGEST);
    let far = seen.calm.latency_at(0.999);
    if good >= CALLS_FAR && far > doubled {
        let basis = format!("{measured}, but p99.9 is {}, more than {HEADROOM} x p99", say::time(far));
        return (say::round_up(far).clamp(SHORTEST, LONGEST), basis);
    }
    if doubled < SHORTEST {
        return (SHORTEST, format!("{measured}; {HEADROOM} x p99 is shorter than a machine's own hiccups"));
    }
    (doubled, format!("{measured}, x {HEADROOM}"))
}

/// The most attempts that a budget holds, with a timeout that doesn't cut too much.
fn within(seen: &Observed, budget: Duration, retries: u32, wanted: Duration) -> (Duration, u32, String) {
    let room = |attempts: u32| {
        let backoffs = BACKOFF.1 * ((1 << (attempts - 1)) - 1);
        budget.checked_sub(backoffs).map(|left| floor_ms(left / attempts)).filter(|room| !room.is_zero())
    };
    let budget_text = say::time(budget);
    for attempts in (1..=retries + 1).rev() {
        let Some(room) = room(attempts) else { continue };
        let given_up = if attempts <= retries {
            format!(
                "; {} of {retries} given up as retries: with them the budget of {budget_text} would cut more",
                retries + 1 - attempts
            )
        } else {
            String::new()
        };
        if wanted <= room {
            return (wanted, attempts, given_up);
        }
        let shorter = say::round_down(room);
        let cut = seen.calm.cut(shorter);
        if cut <= CUT {
            let fit = format!(
                "; {} would be better, but {attempts} of them don't fit the budget of {budget_text}{given_up}",
                say::time(wanted)
            );
            return (shorter, attempts, fit);
        }
        if attempts == 1 {
            let fit = format!(
                "; MORE THAN {}: not even one attempt fits the budget of {budget_text}, which should be {} at least{given_up}",
                say::share(CUT),
                say::time(wanted),
            );
            return (shorter, 1, fit);
        }
    }
    // A single attempt has no backoff, and a budget is not zero.
    (budget, 1, String::new())
}

fn floor_ms(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// The longest wait before the first retry that the budget holds.
fn backoff(budget: Option<Duration>, timeout: Duration, attempts: u32) -> Duration {
    let Some(budget) = budget else { return BACKOFF.0 };
    if attempts < 2 {
        return BACKOFF.0;
    }
    let left = budget.saturating_sub(timeout * attempts);
    floor_ms(left / ((1 << (attempts - 1)) - 1)).min(BACKOFF.0)
}

fn retries(seen: &Observed, aims: &Aims, timeout: Duration, attempts: u32) -> Vec<Entry> {
    let (failures, calls) = (seen.calm.failures, seen.calm.calls);
    let usual = if calls == 0 { 0.0 } else { failures as f64 / calls as f64 };
    let lost = |attempts: u32| say::share(libm::pow(usual, f64::from(attempts)));
    let why = format!(
        "{} of calls fail as they always do; with {attempts} attempts {} would, if failures are independent, for {:.3} attempts a call",
        lost(1),
        lost(attempts),
        attempts_per_call(usual, attempts),
    );
    let mut entries = vec![Entry::new("attempts", Value::Count(attempts), why)];
    if attempts < 2 {
        return entries;
    }
    let wait = backoff(aims.budget, timeout, attempts);
    let why = match aims.budget {
        Some(budget) if wait < BACKOFF.0 => {
            format!("what {attempts} x {} leave of {}", say::time(timeout), say::time(budget))
        }
        _ => "the default; drawn from 0 up to this, and doubled for each retry".to_owned(),
    };
    entries.push(Entry::new("retry_backoff", Value::Time(wait), why));
    let high = wilson(failures, calls, 0.95).high;
    let budget = (high * 2.0 * f64::from(attempts - 1)).clamp(RETRIES.0, RETRIES.1);
    let budget = (budget * 100.0).ceil() / 100.0;
    let why = format!(
        "twice what the usual failures need (95 %: {} at most), within {} and {}: an outage adds no more than {} to the load",
        say::share(high),
        say::share(RETRIES.0),
        say::share(RETRIES.1),
        say::share(budget),
    );
    entries.push(Entry::new("retry_budget", Value::Share(budget), why));
    entries
}

/// Derives the rule for slow calls, where there are any between the usual and the timeout.
pub(super) fn slow(seen: &Observed, timeout: Duration) -> Vec<Entry> {
    /// Slow is what takes as long as one call in a thousand.
    const FAR: f64 = 0.999;
    const RATE: f64 = 0.8;
    let slow = say::round_up(seen.calm.latency_at(FAR));
    if seen.calm.latency.weight() < CALLS_FAR || slow.as_secs_f64() > timeout.as_secs_f64() * 0.75 {
        return Vec::new();
    }
    let share = say::share(seen.calm.cut(slow));
    let why = format!("p99.9 of good calls: {share} of them take longer, the timeout is {}", say::time(timeout));
    let rate_why =
        "four in five calls as slow as one in a thousand is: it answers, but its callers gain nothing".to_owned();
    vec![Entry::new("slow_call", Value::Time(slow), why), Entry::new("slow_rate", Value::Share(RATE), rate_why)]
}
