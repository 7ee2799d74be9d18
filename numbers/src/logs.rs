//! Access logs as calls, in order of their start.
//!
//! [`read`] takes logs of nginx, Envoy, HAProxy, newline-delimited JSON and CSV, plain or gzip, from files and standard input, in any size: what
//! it holds is bounded by [`Input::reorder`] and not by the length of the log. Lines that are no calls are counted, sampled and reported in
//! the [`Summary`]; they never stop a reading.

mod blocks;
mod call;
mod choose;
mod columns;
mod csv;
mod envoy;
mod fault;
mod fields;
mod haproxy;
mod input;
mod json;
mod merge;
mod names;
mod nginx;
mod numbers;
mod order;
mod parse;
mod progress;
mod read;
mod record;
mod sniff;
mod source;
mod summary;
mod tokens;

pub use call::Call;
pub use fault::{Fault, Sample};
pub use input::{Format, Input};
pub use names::{Names, TargetId};
pub use read::{read, read_from};
pub use summary::{Error, Summary};
