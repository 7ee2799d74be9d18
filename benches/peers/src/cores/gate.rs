//! The targets, as ratios within one run, and whether they are met.

use serde_json::{Value, json};

use super::case::{Basis, Case, Path};
use super::keys::Keys;
use super::report::Report;
use super::series::Row;
use super::subjects::by_hand;
use super::subjects::controls::{CACHE_MAP, CLOCK};
use super::subjects::portcullis::{KEYED, RESOLVED, RESOLVED_COARSE, STATIC};
use super::timed::needed;

/// Samples that must have been kept for a figure to be judged.
pub const SAMPLES: usize = 15;

const CALLS: Path = Path::Healthy(Basis::Calls);

/// One target: a figure that is to be at most a bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub what: String,
    /// None if it wasn't measured: that doesn't pass.
    pub figure: Option<f64>,
    pub bound: f64,
}

impl Verdict {
    #[must_use]
    pub fn holds(&self) -> bool {
        self.figure.is_some_and(|figure| figure <= self.bound)
    }

    #[must_use]
    pub fn json(&self) -> Value {
        json!({ "what": self.what, "figure": self.figure, "bound": self.bound, "holds": self.holds() })
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.holds() { "ok  " } else { "FAIL" };
        let figure = self.figure.map_or_else(|| "not measured".to_owned(), |figure| format!("{figure:.2}"));
        write!(f, "{mark}  {figure:>12} <= {:<8.2}  {}", self.bound, self.what)
    }
}

/// All targets.
#[must_use]
pub fn judge(report: &Report) -> Vec<Verdict> {
    let judge = Judge { report };
    [judge.run(), judge.floors(), judge.refusals(), judge.by_hand(), judge.peers(), judge.memory()].concat()
}

struct Judge<'a> {
    report: &'a Report,
}

impl Judge<'_> {
    fn row(&self, subject: &str, path: Path, keys: Keys, threads: usize) -> Option<&Row> {
        self.report.find(subject, path, keys, threads)
    }

    fn hot(&self, subject: &str, path: Path, threads: usize) -> Option<&Row> {
        self.row(subject, path, Keys::Hot, threads)
    }

    fn floor(&self, threads: usize) -> Option<f64> {
        self.report.floor(threads).map(|floor| floor.median)
    }

    /// Peers that do the same as we do in a case.
    fn rivals(&self, case: Case, threads: usize, is_keyed: bool) -> impl Iterator<Item = &Row> {
        let needed = needed(case, is_keyed);
        self.report.rows.iter().filter(move |row| {
            let is_peer = row.case == case && row.threads == threads && !row.is_ours();
            // Where a bulkhead is full a peer can refuse by a load, if it doesn't count what it refuses: another answer. The stack by
            // hand doesn't count, either, but it is what callers have today.
            let is_counted = case.path != Path::Full || row.subject.starts_with(by_hand::NAME);
            is_peer && is_counted && !needed.iter().any(|what| row.cannot.contains(what))
        })
    }

    /// One thread, and all cores.
    fn ends(&self) -> Vec<usize> {
        let mut ends = vec![1, self.report.cores];
        ends.dedup();
        ends
    }

    fn ours(&self) -> impl Iterator<Item = &Row> {
        self.report.rows.iter().filter(|row| row.is_ours())
    }

    /// Whether the run can be judged at all.
    fn run(&self) -> Vec<Verdict> {
        let all = self.report.cores;
        let scales = self.floor(all).zip(self.floor(1)).map(|(all, one)| all / one);
        let count =
            |is_odd: &dyn Fn(&Row) -> bool| Some(self.report.rows.iter().filter(|row| is_odd(row)).count() as f64);
        vec![
            Verdict { what: format!("floor({all}) in floor(1): the cores are ours"), figure: scales, bound: 1.25 },
            Verdict {
                what: format!(
                    "rows of portcullis, the stack by hand and controls with fewer than {SAMPLES} calm samples"
                ),
                figure: count(&|row| row.kept < SAMPLES && is_judged(row)),
                bound: 0.0,
            },
            Verdict {
                what: "rows of portcullis with answers of another kind".to_owned(),
                figure: count(&|row| row.is_ours() && row.wrong > 0),
                bound: 0.0,
            },
            Verdict {
                what: "rows of portcullis with another number of probes than one, or permits left while full"
                    .to_owned(),
                figure: count(&|row| row.is_ours() && row.strays > 0),
                bound: 0.0,
            },
        ]
    }

    /// What is admitted, in floors of the same samples.
    fn floors(&self) -> Vec<Verdict> {
        let in_floors = |subject: &str, path: Path, threads: usize, bound: f64| Verdict {
            what: format!("{subject}, {}, hot, {threads} threads: in floor({threads})", path.id()),
            figure: self.hot(subject, path, threads).map(|row| row.ratio),
            bound,
        };
        let mut verdicts = Vec::new();
        for threads in self.ends() {
            let bound = resolved_bound(threads);
            verdicts.push(in_floors(RESOLVED, CALLS, threads, bound));
            verdicts.push(self.keyed(threads, bound));
            verdicts.push(in_floors(RESOLVED_COARSE, Path::Healthy(Basis::Time), threads, 3.0));
            verdicts.push(in_floors(RESOLVED_COARSE, Path::Failing(Basis::Time, 100), threads, 6.5));
        }
        verdicts
    }

    /// By key: what a resolved target may take, and 1.6 looks into a map with the hasher of keys that are known, in nanoseconds.
    fn keyed(&self, threads: usize, floors: f64) -> Verdict {
        let row = self.hot(KEYED, CALLS, threads);
        let map = self.hot(CACHE_MAP, CALLS, threads);
        let bound = row.zip(map).map(|(row, map)| floors * row.floor.median + 1.6 * map.ns.median);
        Verdict {
            what: format!(
                "{KEYED}, {}, hot, {threads} threads: ns, bound {floors} floors + 1.6 {CACHE_MAP}",
                CALLS.id()
            ),
            figure: row.map(|row| row.ns.median),
            bound: bound.unwrap_or(0.0),
        }
    }

    /// What is refused, in nanoseconds; all bounds are of floor(1).
    fn refusals(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        for threads in self.ends() {
            let clock = self.hot(CLOCK, Path::Floor, threads).map_or(0.0, |row| row.ns.median);
            let rows = [
                (RESOLVED_COARSE, Path::Open, 0.0, "0.8 floor(1)"),
                (RESOLVED, Path::Open, clock, "0.8 floor(1) + a reading of the clock"),
                (RESOLVED, Path::Full, 0.0, "0.8 floor(1)"),
            ];
            verdicts.extend(rows.map(|(subject, path, added, bound)| Verdict {
                what: format!("{subject}, {}, hot, {threads} threads: ns, bound {bound}", path.id()),
                figure: self.hot(subject, path, threads).map(|row| row.ns.median),
                bound: 0.8 * self.floor(1).unwrap_or(0.0) + added,
            }));
        }
        verdicts
    }

    /// Beside the quickest stack by hand that judges by the same, on all cores.
    fn by_hand(&self) -> Vec<Verdict> {
        let threads = self.report.cores;
        let cells = [
            (RESOLVED, Keys::Hot, 5.0),
            (KEYED, Keys::Hot, 5.0),
            (STATIC, Keys::Hot, 5.0),
            (KEYED, Keys::Zipf, 1.5),
            (STATIC, Keys::Zipf, 1.5),
            (KEYED, Keys::Uniform, 1.0),
            (STATIC, Keys::Uniform, 1.0),
            (KEYED, Keys::Million, 1.0),
        ];
        let verdict = |(subject, keys, times): (&str, Keys, f64)| {
            let case = Case { path: CALLS, keys };
            let rivals = self.rivals(case, threads, true).filter(|row| row.subject.starts_with(by_hand::NAME));
            let rival = rivals.map(|row| row.ns.median).min_by(f64::total_cmp);
            let ours = self.row(subject, CALLS, keys, threads).map(|row| row.ns.median);
            Verdict {
                what: format!("{subject}, {}, {}, {threads} threads: in the stack by hand", CALLS.id(), keys.id()),
                figure: ours.zip(rival).map(|(ours, rival)| ours / rival),
                bound: 1.0 / times,
            }
        };
        cells.into_iter().map(verdict).collect()
    }

    /// Beside the quickest peer that can do the same, cell by cell.
    fn peers(&self) -> Vec<Verdict> {
        let verdict = |ours: &Row| {
            let rivals = self.rivals(ours.case, ours.threads, !ours.subject.starts_with(RESOLVED));
            let rival = rivals.min_by(|one, other| one.ns.median.total_cmp(&other.ns.median))?;
            let (path, keys) = (ours.case.path.id(), ours.case.keys.id());
            Some(Verdict {
                what: format!("{}, {path}, {keys}, {} threads: in {}", ours.subject, ours.threads, rival.subject),
                figure: Some(ours.ns.median / rival.ns.median),
                bound: 1.0,
            })
        };
        self.ours().filter_map(verdict).collect()
    }

    fn memory(&self) -> Vec<Verdict> {
        // What a thread has no room to cache may cost an allocation.
        let is_cached = |row: &&Row| !row.case.keys.is_spread();
        let mut verdicts: Vec<_> = self
            .ours()
            .filter(is_cached)
            .filter(|row| row.allocs > 0.0)
            .map(|row| Verdict {
                what: format!(
                    "{}, {}, {}, {} threads: allocations",
                    row.subject,
                    row.case.path.id(),
                    row.case.keys.id(),
                    row.threads
                ),
                figure: Some(row.allocs),
                bound: 0.0,
            })
            .collect();
        let most = self.ours().filter(is_cached).map(|row| row.allocs).max_by(f64::total_cmp);
        verdicts.push(Verdict {
            what: "allocations of any decision of portcullis about a cached key".to_owned(),
            figure: most,
            bound: 0.0,
        });
        verdicts.push(Verdict {
            what: "bytes of an idle target beside key and map entry".to_owned(),
            figure: self.report.idle,
            bound: 256.0,
        });
        verdicts
    }
}

/// Whether the gate looks at the figures of a row in any case.
fn is_judged(row: &Row) -> bool {
    row.is_ours() || row.subject.starts_with(by_hand::NAME) || [CACHE_MAP, CLOCK].contains(&row.subject.as_str())
}

fn resolved_bound(threads: usize) -> f64 {
    if threads == 1 { 1.8 } else { 1.9 }
}

#[cfg(test)]
mod tests;
