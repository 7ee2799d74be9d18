//! Metrics of an engine: what each target does, as series with bounded labels, for the `metrics` facade or for an exporter of your own.
//!
//! [`Publisher`] puts them into the facade's recorder. [`Collector`] is what it collects them by. How to read each, what to alert on and what it costs is in
//! [`docs::metrics`](crate::docs::metrics).

mod collector;
mod label;
mod moves;
mod publisher;
mod series;

pub use collector::{Collector, Counts, Row};
pub use label::OTHER;
pub use publisher::{Publisher, totals};
#[cfg(feature = "call")]
pub use series::calls::{CALLS, call_counters};
pub use series::{COUNTERS, ENGINE, Family, GAUGES, Kind, MOVES, Moves, Series, TARGETS};
