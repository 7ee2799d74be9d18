//! The report as text.

use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

use portcullis::{Evidence, Met, Rule};

use super::report::{Change, Report, Sums, Target, Under};

/// Transitions that are shown of a target under a policy.
const SHOWN: usize = 10;

/// The report as tables; targets past those in detail are only counted.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = write(&mut text, report);
    text
}

fn write(text: &mut String, report: &Report) -> std::fmt::Result {
    let log = &report.log;
    writeln!(
        text,
        "{} calls to {} targets, {} to {}\n",
        grouped(log.calls),
        grouped(report.targets.len() as u64),
        moment(log.from_ms),
        moment(log.to_ms)
    )?;
    let head = [
        "policy",
        "admitted",
        "refused",
        "had succeeded",
        "had failed",
        "cut",
        "spared",
        "trips",
        "reopened",
        "probes",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for policy in &report.policies {
        let mut row = vec![policy.name.clone()];
        row.extend(shared(&policy.sums));
        row.extend([policy.sums.reopened, policy.sums.probes].map(grouped));
        rows.push(row);
    }
    text.push_str(&aligned(&rows, 1));
    for policy in report.policies.iter().filter(|policy| policy.unasked > 0) {
        writeln!(text, "{} has no policy for the targets of {} calls", policy.name, grouped(policy.unasked))?;
    }
    writeln!(text)?;
    text.push_str(&targets(report));
    let rest = report.targets.len() - report.in_detail;
    if rest > 0 {
        writeln!(text, "and {} more targets: --worst N shows more, --json all", grouped(rest as u64))?;
    }
    for target in &report.targets[..report.in_detail] {
        for (policy, under) in report.policies.iter().zip(&target.under) {
            if let Some(under) = under.as_ref().filter(|under| !under.transitions.is_empty()) {
                writeln!(text, "\n{} under {}", plain(&target.name), policy.name)?;
                text.push_str(&changes(under));
            }
        }
    }
    writeln!(text)?;
    for limit in &report.limits {
        writeln!(text, "note: {limit}")?;
    }
    Ok(())
}

fn targets(report: &Report) -> String {
    let head = [
        "target",
        "policy",
        "calls",
        "failed",
        "p99",
        "admitted",
        "refused",
        "had succeeded",
        "had failed",
        "cut",
        "spared",
        "trips",
        "first after",
        "open",
        "half-open",
        "peak",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for target in &report.targets[..report.in_detail] {
        for (policy, under) in report.policies.iter().zip(&target.under) {
            rows.push(row(report, target, &policy.name, under.as_ref()));
        }
    }
    if rows.len() > 1 { aligned(&rows, 2) } else { String::new() }
}

fn row(report: &Report, target: &Target, policy: &str, under: Option<&Under>) -> Vec<String> {
    let mut row = vec![plain(&target.name), policy.to_owned(), grouped(target.calls), grouped(target.failures)];
    row.push(format!("{}ms", target.p99_ms.round()));
    let Some(under) = under else {
        row.push("no policy".to_owned());
        return row;
    };
    row.extend(shared(&under.sums));
    row.push(under.first_trip_after_ms.map_or("-".to_owned(), lasting));
    row.extend([under.open_ms, under.half_open_ms].map(|part| share(part, report.log.to_ms - report.log.from_ms)));
    row.push(grouped(under.peak_in_flight.into()));
    row
}

/// What policies and targets have in common.
fn shared(sums: &Sums) -> [String; 7] {
    let Sums { admitted, refused, refused_good, failures_avoided, cut, spared_ms, trips, .. } = sums;
    [
        grouped(*admitted),
        grouped(*refused),
        grouped(*refused_good),
        grouped(*failures_avoided),
        grouped(*cut),
        lasting(*spared_ms),
        grouped(*trips),
    ]
}

fn changes(under: &Under) -> String {
    let shown = under.transitions.iter().take(SHOWN).map(|change| {
        vec![
            format!("  {}", moment(change.at_ms)),
            change.from.to_string(),
            "->".into(),
            change.to.to_string(),
            why(change),
        ]
    });
    let mut text = aligned(&shown.collect::<Vec<_>>(), 5);
    let rest = (under.transitions.len() as u64 + under.transitions_untold).saturating_sub(SHOWN as u64);
    if rest > 0 {
        let _ = writeln!(text, "  and {} more: --json has the first thousand", grouped(rest));
    }
    text
}

/// What brought a change about, with its numbers.
pub(super) fn why(change: &Change) -> String {
    let mut why = change.evidence.as_deref().map_or_else(|| change.cause.to_string(), evidence);
    if let Some(wait) = change.wait_ms {
        let _ = write!(why, ", for {}", lasting(wait));
    }
    why
}

fn evidence(evidence: &Evidence) -> String {
    let met = |met: &Met| {
        let Met { count, calls, threshold, .. } = met;
        let (rate, rule) = (threshold / 100, met.rule);
        match rule {
            Rule::ConsecutiveFailures => format!("{count} failures in a row"),
            Rule::FailureRate => format!("{count} of {calls} calls failed, {rate} % are too many"),
            Rule::Failures => format!("{count} of {calls} calls failed, {threshold} are too many"),
            Rule::SlowRate => format!("{count} of {calls} calls were slow, {rate} % are too many"),
            Rule::StalledCalls => format!("{count} calls stalled, {threshold} are too many"),
            Rule::StalledShare => format!("{count} calls stalled of a limit of {calls}, {rate} % are too many"),
            _ => {
                format!("{count} of {calls} calls failed or were slow while the limit ramped, {threshold} are too many")
            }
        }
    };
    evidence.met.iter().map(met).collect::<Vec<_>>().join("; ")
}

/// Columns: the first ones to the left, the others to the right.
fn aligned(rows: &[Vec<String>], to_the_left: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let length = |text: &String| text.chars().count();
    let widest = |column| rows.iter().filter_map(|row| row.get(column)).map(length).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column < to_the_left { format!("{cell:width$}") } else { format!("{cell:>width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A name that comes from a log, without what a terminal would act on.
fn plain(name: &str) -> String {
    name.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect()
}

/// 1,234,567.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Two units at most: 2h 5m, 3s 400ms.
pub(super) fn lasting(ms: u64) -> String {
    let whole = humantime::format_duration(Duration::from_millis(ms)).to_string();
    whole.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

pub(super) fn moment(ms: u64) -> String {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
}

/// A part of the time, in per cent to two digits.
pub(super) fn share(part: u64, whole: u64) -> String {
    let bp = if whole == 0 { 0 } else { u128::from(part) * 10_000 / u128::from(whole) };
    format!("{}.{:02}%", bp / 100, bp % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_and_times_are_short() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 3_400, 7_500_123].map(lasting), ["0s", "3s 400ms", "2h 5m"]);
        assert_eq!((share(1, 3), share(3, 3), share(0, 0)), ("33.33%".into(), "100.00%".into(), "0.00%".into()));
        assert_eq!(moment(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
    }

    #[test]
    fn a_name_writes_nothing_but_itself() {
        assert_eq!(plain("a\u{1b}[31mb\n"), "a\u{fffd}[31mb\u{fffd}");
    }
}
