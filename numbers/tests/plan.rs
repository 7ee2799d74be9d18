//! Plans of logs whose right values are known.
#![allow(clippy::unwrap_used, reason = "clippy doesn't take helpers of tests for tests")]

#[path = "plan/derived.rs"]
mod derived;
#[path = "plan/file.rs"]
mod file;
#[path = "made/mod.rs"]
mod made;
#[path = "plan/odd.rs"]
mod odd;
