//! Logs as calls: formats, order, and what is wrong with lines.

mod order;
mod support;
mod tables;
