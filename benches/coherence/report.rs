//! The figures, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::cases::{CORES, GOAL, GOAL_CORES, Kin, Row};
use super::tally::Tally;

/// Everything that was counted.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    pub(crate) near: Vec<Row>,
}

impl Report {
    /// The cases in their order, each with its rows by cores.
    pub(crate) fn cases(&self) -> impl Iterator<Item = &[Row]> {
        self.rows.chunk_by(|one, other| one.case == other.case)
    }

    /// Those that are about how much of a limit is in flight, each with its rows by share.
    pub(crate) fn limits(&self) -> impl Iterator<Item = &[Row]> {
        self.near.chunk_by(|one, other| one.case == other.case)
    }

    pub(crate) fn decisions(&self) -> u64 {
        let of = |row: &Row| row.warm.decisions + row.harsh.decisions + row.kind.decisions;
        self.rows.iter().chain(&self.near).map(of).sum()
    }

    /// What is above the goal, or took a lock.
    pub(crate) fn misses(&self) -> Vec<String> {
        let healthy = self.rows.iter().filter(|row| row.kin == Kin::Healthy);
        let above = healthy.filter(|row| row.cores <= GOAL_CORES && row.worst() > GOAL).map(|row| {
            format!("{} at {} cores: {:.3} transfers per decision, at most {GOAL}", row.case, row.cores, row.worst())
        });
        let all = self.rows.iter().chain(&self.near);
        let locked = all.filter(|row| row.harsh.locks + row.kind.locks > 0);
        above.chain(locked.map(|row| format!("{} at {} cores: takes a lock", row.case, row.cores))).collect()
    }

    pub(crate) fn table(&self) -> String {
        let mut text = String::new();
        for (title, of) in [
            ("cores come between any two accesses", (|row| &row.harsh) as fn(&Row) -> &Tally),
            ("cores come between admissions and settlements only", |row| &row.kind),
        ] {
            let _ = writeln!(text, "\nremote line transfers per decision; {title}");
            let head = CORES.iter().fold(format!("  {:<40}", "cores"), |line, cores| format!("{line}{cores:>8}"));
            let _ = writeln!(text, "{head}");
            for rows in self.cases() {
                let _ = write!(text, "  {:<40}", rows[0].case);
                for row in rows {
                    let _ = write!(text, "{:>8}", short(of(row).transfers_per_decision()));
                }
                let _ = writeln!(text);
            }
        }
        self.write_near(&mut text);
        self.write_culprits(&mut text);
        text
    }

    fn write_near(&self, text: &mut String) {
        let _ =
            writeln!(text, "\nnear the limit, {GOAL_CORES} cores: any two accesses | admissions and settlements only");
        for rows in self.limits() {
            let _ = writeln!(text, "  {}", rows[0].case);
            for row in rows {
                let [harsh, kind] = [&row.harsh, &row.kind];
                let _ = writeln!(
                    text,
                    "    {:>3} % in flight {:>8} |{:>8}   refused {:>4.1} % |{:>4.1} %",
                    row.share.unwrap_or_default(),
                    short(harsh.transfers_per_decision()),
                    short(kind.transfers_per_decision()),
                    100.0 * harsh.refused_per_decision(),
                    100.0 * kind.refused_per_decision(),
                );
            }
        }
    }

    fn write_culprits(&self, text: &mut String) {
        let _ = writeln!(text, "\nat {GOAL_CORES} cores: writes per decision, growth, and where transfers come from");
        for row in self.rows.iter().filter(|row| row.cores == GOAL_CORES) {
            let _ = write!(text, "  {:<40}{:>8}", row.case, short(row.harsh.writes_per_decision()));
            if let Some((decisions, transfers)) = row.warm.growth {
                let _ = write!(text, "  grown after {decisions} decisions, {transfers} transfers");
            }
            let _ = writeln!(text);
            for (order, tally) in [("harsh", &row.harsh), ("kind", &row.kind)] {
                let culprits = tally.culprits(4).into_iter().map(|(by, share)| format!("{by} {}", short(share)));
                let culprits = culprits.collect::<Vec<_>>().join(", ");
                if !culprits.is_empty() {
                    let _ = writeln!(text, "      {order}: {culprits}");
                }
            }
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "unit": "remote line transfers per decision",
            "goal": GOAL,
            "goal_cores": GOAL_CORES,
            "decisions": self.decisions(),
            "rows": self.rows.iter().chain(&self.near).map(row_json).collect::<Vec<_>>(),
            "misses": self.misses(),
        })
    }
}

fn row_json(row: &Row) -> Value {
    json!({
        "case": row.case,
        "kin": format!("{:?}", row.kin).to_lowercase(),
        "cores": row.cores,
        "in_flight_percent": row.share,
        "warm_up": tally_json(&row.warm),
        "any_two_accesses": tally_json(&row.harsh),
        "halves_only": tally_json(&row.kind),
    })
}

fn tally_json(tally: &Tally) -> Value {
    json!({
        "decisions": tally.decisions,
        "refused": tally.refused,
        "accesses": tally.accesses,
        "writes": tally.writes,
        "lost": tally.lost,
        "from_memory": tally.memory,
        "transfers": tally.transfers,
        "transfers_per_decision": tally.transfers_per_decision(),
        "grown_after": tally.growth.map(|(decisions, transfers)| json!({ "decisions": decisions, "transfers": transfers })),
        "by": tally.culprits(8).into_iter().map(|(by, share)| json!({ "line": by, "per_decision": share })).collect::<Vec<_>>(),
    })
}

/// Three digits, or all that there are before the point.
fn short(figure: f64) -> String {
    match figure {
        0.0 => "0".to_owned(),
        ..0.1 => format!("{figure:.4}"),
        ..10.0 => format!("{figure:.2}"),
        ..100.0 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    }
}
