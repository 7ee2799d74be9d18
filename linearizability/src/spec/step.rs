//! The steps that acts are made of.

use crate::plan::{Answer, Call, Ending, Shown};
use crate::shape::Shape;

/// What happens at one instant.
#[derive(Clone, Debug)]
pub enum Step {
    /// The beginning of each history.
    Begin(&'static Shape),
    /// The gate lets a call in.
    Pass {
        call: Call,
        key: u8,
        probe: bool,
        generation: u32,
    },
    /// The bulkhead gives it a permit.
    Take {
        call: Call,
        key: u8,
    },
    /// The gate would let a call in that the bulkhead refuses afterwards.
    Ask {
        call: Call,
        key: u8,
        drift: u64,
    },
    /// The bulkhead refuses. `passing` other calls, refused by the gate meanwhile, may have held a permit for a moment; `raced` if
    /// any act of another thread on this target overlaps.
    Full {
        call: Call,
        key: u8,
        limit: u32,
        passing: u32,
        raced: bool,
    },
    /// The gate refuses.
    Refuse {
        key: u8,
        answer: Answer,
        drift: u64,
    },
    /// There is no room for the key, and as many `others` may be there.
    Exhausted {
        key: u8,
        others: usize,
    },
    /// An act that overlaps with a move of the clock reads it.
    ReadClock {
        act: Call,
    },
    /// An act that overlaps with a change of policy reads which is in force.
    ReadRules {
        act: Call,
        key: u8,
    },
    /// An outcome is told stale from current, and counted in the first word.
    Record {
        act: Call,
        call: Call,
        ending: Ending,
        stale: Option<bool>,
    },
    /// It is counted in the second word, where there are two rules.
    RecordStreak {
        call: Call,
        ending: Ending,
    },
    /// Its target opens, if a rule was met.
    Trip {
        act: Call,
        call: Call,
    },
    /// Its permit is given back.
    Free {
        call: Call,
    },
    Look {
        key: u8,
        shown: Shown,
        drift: u64,
    },
    Hand {
        key: u8,
        to: Shown,
        changed: bool,
    },
    SetLimit {
        act: Call,
        key: u8,
        limit: u32,
    },
    /// A limit set is in force for everybody.
    LimitSet {
        act: Call,
        key: u8,
    },
    SetPolicy {
        act: Call,
        key: u8,
        rules: usize,
    },
    /// A new policy's limit is in force.
    SetPolicyLimit {
        act: Call,
        key: u8,
    },
    Advance {
        ms: u64,
    },
}
