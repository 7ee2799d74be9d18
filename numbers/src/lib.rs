//! Numbers with a reason: a policy's values derived from what the user already has, logs; shown at work on them; told when they went stale.
//!
//! [`logs`] reads access logs as [`logs::Call`]s, in order of their start. [`observe`] tells what they say
//! about each target. [`formulas`] is the arithmetic, [`derive`](mod@derive) what follows for a policy. Each tool is a module with its
//! command line (`Args`) and a `run` that the binary `portcullis` calls: [`plan`], [`replay`], [`audit`], [`simulate`].
#![warn(missing_docs, clippy::disallowed_methods)]

pub mod audit;
pub mod derive;
pub mod formulas;
pub mod logs;
pub mod observe;
mod output;
pub mod plan;
pub mod policies;
pub mod replay;
pub mod report;
pub mod routes;
pub mod simulate;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
