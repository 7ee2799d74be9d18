//! Whole calls: the order of their layers, and what each promises.
#![cfg(feature = "call")]
#![allow(clippy::unwrap_used, reason = "clippy doesn't take helpers of tests for tests")]
#![allow(clippy::disallowed_types, reason = "tests count with plain atomics; only src/ goes through the facade")]

mod common;
mod call {
    mod blocking;
    mod bounded;
    mod budget;
    mod deadlines;
    mod failures;
    mod fallbacks;
    mod grpc;
    mod integration;
    mod layer;
    mod outage;
    mod policy;
    mod priorities;
    mod replay;
    mod respond;
    mod retries;
    mod stale;
    mod support;
    mod timeouts;
}
