//! Faults that other systems had, each as a small scenario under its number; cases/README.md says which test has which.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail tests, too")]
#![allow(clippy::disallowed_types, reason = "tests count with plain atomics; only src/ goes through the facade")]

mod common;
mod cases {
    mod cf;
    mod ev;
    mod ev_order;
    #[cfg(feature = "tower")]
    mod in_classify;
    #[cfg(feature = "tower")]
    mod in_tower;
    mod invariants;
    mod invariants_race;
    mod kit;
    mod km;
    mod km_eviction;
    mod model;
    mod pf;
    mod pm;
    mod pm_waiting;
    mod readme;
    mod sm_probes;
    mod sm_probes_more;
    mod sm_stale;
    mod sm_table;
    mod tm;
    mod tm_deadlines;
    mod wm_counts;
    mod wm_rings;
    mod wm_time;
}
