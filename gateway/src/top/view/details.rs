//! All that there is to say of one target.

use ratatui::style::Stylize as _;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use serde_json::Value;

use super::super::model::Model;
use super::super::text::{countdown, harmless, refusals, span};
use super::colour;

/// What it is called, and how it is.
pub(super) fn title(model: &Model, name: &str, now_ms: u64) -> Paragraph<'static> {
    let mut parts = vec![format!(" {}  ", harmless(name)).bold()];
    match model.targets.get(name) {
        None => parts.push("is no longer there".into()),
        Some(target) => {
            let seen = &target.seen;
            parts.push(Span::styled(harmless(&seen.state), colour(&seen.state)));
            if let Some(since) = seen.since_ms {
                let cause = harmless(seen.cause.as_deref().unwrap_or_default()).replace('_', " ");
                parts.push(format!(" for {}, {cause}  ", span(now_ms.saturating_sub(since))).into());
            }
            parts.push(countdown(target, now_ms).into());
            parts.push(format!("  refused: {}", harmless(&refusals(target))).into());
        }
    }
    Paragraph::new(Line::from(parts))
}

/// The rest, as the admin listener has it: policy, counters, the evidence of the last trip.
pub(super) fn all(all: Option<&Value>, scroll: u16) -> Paragraph<'static> {
    let Some(all) = all else { return Paragraph::new(" asking...") };
    let mut lines = Vec::new();
    flatten(all, "", &mut lines);
    // Not past the last line.
    let last = u16::try_from(lines.len().saturating_sub(1)).unwrap_or(u16::MAX);
    Paragraph::new(lines).scroll((scroll.min(last), 0))
}

/// One line for each value that there is, under its full name.
fn flatten(value: &Value, name: &str, lines: &mut Vec<Line<'static>>) {
    let under = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| flatten(value, &under(key), lines));
        }
        Value::Array(entries) => {
            entries.iter().enumerate().for_each(|(n, value)| flatten(value, &under(&n.to_string()), lines));
        }
        Value::Null => {}
        Value::String(text) => lines.push(line(name, text)),
        other => lines.push(line(name, &other.to_string())),
    }
}

fn line(name: &str, value: &str) -> Line<'static> {
    Line::from(vec![format!(" {}: ", harmless(name)).dim(), Span::raw(harmless(value))])
}
