//! The `[otlp]` table.

use http::Uri;
use portcullis_numbers::policies::reader::{Field, Report, fields};

const KEYS: &[&str] = &["endpoint", "traces", "metrics"];
const ENDPOINT: &str = "an http:// URL of a collector, such as \"http://127.0.0.1:4318\"";

/// What is told to an OpenTelemetry collector, over OTLP. Needs a gateway built with the feature `otlp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otlp {
    /// The collector, without `/v1/traces`; what the environment says (`OTEL_EXPORTER_OTLP_ENDPOINT`) if none.
    pub endpoint: Option<String>,
    /// Whether it gets spans.
    pub traces: bool,
    /// Whether it gets the series of `/metrics`.
    pub metrics: bool,
}

pub(super) fn read(report: &mut Report<'_>, field: &Field<'_>) -> Option<Otlp> {
    let table = field.table(report)?;
    if cfg!(not(feature = "otlp")) {
        let message = "this gateway was built without it: build it with `--features otlp`, or leave the section out";
        report.add(&field.span, field.name.clone(), message);
    }
    let get = fields(report, table, &field.name, KEYS);
    let endpoint = match get("endpoint") {
        Some(field) => Some(endpoint(report, &field)?),
        None => None,
    };
    let flag = |report: &mut Report<'_>, key| get(key).map_or(Some(true), |field| field.flag(report));
    let (traces, metrics) = (flag(report, "traces"), flag(report, "metrics"));
    Some(Otlp { endpoint, traces: traces?, metrics: metrics? })
}

fn endpoint(report: &mut Report<'_>, field: &Field<'_>) -> Option<String> {
    let text = field.text(report, ENDPOINT)?;
    let uri = text.parse::<Uri>().ok().filter(|uri| {
        uri.scheme_str() == Some("http") && uri.query().is_none() && uri.host().is_some_and(|host| !host.is_empty())
    });
    if uri.is_none() || text.contains('#') {
        field.refuse(report, ENDPOINT);
        return None;
    }
    Some(text.trim_end_matches('/').to_owned())
}
