//! A target's words, and the two things that calls do with them: ask to start, and settle.
//!
//! The order of the steps is what the rules rest on:
//!
//! - Admission reads the gate, takes a bulkhead permit, and only then, where the gate wants a probe, its slot (R1). A lost CAS
//!   decides again on the new word (R2). Nothing is ever rolled back but the permit.
//! - Settlement reads the gate again, since a clean window can't tell a stale outcome; records in every window before any rule is
//!   judged, so that two rules met at once are one trip; and moves the gate. Its caller gives the permit back last, since
//!   that unpins the slot (protocol K), and reports after that, on owned data.

mod admit;
mod care;
mod settle;

use crate::bulkhead::Bulkhead;
use crate::counters::{Counter, Counters};
use crate::event::Cause;
use crate::gate::{self, Moved, ProbeRules};
use crate::outcome::Outcome;
use crate::policy::Policy;
use crate::rejection::Rejection;
use crate::sync::{AtomicU64, Lazy, Ordering, Role, role};
use crate::time::Now;
use crate::trip::Evidence;
use crate::window::{buckets, calls, streak};

/// Relaxed: written while the slot is retired, published by the Release that reinstates the bulkhead.
const SALT: Role = role("salt", Ordering::Relaxed);
/// Relaxed: as `SALT`.
const SETTLED_BEFORE: Role = role("settled_before", Ordering::Relaxed);

/// All that races for one target.
#[derive(Debug)]
pub struct Words {
    pub gate: gate::Cell,
    pub bulkhead: Bulkhead,
    pub streak: streak::Cell,
    pub calls: calls::Cell,
    rare: Lazy<Rare>,
    /// What makes this target's jitter its own; written while nobody calls.
    salt: AtomicU64,
    /// Calls that earlier tenants settled.
    settled_before: AtomicU64,
    /// The most successes that a snapshot has shown.
    pub(crate) success_seen: Counter,
}

/// What a healthy target with a window of calls never needs.
#[derive(Debug, Default)]
struct Rare {
    counters: Counters,
    slow_calls: calls::Cell,
    ring: buckets::Ring,
    /// Probes settled as ignored in a row.
    ignored: streak::Cell,
}

/// What the first failure, refusal or hold of a target takes.
#[cfg(test)]
pub(crate) const RARE_BYTES: usize = size_of::<Rare>();

/// The right to run one call, as plain data. Whoever holds it owes the target a settlement and a release.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub generation: u32,
    pub is_probe: bool,
    /// Dropping it unsettled means what it means for async calls.
    pub(crate) is_async: bool,
    pub(crate) stripe: usize,
    pub(crate) started: Option<Now>,
    /// When the target began to answer; what comes after is also the caller's pace.
    pub(crate) answered: Option<Now>,
    /// The target's last sign of life in this call, if it gave any.
    pub(crate) alive: Option<Now>,
}

/// A refusal inside the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    Rejected(Rejection),
    /// The slot has no tenant: ask the map.
    Retired,
}

/// How a permit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Settled(Outcome),
    /// Dropped unsettled.
    Abandoned,
    /// Dropped while its thread panicked.
    Panicked,
}

/// A transition that this thread made, to be reported once it holds nothing.
#[derive(Debug)]
#[must_use]
pub struct Change {
    pub moved: Moved,
    pub cause: Cause,
    pub evidence: Option<Box<Evidence>>,
    pub at: Now,
}

/// The settings that a decision is made under.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    pub policy: &'a Policy,
    pub policy_version: u32,
}

impl Policy {
    fn probe_rules(&self) -> ProbeRules {
        ProbeRules {
            max_probes: self.max_probes,
            successes_to_close: self.successes_to_close,
            lease_s: self.probe_lease_s,
        }
    }
}

impl Words {
    #[must_use]
    pub fn new(limit: u32, salt: u64) -> Self {
        Self {
            gate: gate::Cell::default(),
            bulkhead: Bulkhead::new(limit),
            streak: streak::Cell::default(),
            calls: calls::Cell::default(),
            rare: Lazy::default(),
            salt: AtomicU64::new(salt),
            settled_before: AtomicU64::new(0),
            success_seen: Counter::default(),
        }
    }
}
