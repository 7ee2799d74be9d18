//! The policy as a file.

use std::fmt::Write as _;

use super::Planned;
use super::shared::Shared;
use crate::derive::rule::{Rule, outages_a_year};
use crate::derive::{Aims, Entry, say};
use crate::observe::Observed;
use crate::policies::is_name;

/// So many targets without a value are named, each with what it lacks; the rest is counted.
const NAMED: usize = 20;
/// The width of a comment.
const WIDTH: usize = 120;

pub(super) fn policy(planned: Vec<Planned>, aims: &Aims) -> String {
    let shared = Shared::of(&planned);
    let (sound, unfit): (Vec<Planned>, Vec<Planned>) =
        planned.into_iter().partition(|target| is_name(&target.seen.name));
    let (valued, bare): (Vec<&Planned>, Vec<&Planned>) =
        sound.iter().partition(|target| target.derived.entries.iter().any(|entry| entry.value.is_some()));
    let mut text = String::new();
    comment(
        &mut text,
        "A policy by `portcullis plan`: every value says what it was derived from. `route` and `upstream` are yours to add.",
    );
    comment(&mut text, &aimed(aims));
    comment(&mut text, &shared.why);
    no_breaker(&mut text, &valued);
    if !shared.entries.is_empty() {
        text += "\n[defaults]\n";
        for entry in &shared.entries {
            field(&mut text, entry);
        }
    }
    for target in valued {
        one(&mut text, target, &shared);
    }
    too_little(&mut text, &bare, !shared.entries.is_empty());
    for target in unfit {
        text += "\n";
        comment(
            &mut text,
            &format!("{:?}: no target can have this name, so there is no policy for it", shorten(&target.seen.name)),
        );
    }
    text
}

fn aimed(aims: &Aims) -> String {
    let budget = aims.budget.map_or("no budget".to_owned(), |budget| format!("a budget of {}", say::time(budget)));
    let retries = match aims.retries {
        0 => "no retries".to_owned(),
        1 => "1 retry".to_owned(),
        retries => format!("{retries} retries"),
    };
    format!(
        "Aims: {budget}, {retries}, at most {} false trips for each target, a breaker where there may be {} outages a year.",
        aims.false_trips, aims.upkeep
    )
}

fn no_breaker(text: &mut String, valued: &[&Planned]) {
    let without: Vec<&str> = valued
        .iter()
        .filter(|target| target.derived.rule == Some(Rule::None))
        .map(|target| target.seen.name.as_str())
        .collect();
    if !without.is_empty() {
        let (named, more) = without.split_at(without.len().min(NAMED));
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", say::count(more.len() as u64)) };
        comment(text, &format!("Without a breaker, for the reason given there: {}{more}.", named.join(", ")));
    }
}

fn one(text: &mut String, target: &Planned, shared: &Shared) {
    text.push('\n');
    comment(text, &summary(&target.seen));
    let _ = writeln!(text, "[target.{}]", key(&target.seen.name));
    for entry in target.derived.entries.iter().filter(|entry| !shared.has(entry, target)) {
        field(text, entry);
    }
}

/// What was seen of a target, in a sentence or two.
fn summary(seen: &Observed) -> String {
    let calm = &seen.calm;
    let usual = if calm.calls == 0 { 0.0 } else { calm.failures as f64 / calm.calls as f64 };
    let mut text = format!(
        "{}: {} calls in {} ({}); {} of {} fail outside outages; {}",
        seen.name,
        say::count(seen.calls + seen.abandoned),
        say::time(seen.span),
        say::rate(seen.rate()),
        say::share(usual),
        say::count(calm.calls),
        crate::derive::rule::outages(seen.outages.count),
    );
    let years = outages_a_year(seen);
    if seen.outages.count > 0 {
        let _ = write!(
            text,
            ", {} in all, {} calls failed in them",
            say::time(seen.outages.time),
            say::count(seen.outages.failures)
        );
        if seen.outages.is_on {
            text += ", the last still on";
        }
    }
    let _ = write!(text, ": {} to {} a year (95 %)", say::number(years.low), say::number(years.high));
    match seen.outages.blips {
        0 => {}
        1 => text += "; 1 blip of less than a second",
        blips => {
            let _ = write!(text, "; {} blips of less than a second", say::count(blips));
        }
    }
    text
}

fn field(text: &mut String, entry: &Entry) {
    match entry.value {
        Some(value) => {
            comment(text, &entry.why);
            let _ = writeln!(text, "{} = {value}", entry.field);
        }
        None => comment(text, &format!("{}: no value: {}", entry.field, entry.why)),
    }
}

fn too_little(text: &mut String, bare: &[&Planned], has_defaults: bool) {
    let (named, more) = bare.split_at(bare.len().min(NAMED));
    let holds = if has_defaults { "the defaults hold" } else { "nothing is derived" };
    for target in named {
        text.push('\n');
        comment(text, &format!("{}. Too little is known, {holds}:", summary(&target.seen)));
        for entry in &target.derived.entries {
            field(text, entry);
        }
    }
    if !more.is_empty() {
        let calls = more.iter().map(|target| target.seen.calls + target.seen.abandoned).sum();
        text.push('\n');
        let count = say::count(more.len() as u64);
        comment(
            text,
            &format!(
                "And {count} more targets with {} calls in all, of which too little is known, too: {holds}.",
                say::count(calls)
            ),
        );
    }
}

/// Writes a comment, in lines of bounded width; nothing in it can end a line.
fn comment(text: &mut String, sentence: &str) {
    let mut width = 0;
    for word in sentence.split(' ') {
        let word: String = word.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let length = word.chars().count() + 1;
        if width == 0 || width + length > WIDTH {
            *text += if width == 0 { "#" } else { "\n#" };
            width = 1;
        }
        let _ = write!(text, " {word}");
        width += length;
    }
    text.push('\n');
}

fn shorten(name: &str) -> String {
    name.chars().take(60).collect()
}

/// A name as a key of a table.
fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.chars().all(is_bare) {
        return name.to_owned();
    }
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}
