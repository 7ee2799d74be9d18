//! The two runs side by side, for people.

use std::fmt::Write;

use super::report::{Measured, Report, Run, Storm};
use super::run::{ATTEMPTS, BUDGET, CAP, RATE, SHARE, TIMEOUT};
use super::{SICK, WELL};

pub(super) fn render(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string can't fail.
    let _ = write(&mut text, report);
    text
}

fn write(out: &mut String, report: &Report) -> std::fmt::Result {
    let columns = format!("{:>5} {:>5} {:>8} {:>8} {:>6} {:>5}", "ok", "lost", "p50 ms", "p99 ms", "calls", "held");
    let width = columns.len();
    writeln!(out, "\n{:34}{:width$}   with only a cap on the process", "", "with portcullis")?;
    writeln!(out, "{:9} {:13} {:>8}  {columns}   {columns}", "phase", "target", "sent")?;
    each(report, |phase, target, left, right| {
        writeln!(out, "{phase:9} {target:13} {:8}  {}   {}", left.sent, figures(left), figures(right))
    })?;
    writeln!(out, "\nlost, by code:")?;
    each(report, |phase, target, left, right| {
        if left.lost() + right.lost() == 0 {
            return Ok(());
        }
        writeln!(out, "{phase:9} {target:13} with:    {}", codes(left))?;
        writeln!(out, "{:23} without: {}", "", codes(right))
    })?;
    writeln!(out, "\ncalls to {SICK} in the outage:")?;
    for (run, words) in [(&report.with, "with:"), (&report.without, "without:")] {
        let Storm { requests, attempts, retries } = run.storm;
        let reached = reached(run);
        writeln!(
            out,
            "{words:8} {requests:5} requests got into the process, made {attempts:5} attempts, {retries:5} of them retries; {reached:5} reached it"
        )?;
    }
    writeln!(out, "\nstate changes with portcullis:")?;
    for change in &report.with.transitions {
        let at = format!("{}.{:03} s", change.at_ms / 1_000, change.at_ms % 1_000);
        writeln!(out, "{at:>10}  {}: {} to {} ({})", change.target, change.from, change.to, change.cause)?;
    }
    writeln!(out, "\nheld: the most calls that the upstream itself held at once; calls: those that reached it.")?;
    writeln!(out, "Waits are those of all answers, refusals included, from the moment a request was due.")?;
    writeln!(
        out,
        "{RATE} requests a second for each target, {CAP} at once in the process, {TIMEOUT:?} per attempt at {SICK}, up to {ATTEMPTS} attempts."
    )?;
    writeln!(
        out,
        "With portcullis at most {:.0} % of the calls are tried again; without, each that fails is.\n",
        BUDGET * 100.0
    )?;
    let (with, without) = (report.with.bystanders_lost(), report.without.bystanders_lost());
    writeln!(out, "{WELL} lost {with} of its requests with portcullis, {without} without.")?;
    let (with, without) = (held(&report.with), held(&report.without));
    writeln!(
        out,
        "{SICK} held at most {with} calls at once with portcullis (its limit is {SHARE}), {without} without."
    )?;
    writeln!(out, "While its circuit wasn't closed, at most {} probe was there at a time.", report.with.max_probes)
}

/// The same target and phase of both runs.
fn each(
    report: &Report,
    mut line: impl FnMut(&str, &str, &Measured, &Measured) -> std::fmt::Result,
) -> std::fmt::Result {
    for (with, without) in report.with.phases.iter().zip(&report.without.phases) {
        for target in [SICK, WELL] {
            if let (Some(left), Some(right)) = (with.targets.get(target), without.targets.get(target)) {
                line(with.name, target, left, right)?;
            }
        }
    }
    Ok(())
}

/// Calls that reached the failing upstream in the outage: those that were refused or found nobody listening didn't.
fn reached(run: &Run) -> u64 {
    let measured = run.phase("outage").and_then(|phase| phase.targets.get(SICK));
    measured.map_or(0, |measured| measured.upstream_calls)
}

fn held(run: &Run) -> u64 {
    let own = run.phases.iter().filter_map(|phase| phase.targets.get(SICK));
    own.map(|measured| measured.upstream_max_concurrent).max().unwrap_or(0)
}

fn figures(measured: &Measured) -> String {
    format!(
        "{:5} {:5} {:8.1} {:8.1} {:6} {:5}",
        measured.ok,
        measured.lost(),
        measured.p50_ms,
        measured.p99_ms,
        measured.upstream_calls,
        measured.upstream_max_concurrent
    )
}

fn codes(measured: &Measured) -> String {
    let list: Vec<String> = measured.codes.iter().map(|(code, count)| format!("{code} x {count}")).collect();
    if list.is_empty() { "none".to_owned() } else { list.join(", ") }
}
