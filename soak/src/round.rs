//! One round: load on all threads, then the checks.

use std::sync::{Barrier, Mutex, PoisonError};

use crate::holding::Holding;
use crate::load::{Mailbox, Worker};
use crate::plan::{PINNED, Random};
use crate::settle;
use crate::stage::Stage;

/// A way to spoil a round, to see that the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sabotage {
    /// A permit is leaked and nobody says so.
    Leak,
    /// A call is made and nobody counts it.
    Call,
    /// A transition is heard twice.
    Event,
    /// A thread panics.
    Panic,
}

/// Plays a round; what it found is in the stage's faults.
#[must_use]
pub(crate) fn play(seed: u64, round: u64, threads: usize, operations: u64, sabotage: Option<Sabotage>) -> Stage {
    let stage = Stage::new(seed, round);
    let faults = std::sync::Arc::clone(&stage.faults);
    faults.guard("the end of the round", || {
        load(&stage, seed, round, threads, operations, sabotage);
        settle::each_target(&stage, &mut Random::new(seed, round, u64::MAX - 1));
        settle::all_told(&stage);
    });
    stage
}

fn load(stage: &Stage, seed: u64, round: u64, threads: usize, operations: u64, sabotage: Option<Sabotage>) {
    // Before any thread begins, so that there is room.
    let handle = |seat: &crate::seat::Seat| stage.engine.target(&seat.name).expect("an empty engine has room");
    let handles: Vec<_> = stage.seats[..PINNED].iter().map(handle).collect();
    let (mailbox, barrier): (Mailbox<'_>, _) = (Mutex::default(), Barrier::new(threads));
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (handles, mailbox, barrier) = (&handles, &mailbox, &barrier);
            scope.spawn(move || {
                barrier.wait();
                stage.faults.guard("a thread of the load", || {
                    let random = Random::new(seed, round, thread as u64);
                    let (held, watching) = (Vec::new(), Vec::new());
                    Worker { stage, handles, mailbox, random, held, watching }.run(operations);
                    assert!(sabotage != Some(Sabotage::Panic), "sabotage");
                })
            });
        }
    });
    let mut random = Random::new(seed, round, threads as u64);
    let mut rest: Vec<Holding<'_>> = std::mem::take(&mut mailbox.lock().unwrap_or_else(PoisonError::into_inner));
    while let Some(holding) = rest.pop() {
        rest.extend(holding.end(&mut random, stage));
    }
    spoil(stage, sabotage);
    // While the handles still hold the pinned keys.
    settle::at_rest(stage);
}

fn spoil(stage: &Stage, sabotage: Option<Sabotage>) {
    let name = &stage.seats[0].name;
    match sabotage {
        None | Some(Sabotage::Panic) => {}
        Some(Sabotage::Leak) => {
            stage.engine.disable(name).expect("it is there");
            std::mem::forget(stage.engine.admit(name));
        }
        Some(Sabotage::Call) => {
            stage.engine.disable(name).expect("it is there");
            let _ = stage.engine.admit(name).map(portcullis::Permit::success);
        }
        Some(Sabotage::Event) => {
            stage.engine.force_open(name).expect("it is there");
            stage.engine.release(name).expect("it is there");
            if let Some(last) = stage.engine.transitions().last() {
                stage.witness.hear(last);
            }
        }
    }
}
