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
mod tests {
    use super::*;
    use crate::cores::case;
    use crate::cores::series::Latency;
    use crate::cores::stats::Spread;
    use crate::subject::Cannot;

    const FLOOR: f64 = 5.0;

    fn row(subject: &str, case: Case, threads: usize, ns: f64) -> Row {
        let flat = |median| Spread { median, min: median, max: median };
        Row {
            subject: subject.to_owned(),
            case,
            threads,
            ns: flat(ns),
            floor: flat(FLOOR),
            ratio: ns / FLOOR,
            latency: Latency::default(),
            allocs: 0.0,
            kept: SAMPLES,
            dropped: 0,
            wrong: 0,
            strays: 0,
            note: String::new(),
            cannot: Vec::new(),
        }
    }

    /// A run that meets every target: ours at 7 ns where admitted and 3 where refused, the stack by hand at 60, a map at 10.
    fn good() -> Report {
        let mut rows = Vec::new();
        for case in case::all() {
            for threads in [1, 2] {
                if case.path == Path::Floor {
                    rows.push(row(CLOCK, case, threads, 12.0));
                    continue;
                }
                let ns = if case.path.admits() { 7.0 } else { 3.0 };
                if !case.keys.is_spread() {
                    rows.push(row(RESOLVED, case, threads, ns));
                    rows.push(row(RESOLVED_COARSE, case, threads, ns));
                }
                rows.push(row(KEYED, case, threads, ns));
                rows.push(row(STATIC, case, threads, ns));
                rows.push(row("by hand: all", case, threads, 60.0));
                rows.push(Row { cannot: vec![Cannot::Break], ..row(CACHE_MAP, case, threads, 1.0) });
            }
        }
        Report {
            date: String::new(),
            machine: String::new(),
            samples: SAMPLES,
            cores: 2,
            calm: vec![FLOOR; 2],
            idle: Some(200.0),
            rows,
        }
    }

    fn failed(report: &Report) -> Vec<String> {
        judge(report).into_iter().filter(|verdict| !verdict.holds()).map(|verdict| verdict.what).collect()
    }

    /// What fails once the rows of a subject on a path are changed.
    fn failed_after(subject: &str, path: Path, keys: Keys, change: impl Fn(&mut Row)) -> Vec<String> {
        let mut report = good();
        let changed = |row: &&mut Row| row.subject == subject && row.case == Case { path, keys };
        report.rows.iter_mut().filter(changed).for_each(change);
        failed(&report)
    }

    fn slow(ns: f64) -> impl Fn(&mut Row) {
        move |row| {
            row.ns.median = ns;
            row.ratio = ns / FLOOR;
        }
    }

    #[track_caller]
    fn has(failed: &[String], part: &str) {
        assert!(failed.iter().any(|what| what.contains(part)), "{part}: {failed:?}");
    }

    #[test]
    fn a_good_run_passes() {
        assert_eq!(failed(&good()), Vec::<String>::new());
        assert!(judge(&good()).len() > 100, "each cell is judged");
    }

    #[test]
    fn each_bound_on_ns_can_fail() {
        let time = Path::Healthy(Basis::Time);
        let failing = Path::Failing(Basis::Time, 100);
        let cases = [
            (RESOLVED, CALLS, Keys::Hot, 9.6, "in floor(2)"),
            (RESOLVED, CALLS, Keys::Hot, 9.1, "in floor(1)"),
            (KEYED, CALLS, Keys::Hot, 11.2, "1.9 floors + 1.6"),
            (RESOLVED_COARSE, time, Keys::Hot, 15.1, "admit/time"),
            (RESOLVED_COARSE, failing, Keys::Hot, 32.6, "failures/time/1%"),
            (RESOLVED_COARSE, Path::Open, Keys::Hot, 4.1, "refused/open"),
            (RESOLVED, Path::Open, Keys::Hot, 16.1, "a reading of the clock"),
            (RESOLVED, Path::Full, Keys::Hot, 4.1, "refused/full"),
            (STATIC, CALLS, Keys::Hot, 12.1, "in the stack by hand"),
            (KEYED, CALLS, Keys::Zipf, 40.1, "zipf 10k, 2 threads: in the stack by hand"),
            (KEYED, CALLS, Keys::Uniform, 60.1, "uniform 10k, 2 threads: in the stack by hand"),
            (KEYED, CALLS, Keys::Million, 60.1, "uniform 1M, 2 threads: in the stack by hand"),
            (RESOLVED, Path::Probing, Keys::Hot, 60.1, "refused/probing, hot, 1 threads: in by hand: all"),
        ];
        for (subject, path, keys, ns, part) in cases {
            has(&failed_after(subject, path, keys, slow(ns)), part);
            // A hair below the bound it passes.
            let passed = failed_after(subject, path, keys, slow(ns - 0.2));
            assert!(!passed.iter().any(|what| what.contains(part)), "{part}: {passed:?}");
        }
    }

    #[test]
    fn a_slow_floor_hides_nothing() {
        let mut report = good();
        for row in report.rows.iter_mut().filter(|row| row.threads == 2) {
            row.floor.median = 1.3 * FLOOR;
        }
        has(&failed(&report), "the cores are ours");
    }

    #[test]
    fn allocations_wrong_answers_and_second_probes_fail() {
        has(&failed_after(STATIC, CALLS, Keys::Own, |row| row.allocs = 0.001), "allocations");
        has(&failed_after(KEYED, Path::Open, Keys::Hot, |row| row.wrong = 1), "answers of another kind");
        has(&failed_after(KEYED, Path::Probing, Keys::Hot, |row| row.strays = 1), "probes");
        has(&failed_after(KEYED, CALLS, Keys::Hot, |row| row.kept = SAMPLES - 1), "calm samples");
    }

    #[test]
    fn what_was_not_measured_fails() {
        let mut report = good();
        report.idle = None;
        report.rows.retain(|row| row.subject != RESOLVED);
        let failed = failed(&report);
        has(&failed, "bytes of an idle target");
        has(&failed, "portcullis resolved, admit/calls, hot, 1 threads");
        report.rows.clear();
        assert!(judge(&report).iter().any(|verdict| !verdict.holds()));
    }

    #[test]
    fn a_peer_is_a_rival_only_if_it_does_the_same() {
        let quick = |cannot: Vec<Cannot>| {
            let mut report = good();
            let case = Case { path: CALLS, keys: Keys::Hot };
            report.rows.push(Row { cannot, ..row("a peer", case, 2, 1.0) });
            failed(&report)
        };
        assert!(quick(vec![Cannot::Permit]).is_empty());
        assert!(quick(vec![Cannot::CallsWindow]).is_empty());
        let no_keys = quick(vec![Cannot::Key]);
        has(&no_keys, "portcullis resolved, admit/calls, hot, 2 threads: in a peer");
        assert!(!no_keys.iter().any(|what| what.contains("keyed")), "{no_keys:?}");
        has(&quick(Vec::new()), "portcullis keyed, admit/calls, hot, 2 threads: in a peer");
        let mut report = good();
        report.rows.push(row("a peer", Case { path: Path::Full, keys: Keys::Hot }, 2, 1.0));
        assert_eq!(failed(&report), Vec::<String>::new(), "a peer counts no refusals");
    }
}
