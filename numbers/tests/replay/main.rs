//! Replays of logs whose right answer can be counted by hand, and what must hold of any log.

mod counted;
mod invariants;
mod log;
