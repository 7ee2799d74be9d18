//! The report as text.

use std::fmt::Write;

use portcullis::{Evidence, Met, Rule};

use super::columns::{self, grouped, lasting, moment};
use super::report::{Change, Report, Under};

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
    let mut rows = vec![columns::POLICY.map(str::to_owned).to_vec()];
    rows.extend(report.policies.iter().map(columns::policy));
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
    let mut rows = vec![columns::TARGET.map(str::to_owned).to_vec()];
    for target in &report.targets[..report.in_detail] {
        for (policy, under) in report.policies.iter().zip(&target.under) {
            rows.push(columns::target(report, target, &policy.name, under.as_ref()));
        }
    }
    if rows.len() > 1 { aligned(&rows, 2) } else { String::new() }
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
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| plain(cell)).collect()).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_writes_nothing_but_itself() {
        assert_eq!(plain("a\u{1b}[31mb\n"), "a\u{fffd}[31mb\u{fffd}");
    }
}
