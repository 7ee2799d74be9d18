//! Findings as text and as JSON.

use std::fmt::Write as _;

use serde_json::json;

use super::{Finding, Severity};
use crate::derive::say;

fn counts(findings: &[Finding]) -> [(Severity, usize); 3] {
    [Severity::Error, Severity::Warning, Severity::Note]
        .map(|severity| (severity, findings.iter().filter(|finding| finding.severity == severity).count()))
}

pub(super) fn json(findings: &[Finding]) -> String {
    let [(_, errors), (_, warnings), (_, notes)] = counts(findings);
    let object = json!({ "errors": errors, "warnings": warnings, "notes": notes, "findings": findings });
    object.to_string() + "\n"
}

pub(super) fn text(findings: &[Finding], targets: usize) -> String {
    let mut text = String::new();
    for finding in findings {
        let (severity, target, field) = (finding.severity.name(), plain(&finding.target), finding.field);
        let value = if finding.value.is_empty() { String::new() } else { format!(" = {}", finding.value) };
        let _ = writeln!(text, "{severity}: {target}: {field}{value}: {}", finding.evidence);
        for better in &finding.better {
            let _ = writeln!(text, "    {} = {}: {}", better.field, better.value, better.why);
        }
    }
    let told = counts(findings).into_iter().filter(|(_, count)| *count > 0).map(|(severity, count)| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{} {}{plural}", say::count(count as u64), severity.name())
    });
    let told: Vec<String> = told.collect();
    let sum = if told.is_empty() { "every value fits".to_owned() } else { told.join(", ") };
    let plural = if targets == 1 { "" } else { "s" };
    let _ = writeln!(text, "{sum}; {} target{plural} in the log", say::count(targets as u64));
    text
}

/// Names come from outside: none may end a line.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
