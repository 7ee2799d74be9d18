//! The upstreams of a scenario.

use toml::de::DeTable;

use super::numbers::{choice, nanos, nanos_or_zero, needed, number, seconds, within};
use super::{Cold, Knee, Nanos, Outage, OutageKind, Upstream};
use crate::policies::reader::{Field, Report, fields, join};
use crate::simulate::draws::Times;

const KEYS: &[&str] = &["servers", "queue", "service", "errors", "cancels", "knee", "cold", "outage"];
const SERVICE: &str = "{ constant = \"50ms\" }, { exponential = \"50ms\" }, { lognormal = { median = \"40ms\", p99 = \"200ms\" } }, \
                       { pareto = { least = \"10ms\", most = \"2s\", shape = 1.5 } } or { empirical = [\"30ms\", \"40ms\", \"90ms\"] }";
/// Repeated outages are laid out one by one.
const MOST_OUTAGES: u64 = 10_000;

/// Reads one; what can't be read is reported, and something else stands for it.
pub(super) fn read(
    report: &mut Report<'_>,
    name: String,
    whole: &Field<'_>,
    table: &DeTable<'_>,
    until: Nanos,
) -> Upstream {
    let get = fields(report, table, &whole.name, KEYS);
    let service = needed(report, whole, &get, "service", SERVICE).and_then(|field| times(report, &field));
    let mut outages: Vec<Outage> = outages(report, get("outage"), until);
    outages.sort_by_key(|outage| outage.from);
    if let Some(pair) = outages.windows(2).find(|pair| pair[1].from < pair[0].to) {
        let [first, second] = [pair[0].from, pair[1].from].map(|nanos| nanos as f64 / 1e9);
        let message = format!("the outage from {first} s must end before the next, from {second} s, begins");
        report.add(&whole.span, join(&whole.name, "outage"), message);
    }
    Upstream {
        name,
        servers: get("servers").and_then(|field| field.whole(report, 1..=1_000_000)).unwrap_or(100),
        queue: get("queue").and_then(|field| field.whole(report, 0..=1_000_000)).unwrap_or(1_000),
        service: service.unwrap_or(Times::Constant(0.0)),
        errors: get("errors").and_then(|field| number(report, &field, 0.0..=1.0)).unwrap_or(0.0),
        cancels: get("cancels").and_then(|field| field.flag(report)).unwrap_or(false),
        knee: get("knee").and_then(|field| knee(report, &field)),
        cold: get("cold").and_then(|field| cold(report, &field)),
        outages,
    }
}

fn knee(report: &mut Report<'_>, whole: &Field<'_>) -> Option<Knee> {
    let get = within(report, whole, &["at", "slope"])?;
    let at = needed(report, whole, &get, "at", "a whole number of calls, such as 20")?;
    let slope = needed(report, whole, &get, "slope", "a number, such as 0.1")?;
    Some(Knee { at: at.whole(report, 1..=1_000_000)?, slope: number(report, &slope, 0.0..=1_000.0)? })
}

fn cold(report: &mut Report<'_>, whole: &Field<'_>) -> Option<Cold> {
    let get = within(report, whole, &["for", "factor"])?;
    let lasts = needed(report, whole, &get, "for", "a duration, such as \"10s\"")?;
    let factor = needed(report, whole, &get, "factor", "a number, such as 5")?;
    Some(Cold { lasts: nanos(report, &lasts)?, factor: number(report, &factor, 1.0..=1_000.0)? })
}

fn outages(report: &mut Report<'_>, field: Option<Field<'_>>, until: Nanos) -> Vec<Outage> {
    let Some(field) = field else { return Vec::new() };
    let Some(list) = field.value.as_array() else {
        field.refuse(report, "a list of outages, such as [{ from = \"10s\", for = \"20s\", kind = \"hang\" }]");
        return Vec::new();
    };
    let mut all = Vec::new();
    for (place, value) in list.iter().enumerate() {
        let one = Field::new(format!("{}[{place}]", field.name), value);
        all.extend(outage(report, &one, until).unwrap_or_default());
    }
    all
}

fn outage(report: &mut Report<'_>, whole: &Field<'_>, until: Nanos) -> Option<Vec<Outage>> {
    let known = ["from", "for", "every", "kind", "factor", "share"];
    let get = within(report, whole, &known)?;
    let from = needed(report, whole, &get, "from", "a duration from the start, such as \"10s\"")?;
    let lasts = needed(report, whole, &get, "for", "a duration, such as \"20s\"")?;
    let from = nanos_or_zero(report, &from)?;
    let lasts = nanos(report, &lasts)?;
    let kinds = "\"refuse\", \"hang\", \"slow\" with a factor, or \"errors\" with a share";
    let kind_field = needed(report, whole, &get, "kind", kinds)?;
    let kind = match kind_field.text(report, kinds)? {
        "refuse" => OutageKind::Refuse,
        "hang" => OutageKind::Hang,
        "slow" => {
            let factor = needed(report, whole, &get, "factor", "a number, such as 10")?;
            OutageKind::Slow(number(report, &factor, 0.001..=100_000.0)?)
        }
        "errors" => {
            let share = needed(report, whole, &get, "share", "a number from 0 to 1")?;
            OutageKind::Errors(number(report, &share, 0.0..=1.0)?)
        }
        _ => {
            kind_field.refuse(report, kinds);
            return None;
        }
    };
    let first = Outage { from, to: from + lasts, kind };
    let Some(every) = get("every") else { return Some(vec![first]) };
    let period = nanos(report, &every)?;
    if period < lasts || until.saturating_sub(from) / period > MOST_OUTAGES {
        let allowed = format!("a duration of at least the outage's, that comes at most {MOST_OUTAGES} times");
        every.refuse(report, &allowed);
        return None;
    }
    let starts = (0..).map(|turn| from + turn * period).take_while(|start| *start < until);
    Some(starts.map(|from| Outage { from, to: from + lasts, kind }).collect())
}

fn times(report: &mut Report<'_>, field: &Field<'_>) -> Option<Times> {
    let (kind, value) = choice(report, field, SERVICE)?;
    match kind {
        "constant" => seconds(report, &value).map(Times::Constant),
        "exponential" => seconds(report, &value).map(Times::Exponential),
        "lognormal" => {
            let get = within(report, &value, &["median", "p99"])?;
            let median = needed(report, &value, &get, "median", "a duration, such as \"40ms\"")?;
            let p99 = needed(report, &value, &get, "p99", "a duration, such as \"200ms\"")?;
            let (low, high) = (seconds(report, &median)?, seconds(report, &p99)?);
            if high < low {
                p99.refuse(report, "at least the median");
                return None;
            }
            Some(Times::Lognormal { median: low, p99: high })
        }
        "pareto" => {
            let get = within(report, &value, &["least", "most", "shape"])?;
            let least = needed(report, &value, &get, "least", "a duration, such as \"10ms\"")?;
            let most = needed(report, &value, &get, "most", "a duration, such as \"2s\"")?;
            let shape = needed(report, &value, &get, "shape", "a number, such as 1.5")?;
            let (low, high) = (seconds(report, &least)?, seconds(report, &most)?);
            if high <= low {
                most.refuse(report, "above least");
                return None;
            }
            Some(Times::Pareto { least: low, most: high, shape: number(report, &shape, 0.1..=20.0)? })
        }
        "empirical" => {
            let Some(list) = value.value.as_array().filter(|list| !list.is_empty()) else {
                value.refuse(report, "a list of durations, such as [\"30ms\", \"40ms\"]");
                return None;
            };
            let each =
                list.iter().enumerate().map(|(place, time)| Field::new(format!("{}[{place}]", value.name), time));
            each.map(|field| seconds(report, &field)).collect::<Option<_>>().map(Times::Empirical)
        }
        _ => {
            field.refuse(report, SERVICE);
            None
        }
    }
}
