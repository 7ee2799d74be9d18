//! The rules of portcullis as a naive engine: plain fields, one thread, no packed words, no atomics. It is slow, and easy to believe.
//!
//! [`check`] runs one sequence of operations on the real engine, on a clock that stands still until it is moved, and on the naive one,
//! and compares every answer, every transition and every field of every snapshot after each operation. The property test and
//! the fuzz target feed it; a [`Twin`] is the naive engine with one rule broken, which `check` must tell from the real one.
//!
//! No policy here has an adaptive limit: where that goes rests on sums of latencies, and is tried on a simulated target with a knee
//! (`tests/rules/adaptive.rs`) and window by window (`src/adaptive/control/tests.rs`).
//!
//! | file | what it holds |
//! | --- | --- |
//! | `op.rs` | what can be done: one enum for both engines |
//! | `rules.rs` | the settings of a target, and the waits that follow from them |
//! | `window.rs` | the calls that a target remembers, in a queue |
//! | `target.rs`, `settle.rs`, `stall.rs`, `hand.rs` | one target: who may enter, what an ending does, what hangs, what is done by hand |
//! | `ramp.rs` | the limit that comes back after HALF_OPEN closed |
//! | `engine.rs` | which targets there are, and who may be forgotten |
//! | `driver.rs`, `act.rs`, `compare.rs` | both engines side by side |

mod act;
mod compare;
mod driver;
mod engine;
mod hand;
mod op;
mod ramp;
mod rules;
mod settle;
mod stall;
mod tally;
mod target;
mod window;

pub use driver::{check, check_twin};
pub use op::{Case, Grip, KINDS, Op, Patience, Span, Verdict};
pub use rules::Draft;
pub use tally::Tally;

/// One rule broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twin {
    /// Nothing is broken.
    None,
    /// A rate is exceeded, not reached, before it trips (R9).
    TripsAboveTheRate,
    /// OPEN lasts a moment too long (R14).
    WaitsTooLong,
    /// A full bulkhead spends a probe (R1).
    ProbesWhileFull,
    /// A stale failure counts in the window (R5).
    CountsStale,
    /// A lease isn't prolonged by the next grant (R4).
    LeaseOnlyAtEntry,
    /// A failed probe doesn't lengthen the wait (R7).
    ForgetsReopens,
    /// What closes has the full limit at once.
    NeverRamps,
    /// A relapse waits for `min_calls` like any other trip.
    BlindWhileRamping,
    /// When the target says to come back is forgotten.
    DeafToRetryAfter,
    /// A dropped permit is a failure (R11).
    DropFails,
    /// A lowered limit doesn't count those in flight (R17).
    ForgetsInFlight,
    /// A target that someone holds may go (R19).
    EvictsPinned,
    /// Calls that matter less may use the whole limit.
    ShedsNobody,
    /// A call has stalled a tick too early.
    StallsEarly,
    /// Calls that hang in one generation count in the next.
    KeepsRunning,
    /// Callers don't judge, only snapshots do.
    JudgesOnlyWhenShown,
}

impl Twin {
    /// Every broken one.
    pub const BROKEN: [Self; 16] = [
        Self::TripsAboveTheRate,
        Self::WaitsTooLong,
        Self::ProbesWhileFull,
        Self::CountsStale,
        Self::LeaseOnlyAtEntry,
        Self::ForgetsReopens,
        Self::NeverRamps,
        Self::BlindWhileRamping,
        Self::DeafToRetryAfter,
        Self::DropFails,
        Self::ForgetsInFlight,
        Self::EvictsPinned,
        Self::ShedsNobody,
        Self::StallsEarly,
        Self::KeepsRunning,
        Self::JudgesOnlyWhenShown,
    ];
}
