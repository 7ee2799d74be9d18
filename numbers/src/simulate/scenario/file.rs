//! The file as a whole.

use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::numbers::{LONGEST, in_nanos, tables, within};
use super::{Fleet, Model, Scenario, Upstream, Variant, World, callers, fleet, upstream};
use crate::policies::reader::{Field, Report, fields, join};
use crate::policies::{check_fields, one};

const TOP: &[&str] =
    &["title", "shows", "duration", "bucket", "seed", "gateway", "upstream", "caller", "fleet", "variant"];
/// More tries of callers would take minutes, and hundreds of megabytes for each run.
const MOST_TRIES: f64 = 5e6;
/// Each has its plots.
const MOST_UPSTREAMS: usize = 100;
/// More steps than a plot has pixels.
const MOST_BUCKETS: u64 = 2_000;

/// Reads a scenario; none only if something was reported.
pub(super) fn read(root: &DeTable<'_>, report: &mut Report<'_>) -> Option<Scenario> {
    let get = fields(report, root, "", TOP);
    let mut text = |key: &str| match get(key) {
        Some(field) => field.text(report, "a text").map(str::to_owned),
        None => {
            report.missing(key, "a text");
            None
        }
    };
    let (title, shows) = (text("title"), text("shows"));
    let (world, names) = match get("fleet") {
        Some(field) => {
            let of_a_model = ["duration", "bucket", "seed", "gateway", "upstream", "caller"];
            for field in of_a_model.into_iter().filter_map(&get) {
                report.add(
                    &field.span,
                    field.name,
                    "must be left out beside a fleet, which is arithmetic and runs nothing",
                );
            }
            let fleet = fleet::read(report, &field);
            (fleet.map(World::Fleet), vec![Fleet::TARGET.to_owned()])
        }
        None => {
            let model = model(report, &get);
            let names = model.upstreams.iter().map(|upstream| upstream.name.clone()).collect();
            (Some(World::Model(model)), names)
        }
    };
    let variants = variants(report, get("variant").as_ref(), &names);
    Some(Scenario { title: title?, shows: shows?, variants, world: world? })
}

fn model<'d>(report: &mut Report<'_>, get: &impl Fn(&str) -> Option<Field<'d>>) -> Model {
    let range = Duration::from_millis(100)..=LONGEST;
    if get("duration").is_none() {
        report.missing("duration", "how long callers come, such as \"60s\",");
    }
    let duration = get("duration").and_then(|field| field.duration(report, range)).map_or(1, in_nanos);
    let least = in_nanos(Duration::from_millis(1)).max(duration / MOST_BUCKETS);
    let bucket = get("bucket").and_then(|field| field.duration(report, Duration::from_nanos(least)..=LONGEST));
    let seed = get("seed").and_then(|field| field.whole(report, 0..=u32::MAX)).unwrap_or(1);
    let (max_concurrent, backlog) = gateway(report, get("gateway"));
    let upstreams: Vec<Upstream> = tables(report, get("upstream"))
        .into_iter()
        .map(|(name, field, table)| upstream::read(report, name, &field, table, duration))
        .collect();
    if upstreams.is_empty() {
        report.missing("upstream", "at least one, such as [upstream.core],");
    }
    if let Some(field) = get("upstream").filter(|_| upstreams.len() > MOST_UPSTREAMS) {
        report.add(
            &field.span,
            field.name,
            format!("{} are too many: must be at most {MOST_UPSTREAMS}", upstreams.len()),
        );
    }
    let callers: Vec<_> = tables(report, get("caller"))
        .into_iter()
        .filter_map(|(name, field, table)| callers::read(report, name, &field, table, &upstreams))
        .collect();
    if get("caller").is_none() {
        report.missing("caller", "at least one, such as [caller.web],");
    }
    let tries: f64 = callers.iter().map(|callers| callers.tries(duration)).sum();
    if let Some(field) = get("caller").filter(|_| tries > MOST_TRIES) {
        let message = format!(
            "up to {tries:.0} tries in all: must be at most {MOST_TRIES:.0}; shorten the duration, or use a fleet"
        );
        report.add(&field.span, field.name, message);
    }
    let bucket = bucket.map_or((duration / 60).max(least), in_nanos);
    Model { duration, bucket, seed: seed.into(), max_concurrent, backlog, upstreams, callers }
}

fn gateway(report: &mut Report<'_>, field: Option<Field<'_>>) -> (Option<u32>, u32) {
    let Some(field) = field else { return (None, 0) };
    let Some(table) = field.table(report) else { return (None, 0) };
    let get = fields(report, table, &field.name, &["max_concurrent", "backlog"]);
    let max_concurrent = get("max_concurrent").and_then(|field| field.whole(report, 1..=1_000_000));
    (max_concurrent, get("backlog").and_then(|field| field.whole(report, 0..=1_000_000)).unwrap_or(0))
}

fn variants(report: &mut Report<'_>, field: Option<&Field<'_>>, names: &[String]) -> Vec<Variant> {
    let Some(list) = field.and_then(|field| field.value.as_array()).filter(|list| !list.is_empty()) else {
        report.missing("variant", "at least one, as [[variant]] with a name,");
        return Vec::new();
    };
    let mut read: Vec<Variant> = Vec::new();
    for (place, value) in list.iter().enumerate() {
        let whole = Field::new(format!("variant[{place}]"), value);
        let Some(variant) = variant(report, &whole, names) else { continue };
        if read.iter().any(|other| other.name == variant.name) {
            report.add(&whole.span, join(&whole.name, "name"), format!("{:?} is taken: must be another", variant.name));
        }
        read.push(variant);
    }
    read
}

fn variant(report: &mut Report<'_>, whole: &Field<'_>, names: &[String]) -> Option<Variant> {
    let get = within(report, whole, &["name", "isolation", "defaults", "target"])?;
    let name = match get("name") {
        Some(field) => field.text(report, "a text")?.to_owned(),
        None => {
            report.add(&whole.span, join(&whole.name, "name"), "missing: must be a text");
            return None;
        }
    };
    let isolation = get("isolation").map_or(Some(true), |field| field.flag(report))?;
    let (empty, none) = (DeTable::new(), Spanned::new(whole.span.clone(), DeValue::Table(DeTable::new())));
    let shared = get("defaults").unwrap_or(Field::new(join(&whole.name, "defaults"), &none));
    let defaults = shared.table(report)?;
    check_fields(report, &shared.name, defaults);
    let own = get("target").map_or(Some(&empty), |field| field.table(report))?;
    for (key, _) in own.iter().filter(|(key, _)| !names.iter().any(|name| name == key.get_ref())) {
        let field = join(&join(&whole.name, "target"), key.get_ref());
        report.add(&key.span(), field, format!("unknown upstream: must be one of {}", names.join(", ")));
    }
    let mut terms = Vec::new();
    for name in names {
        let path = join(&join(&whole.name, "target"), name);
        terms.push(match own.get(name.as_str()) {
            Some(value) => {
                let field = Field::new(path, value);
                {
                    let own = field.table(report)?;
                    one(report, &field, own, defaults)
                }
            }
            None => one(report, &shared, defaults, &empty),
        });
    }
    let terms = terms.into_iter().collect::<Option<Vec<_>>>()?;
    Some(Variant { name, isolation, terms })
}
