//! Nanoseconds per decision, side by side, with 1, 2, ... all cores.
//!
//! | for | see |
//! | --- | --- |
//! | what is timed | [`case`], [`keys`] |
//! | what a subject offers, and the subjects | [`timed`], [`subjects`] |
//! | pinned threads that start together | [`crew`] |
//! | the floor, and telling when a neighbour took a core | [`control`] |
//! | one sample; samples in turns; medians | [`sampler`], [`series`], [`stats`] |
//! | memory of idle targets | [`idle`] |
//! | table and JSON, plot, targets | [`report`], [`plot`], [`gate`] |

pub mod case;
pub mod control;
pub mod crew;
pub mod entrant;
pub mod gate;
pub mod idle;
pub mod keys;
pub mod plot;
pub mod report;
pub mod sampler;
pub mod series;
pub mod stats;
pub mod subjects;
pub mod timed;

use std::sync::Arc;
use std::time::Instant;

use control::Calm;
use crew::Crew;
use keys::KeySet;
use report::Report;
use series::Pace;

/// Runs all cases whose path or keys contain `only`, and tells on stderr how far it is.
#[must_use]
pub fn run(pace: Pace, only: &str) -> Report {
    let crew = Crew::new();
    if !crew.is_pinned {
        eprintln!("threads can't be pinned here: expect noise");
    }
    let idle = idle::ID.contains(only).then(|| {
        eprintln!("{}", idle::TITLE);
        idle::bytes()
    });
    crate::alloc::count(false);
    let calm = Calm::look(&crew, pace.lengths.control);
    let mut report = Report::new(&crew, &calm, pace, idle);
    let is_wanted = |case: &case::Case| case.path.id().contains(only) || case.keys.id().contains(only);
    let cases: Vec<_> = case::all().into_iter().filter(is_wanted).collect();
    for (number, case) in cases.iter().enumerate() {
        let keys = Arc::new(KeySet::new(case.keys, crew.cores()));
        let entrants = subjects::all(*case, &keys, crew.cores());
        for threads in counts(crew.cores()) {
            let start = Instant::now();
            let rows = series::run(*case, threads, &entrants, &crew, &calm, pace);
            let dropped: usize = rows.iter().map(|row| row.dropped).sum();
            eprintln!(
                "{:>2}/{} {:<22} {:<12} {threads:>3} threads {:>3} subjects {dropped:>4} dropped {:>6.1} s",
                number + 1,
                cases.len(),
                case.path.id(),
                case.keys.id(),
                entrants.len(),
                start.elapsed().as_secs_f64(),
            );
            report.rows.extend(rows);
        }
    }
    report
}

/// Each number of threads up to 8, then its doubles, and all cores.
fn counts(cores: usize) -> Vec<usize> {
    let doubles = std::iter::successors(Some(16), |count| Some(count * 2));
    let mut counts: Vec<_> = (1..=8).chain(doubles.take_while(|count| *count < cores)).collect();
    counts.retain(|count| *count < cores);
    counts.push(cores);
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_up_to_all_cores() {
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(2), [1, 2]);
        assert_eq!(counts(12), [1, 2, 3, 4, 5, 6, 7, 8, 12]);
        assert_eq!(counts(64), [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64]);
    }
}
