//! A comparison as a table, as JSON, and as plots.

use serde_json::{Map, Value, json};

use super::compare::{Compared, Comparison, Spread};
use super::record::{Series, Totals};
use super::scenario::{Model, Scenario};
use crate::report::chart::{Chart, Series as Line, Stretch, Undrawn};
use crate::report::table::Table;
use crate::report::{escape, page};

/// A number that is told of each upstream under each variant.
struct Figure {
    key: &'static str,
    heading: &'static str,
    of: fn(&Totals) -> f64,
    digits: usize,
    /// Whether a table of several seeds has room for its spread.
    spread: bool,
}

const FIGURES: &[Figure] = &[
    Figure { key: "requests", heading: "requests", of: |totals| totals.requests as f64, digits: 0, spread: false },
    Figure {
        key: "good_percent",
        heading: "good %",
        of: |totals| percent(totals.good, totals.requests),
        digits: 1,
        spread: true,
    },
    Figure {
        key: "good_percent_in_outages",
        heading: "in outages %",
        of: |totals| percent(totals.good_in_outage, totals.requests_in_outage),
        digits: 1,
        spread: true,
    },
    Figure {
        key: "refused_tries",
        heading: "refused",
        of: |totals| totals.refused.values().sum::<u64>() as f64,
        digits: 0,
        spread: false,
    },
    Figure { key: "failed_tries", heading: "failed", of: |totals| totals.failed as f64, digits: 0, spread: false },
    Figure { key: "given_up_tries", heading: "given up", of: |totals| totals.gave_up as f64, digits: 0, spread: false },
    Figure { key: "attempts", heading: "attempts", of: |totals| totals.attempts as f64, digits: 0, spread: false },
    Figure {
        key: "attempts_per_request",
        heading: "per request",
        of: |totals| totals.attempts as f64 / totals.requests as f64,
        digits: 2,
        spread: false,
    },
    Figure { key: "p50_ms", heading: "p50 ms", of: |totals| totals.p50_ms, digits: 1, spread: false },
    Figure { key: "p99_ms", heading: "p99 ms", of: |totals| totals.p99_ms, digits: 1, spread: false },
    Figure {
        key: "most_in_flight",
        heading: "in flight",
        of: |totals| totals.most_in_flight as f64,
        digits: 0,
        spread: false,
    },
    Figure { key: "trips", heading: "trips", of: |totals| totals.trips as f64, digits: 0, spread: false },
    Figure { key: "open_seconds", heading: "open s", of: |totals| totals.open as f64 / 1e9, digits: 1, spread: false },
];

/// A plot of each upstream, with a line for each variant.
struct Plot {
    key: &'static str,
    title: &'static str,
    of: fn(&Series) -> &Vec<f64>,
}

const PLOTS: &[Plot] = &[
    Plot { key: "good_per_second", title: "requests answered per second", of: |series| &series.good_per_second },
    Plot { key: "p50_ms", title: "latency of answered requests, p50 in ms", of: |series| &series.p50_ms },
    Plot { key: "p99_ms", title: "latency of answered requests, p99 in ms", of: |series| &series.p99_ms },
    Plot { key: "refused_per_second", title: "tries refused per second", of: |series| &series.refused_per_second },
    Plot {
        key: "attempts_per_second",
        title: "attempts that reach it per second",
        of: |series| &series.attempts_per_second,
    },
];

const NOTE: &str = "Good: answered within the callers' patience, after whatever retries. Refused, failed, given up: tries of the callers. \
                    Attempts: calls that the gateway sent to the upstream; in flight: the most of them at once.";

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// A number for people; "-" where there is none.
fn text(number: f64, digits: usize) -> String {
    if number.is_finite() { format!("{number:.digits$}") } else { "-".to_owned() }
}

fn cell(variant: &Compared, place: usize, figure: &Figure) -> String {
    let Spread { median, low, high } = variant.figure(place, figure.of);
    let [median, low, high] = [median, low, high].map(|number| text(number, figure.digits));
    if low == high || !figure.spread { median } else { format!("{median} ({low} to {high})") }
}

/// Every figure; from several seeds the median, of shares with the least and the most in brackets.
pub(super) fn table(model: &Model, comparison: &Comparison) -> Table {
    let head = ["variant", "upstream"].into_iter().chain(FIGURES.iter().map(|figure| figure.heading));
    let row = |variant: &Compared, place: usize| {
        let figures = FIGURES.iter().map(|figure| cell(variant, place, figure));
        [variant.name.clone(), model.upstreams[place].name.clone()].into_iter().chain(figures).collect()
    };
    let upstreams = 0..model.upstreams.len();
    let rows = comparison.variants.iter().flat_map(|variant| upstreams.clone().map(move |place| row(variant, place)));
    Table { head: head.map(str::to_owned).collect(), rows: rows.collect(), text: 2 }
}

/// A number in JSON, with as many digits as mean something; null where there is none.
fn number(value: f64) -> Value {
    let rounded = (value * 1e4).round() / 1e4;
    if rounded.is_finite() { json!(rounded) } else { Value::Null }
}

fn spread(spread: Spread) -> Value {
    json!({ "median": number(spread.median), "low": number(spread.low), "high": number(spread.high) })
}

/// Everything, for machines.
pub(super) fn json(scenario: &Scenario, model: &Model, comparison: &Comparison) -> Value {
    let upstream = |variant: &Compared, place: usize| {
        let figures: Map<String, Value> =
            FIGURES.iter().map(|figure| (figure.key.to_owned(), spread(variant.figure(place, figure.of)))).collect();
        let series: Map<String, Value> = PLOTS
            .iter()
            .map(|plot| {
                let values = variant.series(place, plot.of).into_iter().map(|value| number(value.median)).collect();
                (plot.key.to_owned(), Value::Array(values))
            })
            .collect();
        let refused: Vec<Value> = variant.runs.iter().map(|run| json!(run.upstreams[place].totals.refused)).collect();
        json!({ "name": model.upstreams[place].name, "figures": figures, "refused_by_reason": refused, "series": series })
    };
    let variants: Vec<Value> = comparison
        .variants
        .iter()
        .map(|variant| {
            let upstreams: Vec<Value> = (0..model.upstreams.len()).map(|place| upstream(variant, place)).collect();
            json!({ "name": variant.name, "upstreams": upstreams })
        })
        .collect();
    json!({
        "title": scenario.title,
        "shows": scenario.shows,
        "duration_s": number(model.duration as f64 / 1e9),
        "bucket_s": number(model.bucket as f64 / 1e9),
        "seeds": comparison.seeds,
        "variants": variants,
    })
}

/// The plots of an upstream.
fn charts(model: &Model, comparison: &Comparison, place: usize) -> Vec<Chart> {
    let step = model.bucket as f64 / 1e9;
    let duration = model.duration as f64 / 1e9;
    let has_band = comparison.seeds.len() > 1;
    let line = |variant: &Compared, plot: &Plot| {
        let values = variant.series(place, plot.of);
        let at = |place: usize| ((place as f64 + 0.5) * step).min(duration);
        Line {
            name: variant.name.clone(),
            points: values.iter().enumerate().map(|(place, value)| (at(place), value.median)).collect(),
            band: values
                .iter()
                .enumerate()
                .filter(|_| has_band)
                .map(|(place, value)| (at(place), value.low, value.high))
                .collect(),
        }
    };
    let stretches = model.upstreams[place].outages.iter();
    let stretches: Vec<Stretch> =
        stretches.map(|outage| Stretch { from: outage.from as f64 / 1e9, to: outage.to as f64 / 1e9 }).collect();
    PLOTS
        .iter()
        .map(|plot| Chart {
            title: format!("{}: {}", model.upstreams[place].name, plot.title),
            across: "seconds".to_owned(),
            range: (0.0, duration),
            series: comparison.variants.iter().map(|variant| line(variant, plot)).collect(),
            stretches: stretches.clone(),
            top: 0.0,
        })
        .collect()
}

const WIDTH: u32 = 600;
const HEIGHT: u32 = 270;

/// One page with everything.
pub(super) fn html(scenario: &Scenario, model: &Model, comparison: &Comparison) -> Result<String, Undrawn> {
    let mut body = format!("<p>{}</p>\n", escape(&scenario.shows));
    let seeds = match comparison.seeds.as_slice() {
        [only] => format!("Seed {only}"),
        seeds => format!("{} seeds from {}: medians, and from the least to the most", seeds.len(), model.seed),
    };
    body += &format!("<p class=\"note\">{seeds}. The same seed gives the same page. Outages are shaded. {NOTE}</p>\n");
    body += &table(model, comparison).html("Variants side by side");
    for (place, upstream) in model.upstreams.iter().enumerate() {
        body += &format!("<h2>{}</h2>\n<div class=\"side\">\n", escape(&upstream.name));
        for chart in charts(model, comparison, place) {
            body += &format!("<figure>{}</figure>\n", chart.svg(WIDTH, HEIGHT)?);
        }
        body += "</div>\n";
    }
    Ok(page(&scenario.title, &body))
}

/// All plots in one picture, each upstream a row.
pub(super) fn svg(model: &Model, comparison: &Comparison) -> Result<String, Undrawn> {
    let (across, down) = (PLOTS.len() as u32 * WIDTH, model.upstreams.len() as u32 * HEIGHT);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{across}\" height=\"{down}\" viewBox=\"0 0 {across} {down}\">\n\
         <style>svg {{ color: #1d2430 }} @media (prefers-color-scheme: dark) {{ svg {{ color: #e4e8ee }} }}</style>\n"
    );
    for place in 0..model.upstreams.len() {
        for (column, chart) in charts(model, comparison, place).iter().enumerate() {
            let (x, y) = (column as u32 * WIDTH, place as u32 * HEIGHT);
            svg += &chart.svg(WIDTH, HEIGHT)?.replacen("<svg ", &format!("<svg x=\"{x}\" y=\"{y}\" "), 1);
        }
    }
    Ok(svg + "</svg>\n")
}
