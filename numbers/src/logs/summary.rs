//! What a reading came to.

use std::collections::BTreeMap;
use std::fmt;

use super::fault::{Fault, Sample};
use super::names::Names;

/// What a reading came to.
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
    /// Whether more calls than may be held were within the time that calls may be out of order.
    pub squeezed: bool,
}

impl Summary {
    /// Counts a bad line, and keeps it if it is one to be shown.
    pub(super) fn bad(&mut self, fault: Fault, sample: impl FnOnce() -> Sample) {
        let count = self.bad.entry(fault).or_default();
        *count += 1;
        if count.is_power_of_two() {
            self.samples.push(sample());
        }
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
