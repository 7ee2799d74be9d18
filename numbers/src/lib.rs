//! Numbers with a reason: a policy's values derived from what the user already has, logs; shown at work on them; told when they went stale.
//!
//! [`logs`] reads access logs as [`logs::Call`]s, in order of their start. [`formulas`] is the arithmetic. Each tool is a module with its
//! command line (`Args`) and a `run` that the binary `portcullis` calls: [`plan`], [`replay`], [`audit`], [`simulate`].
#![warn(missing_docs)]

pub mod audit;
pub mod formulas;
pub mod logs;
pub mod plan;
pub mod policies;
pub mod replay;
pub mod report;
pub mod simulate;
