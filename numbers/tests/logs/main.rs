//! Logs as calls: formats, order, and what is wrong with lines.
#![allow(clippy::unwrap_used)]

mod any;
mod faults;
mod fields;
mod order;
mod proxies;
mod real;
mod support;
mod tables;
