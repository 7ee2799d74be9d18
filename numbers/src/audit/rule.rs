//! Rules that trip on noise, that can't trip, and that never did.

use super::in_force::Window;
use super::{Finding, Severity, Subject};
use crate::derive::rule::{CALLS, Rule, often, outages, outages_a_year};
use crate::derive::{Value, say};
use crate::formulas::{CallsWindow, Rules, TimeWindow, poisson_at_least, streak_trips_per_call};

/// The fields of a rule.
const FIELDS: &[&str] = &["window", "min_calls", "failure_rate", "consecutive_failures"];
const DAY: f64 = 86_400.0;
/// In what share of the windows `min_calls` must come together.
const REACHED: [(f64, Severity); 2] = [(0.01, Severity::Error), (0.5, Severity::Warning)];

pub(super) fn check(subject: &Subject<'_>) -> Vec<Finding> {
    if subject.seen.calm.calls < CALLS {
        return Vec::new();
    }
    let by_chance = [on_streaks(subject), on_window(subject), on_slow(subject)];
    let mut findings: Vec<Finding> = by_chance.into_iter().flatten().collect();
    if findings.is_empty() {
        findings.extend(in_replay(subject));
    }
    findings.extend(is_reached(subject).or_else(|| acts(subject)));
    findings
}

fn per_second(subject: &Subject<'_>) -> f64 {
    subject.seen.calls as f64 / subject.seen.span.as_secs_f64()
}

/// The usual share of failures, with the good calls that the timeout cuts.
fn usual(subject: &Subject<'_>) -> (f64, String) {
    let calm = &subject.seen.calm;
    let cut = subject.force.timeout.map_or(0.0, |timeout| calm.cut(timeout));
    let share = calm.failures as f64 / calm.calls as f64;
    let cuts = if cut > 0.0 { format!(", and the timeout cuts {}", say::share(cut)) } else { String::new() };
    let text = format!("{} of {} calls fail as they always do{cuts}", say::share(share), say::count(calm.calls));
    ((share + cut).min(1.0), text)
}

/// How bad it is to trip so often by chance; none if it is as rare as wanted.
fn too_often(subject: &Subject<'_>, per_second: f64) -> Option<Severity> {
    if per_second <= subject.aims.false_trips.per_second() {
        return None;
    }
    Some(if per_second * DAY >= 1.0 { Severity::Error } else { Severity::Warning })
}

fn on_streaks(subject: &Subject<'_>) -> Option<Finding> {
    let failures = subject.force.streak?;
    let (share, text) = usual(subject);
    let trips = streak_trips_per_call(share, failures) * per_second(subject);
    let severity = too_often(subject, trips)?;
    let run = subject.seen.calm.noise.run;
    let evidence = format!(
        "{text}: so many in a row come by chance {}; the longest streak outside outages was {run}",
        often(trips)
    );
    Some(subject.better(severity, "consecutive_failures", failures.to_string(), evidence, FIELDS))
}

fn on_window(subject: &Subject<'_>) -> Option<Finding> {
    let (window, rules) = (subject.force.window?, subject.force.rules);
    let (field, value) = of_window(rules)?;
    let (share, text) = usual(subject);
    let trips = trips(window, rules, share, per_second(subject));
    let severity = too_often(subject, trips)?;
    let evidence = format!("{text}: that opens it {}", often(trips));
    Some(subject.better(severity, field, value.to_string(), evidence, FIELDS))
}

/// What a window's failures are judged by.
fn of_window(rules: Rules) -> Option<(&'static str, Value)> {
    match (rules.failure_rate, rules.failures) {
        (Some(rate), _) => Some(("failure_rate", Value::Share(rate))),
        (None, Some(failures)) => Some(("failures", Value::Count(failures))),
        (None, None) => None,
    }
}

/// Trips per second by chance.
fn trips(window: Window, rules: Rules, share: f64, per_second: f64) -> f64 {
    let (full, filling, seconds) = match window {
        Window::Calls(calls) => {
            let window = CallsWindow { calls, rules };
            let full = window.trips_per_call(share) * per_second;
            (full, window.trips_while_filling(share), f64::from(calls) / per_second)
        }
        Window::Time { seconds, buckets } => {
            let window = TimeWindow { seconds, buckets, rules };
            (window.trips_per_second(per_second, share), window.trips_while_filling(per_second, share), seconds)
        }
    };
    // A window that seldom fills before it trips is never a full one: each trip follows on a closing.
    if filling >= 0.5 { full.max(filling / seconds) } else { full }
}

fn on_slow(subject: &Subject<'_>) -> Option<Finding> {
    let (window, (slow, rate)) = (subject.force.window?, subject.force.slow?);
    let share = subject.seen.calm.cut(slow);
    let rules = Rules { failure_rate: Some(rate), failures: None, ..subject.force.rules };
    let trips = trips(window, rules, share, per_second(subject));
    let severity = too_often(subject, trips)?;
    let evidence = format!("{} of good calls take longer: that opens it {}", say::share(share), often(trips));
    let value = Value::Time(slow).to_string();
    Some(subject.better(severity, "slow_call", value, evidence, &["slow_call", "slow_rate"]))
}

/// What chance doesn't explain: failures that come in clumps.
fn in_replay(subject: &Subject<'_>) -> Option<Finding> {
    let (seen, played) = (subject.seen, &subject.played);
    if played.trips == 0 || seen.outages.count > 0 || seen.outages.blips > 0 {
        return None;
    }
    let (field, value) = match subject.force.streak {
        Some(failures) => ("consecutive_failures", Value::Count(failures)),
        None => of_window(subject.force.rules)?,
    };
    let evidence = format!(
        "replayed, it opens {}, though there was no outage, and refuses {} calls that succeeded",
        times(played.trips),
        say::count(played.refused_good)
    );
    Some(subject.better(Severity::Warning, field, value.to_string(), evidence, FIELDS))
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", say::count(count)) }
}

/// Whether a window of time ever holds the calls that it must.
fn is_reached(subject: &Subject<'_>) -> Option<Finding> {
    let Window::Time { seconds, .. } = subject.force.window? else { return None };
    if subject.force.rules.failure_rate.is_none() && subject.force.slow.is_none() {
        return None;
    }
    let (min_calls, expected) = (subject.force.rules.min_calls, per_second(subject) * seconds);
    let reached = poisson_at_least(min_calls.into(), expected);
    let (_, severity) = REACHED.iter().find(|(least, _)| reached < *least)?;
    let evidence = format!(
        "{} calls come in {}: {} of windows hold so many, and no other is judged",
        say::number(expected),
        say::seconds(seconds),
        say::share(reached),
    );
    Some(subject.better(*severity, "min_calls", min_calls.to_string(), evidence, FIELDS))
}

/// Whether it does what a breaker is for.
fn acts(subject: &Subject<'_>) -> Option<Finding> {
    let (seen, force) = (subject.seen, &subject.force);
    let (field, value) = match (force.streak, of_window(force.rules).filter(|_| force.window.is_some())) {
        (Some(failures), _) => ("consecutive_failures", failures.to_string()),
        (None, Some((field, value))) => (field, value.to_string()),
        (None, None) => ("failure_rate", Value::Off.to_string()),
    };
    if subject.derived.rule == Some(Rule::None) {
        let years = outages_a_year(seen);
        let evidence = format!(
            "better without a breaker: {} to {} outages a year (95 %)",
            say::number(years.low),
            say::number(years.high)
        );
        return force.has_rule().then(|| subject.better(Severity::Note, field, value, evidence, &["failure_rate"]));
    }
    if seen.outages.count == 0 || subject.played.trips > 0 {
        return None;
    }
    let failed = format!(
        "{} of {} in all, in which {} calls failed",
        outages(seen.outages.count),
        say::time(seen.outages.time),
        say::count(seen.outages.failures)
    );
    let evidence = if force.has_rule() {
        format!("replayed, it never opens in {failed}")
    } else {
        format!("nothing opens it in {failed}")
    };
    Some(subject.better(Severity::Warning, field, value, evidence, FIELDS))
}
