//! The report as a page: timelines and plots of the targets in detail, and tables of all that is plotted in sums.

use std::fmt::{self, Write};

use super::columns::{self, grouped, moment};
use super::plots;
use super::report::{Report, Target, Under};
use super::table::why;
use super::timeline;
use crate::report::{chart::Undrawn, escape, page};

/// Targets that have a row in the table.
const ROWS: usize = 1_000;
/// Transitions in a table.
const CHANGES: usize = 100;

/// The whole page, the same bytes for the same report.
///
/// # Errors
///
/// A chart can't be drawn.
pub(super) fn html(report: &Report) -> Result<String, Undrawn> {
    let mut body = String::new();
    // Writing to a string can't fail.
    let _ = head(&mut body, report);
    let _ = targets(&mut body, report);
    if report.in_detail > 0 {
        body.push_str("<h2>Timelines</h2>\n");
        body.push_str(&timeline::figure(report));
    }
    for target in &report.targets[..report.in_detail] {
        detail(&mut body, report, target)?;
    }
    Ok(page("What policies would have done", &body))
}

fn head(body: &mut String, report: &Report) -> fmt::Result {
    let log = &report.log;
    writeln!(
        body,
        "<p>{} calls to {} targets, from {} to {}, played to the engine on a manual clock.</p>",
        grouped(log.calls),
        grouped(report.targets.len() as u64),
        moment(log.from_ms),
        moment(log.to_ms)
    )?;
    body.push_str("<ul class=\"note\">\n");
    for limit in &report.limits {
        writeln!(body, "<li>{}</li>", escape(limit))?;
    }
    body.push_str("</ul>\n<h2>Policies</h2>\n<div class=\"scroll\"><table>\n<caption>Over all targets</caption>\n");
    columns(body, &columns::POLICY)?;
    for policy in &report.policies {
        row(body, &columns::POLICY, &columns::policy(policy), None)?;
    }
    body.push_str("</tbody></table></div>\n");
    for policy in report.policies.iter().filter(|policy| policy.unasked > 0) {
        let (name, unasked) = (escape(&policy.name), grouped(policy.unasked));
        writeln!(body, "<p>{name} has no policy for the targets of {unasked} calls.</p>")?;
    }
    Ok(())
}

fn targets(body: &mut String, report: &Report) -> fmt::Result {
    let shown = report.targets.len().min(ROWS);
    let rest = report.targets.len() - shown;
    let rest = if rest > 0 { format!("; {} more are in the JSON only", grouped(rest as u64)) } else { String::new() };
    let detail = report.in_detail;
    write!(
        body,
        "<h2>Targets</h2>\n<div class=\"scroll\"><table>\n<caption>Worst first, the first {detail} in detail below{rest}</caption>\n"
    )?;
    columns(body, &columns::TARGET)?;
    for (place, target) in report.targets[..shown].iter().enumerate() {
        for (policy, under) in report.policies.iter().zip(&target.under) {
            let cells = columns::target(report, target, &policy.name, under.as_ref());
            row(body, &columns::TARGET, &cells, Some(place).filter(|place| *place < detail))?;
        }
    }
    body.push_str("</tbody></table></div>\n");
    Ok(())
}

fn columns(body: &mut String, names: &[&str]) -> fmt::Result {
    body.push_str("<thead><tr>");
    for name in names {
        write!(body, "<th scope=\"col\"{}>{name}</th>", side(name))?;
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    Ok(())
}

/// A row whose first cell names it, and leads to a target's detail if there is one.
fn row(body: &mut String, names: &[&str], cells: &[String], detail: Option<usize>) -> fmt::Result {
    let mut cells = cells.iter().map(|cell| escape(cell)).zip(names);
    let name = cells.next().map(|(name, _)| name).unwrap_or_default();
    let name = detail.map_or(name.clone(), |place| format!("<a href=\"#t{place}\">{name}</a>"));
    write!(body, "<tr><th scope=\"row\">{name}</th>")?;
    for (cell, column) in cells {
        write!(body, "<td{}>{cell}</td>", side(column))?;
    }
    body.push_str("</tr>\n");
    Ok(())
}

/// Names to the left, numbers to the right.
fn side(column: &str) -> &'static str {
    if column == "policy" { " class=\"text\"" } else { "" }
}

fn detail(body: &mut String, report: &Report, target: &Target) -> Result<(), Undrawn> {
    let place = report.targets.iter().position(|other| other.name == target.name).unwrap_or_default();
    let _ = writeln!(body, "<h2 id=\"t{place}\">{}</h2>", escape(&target.name));
    body.push_str("<div class=\"side\">\n");
    // The same of each policy side by side.
    for plot in [plots::calls, plots::in_flight] {
        for (policy, under) in report.policies.iter().zip(&target.under) {
            if let Some(under) = under {
                figure(body, &plot(report, target, &policy.name, under)?);
            }
        }
    }
    figure(body, &plots::latency(report, target)?);
    body.push_str("</div>\n");
    for (policy, under) in report.policies.iter().zip(&target.under) {
        if let Some(under) = under.as_ref().filter(|under| !under.transitions.is_empty()) {
            let _ = changes(body, &policy.name, under);
        }
    }
    Ok(())
}

fn figure(body: &mut String, svg: &str) {
    let _ = writeln!(body, "<figure>{svg}</figure>");
}

fn changes(body: &mut String, policy: &str, under: &Under) -> fmt::Result {
    let all = under.transitions.len() as u64 + under.transitions_untold;
    let policy = escape(policy);
    write!(
        body,
        "<details><summary>{} transitions under {policy}</summary>\n<div class=\"scroll\"><table>\n",
        grouped(all)
    )?;
    let rest = all.saturating_sub(CHANGES as u64);
    if rest > 0 {
        writeln!(body, "<caption>The first {CHANGES}; the JSON has the first thousand</caption>")?;
    }
    body.push_str("<thead><tr><th scope=\"col\">at</th>");
    for name in ["from", "to", "because"] {
        write!(body, "<th scope=\"col\" class=\"text\">{name}</th>")?;
    }
    body.push_str("</tr></thead>\n<tbody>\n");
    for change in under.transitions.iter().take(CHANGES) {
        write!(body, "<tr><td>{}</td>", moment(change.at_ms))?;
        for cell in [change.from.to_string(), change.to.to_string(), escape(&why(change))] {
            write!(body, "<td class=\"text\">{cell}</td>")?;
        }
        body.push_str("</tr>\n");
    }
    body.push_str("</tbody></table></div></details>\n");
    Ok(())
}
