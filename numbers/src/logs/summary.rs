//! What a reading came to.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::fault::{Fault, Sample};
use super::names::{Names, OTHER};

/// How many samples of each fault are printed, from its first and from its last.
const PRINTED: (usize, usize) = (3, 2);

/// What a reading came to.
///
/// As text it is what a user should know of: each kind of bad line with where it was met, and what was left out for which reason; nothing if all
/// lines were calls.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The targets met.
    pub names: Names,
    /// Lines read.
    pub lines: u64,
    /// Calls among them.
    pub calls: u64,
    /// Requests that portcullis itself had refused; they were no calls of a target.
    pub refused: u64,
    /// Requests that the proxy had answered by itself; they were none either.
    pub answered_by_proxy: u64,
    /// Requests that neither a route nor the expression for the target fits.
    pub unmatched: u64,
    /// Calls of targets past the bound, which are in `other`.
    pub others: u64,
    /// How many lines were bad, by what was wrong; a call that came too late for its place is one of them.
    pub bad: BTreeMap<Fault, u64>,
    /// Bad lines of each kind: the first, and each at which their number had doubled.
    pub samples: Vec<Sample>,
    /// Logs that ended before their end, and why.
    pub damaged: Vec<String>,
    /// The most calls that were held at a time to be put in order.
    pub held: usize,
    /// Whether more calls than may be held were within the time that calls may be out of order, so that it was cut.
    pub squeezed: bool,
    logs: Vec<PathBuf>,
}

impl Summary {
    pub(super) fn of(logs: &[PathBuf]) -> Self {
        Self { logs: logs.to_vec(), ..Self::default() }
    }

    /// Counts a bad line, and keeps it if it is one to be shown.
    pub(super) fn bad(&mut self, fault: Fault, sample: impl FnOnce() -> Sample) {
        let count = self.bad.entry(fault).or_default();
        *count += 1;
        if count.is_power_of_two() {
            self.samples.push(sample());
        }
    }

    fn write_faults(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (fault, count) in &self.bad {
            writeln!(f, "{count} of {} lines: {fault}", self.lines)?;
            let samples: Vec<_> = self.samples.iter().filter(|sample| sample.fault == *fault).collect();
            let last = samples.len().saturating_sub(PRINTED.1).max(PRINTED.0);
            for (at, sample) in samples.iter().enumerate() {
                if at < PRINTED.0 || at >= last {
                    let log = self.logs.get(sample.log).map(|log| log.display());
                    let log = log.as_ref().map_or(&"" as &dyn fmt::Display, |log| log);
                    writeln!(f, "  {log}:{}: {}", sample.line, sample.text)?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_faults(f)?;
        for log in &self.damaged {
            writeln!(f, "{log}: what came before was read")?;
        }
        let apart = [
            (self.refused, "requests were refused by portcullis (E904, E905) and are no calls"),
            (self.answered_by_proxy, "requests were answered by the proxy itself and are no calls"),
            (self.unmatched, "requests fit no route or --target-regex and are left out"),
        ];
        for (count, what) in apart.into_iter().filter(|(count, _)| *count > 0) {
            writeln!(f, "{count} {what}")?;
        }
        if self.others > 0 {
            writeln!(f, "{} calls went to more targets than --max-targets and are in {OTHER:?}", self.others)?;
        }
        if self.squeezed {
            writeln!(f, "more calls than can be held started within --reorder: it was shorter at times")?;
        }
        Ok(())
    }
}

/// Why a reading couldn't go on.
#[derive(Debug)]
pub struct Error(pub(super) String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}
