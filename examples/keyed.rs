//! Keys of your own: one target per tenant and upstream, so that a tenant who breaks an upstream for himself breaks it for nobody else.
//!
//! `cargo run --example keyed`

use portcullis::{Engine, Policy, Rejection};

/// Who calls whom. Any type with `Eq`, `Hash` and `Debug` is a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Route {
    tenant: u32,
    upstream: &'static str,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policy = Policy::builder().max_in_flight(8).consecutive_failures(3).build()?;
    // Keys come from outside, so their number is bounded: idle targets make room, busy ones never do.
    let engine: Engine<Route> = Engine::builder().policy(policy).max_targets(1_000).build();
    let noisy = Route { tenant: 7, upstream: "search" };
    let quiet = Route { tenant: 8, upstream: "search" };

    for _ in 0..3 {
        engine.admit(&noisy)?.failure();
    }
    assert!(matches!(engine.admit(&noisy), Err(Rejection::Open { .. })));
    engine.admit(&quiet)?.success();

    // A caller that asks for one target often resolves it once.
    let target = engine.target(&quiet)?;
    for _ in 0..1_000 {
        target.admit()?.success();
    }
    for (route, snapshot) in engine.snapshots() {
        println!("tenant {} at {}: {snapshot}", route.tenant, route.upstream);
    }
    Ok(())
}
