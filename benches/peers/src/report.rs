//! What a run found, as a table for people and as JSON for programs.

use std::fmt::Write as _;
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::faults::{Cell, Scenario};
use crate::subject::{Cannot, Subject};

/// One subject, and its answers in the order of the scenarios.
#[derive(Debug)]
pub struct Column {
    pub name: &'static str,
    pub versions: Vec<String>,
    pub cannot: &'static [Cannot],
    pub better: &'static str,
    pub cells: Vec<Cell>,
}

impl Column {
    #[must_use]
    pub fn of<S: Subject>(cells: Vec<Cell>) -> Self {
        let versions = S::CRATES.iter().map(|name| format!("{name} {}", version(name))).collect();
        Self { name: S::NAME, versions, cannot: S::CANNOT, better: S::BETTER, cells }
    }

    /// Whether every answer that can be wrong is right.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.cells.iter().all(|cell| !matches!(cell, Cell::Ran { is_right: Some(false), .. }))
    }
}

/// The release that this was built with, from the lock file.
pub(crate) fn version(name: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let entries = lock.split("[[package]]").map(|entry| (field(entry, "name"), field(entry, "version")));
    // The last of several is the newest: the file is sorted.
    entries.filter(|(found, _)| *found == Some(name)).last().and_then(|(_, version)| version).unwrap_or("?")
}

fn field<'a>(entry: &'a str, name: &str) -> Option<&'a str> {
    let line = entry.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "))?;
    Some(line.trim_matches('"'))
}

/// The day, in UTC.
#[must_use]
pub fn date() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string().chars().take(10).collect()
}

/// The processor and how many of it there are.
#[must_use]
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, model)| model.trim());
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("{model}, {cores} cores, {} {}", std::env::consts::OS, std::env::consts::ARCH)
}

/// How many peers stand beside us in one table: more don't fit a screen.
const ABREAST: usize = 4;

/// The tables, ours beside a few peers in each, and the notes below them.
#[must_use]
pub fn table(scenarios: &[Scenario], columns: &[Column]) -> String {
    let mut text = format!("{}, {}\n", date(), machine());
    let Some((ours, peers)) = columns.split_first() else { return text };
    for peers in peers.chunks(ABREAST) {
        let abreast: Vec<&Column> = std::iter::once(ours).chain(peers).collect();
        text.push('\n');
        write_block(&mut text, scenarios, &abreast);
    }
    text.push_str("\n!  not the answer that a caller may rely on      -  the subject has no such feature (below)\n");
    for column in columns {
        let _ = write!(text, "\n{} ({})\n  better: {}\n", column.name, column.versions.join(", "), column.better);
        if !column.cannot.is_empty() {
            let cannot: Vec<_> = column.cannot.iter().map(|what| what.as_str()).collect();
            let _ = writeln!(text, "  can't: {}", cannot.join("; "));
        }
    }
    text
}

fn write_block(text: &mut String, scenarios: &[Scenario], columns: &[&Column]) {
    let mut lines = vec![["", "right"].map(String::from).to_vec()];
    lines[0].extend(columns.iter().map(|column| column.name.to_owned()));
    for (row, scenario) in scenarios.iter().enumerate() {
        let mut line = vec![scenario.short.to_owned(), scenario.right.to_owned()];
        line.extend(columns.iter().map(|column| column.cells.get(row).map_or_else(String::new, shown)));
        lines.push(line);
    }
    let width = |place: usize| lines.iter().filter_map(|line| line.get(place)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..lines[0].len()).map(|place| width(place).unwrap_or(0)).collect();
    for line in lines {
        let padded = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Ran { answer, is_right: Some(false) } => format!("{answer} !"),
        Cell::Ran { answer, .. } => answer.clone(),
        Cell::Cant(_) => "-".to_owned(),
    }
}

/// The same, for programs.
#[must_use]
pub fn json(scenarios: &[Scenario], columns: &[Column]) -> Value {
    let rows = scenarios.iter().enumerate().map(|(row, scenario)| {
        let cells =
            columns.iter().filter_map(|column| Some((column.name.to_owned(), cell_json(column.cells.get(row)?))));
        json!({
            "id": scenario.id,
            "question": scenario.question,
            "right": scenario.right,
            "answers": cells.collect::<serde_json::Map<_, _>>(),
        })
    });
    let subjects = columns.iter().map(|column| {
        let cannot: Vec<_> = column.cannot.iter().map(|what| what.as_str()).collect();
        json!({ "name": column.name, "versions": column.versions, "cannot": cannot, "better": column.better })
    });
    json!({
        "date": date(),
        "machine": machine(),
        "subjects": subjects.collect::<Vec<_>>(),
        "rows": rows.collect::<Vec<_>>(),
    })
}

fn cell_json(cell: &Cell) -> Value {
    match cell {
        Cell::Ran { answer, is_right } => json!({ "answer": answer, "right": is_right }),
        Cell::Cant(what) => json!({ "answer": null, "cannot": what.as_str() }),
    }
}
