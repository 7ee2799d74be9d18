//! The smallest use: one engine, a call that is admitted, made and settled.
//!
//! `cargo run --example minimal`

use std::time::Duration;

use portcullis::{Engine, Outcome, Permit, Policy, Rejection};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let policy = Policy::builder()
        .max_in_flight(64)
        .consecutive_failures(3)
        .open_wait(Duration::from_millis(200))
        .jitter(0.0)
        .build()?;
    let engine: Engine = Engine::builder().policy(policy).build();

    // By hand: ask, call, settle.
    let permit = engine.admit("core-banking")?;
    println!("admitted, {} in flight", engine.snapshot("core-banking").map_or(0, |snapshot| snapshot.in_flight));
    permit.success();

    // With a closure: settled before the value comes back, also if it panics.
    let verdict = |answer: &Result<u32, &str>| if answer.is_ok() { Outcome::Success } else { Outcome::Failure };
    for _ in 0..3 {
        println!("the target says {:?}", engine.call("core-banking", verdict, || Err("no connection"))?);
    }

    // Three failures in a row: refused fast, with a time to come back. Other targets are untouched.
    match engine.admit("core-banking").map(Permit::success) {
        Err(rejection @ Rejection::Open { retry_after }) => {
            println!("{}: {rejection}", rejection.code());
            engine.admit("claims")?.success();
            std::thread::sleep(retry_after);
        }
        other => println!("unexpected: {other:?}"),
    }

    // The wait is over: exactly one caller probes.
    let probe = engine.admit("core-banking")?;
    println!("probe: {}, others: {:?}", probe.is_probe(), engine.admit("core-banking").map(Permit::ignore));
    probe.success();
    for transition in engine.transitions() {
        println!("{}: {} to {}, {}", transition.target, transition.from, transition.to, transition.cause);
    }
    Ok(())
}
