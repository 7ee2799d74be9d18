//! Samples in turns: one of each subject, then the next of each, so that what the machine does to one it does to all.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::case::Case;
use super::control::Calm;
use super::crew::Crew;
use super::entrant::Entrant;
use super::sampler::{Lengths, Measure, Plan, Tally};
use super::stats::Spread;
use crate::subject::Cannot;

/// A thread that stood in line for this share of a sample wasn't alone on its core.
const QUEUED: f64 = 0.02;

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub samples: usize,
    /// Samples whose decisions are stamped one by one.
    pub stamped: usize,
    pub lengths: Lengths,
}

impl Pace {
    #[must_use]
    pub fn full(samples: usize) -> Self {
        let millis = Duration::from_millis;
        Self { samples, stamped: 3, lengths: Lengths { control: millis(1), warm: millis(2), sample: millis(25) } }
    }

    /// A smoke test: figures of no worth.
    #[must_use]
    pub fn quick(samples: usize) -> Self {
        let micros = Duration::from_micros;
        Self {
            samples,
            stamped: 1,
            lengths: Lengths { control: micros(200), warm: micros(300), sample: micros(2_000) },
        }
    }

    /// Samples that may be thrown away before a row goes on without.
    fn patience(self) -> usize {
        2 * self.samples
    }
}

/// The time of single decisions, a stamp included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    pub mean: f64,
    pub p50: f64,
    pub p99: f64,
    pub p999: f64,
    pub max: f64,
}

/// One subject on one case with one number of threads.
#[derive(Clone, Debug)]
pub struct Row {
    pub subject: String,
    pub case: Case,
    pub threads: usize,
    pub ns: Spread,
    /// The floor in the same samples: a pair of the control.
    pub floor: Spread,
    /// The median of each sample's time in floors of that sample.
    pub ratio: f64,
    pub latency: Latency,
    /// Per decision.
    pub allocs: f64,
    /// Samples in which the control scaled, and those thrown away since it didn't.
    pub kept: usize,
    pub dropped: usize,
    /// Answers that the path doesn't allow: the row measures something else.
    pub wrong: u64,
    /// Samples in which another number of calls was held open than the path is about: more probes than one, or not all permits.
    pub strays: usize,
    pub note: String,
    pub cannot: Vec<Cannot>,
}

/// Times all entrants of a case with so many threads.
pub fn run(case: Case, threads: usize, entrants: &[Entrant], crew: &Crew, calm: &Calm, pace: Pace) -> Vec<Row> {
    let mut series: Vec<Series> = entrants.iter().map(|_| Series::default()).collect();
    let plan = |measure, round| Plan { case, threads, measure, lengths: pace.lengths, round };
    for round in 0..pace.samples + pace.stamped {
        let measure = if round < pace.samples { Measure::Rate } else { Measure::Each };
        for (entrant, series) in entrants.iter().zip(&mut series) {
            loop {
                let tallies = entrant.run(crew, plan(measure, round));
                let is_calm = is_calm(&tallies, threads, calm);
                if !is_calm && series.dropped < pace.patience() {
                    series.dropped += 1;
                    // Whoever took the core may be done soon.
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                }
                series.add(case, measure, &tallies, is_calm);
                break;
            }
        }
    }
    crate::alloc::count(true);
    for (entrant, series) in entrants.iter().zip(&mut series) {
        let tallies = entrant.run(crew, plan(Measure::Allocations, pace.samples));
        let (calls, decisions) = sums(&tallies, |tally| (tally.allocations, tally.decisions));
        series.allocs = calls as f64 / decisions as f64;
    }
    crate::alloc::count(false);
    entrants.iter().zip(series).map(|(entrant, series)| series.row(entrant, case, threads)).collect()
}

/// Whether every thread had its core to itself: the control scales before and after, and nothing shows in between.
fn is_calm(tallies: &[Tally], threads: usize, calm: &Calm) -> bool {
    tallies.iter().all(|tally| {
        let scales = tally.controls.iter().all(|control| calm.holds(threads, *control));
        let is_alone = tally.queued.as_nanos() as f64 <= QUEUED * tally.nanos as f64;
        scales && is_alone && !has_stalled(tally)
    })
}

/// Whether one batch took far longer than the others and much of the sample: a core that the machine itself had lent away.
fn has_stalled(tally: &Tally) -> bool {
    tally.longest * 20 > tally.nanos && tally.longest * tally.batches > 10 * tally.nanos
}

fn sums(tallies: &[Tally], of: impl Fn(&Tally) -> (u64, u64)) -> (u64, u64) {
    tallies.iter().map(of).fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1))
}

/// Nanoseconds per decision and the floor beside them.
#[derive(Clone, Copy, Debug)]
struct Sample {
    ns: f64,
    floor: f64,
    is_calm: bool,
}

#[derive(Debug, Default)]
struct Series {
    samples: Vec<Sample>,
    latency: Option<Histogram<u64>>,
    allocs: f64,
    dropped: usize,
    wrong: u64,
    strays: usize,
}

impl Series {
    fn add(&mut self, case: Case, measure: Measure, tallies: &[Tally], is_calm: bool) {
        let (nanos, decisions) = sums(tallies, |tally| (tally.nanos, tally.decisions));
        let (admitted, held) = sums(tallies, |tally| (tally.admitted, tally.held as u64));
        self.wrong += if case.path.admits() { decisions - admitted } else { admitted };
        self.strays += usize::from(held != case.held());
        if measure == Measure::Rate {
            let controls = tallies.iter().flat_map(|tally| tally.controls);
            let floor = controls.sum::<f64>() / (2 * tallies.len()) as f64;
            self.samples.push(Sample { ns: nanos as f64 / decisions as f64, floor, is_calm });
        }
        // What a neighbour did to it is kept only where nothing else is.
        let stamped = tallies.iter().filter_map(|tally| tally.latency.as_ref());
        let is_wanted = is_calm || self.latency.is_none();
        for latency in stamped.filter(|_| is_wanted) {
            let sum = self.latency.get_or_insert_with(|| Histogram::new_from(latency));
            // Both have the same bounds.
            let _ = sum.add(latency);
        }
    }

    fn row(self, entrant: &Entrant, case: Case, threads: usize) -> Row {
        let mut samples = self.samples;
        let kept = samples.iter().filter(|sample| sample.is_calm).count();
        if kept > 0 {
            samples.retain(|sample| sample.is_calm);
        }
        let spread = |of: fn(&Sample) -> f64| Spread::of(samples.iter().map(of)).unwrap_or_default();
        let latency = self.latency.as_ref().map_or_else(Latency::default, |all| Latency {
            mean: all.mean(),
            p50: all.value_at_quantile(0.5) as f64,
            p99: all.value_at_quantile(0.99) as f64,
            p999: all.value_at_quantile(0.999) as f64,
            max: all.max() as f64,
        });
        Row {
            subject: entrant.name.clone(),
            case,
            threads,
            ns: spread(|sample| sample.ns),
            floor: spread(|sample| sample.floor),
            ratio: spread(|sample| sample.ns / sample.floor).median,
            latency,
            allocs: self.allocs,
            kept,
            dropped: self.dropped,
            wrong: self.wrong,
            strays: self.strays,
            note: entrant.note.clone(),
            cannot: entrant.cannot.clone(),
        }
    }
}

impl Row {
    /// What a reader must know before he believes the row.
    #[must_use]
    pub fn doubts(&self, samples: usize) -> Vec<String> {
        let noisy = (self.kept < samples).then(|| format!("! {} of {samples} samples calm", self.kept));
        let wrong = (self.wrong > 0).then(|| format!("! {} answers of another kind", self.wrong));
        let strays = (self.strays > 0).then(|| format!("! {} samples with other calls held open", self.strays));
        [noisy, wrong, strays].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cores::case::{self, Path};
    use crate::cores::keys::KeySet;
    use crate::cores::subjects;

    fn tally(nanos: u64, batches: u64, longest: u64) -> Tally {
        Tally {
            decisions: 1_000,
            admitted: 1_000,
            nanos,
            batches,
            longest,
            controls: [5.0, 5.0],
            queued: Duration::ZERO,
            held: 0,
            allocations: 0,
            latency: None,
        }
    }

    #[test]
    fn a_batch_far_longer_than_the_others_is_a_stall() {
        assert!(!has_stalled(&tally(25_000_000, 1_000, 30_000)));
        assert!(has_stalled(&tally(25_000_000, 700, 8_000_000)), "a time slice in a neighbour's hands");
        assert!(!has_stalled(&tally(25_000_000, 10, 5_000_000)), "a subject whose decisions take milliseconds");
        assert!(!has_stalled(&tally(25_000_000, 1_000, 500_000)), "2 % of the sample");
    }

    #[test]
    fn every_subject_answers_as_its_path_says() {
        let crew = Crew::new();
        let pace = Pace::quick(1);
        let calm = Calm::look(&crew, Duration::from_micros(10));
        // A probe may be taken for lost while this machine tests other things, too.
        for case in case::all().into_iter().filter(|case| !case.keys.is_spread() && case.path != Path::Probing) {
            let keys = Arc::new(KeySet::new(case.keys, crew.cores()));
            let entrants = subjects::all(case, &keys, crew.cores());
            assert!(entrants.len() > 4, "{case:?}");
            for row in run(case, crew.cores(), &entrants, &crew, &calm, pace) {
                assert_eq!((row.wrong, row.strays), (0, 0), "{} on {case:?}", row.subject);
                assert!(row.ns.median > 0.0 && row.latency.max > 0.0, "{row:?}");
            }
        }
    }
}
