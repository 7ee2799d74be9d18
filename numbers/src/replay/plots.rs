//! What is plotted of a target.

use portcullis::State;

use super::columns::{grouped, moment};
use super::report::{FactPoint, Log, Point, Report, Target, Under};
use crate::report::chart::{Chart, Series, Stretch, Undrawn};

const SIZE: (u32, u32) = (640, 260);
/// A limit is drawn up to so many times what was in flight: further away it would leave nothing to see of that.
const IN_SIGHT: f64 = 4.0;

/// The least part of a bucket that is plotted, as a divisor.
const EDGE: u64 = 4;

/// Time as x: in the unit in which the log's length is a number to read.
struct Across {
    from_ms: u64,
    buckets_from_ms: u64,
    to_ms: u64,
    bucket_ms: u64,
    unit_ms: f64,
    unit: &'static str,
}

impl Across {
    fn of(log: &Log) -> Self {
        let units = [(1_000, "seconds", 300), (60_000, "minutes", 180), (3_600_000, "hours", 72)];
        let fits = units.into_iter().find(|(unit_ms, _, most)| (log.to_ms - log.from_ms) / unit_ms <= *most);
        let (unit_ms, unit) = fits.map_or((86_400_000, "days"), |(unit_ms, unit, _)| (unit_ms, unit));
        Self {
            from_ms: log.from_ms,
            buckets_from_ms: log.first_bucket_ms,
            to_ms: log.to_ms,
            bucket_ms: log.bucket_ms,
            unit_ms: unit_ms as f64,
            unit,
        }
    }

    fn x(&self, at_ms: u64) -> f64 {
        (at_ms as f64 - self.from_ms as f64) / self.unit_ms
    }

    /// The points of all buckets, those in which nothing happened among them. `y` is of what was counted in a bucket, and of the milliseconds
    /// of it that the log covers; the first and the last are left out if those are too few to be compared.
    fn line<T>(&self, name: &str, points: &[T], at: fn(&T) -> u64, y: impl Fn(Option<&T>, u64) -> f64) -> Series {
        let mut points = points.iter().peekable();
        let mut line = Vec::new();
        let mut begin = self.buckets_from_ms;
        while begin <= self.to_ms {
            let point = points.next_if(|point| at(point) == begin);
            let (from, to) = (begin.max(self.from_ms), (begin + self.bucket_ms).min(self.to_ms));
            let covered = to.saturating_sub(from);
            if covered * EDGE >= self.bucket_ms.min(self.to_ms - self.from_ms) {
                line.push((self.x(from.midpoint(to)), y(point, covered.max(1))));
            }
            begin += self.bucket_ms.max(1);
        }
        Series { name: name.to_owned(), points: line, band: Vec::new() }
    }

    fn chart(&self, title: String, series: Vec<Series>, stretches: Vec<Stretch>) -> Chart {
        let across = format!("{} since {}", self.unit, moment(self.from_ms));
        let range = (0.0, self.x(self.to_ms));
        Chart { title, across, range, series, stretches, top: 0.0 }
    }
}

/// When the circuit wasn't closed, up to the end of what is told.
pub(super) fn spans(report: &Report, under: &Under) -> Vec<(State, u64, u64)> {
    let ends = under.transitions.iter().skip(1).map(|change| change.at_ms);
    let last = if under.transitions_untold > 0 { None } else { Some(report.log.to_ms) };
    let spans = under.transitions.iter().zip(ends.chain(last));
    let mut told = Vec::new();
    for (change, end) in spans.filter(|(change, _)| change.to != State::Closed) {
        // Once the wait is over it is ready to be probed.
        let ready = change.wait_ms.map_or(end, |wait| change.at_ms.saturating_add(wait).min(end));
        told.push((change.to, change.at_ms, ready));
        if ready < end {
            told.push((State::HalfOpen, ready, end));
        }
    }
    told
}

pub(super) fn latency(report: &Report, target: &Target) -> Result<String, Undrawn> {
    let across = Across::of(&report.log);
    let line = |name, y: fn(&FactPoint) -> f64| {
        across.line(name, &target.series, |point| point.at_ms, |point, _| point.map_or(f64::NAN, y))
    };
    let lines = vec![line("median", |point| point.p50_ms), line("99th percentile", |point| point.p99_ms)];
    across.chart("latency in the log, ms".to_owned(), lines, Vec::new()).svg(SIZE.0, SIZE.1)
}

pub(super) fn calls(report: &Report, target: &Target, policy: &str, under: &Under) -> Result<String, Undrawn> {
    let across = Across::of(&report.log);
    let per_second = |calls: Option<u32>, ms: u64| f64::from(calls.unwrap_or_default()) * 1_000.0 / ms as f64;
    let fact = |name, y: fn(&FactPoint) -> u32| {
        across.line(name, &target.series, |point| point.at_ms, |point, ms| per_second(point.map(y), ms))
    };
    let point = |name, y: fn(&Point) -> u32| {
        across.line(name, &under.series, |point| point.at_ms, |point, ms| per_second(point.map(y), ms))
    };
    let lines = vec![
        fact("calls", |point| point.calls),
        fact("failed in the log", |point| point.failures),
        point("refused", |point| point.turned_away + point.full),
        point("refused, had succeeded", |point| point.refused_good),
    ];
    let stretches = spans(report, under).into_iter().filter(|(state, _, _)| *state == State::Open);
    let stretches = stretches.map(|(_, from, to)| Stretch { from: across.x(from), to: across.x(to) }).collect();
    across.chart(format!("calls/s under {policy}, shaded while open"), lines, stretches).svg(SIZE.0, SIZE.1)
}

pub(super) fn in_flight(report: &Report, target: &Target, policy: &str, under: &Under) -> Result<String, Undrawn> {
    let across = Across::of(&report.log);
    let all = || target.under.iter().flatten();
    let peak = all().map(|under| under.peak_in_flight).max().unwrap_or_default();
    let limits = |under: &Under| under.series.iter().filter_map(|point| point.limit).max();
    let in_sight = |limit: &u32| f64::from(*limit) <= f64::from(peak) * IN_SIGHT;
    let mut lines = vec![across.line(
        "most in flight",
        &under.series,
        |point| point.at_ms,
        |point, _| point.map_or(0.0, |point| point.peak_in_flight.into()),
    )];
    let told = match limits(under) {
        None => ", without a limit".to_owned(),
        Some(limit) if !in_sight(&limit) => format!(", limit {} not in sight", grouped(limit.into())),
        Some(_) => {
            let limit = |point: Option<&Point>, _| point.and_then(|point| point.limit).map_or(f64::NAN, f64::from);
            lines.push(across.line("limit", &under.series, |point| point.at_ms, limit));
            String::new()
        }
    };
    let mut chart = across.chart(format!("calls in flight under {policy}{told}"), lines, Vec::new());
    // As high as those of the other policies.
    let highest = all().filter_map(limits).filter(in_sight).chain([peak]).max().unwrap_or_default();
    chart.top = highest.into();
    chart.svg(SIZE.0, SIZE.1)
}
