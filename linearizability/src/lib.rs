//! Real threads, what they were answered, and whether one caller after the other could have been answered the same.
//!
//! | file | what it is |
//! | --- | --- |
//! | `spec.rs`, `spec/` | the sequential specification, and which acts take effect in several steps |
//! | `shape.rs` | the policies, limits and keys that are hammered |
//! | `plan.rs` | the acts of threads, and what comes of them |
//! | `door.rs`, `twins.rs` | the way to the engine, and ways that do one thing wrong |
//! | `drive.rs` | one history of racing threads |
//! | `history.rs`, `check.rs` | its record, and the checker's verdict |
//! | `campaign.rs` | many histories, and what they came to |

pub mod campaign;
pub mod check;
pub mod door;
pub mod drive;
pub mod history;
pub mod plan;
pub mod shape;
pub mod spec;
pub mod twins;
