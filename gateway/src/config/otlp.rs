//! The `[otlp]` table.

use http::Uri;
use portcullis_numbers::policies::reader::{Field, Report, fields};

const KEYS: &[&str] = &["endpoint"];
const ENDPOINT: &str = "an http:// URL of a collector, such as \"http://127.0.0.1:4318\"";

/// What is told to an OpenTelemetry collector, over OTLP. Needs a gateway built with the feature `otlp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Otlp {
    /// The collector, without `/v1/traces`; what the environment says (`OTEL_EXPORTER_OTLP_ENDPOINT`) if none.
    pub endpoint: Option<String>,
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
    Some(Otlp { endpoint })
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
