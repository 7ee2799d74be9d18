//! Logs as calls: formats, order, and what is wrong with lines.

mod faults;
mod fields;
mod order;
mod proxies;
mod support;
mod tables;
