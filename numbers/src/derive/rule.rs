//! When to open: thresholds that normal failures don't reach, and whether a breaker is worth having.

use std::time::Duration;

use super::{Aims, Entry, Value, say};
use crate::formulas::{CallsWindow, Interval, Rules, poisson_interval, streak_trips_per_call, wilson};
use crate::observe::{LONGEST_STRETCH, Observed, STRETCHES};

/// What a share of failures needs.
pub const CALLS: u64 = 100;
/// A window holds the calls of about so long: one burst, such as a broken connection, is no outage.
const BURST_SECONDS: f64 = 1.0;
/// Where `min_calls` take longer than this, the window's evidence is too old.
const OLD_SECONDS: f64 = 30.0;
/// The engine's default: no rule of ours judges fewer.
const LEAST_CALLS: u32 = 10;
/// And no streak is shorter or longer.
const STREAK: std::ops::RangeInclusive<u32> = 3..=50;
/// With no outage to go by, a rule that takes longer than this to notice one is none.
const LATE: Duration = Duration::from_mins(10);
/// The share of failures up to which a threshold of half of the calls tells an outage from noise, and then of four fifths.
const NOISIEST: [f64; 2] = [0.25, 0.55];

/// A rule that opens a target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// The share of failures among the last calls.
    Window {
        /// How many calls it holds.
        calls: u32,
        /// So many must have ended.
        min_calls: u32,
        /// The share, in tenths.
        tenths: u32,
    },
    /// Failures in a row.
    Streak(u32),
    /// No rule: better without a breaker.
    None,
}

impl Rule {
    /// How many failures in a row open a target that was well before.
    fn failures(self) -> Option<u32> {
        match self {
            Self::Window { calls, tenths, .. } => Some((calls * tenths).div_ceil(10)),
            Self::Streak(failures) => Some(failures),
            Self::None => None,
        }
    }

    /// How many seconds of failures open a target that was well before, at so many calls per second.
    #[must_use]
    pub fn notices_in(self, per_second: f64) -> Option<f64> {
        self.failures().map(|failures| f64::from(failures) / per_second)
    }
}

/// Derives the rule and its fields; none where the log says too little.
#[must_use]
pub fn derive(seen: &Observed, timeout: Option<Duration>, aims: &Aims) -> (Option<Rule>, Vec<Entry>) {
    if let Err(why) = worth(seen, aims) {
        return none(&why);
    }
    let calls = seen.calm.calls;
    if calls < CALLS {
        let why =
            format!("{} calls outside outages: the share of failures needs {}", say::count(calls), say::count(CALLS));
        return (None, vec![Entry::missing("failure_rate", why)]);
    }
    let noise = Usual::of(seen, timeout, aims);
    let found = window(&noise).or_else(|| streak(&noise));
    let Some((rule, mut entries)) = found else {
        let why = format!(
            "{}, the longest streak is {} and the longest stretch of which half failed {} calls: no threshold tells an outage from this",
            noise.text, seen.calm.noise.run, seen.calm.noise.stretch[0],
        );
        return none(&why);
    };
    let notices = rule.notices_in(noise.per_second).unwrap_or(f64::INFINITY);
    let (late, typical) = match seen.outages.median() {
        Some(median) => (median, format!("the median outage is over in {}", say::time(median))),
        None => (LATE, format!("callers notice an outage of {} by themselves", say::time(LATE))),
    };
    if notices > late.as_secs_f64() {
        let why = format!(
            "no rule sees an outage in time: {} failures in a row, which noise allows at the least, take {} at {}, and {typical}",
            rule.failures().unwrap_or(0),
            say::seconds(notices),
            say::rate(noise.per_second),
        );
        return none(&why);
    }
    // The size of a window is what makes it slow.
    let slows = if matches!(rule, Rule::Window { .. }) { entries.first_mut() } else { entries.last_mut() };
    if let Some(entry) = slows {
        entry.why += &format!(
            ". A dead target is noticed in {} ({} calls)",
            say::seconds(notices),
            rule.failures().unwrap_or(0)
        );
    }
    (Some(rule), entries)
}

fn none(why: &str) -> (Option<Rule>, Vec<Entry>) {
    (Some(Rule::None), vec![Entry::new("failure_rate", Value::Off, format!("NO BREAKER: {why}"))])
}

/// How many outages a year there are, with 95 % confidence.
#[must_use]
pub fn outages_a_year(seen: &Observed) -> Interval {
    let years = seen.span.as_secs_f64() / (365.0 * 86_400.0);
    let Interval { low, high } = poisson_interval(seen.outages.count, 0.95);
    Interval { low: low / years, high: high / years }
}

/// Whether outages are so frequent that a breaker is worth its upkeep, as far as the log can tell.
///
/// # Errors
///
/// It isn't, and why.
pub fn worth(seen: &Observed, aims: &Aims) -> Result<(), String> {
    let Interval { high, .. } = outages_a_year(seen);
    if high >= f64::from(aims.upkeep) {
        return Ok(());
    }
    Err(format!(
        "{} in {} are {} a year at most (95 %), and below {} a year (--upkeep) a breaker costs more care than it saves",
        outages(seen.outages.count),
        say::time(seen.span),
        say::number(high),
        aims.upkeep,
    ))
}

pub(crate) fn outages(count: u64) -> String {
    match count {
        0 => "no outage".to_owned(),
        1 => "1 outage".to_owned(),
        count => format!("{} outages", say::count(count)),
    }
}

/// The failures that are normal.
struct Usual<'s> {
    seen: &'s Observed,
    /// The share at most, with 95 % confidence, and with what the timeout adds.
    share: f64,
    per_second: f64,
    /// False trips per call that are wanted at most.
    allowed: f64,
    text: String,
    aim: String,
}

impl<'s> Usual<'s> {
    fn of(seen: &'s Observed, timeout: Option<Duration>, aims: &Aims) -> Self {
        let (calls, failures) = (seen.calm.calls, seen.calm.failures);
        let high = wilson(failures, calls, 0.95).high;
        let cut = timeout.map_or(0.0, |timeout| seen.calm.cut(timeout));
        let share = (high + cut).min(1.0);
        let usual = say::share(failures as f64 / calls as f64);
        let cut = if cut > 0.0 {
            format!(", with the {} that the timeout cuts {} at most", say::share(cut), say::share(share))
        } else {
            String::new()
        };
        let per_second = seen.calls as f64 / seen.span.as_secs_f64();
        Self {
            seen,
            share,
            per_second,
            allowed: aims.false_trips.per_second() / per_second,
            text: format!("{usual} of calls fail as they always do (95 %: {} at most{cut})", say::share(high)),
            aim: aims.false_trips.to_string(),
        }
    }

    fn trips(&self, per_call: f64) -> String {
        often(per_call * self.per_second)
    }
}

/// How often something happens, as people count it.
#[must_use]
pub fn often(per_second: f64) -> String {
    let per_day = per_second * 86_400.0;
    if per_day >= 24.0 {
        format!("{} times an hour", say::number(per_day / 24.0))
    } else if per_day >= 1.0 {
        format!("{} times a day", say::number(per_day))
    } else {
        format!("{} times a year", say::number(per_day * 365.0))
    }
}

/// The least `min_calls` of which noise doesn't make an outage, and a window around it.
fn window(usual: &Usual<'_>) -> Option<(Rule, Vec<Entry>)> {
    let level = NOISIEST.iter().position(|noisiest| usual.share <= *noisiest)?;
    let (level, by_chance, min_calls) = (level..STRETCHES.len()).find_map(|level| {
        let tenths = STRETCHES[level];
        let by_chance =
            (LEAST_CALLS..=LONGEST_STRETCH).find(|calls| bound(usual.share, *calls, tenths) <= usual.allowed)?;
        let stretch = usual.seen.calm.noise.stretch[level];
        // Half as long again as the worst that was seen.
        let min_calls = if stretch < by_chance { by_chance } else { stretch * 3 / 2 + 1 };
        (min_calls <= LONGEST_STRETCH).then_some((level, by_chance, min_calls))
    })?;
    let (tenths, stretch) = (STRETCHES[level], usual.seen.calm.noise.stretch[level]);
    if f64::from(min_calls) / usual.per_second > OLD_SECONDS {
        return None;
    }
    let burst = (usual.per_second * BURST_SECONDS / 10.0).ceil().min(10.0) as u32 * 10;
    let calls = burst.max(min_calls);
    let share = f64::from(tenths) / 10.0;
    let size = if calls == min_calls {
        "as many calls as must have ended: more would notice an outage later".to_owned()
    } else {
        format!("the calls of {}: a burst of failures is no outage", say::seconds(f64::from(calls) / usual.per_second))
    };
    let clumps = if min_calls == by_chance {
        format!("the longest stretch seen of which {} failed is {stretch} calls", say::share(share))
    } else {
        format!(
            "by chance {by_chance} would do, but failures come in clumps: a stretch of {stretch} calls was seen of which {} failed",
            say::share(share)
        )
    };
    let why = format!(
        "{}. If windows were always this short that would open it {} at most ({} is wanted); {clumps}",
        usual.text,
        usual.trips(bound(usual.share, min_calls, tenths)),
        usual.aim,
    );
    let threshold = if tenths == STRETCHES[0] {
        "refusing helps where more calls fail than not".to_owned()
    } else {
        "half of the calls would be too near to what is normal".to_owned()
    };
    let entries = vec![
        Entry::new("window", Value::Calls(calls), size),
        Entry::new("min_calls", Value::Count(min_calls), why),
        Entry::new("failure_rate", Value::Share(share), threshold),
    ];
    Some((Rule::Window { calls, min_calls, tenths }, entries))
}

/// Upper bound of the trips per call, wherever between `min_calls` and its whole size the window is: the shorter the nervouser, but for the rounding
/// of the threshold, which repeats after ten calls.
fn bound(share: f64, min_calls: u32, tenths: u32) -> f64 {
    let rules = Rules { min_calls, failure_rate: Some(f64::from(tenths) / 10.0), failures: None };
    let lengths = min_calls..=(min_calls + 9).min(LONGEST_STRETCH);
    lengths.map(|calls| CallsWindow { calls, rules }.trips_per_call(share)).fold(0.0, f64::max)
}

/// The shortest streak that noise doesn't reach.
fn streak(usual: &Usual<'_>) -> Option<(Rule, Vec<Entry>)> {
    if usual.share > NOISIEST[1] {
        return None;
    }
    let by_chance = STREAK.into_iter().find(|streak| streak_trips_per_call(usual.share, *streak) <= usual.allowed)?;
    let run = usual.seen.calm.noise.run;
    let failures = if run < by_chance { by_chance } else { run.saturating_mul(3) / 2 + 1 };
    if !STREAK.contains(&failures) {
        return None;
    }
    let why = format!(
        "{}. So many in a row come by chance {} ({} is wanted at most); the longest streak seen is {run}",
        usual.text,
        usual.trips(streak_trips_per_call(usual.share, failures)),
        usual.aim,
    );
    let old = format!(
        "at {} a window of any use would hold failures for longer than {}, so the rule is a streak",
        say::rate(usual.per_second),
        say::seconds(OLD_SECONDS)
    );
    let entries = vec![
        Entry::new("failure_rate", Value::Off, old),
        Entry::new("consecutive_failures", Value::Count(failures), why),
    ];
    Some((Rule::Streak(failures), entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_that_of_every_longer_window() {
        for (share, tenths) in [(0.01, 5), (0.1, 5), (0.25, 5), (0.4, 8), (0.55, 8)] {
            for min_calls in 10..=LONGEST_STRETCH {
                let rules = Rules { min_calls, failure_rate: Some(f64::from(tenths) / 10.0), failures: None };
                let worst = (min_calls..=LONGEST_STRETCH)
                    .map(|calls| CallsWindow { calls, rules }.trips_per_call(share))
                    .fold(0.0, f64::max);
                assert_eq!(bound(share, min_calls, tenths), worst, "{share} {tenths} {min_calls}");
            }
        }
    }
}
