//! Broken twins: each protocol small, over the model checker's atomics, with one step done wrong. `tests/teeth.rs` expects every
//! one of them to be caught, so a harness that can't fail fails there.

mod bulkhead;
mod dial;
mod gate;
mod ledger;
mod lodging;
mod purse;
mod ramp;
mod refusals;
mod running;
mod shelf;
mod timed;
mod waiting;
mod windows;

pub use bulkhead::{Flaw, Twin};
pub use dial::{Blunder, Dial, Tray};
pub use gate::{ask_and_enter_anyway, ask_slot_first, trip_blindly};
pub use ledger::{Fault, Signed};
pub use lodging::{Lapse, Lodging};
pub use purse::{Purse, Waste};
pub use ramp::{Pace, close_at_first_sight, close_then_lower, lower_without_a_sweep};
pub use refusals::{Slate, Slip};
pub use running::{Drift, Drifting};
pub use shelf::{Haste, Shelf};
pub use timed::{
    Slack, Timed, a_failure_after_the_judgement, a_failure_and_the_last_call, a_policy_after_the_judgement,
    two_last_calls,
};
pub use waiting::{Neglect, Usher};
pub use windows::{SplitBucket, Tagged};
