//! What a run found, as a table for people and as JSON for programs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::case::Path;
use super::control::Calm;
use super::crew::Crew;
use super::gate::Verdict;
use super::series::{Pace, Row};
use super::stats::Spread;
use super::subjects::controls::NOTHING;
use super::{control, idle, subjects};
use crate::report::{date, machine, version};

/// The crates that are timed, or beside what is.
const CRATES: [&str; 12] = [
    "portcullis",
    "failsafe",
    "recloser",
    "tower-resilience-circuitbreaker",
    "throttle-net",
    "ferryman-core",
    "breaker",
    "seatbelt",
    "governor",
    "tokio",
    "dashmap",
    "ahash",
];

#[derive(Debug)]
pub struct Report {
    pub date: String,
    pub machine: String,
    pub samples: usize,
    pub cores: usize,
    /// Nanoseconds of a pair with 1, 2, ... all cores and no neighbours, looked at before the first case.
    pub calm: Vec<f64>,
    /// Bytes of an idle target.
    pub idle: Option<f64>,
    pub rows: Vec<Row>,
}

impl Report {
    #[must_use]
    pub fn new(crew: &Crew, calm: &Calm, pace: Pace, idle: Option<f64>) -> Self {
        Self {
            date: date(),
            machine: machine(),
            samples: pace.samples,
            cores: crew.cores(),
            calm: (1..=crew.cores()).map(|threads| calm.of(threads)).collect(),
            idle,
            rows: Vec::new(),
        }
    }

    /// The floor with so many threads, from the controls of all rows.
    #[must_use]
    pub fn floor(&self, threads: usize) -> Option<Spread> {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| row.threads == threads).collect();
        let median = Spread::of(rows.iter().map(|row| row.floor.median))?.median;
        let min = Spread::of(rows.iter().map(|row| row.floor.min))?.min;
        let max = Spread::of(rows.iter().map(|row| row.floor.max))?.max;
        Some(Spread { median, min, max })
    }

    /// The numbers of threads that were run.
    #[must_use]
    pub fn threads(&self) -> BTreeSet<usize> {
        self.rows.iter().map(|row| row.threads).collect()
    }

    /// What a stamp adds to each latency.
    fn stamp(&self) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.subject == NOTHING && row.threads == 1)?;
        Some(row.latency.mean)
    }

    /// The tables, a group for each case, and what holds for all of them.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = format!("{}, {}\n", self.date, self.machine);
        for group in self.rows.chunk_by(|one, next| one.case == next.case) {
            self.write_group(&mut text, group);
        }
        text.push('\n');
        for threads in self.threads() {
            if let Some(floor) = self.floor(threads) {
                let _ = writeln!(text, "floor, {threads} threads: {} ns", span(floor));
            }
        }
        if let Some(stamp) = self.stamp() {
            let step = control::step();
            let _ = writeln!(
                text,
                "p50 to max: single decisions, a stamp of {stamp:.1} ns in each, which moves in steps of {step} ns"
            );
        }
        if let Some(idle) = self.idle {
            let _ = writeln!(text, "{}: {idle:.0} bytes each beside key and map entry", idle::TITLE);
        }
        let dropped: usize = self.rows.iter().map(|row| row.dropped).sum();
        let samples = self.samples;
        let _ =
            writeln!(text, "{samples} samples a row, in turns; {dropped} thrown away since a neighbour took a core");
        let _ = writeln!(text, "{}", versions());
        text
    }

    fn write_group(&self, text: &mut String, group: &[Row]) {
        let Some(first) = group.first() else { return };
        let _ = writeln!(text, "\n{} [{}]", first.case.title(), first.case.path.id());
        let head =
            ["subject", "threads", "ns", "[min-max]", "x floor", "control", "p50", "p99", "p99.9", "max", "allocs", ""];
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        lines.extend(group.iter().map(|row| self.line(row)));
        write_aligned(text, &lines);
    }

    fn line(&self, row: &Row) -> Vec<String> {
        let latency = row.latency;
        let mut line = vec![
            row.subject.clone(),
            row.threads.to_string(),
            short(row.ns.median),
            format!("[{}-{}]", short(row.ns.min), short(row.ns.max)),
            format!("{:.2}", row.ratio),
            short(row.floor.median),
        ];
        line.extend([latency.p50, latency.p99, latency.p999, latency.max].map(short));
        line.push(if row.allocs == 0.0 { "0".to_owned() } else { format!("{:.2}", row.allocs) });
        line.push(self.note(row));
        line
    }

    fn note(&self, row: &Row) -> String {
        let own = Some(row.note.clone()).filter(|note| !note.is_empty());
        row.doubts(self.samples).into_iter().chain(own).collect::<Vec<_>>().join(", ")
    }

    /// The same, for programs.
    #[must_use]
    pub fn json(&self, verdicts: &[Verdict]) -> Value {
        let floor = self.threads().into_iter().filter_map(|threads| {
            let floor = self.floor(threads)?;
            let calm = self.calm.get(threads - 1);
            Some(json!({
                "threads": threads,
                "ns_median": round(floor.median),
                "ns_min": round(floor.min),
                "ns_max": round(floor.max),
                "ns_calm": calm.map(|calm| round(*calm)),
            }))
        });
        json!({
            "date": self.date,
            "machine": self.machine,
            "versions": versions(),
            "samples": self.samples,
            "floor": floor.collect::<Vec<_>>(),
            "stamp_ns": self.stamp().map(round),
            "stamp_step_ns": control::step(),
            "idle_target_bytes": self.idle,
            "rows": self.rows.iter().map(|row| self.row_json(row)).collect::<Vec<_>>(),
            "gate": verdicts.iter().map(Verdict::json).collect::<Vec<_>>(),
        })
    }

    fn row_json(&self, row: &Row) -> Value {
        let keys = if row.case.path == Path::Floor { "none" } else { row.case.keys.id() };
        json!({
            "subject": row.subject,
            "path": row.case.path.id(),
            "keys": keys,
            "threads": row.threads,
            "ns_median": round(row.ns.median),
            "ns_min": round(row.ns.min),
            "ns_max": round(row.ns.max),
            "x_floor": round(row.ratio),
            "control_ns": round(row.floor.median),
            "p50_ns": row.latency.p50,
            "p99_ns": row.latency.p99,
            "p999_ns": row.latency.p999,
            "max_ns": row.latency.max,
            "allocs": row.allocs,
            "kept": row.kept,
            "dropped": row.dropped,
            "note": self.note(row),
        })
    }

    /// The row of a subject on a path.
    #[must_use]
    pub fn find(&self, subject: &str, path: Path, keys: super::keys::Keys, threads: usize) -> Option<&Row> {
        self.rows.iter().find(|row| {
            row.subject == subject && row.case.path == path && row.case.keys == keys && row.threads == threads
        })
    }
}

impl Row {
    /// Whether the subject is portcullis, in any form.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        self.subject.starts_with(subjects::portcullis::NAME)
    }
}

fn versions() -> String {
    let versions = CRATES.map(|name| format!("{name} {}", version(name)));
    versions.join(", ")
}

fn round(figure: f64) -> f64 {
    (figure * 100.0).round() / 100.0
}

fn span(spread: Spread) -> String {
    format!("{} [{}-{}]", short(spread.median), short(spread.min), short(spread.max))
}

/// Three digits, or all that there are before the point.
fn short(nanos: f64) -> String {
    match nanos {
        ..10.0 => format!("{nanos:.2}"),
        ..100.0 => format!("{nanos:.1}"),
        _ => format!("{nanos:.0}"),
    }
}

/// Names and notes to the left, numbers to the right.
fn write_aligned(text: &mut String, lines: &[Vec<String>]) {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |place: usize| lines.iter().filter_map(|line| line.get(place)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|place| width(place).unwrap_or(0)).collect();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(place, (cell, width))| {
            let is_text = place == 0 || place + 1 == columns;
            if is_text { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        let shown = [5.432, 54.32, 543.2, 54_321.0].map(short);
        assert_eq!(shown, ["5.43", "54.3", "543", "54321"]);
    }

    #[test]
    fn columns_line_up() {
        let mut text = String::new();
        write_aligned(&mut text, &[["a", "10", "note"], ["bcd", "9", ""]].map(|line| line.map(str::to_owned).to_vec()));
        assert_eq!(text, "  a    10  note\n  bcd   9\n");
    }
}
