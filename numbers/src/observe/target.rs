//! One target: calls in order of their start become ends in order, and what is seen of them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use portcullis::Outcome;

use super::outages::Detector;
use super::{Calm, Observed, Spread};
use crate::logs::Call;

const SECOND: u64 = 1_000_000_000;

/// What is known of a target so far.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The ends of the calls in flight, soonest first, and of two at once the one that started first.
    running: BinaryHeap<Reverse<(u64, u64, Ended)>>,
    started: u64,
    ended: u64,
    failures: u64,
    abandoned: u64,
    peak: u64,
    first: Option<u64>,
    /// Up to when the calls in flight have been counted, and the end of the last call.
    counted: u64,
    detector: Detector,
    second: Second,
    latency: Spread,
    busy: (Duration, u64),
    seconds: Spread,
    in_flight: Spread,
}

/// The calls started in the second that is on.
#[derive(Debug, Default)]
struct Second {
    number: u64,
    calls: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ended {
    latency: u64,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Good,
    Failed,
    Abandoned,
}

impl Watch {
    pub(super) fn call(&mut self, call: &Call) {
        self.end_until(call.start);
        self.count_to(call.start);
        let second = call.start / SECOND;
        if self.first.is_none() {
            self.first = Some(call.start);
            self.second.number = second;
        }
        if second > self.second.number {
            self.close_second(second);
        }
        self.second.calls += 1;
        let fate = match call.outcome {
            Outcome::Success => Fate::Good,
            Outcome::Failure => Fate::Failed,
            _ => Fate::Abandoned,
        };
        self.started += 1;
        let end = call.start.saturating_add(call.latency);
        self.running.push(Reverse((end, self.started, Ended { latency: call.latency, fate })));
        self.peak = self.peak.max(self.running.len() as u64);
    }

    fn close_second(&mut self, next: u64) {
        if !self.detector.is_out() {
            self.seconds.add(self.second.calls, 1);
            self.seconds.add(0, next - self.second.number - 1);
        }
        self.second = Second { number: next, calls: 0 };
    }

    /// Ends the calls that end before or at `time`: at the same instant an end comes before a start.
    fn end_until(&mut self, time: u64) {
        while let Some(Reverse((end, _, ended))) = self.running.peek().copied()
            && end <= time
        {
            self.count_to(end);
            self.running.pop();
            self.end(end, ended);
        }
    }

    /// Counts the calls in flight up to `time`.
    fn count_to(&mut self, time: u64) {
        if self.first.is_some() && !self.detector.is_out() {
            self.in_flight.add(self.running.len() as u64, time.saturating_sub(self.counted));
        }
        self.counted = self.counted.max(time);
    }

    fn end(&mut self, end: u64, ended: Ended) {
        self.ended += 1;
        if ended.fate == Fate::Abandoned {
            self.abandoned += 1;
        } else {
            self.failures += u64::from(ended.fate == Fate::Failed);
            self.detector.call(end, ended.fate == Fate::Failed);
        }
        if self.detector.is_out() {
            return;
        }
        self.busy.0 = self.busy.0.saturating_add(Duration::from_nanos(ended.latency));
        self.busy.1 += 1;
        if ended.fate == Fate::Good {
            self.latency.add(ended.latency / 1_000, 1);
        }
    }

    /// None if it had no call.
    pub(super) fn finish(mut self, name: String) -> Option<Observed> {
        let first = self.first?;
        let seconds = self.second.number - first / SECOND + 1;
        self.close_second(self.second.number + 1);
        self.end_until(u64::MAX);
        let (tally, noise, outages) = self.detector.finish(self.counted);
        Some(Observed {
            name,
            span: Duration::from_secs(seconds),
            calls: self.ended - self.abandoned,
            failures: self.failures,
            abandoned: self.abandoned,
            peak: self.peak,
            calm: Calm {
                calls: tally.calls,
                failures: tally.failures,
                noise,
                latency: self.latency,
                busy: self.busy,
                seconds: self.seconds,
                in_flight: self.in_flight,
            },
            outages,
        })
    }
}
