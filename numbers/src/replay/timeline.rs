//! When each target wasn't closed, under each policy, at a glance.

use std::fmt::{self, Write};

use portcullis::State;

use super::columns::moment;
use super::plots::spans;
use super::report::{Report, Target, Under};
use crate::report::escape;

const WIDTH: u64 = 1_000;
const NAMES: u64 = 240;
const ROW: u64 = 22;
/// The least that is seen.
const LEAST: f64 = 1.0;
/// Letters of a name that fit.
const FIT: usize = 34;

/// A row for each target and policy: high and red while open, low and amber while half-open, hatched where nothing is told any more.
pub(super) fn figure(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = write(&mut text, report);
    text
}

fn write(text: &mut String, report: &Report) -> fmt::Result {
    let rows = (report.in_detail * report.policies.len()) as u64;
    let height = (rows + 1) * ROW;
    writeln!(
        text,
        "<figure class=\"timeline\"><figcaption>High: open. Low: half-open, or ready to be. The tables below tell when and why.</figcaption>"
    )?;
    writeln!(
        text,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"when each target was open under each policy\" xmlns=\"http://www.w3.org/2000/svg\">"
    )?;
    let mut y = 0;
    for target in &report.targets[..report.in_detail] {
        for (n, (policy, under)) in report.policies.iter().zip(&target.under).enumerate() {
            row(text, report, (target, &policy.name, under.as_ref()), y, n == 0)?;
            y += ROW;
        }
    }
    let (from, to) = (moment(report.log.from_ms), moment(report.log.to_ms));
    let end = WIDTH - 4;
    writeln!(text, "<text x=\"{NAMES}\" y=\"{}\">{from}</text>", y + 16)?;
    writeln!(text, "<text x=\"{end}\" y=\"{}\" text-anchor=\"end\">{to}</text>\n</svg></figure>", y + 16)
}

fn row(
    text: &mut String,
    report: &Report,
    (target, policy, under): (&Target, &str, Option<&Under>),
    y: u64,
    is_first: bool,
) -> fmt::Result {
    let span = (report.log.to_ms - report.log.from_ms).max(1) as f64;
    let x = |at_ms: u64| {
        let share = at_ms.saturating_sub(report.log.from_ms) as f64 / span;
        NAMES as f64 + share * (WIDTH - NAMES - 4) as f64
    };
    if is_first {
        writeln!(text, "<line x1=\"0\" x2=\"{WIDTH}\" y1=\"{y}\" y2=\"{y}\"/>")?;
        writeln!(text, "<text x=\"4\" y=\"{}\" class=\"name\">{}</text>", y + 16, short(&target.name, 18))?;
    }
    writeln!(
        text,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        NAMES - 8,
        y + 16,
        short(policy, FIT - 18)
    )?;
    let Some(under) = under else {
        return writeln!(text, "<text x=\"{NAMES}\" y=\"{}\">no policy</text>", y + 16);
    };
    for (state, from, to) in spans(report, under) {
        let (class, top, high) = match state {
            State::Open => ("open", y + 3, ROW - 6),
            _ => ("half", y + ROW / 2, ROW / 2 - 3),
        };
        let (begin, width) = (x(from), (x(to) - x(from)).max(LEAST));
        write!(text, "<rect class=\"{class}\" x=\"{begin:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{high}\">")?;
        writeln!(text, "<title>{state} {} to {}</title></rect>", moment(from), moment(to))?;
    }
    if let Some(last) = under.transitions.last().filter(|_| under.transitions_untold > 0) {
        let (begin, width) = (x(last.at_ms), x(report.log.to_ms) - x(last.at_ms));
        write!(
            text,
            "<rect class=\"untold\" x=\"{begin:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{}\">",
            y + 3,
            ROW - 6
        )?;
        writeln!(text, "<title>{} more transitions</title></rect>", under.transitions_untold)?;
    }
    Ok(())
}

/// As much of a name as fits.
fn short(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return escape(name);
    }
    let cut: String = name.chars().take(most - 1).collect();
    escape(&cut) + "…"
}
