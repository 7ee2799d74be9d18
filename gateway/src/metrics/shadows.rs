//! What the shadows of each target would have done.

use portcullis::metrics::Family;
use portcullis::{Engine, Refusals, ShadowSnapshot, State};

use super::text::{Page, escaped};

const STATE: Family = Family::gauge("portcullis_shadow_state", "1 for the state that the shadow is in, 0 for others.");
const IN_FLIGHT: Family = Family::gauge("portcullis_shadow_in_flight", "Calls in flight that the shadow let start.");
const ASKED: Family = Family::counter(
    "portcullis_shadow_asked_total",
    "Calls that the target let start, and the shadow was asked about.",
);
const REFUSED: Family =
    Family::counter("portcullis_shadow_refused_total", "Calls that the shadow would have refused, by reason.");
const SUCCEEDED: Family = Family::counter(
    "portcullis_shadow_refused_but_succeeded_total",
    "Calls that the shadow would have refused, and that succeeded.",
);
const AVOIDED: Family = Family::counter(
    "portcullis_shadow_failures_avoided_total",
    "Calls that the shadow would have refused, and that failed.",
);
const TRIPS: Family = Family::counter("portcullis_shadow_trips_total", "Times that the shadow would have opened.");

type Count = fn(&ShadowSnapshot) -> u64;

const COUNTS: [(Family, Count); 5] = [
    (IN_FLIGHT, |shadow| shadow.would_be.in_flight.into()),
    (ASKED, |shadow| shadow.asked),
    (SUCCEEDED, |shadow| shadow.refused_but_succeeded),
    (AVOIDED, |shadow| shadow.failures_avoided),
    (TRIPS, |shadow| shadow.trips),
];

type Reason = fn(&Refusals) -> u64;

/// A shadow refuses nobody by hand.
const REASONS: [(&str, Reason); 4] = [
    ("open", |refusals| refusals.open),
    ("probing", |refusals| refusals.probing),
    ("saturated", |refusals| refusals.saturated),
    ("shed", |refusals| refusals.shed),
];

/// Nor is it in a state that only hands lead to.
const STATES: [State; 3] = [State::Closed, State::Open, State::HalfOpen];

/// Writes the shadows of each target that has a label of its own, which is escaped already. A page without shadows is as it was.
pub(super) fn write<'a>(page: &mut Page, engine: &Engine<String>, targets: impl Iterator<Item = (&'a str, &'a str)>) {
    let all: Vec<(String, ShadowSnapshot)> = targets
        .flat_map(|(name, label)| {
            let labelled =
                |shadow: ShadowSnapshot| (format!("target=\"{label}\",shadow=\"{}\"", escaped(&shadow.name)), shadow);
            engine.shadows(name).into_iter().map(labelled).collect::<Vec<_>>()
        })
        .collect();
    if all.is_empty() {
        return;
    }
    page.begin(&STATE);
    for (labels, shadow) in &all {
        for state in STATES {
            let series = format!("{}{{{labels},state=\"{}\"}}", STATE.name, state.as_str());
            page.plain(&series, u64::from(shadow.would_be.state == state));
        }
    }
    for (family, count) in &COUNTS {
        page.begin(family);
        all.iter().for_each(|(labels, shadow)| page.plain(&format!("{}{{{labels}}}", family.name), count(shadow)));
    }
    page.begin(&REFUSED);
    for (labels, shadow) in &all {
        for (reason, count) in REASONS {
            let series = format!("{}{{{labels},reason=\"{reason}\"}}", REFUSED.name);
            page.plain(&series, count(&shadow.would_be.refusals));
        }
    }
}
