//! The rules of the design, each under its number.
#![allow(clippy::unwrap_used, reason = "clippy doesn't take helpers of tests for tests")]

mod common;
mod rules {
    mod adaptive;
    mod adaptive_sim;
    mod admission;
    mod blocking;
    mod bulkhead;
    mod calls;
    mod come_back;
    mod defaults;
    mod events;
    mod eviction;
    mod forced;
    mod handles;
    mod leases;
    mod observers;
    mod outcomes;
    mod policy;
    mod priorities;
    mod probes;
    mod queueing;
    mod ramp;
    mod ramp_among;
    mod reconfigure;
    mod recovery;
    mod refusals;
    mod retry_after;
    mod shadows;
    mod shadows_random;
    mod snapshots;
    mod spans;
    mod stalls;
    mod subscriptions;
    mod tenants;
    mod time;
    mod waits;
    mod windows;
}
