//! What a replay came to, in numbers: the same for the table, the JSON and the HTML.

use std::cmp::Reverse;

use portcullis::{Cause, Evidence, State};
use serde::Serialize;

use super::facts::{self, Facts};
use super::lane::{self, Lane, Moment};
use super::latencies::Latencies;
use super::play::Replay;

/// What no replay can know.
const LIMITS: [&str; 4] = [
    "A log tells how calls ended under the rules that were in force then. Refusing some of them would have changed the load, and with it the rest.",
    "Retries in the log are calls like any other: refusing the first would have spared or caused some.",
    "Every call is asked for as critical, and none waits for a place: shares and max_waiting have no effect.",
    "An attempt ends at the policy's timeout, if the file sets one; deadline, attempts and fallback aren't played.",
];

/// What a replay came to.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The log.
    pub log: Log,
    /// What no replay can know.
    pub limits: Vec<&'static str>,
    /// The policies, as they were given.
    pub policies: Vec<Totals>,
    /// The targets, worst first: by trips, refusals, failures and name.
    pub targets: Vec<Target>,
    /// How many of them are told of in detail, the first ones.
    pub in_detail: usize,
}

/// The log as a whole.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Log {
    /// Milliseconds since the Unix epoch at which the first call started.
    pub from_ms: u64,
    /// Milliseconds since the Unix epoch at which the last call ended.
    pub to_ms: u64,
    /// Lines that were read, if it was read from files: those that are no calls are told of there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<u64>,
    /// Calls.
    pub calls: u64,
    /// Width of the buckets in series.
    pub bucket_ms: u64,
    /// When the first of them begins, in milliseconds since the Unix epoch.
    pub first_bucket_ms: u64,
}

/// A policy over all targets.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Totals {
    /// Its name.
    pub name: String,
    /// Calls that it has no policy for: their targets aren't in the file, and its defaults can't do without what targets add.
    pub unasked: u64,
    /// What it would have done.
    #[serde(flatten)]
    pub sums: Sums,
}

/// What a policy would have done.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Sums {
    /// Calls admitted.
    pub admitted: u64,
    /// Calls refused.
    pub refused: u64,
    /// Because the circuit was open.
    pub refused_open: u64,
    /// Because all probes were taken.
    pub refused_probing: u64,
    /// Because the target had as many calls in flight as it may.
    pub refused_saturated: u64,
    /// Refused calls that had in fact succeeded: the harm.
    pub refused_good: u64,
    /// Refused calls that had in fact failed: the benefit.
    pub failures_avoided: u64,
    /// Calls that the policy's timeout ended.
    pub cut: u64,
    /// Those of them that had in fact succeeded.
    pub cut_good: u64,
    /// Milliseconds that callers would have waited less: for failed calls that were refused, and after the timeout of those that were cut.
    pub spared_ms: u64,
    /// Times that it opened from CLOSED.
    pub trips: u64,
    /// Times that it opened again from HALF_OPEN.
    pub reopened: u64,
    /// Probes.
    pub probes: u64,
}

/// A target.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Target {
    /// Its name.
    pub name: String,
    /// Calls.
    pub calls: u64,
    /// Failures among them.
    pub failures: u64,
    /// Calls whose client went away.
    pub abandoned: u64,
    /// Median, right within 3.2 %.
    pub p50_ms: f64,
    /// 99th percentile, right within 3.2 %.
    pub p99_ms: f64,
    /// The slowest.
    pub slowest_ms: f64,
    /// What the log says over time; only in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<FactPoint>,
    /// What each policy would have done; none where it has no policy for the target.
    pub under: Vec<Option<Under>>,
}

/// What the log says of a bucket of time.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FactPoint {
    /// When it begins, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Calls that started in it.
    pub calls: u32,
    /// Failures among them.
    pub failures: u32,
    /// Median.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
}

/// A target under a policy.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Under {
    /// Whether the file has a table for it; else the defaults hold.
    pub has_table: bool,
    /// What it would have done.
    #[serde(flatten)]
    pub sums: Sums,
    /// Outcomes of calls that were admitted in an earlier state.
    pub stale: u64,
    /// Most calls in flight at once.
    pub peak_in_flight: u32,
    /// Time open, until it may be probed.
    pub open_ms: u64,
    /// Time half-open, or ready to be.
    pub half_open_ms: u64,
    /// From the first failure of an outage to the first trip: the first failure that ended after the last ten successes in a row.
    pub first_trip_after_ms: Option<u64>,
    /// The state changes; only in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transitions: Vec<Change>,
    /// State changes past the first thousand.
    pub transitions_untold: u64,
    /// What it would have done over time; only in detail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Point>,
}

/// A state change.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// Milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// What brought it about.
    pub cause: Cause,
    /// Why it opened from CLOSED.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Box<Evidence>>,
    /// The wait until it may be probed, where it opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// What a policy would have done in a bucket of time.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Point {
    /// When it begins, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Calls admitted.
    pub admitted: u32,
    /// Calls refused because the circuit wasn't closed.
    pub turned_away: u32,
    /// Calls refused because there was no room.
    pub full: u32,
    /// Refused calls that had in fact succeeded.
    pub refused_good: u32,
    /// Refused calls that had in fact failed.
    pub failures_avoided: u32,
    /// Most calls in flight at once, as of calls that started in it.
    pub peak_in_flight: u32,
    /// The limit in force at its beginning; none if calls are only counted.
    pub limit: Option<u32>,
}

impl Replay {
    /// Settles all that is in flight, and tells what the replay came to: `in_detail` targets with what happened over time, all others in sums.
    #[must_use]
    pub fn finish(mut self, in_detail: usize) -> Report {
        self.settle_all();
        let mut order: Vec<usize> = (0..self.facts.len()).collect();
        let lanes = |target: usize| self.candidates.iter().filter_map(move |one| one.lanes.get(target)?.as_ref());
        order.sort_by_cached_key(|target| {
            let worst = |of: fn(&Lane) -> u64| lanes(*target).map(of).max().unwrap_or_default();
            let (trips, refused) = (worst(|lane| lane.counts.trips), worst(|lane| lane.counts.refused()));
            let facts = &self.facts[*target];
            (Reverse(trips), Reverse(refused), Reverse(facts.failures), facts.name.clone())
        });
        let in_detail = in_detail.min(order.len());
        let targets: Vec<Target> =
            order.iter().enumerate().map(|(place, target)| self.target(*target, place < in_detail)).collect();
        let policies = self.candidates.iter().enumerate().map(|(n, candidate)| {
            let under = targets.iter().map(|target| (target, target.under.get(n).and_then(Option::as_ref)));
            let mut totals = Totals { name: candidate.name.clone(), unasked: 0, sums: Sums::default() };
            for (target, under) in under {
                match under {
                    Some(under) => totals.sums.add(&under.sums),
                    None => totals.unasked += target.calls,
                }
            }
            totals
        });
        let log = Log {
            from_ms: self.wall_ms(self.first),
            to_ms: self.wall_ms(self.end),
            lines: None,
            calls: self.facts.iter().map(|facts| facts.calls).sum(),
            bucket_ms: millis(self.scale.width()),
            first_bucket_ms: self.begin_ms(self.scale.bucket(self.first)),
        };
        Report { log, limits: LIMITS.to_vec(), policies: policies.collect(), targets, in_detail }
    }

    fn target(&self, number: usize, in_detail: bool) -> Target {
        let Facts { name, calls, failures, abandoned, latencies, slowest, series } = &self.facts[number];
        let points = series.points().iter().filter(|_| in_detail);
        let under = self.candidates.iter().map(|candidate| {
            let lane = candidate.lanes.get(number)?.as_ref()?;
            let stale = candidate.snapshot(number).map_or(0, |now| now.totals.stale);
            Some(self.under(lane, candidate.policies.has(name), stale, in_detail))
        });
        Target {
            name: name.clone(),
            calls: *calls,
            failures: *failures,
            abandoned: *abandoned,
            p50_ms: quantile(latencies, 500),
            p99_ms: quantile(latencies, 990),
            slowest_ms: thin(*slowest),
            series: points.map(|(bucket, point)| self.fact(*bucket, point)).collect(),
            under: under.collect(),
        }
    }

    fn fact(&self, bucket: u32, point: &facts::Point) -> FactPoint {
        FactPoint {
            at_ms: self.begin_ms(bucket),
            calls: point.calls,
            failures: point.failures,
            p50_ms: quantile(&point.latencies, 500),
            p99_ms: quantile(&point.latencies, 990),
        }
    }

    fn under(&self, lane: &Lane, has_table: bool, stale: u64, in_detail: bool) -> Under {
        let counts = &lane.counts;
        let told = |moment: &Moment| Change {
            at_ms: self.wall_ms(moment.at),
            from: moment.from,
            to: moment.to,
            cause: moment.cause,
            evidence: moment.evidence.clone(),
            wait_ms: moment.wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        };
        let point = |(bucket, point): &(u32, lane::Point)| Point {
            at_ms: self.begin_ms(*bucket),
            admitted: point.admitted,
            turned_away: point.turned_away,
            full: point.full,
            refused_good: point.good,
            failures_avoided: point.failed,
            peak_in_flight: point.peak,
            limit: point.limit,
        };
        Under {
            has_table,
            sums: Sums::of(lane),
            stale,
            peak_in_flight: counts.peak,
            open_ms: millis(counts.open_for),
            half_open_ms: millis(counts.half_open_for),
            first_trip_after_ms: counts.first_trip_after.map(millis),
            transitions: lane.moments.iter().filter(|_| in_detail).map(told).collect(),
            transitions_untold: lane.untold,
            series: lane.series.points().iter().filter(|_| in_detail).map(point).collect(),
        }
    }

    fn wall_ms(&self, at: u64) -> u64 {
        millis(self.origin.saturating_add(at))
    }

    fn begin_ms(&self, bucket: u32) -> u64 {
        self.wall_ms(self.scale.width().saturating_mul(bucket.into()))
    }
}

impl Sums {
    fn of(lane: &Lane) -> Self {
        let counts = &lane.counts;
        Self {
            admitted: counts.admitted,
            refused: counts.refused(),
            refused_open: counts.open,
            refused_probing: counts.probing,
            refused_saturated: counts.saturated,
            refused_good: counts.refused_good,
            failures_avoided: counts.refused_failed,
            cut: counts.cut,
            cut_good: counts.cut_good,
            spared_ms: u64::try_from(counts.spared / 1_000_000).unwrap_or(u64::MAX),
            trips: counts.trips,
            reopened: counts.reopened,
            probes: counts.probes,
        }
    }

    fn add(&mut self, other: &Self) {
        // Taken apart, so that no field is forgotten.
        let Self { admitted, refused, refused_open, refused_probing, refused_saturated, refused_good, .. } = other;
        let Self { failures_avoided, cut, cut_good, spared_ms, trips, reopened, probes, .. } = other;
        self.admitted += admitted;
        self.refused += refused;
        self.refused_open += refused_open;
        self.refused_probing += refused_probing;
        self.refused_saturated += refused_saturated;
        self.refused_good += refused_good;
        self.failures_avoided += failures_avoided;
        self.cut += cut;
        self.cut_good += cut_good;
        self.spared_ms = self.spared_ms.saturating_add(*spared_ms);
        self.trips += trips;
        self.reopened += reopened;
        self.probes += probes;
    }
}

fn millis(nanos: u64) -> u64 {
    nanos / 1_000_000
}

/// Milliseconds to a thousandth.
fn thin(nanos: u64) -> f64 {
    (nanos / 1_000) as f64 / 1_000.0
}

fn quantile(latencies: &Latencies, milli: u64) -> f64 {
    thin(latencies.quantile(milli).unwrap_or_default())
}
