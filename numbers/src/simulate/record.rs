//! What a run came to, per upstream: totals, and steps over time.

use std::collections::BTreeMap;

use super::scenario::{Model, Nanos};

/// How a caller's try ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With an answer, in time.
    Good,
    /// With an error, or none in the gateway's time.
    Failed,
    /// Refused without an attempt, or a further one: why.
    Refused(&'static str),
    /// The caller went away.
    GaveUp,
}

/// A state change of an upstream's circuit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    pub(super) upstream: usize,
    pub(super) at: Nanos,
    /// Whether it is open, or probed, from now on.
    pub(super) is_open: bool,
    /// Whether it was closed until now.
    pub(super) trips: bool,
}

/// A run under way.
#[derive(Debug)]
pub(super) struct Record {
    duration: Nanos,
    bucket: Nanos,
    /// Stretches in which anything is in an outage, in order, without overlap.
    outages: Vec<(Nanos, Nanos)>,
    rows: Vec<Row>,
}

#[derive(Debug, Default)]
struct Row {
    totals: Totals,
    buckets: Vec<Bucket>,
    in_flight: u64,
    latencies: Vec<Nanos>,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    good: u64,
    refused: u64,
    attempts: u64,
    latencies: Vec<Nanos>,
}

/// One run of one variant.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) upstreams: Vec<Result>,
}

/// What a run came to for one upstream.
#[derive(Clone, Debug)]
pub(super) struct Result {
    pub(super) totals: Totals,
    pub(super) series: Series,
}

/// Counts over a whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) requests: u64,
    /// With an answer in the end.
    pub(super) good: u64,
    /// Of requests that came while anything was in an outage.
    pub(super) requests_in_outage: u64,
    pub(super) good_in_outage: u64,
    /// Tries that were refused, by reason.
    pub(super) refused: BTreeMap<&'static str, u64>,
    /// Tries that failed.
    pub(super) failed: u64,
    /// Tries that their callers gave up.
    pub(super) gave_up: u64,
    /// Attempts that reached the upstream.
    pub(super) attempts: u64,
    pub(super) most_in_flight: u64,
    pub(super) trips: u64,
    pub(super) open: Nanos,
    /// Of good requests, in milliseconds; NaN if there was none.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// A value for each step of the plots.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    pub(super) good_per_second: Vec<f64>,
    pub(super) refused_per_second: Vec<f64>,
    pub(super) attempts_per_second: Vec<f64>,
    /// NaN where nothing was answered.
    pub(super) p50_ms: Vec<f64>,
    pub(super) p99_ms: Vec<f64>,
}

impl Record {
    pub(super) fn new(model: &Model) -> Self {
        let steps = model.steps() as usize;
        let row = || Row { buckets: vec![Bucket::default(); steps], ..Row::default() };
        let rows = model.upstreams.iter().map(|_| row()).collect();
        Self { duration: model.duration, bucket: model.bucket, outages: model.outages(), rows }
    }

    /// The step of a moment; none for what comes after the callers.
    fn bucket(&mut self, upstream: usize, at: Nanos) -> Option<&mut Bucket> {
        let step = (at / self.bucket) as usize;
        self.rows[upstream].buckets.get_mut(step)
    }

    fn is_in_outage(&self, at: Nanos) -> bool {
        let begun = self.outages.partition_point(|(from, _)| *from <= at);
        begun.checked_sub(1).is_some_and(|last| at < self.outages[last].1)
    }

    pub(super) fn arrived(&mut self, upstream: usize, now: Nanos) {
        let is_in_outage = self.is_in_outage(now);
        let totals = &mut self.rows[upstream].totals;
        totals.requests += 1;
        totals.requests_in_outage += u64::from(is_in_outage);
    }

    pub(super) fn called(&mut self, upstream: usize, now: Nanos) {
        let row = &mut self.rows[upstream];
        row.in_flight += 1;
        row.totals.attempts += 1;
        row.totals.most_in_flight = row.totals.most_in_flight.max(row.in_flight);
        if let Some(bucket) = self.bucket(upstream, now) {
            bucket.attempts += 1;
        }
    }

    pub(super) fn left(&mut self, upstream: usize) {
        self.rows[upstream].in_flight -= 1;
    }

    /// Whether no attempt is under way.
    pub(super) fn is_at_rest(&self) -> bool {
        self.rows.iter().all(|row| row.in_flight == 0)
    }

    pub(super) fn tried(&mut self, upstream: usize, now: Nanos, end: End) {
        let totals = &mut self.rows[upstream].totals;
        match end {
            End::Good => {}
            End::Failed => totals.failed += 1,
            End::GaveUp => totals.gave_up += 1,
            End::Refused(reason) => {
                *totals.refused.entry(reason).or_default() += 1;
                if let Some(bucket) = self.bucket(upstream, now) {
                    bucket.refused += 1;
                }
            }
        }
    }

    pub(super) fn ended(&mut self, upstream: usize, arrived: Nanos, now: Nanos, is_good: bool) {
        if !is_good {
            return;
        }
        let is_in_outage = self.is_in_outage(arrived);
        let row = &mut self.rows[upstream];
        row.totals.good += 1;
        row.totals.good_in_outage += u64::from(is_in_outage);
        row.latencies.push(now - arrived);
        if let Some(bucket) = self.bucket(upstream, now) {
            bucket.good += 1;
            bucket.latencies.push(now - arrived);
        }
    }

    pub(super) fn finish(self, changes: &[Change], end: Nanos) -> Run {
        let (duration, step) = (self.duration, self.bucket);
        let result = |(place, mut row): (usize, Row)| {
            let mut totals = row.totals;
            let own = changes.iter().filter(|change| change.upstream == place);
            totals.trips = own.clone().filter(|change| change.trips).count() as u64;
            let mut since = None;
            for change in own {
                match (since, change.is_open) {
                    (None, true) => since = Some(change.at),
                    (Some(from), false) => {
                        totals.open += change.at - from;
                        since = None;
                    }
                    _ => {}
                }
            }
            totals.open += since.map_or(0, |from| end.max(duration).saturating_sub(from));
            row.latencies.sort_unstable();
            (totals.p50_ms, totals.p99_ms) = (quantile(&row.latencies, 0.5), quantile(&row.latencies, 0.99));
            Result { totals, series: Series::new(row.buckets, duration, step) }
        };
        Run { upstreams: self.rows.into_iter().enumerate().map(result).collect() }
    }
}

impl Series {
    fn new(buckets: Vec<Bucket>, duration: Nanos, step: Nanos) -> Self {
        let mut series = Self::default();
        for (place, mut bucket) in (0..).zip(buckets) {
            // The last may be shorter.
            let seconds = (duration - place * step).min(step) as f64 / 1e9;
            series.good_per_second.push(bucket.good as f64 / seconds);
            series.refused_per_second.push(bucket.refused as f64 / seconds);
            series.attempts_per_second.push(bucket.attempts as f64 / seconds);
            bucket.latencies.sort_unstable();
            series.p50_ms.push(quantile(&bucket.latencies, 0.5));
            series.p99_ms.push(quantile(&bucket.latencies, 0.99));
        }
        series
    }
}

/// The value of sorted ones that a share of them doesn't exceed, in milliseconds; NaN of none.
fn quantile(sorted: &[Nanos], share: f64) -> f64 {
    let place = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).map_or(f64::NAN, |nanos| *nanos as f64 / 1e6)
}
