//! The callers of a scenario.

use toml::de::DeTable;

use super::numbers::{choice, nanos, nanos_or_zero, needed, number, seconds, within};
use super::{Arrivals, Callers, Upstream};
use crate::policies::reader::{Field, Report, fields, join};

const KEYS: &[&str] = &["upstream", "arrivals", "patience", "attempts", "backoff", "backoff_max"];
const ARRIVALS: &str = "{ poisson = 50 }, { constant = 50 }, both in requests per second, or \
                        { bursts = { high = 200, low = 10, on = \"1s\", off = \"5s\" } }";
const RATE: std::ops::RangeInclusive<f64> = 0.0..=1e6;
const SECOND: u64 = 1_000_000_000;

/// Reads one; none, and something reported, if it can't be used.
pub(super) fn read(
    report: &mut Report<'_>,
    name: String,
    whole: &Field<'_>,
    table: &DeTable<'_>,
    upstreams: &[Upstream],
) -> Option<Callers> {
    let get = fields(report, table, &whole.name, KEYS);
    let names: Vec<&str> = upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    let allowed = format!("one of the upstreams: {}", names.join(", "));
    let upstream = needed(report, whole, &get, "upstream", &allowed);
    let arrivals = needed(report, whole, &get, "arrivals", ARRIVALS).and_then(|field| arrivals(report, &field));
    let patience = get("patience").map_or(Some(10 * SECOND), |field| nanos(report, &field));
    let attempts = get("attempts").map_or(Some(1), |field| field.whole(report, 1..=100));
    let backoff = get("backoff").map_or(Some(SECOND / 10), |field| nanos_or_zero(report, &field))?;
    let backoff_max = get("backoff_max").map_or(Some(backoff.max(SECOND)), |field| nanos_or_zero(report, &field))?;
    if backoff_max < backoff {
        report.add(&whole.span, join(&whole.name, "backoff_max"), "must be at least backoff");
    }
    let upstream = upstream?;
    let place = names.iter().position(|name| upstream.value.as_str() == Some(name));
    if place.is_none() {
        upstream.refuse(report, &allowed);
    }
    Some(Callers {
        name,
        upstream: place?,
        arrivals: arrivals?,
        patience: patience?,
        attempts: attempts?,
        backoff,
        backoff_max,
    })
}

fn arrivals(report: &mut Report<'_>, field: &Field<'_>) -> Option<Arrivals> {
    let (kind, value) = choice(report, field, ARRIVALS)?;
    match kind {
        "constant" => number(report, &value, RATE).map(Arrivals::Constant),
        "poisson" => number(report, &value, RATE).map(Arrivals::Poisson),
        "bursts" => {
            let get = within(report, &value, &["high", "low", "on", "off"])?;
            let mut rate = |key| {
                needed(report, &value, &get, key, "requests per second").and_then(|field| number(report, &field, RATE))
            };
            let (high, low) = (rate("high")?, rate("low")?);
            let mut mean = |key| {
                needed(report, &value, &get, key, "a mean duration, such as \"5s\"")
                    .and_then(|field| seconds(report, &field))
            };
            Some(Arrivals::Bursts { high, low, on: mean("on")?, off: mean("off")? })
        }
        _ => {
            field.refuse(report, ARRIVALS);
            None
        }
    }
}
