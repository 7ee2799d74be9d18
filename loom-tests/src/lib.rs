//! The runner of the models, and the broken twins that it must catch.
//!
//! Loom keeps one last access per atomic, so it can overlook interleavings; which it does was measured, and these habits avoid it:
//!
//! - Every racer is a spawned thread. The main thread builds, joins and concludes; the signature of [`model`] allows nothing else.
//! - There always is a bound on preemptions. Without one, loom reaches fewer outcomes, not more.
//! - A model names the set of outcomes that it reaches. One more is a fault in the protocol, one less means that the model
//!   explored too little.

pub mod desk;
pub mod hall;
pub mod house;
pub mod ledger;
pub mod room;
pub mod running;
pub mod scenes;
pub mod twins;
pub mod waits;

use std::fmt::Debug;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Explores the interleavings of `racers` over what `setup` builds.
///
/// `conclude` sees each execution after its last racer has ended, asserts what always holds, and returns what this execution
/// came to. All of these together must be exactly `expected`.
///
/// # Panics
///
/// If an assertion fails in any execution, or the outcomes reached aren't the expected ones.
pub fn model<S, R, O, const N: usize>(
    name: &str,
    expected: &[O],
    setup: impl Fn() -> S + Send + Sync + 'static,
    racers: [fn(&S) -> R; N],
    conclude: impl Fn(&S, [R; N]) -> O + Send + Sync + 'static,
) where
    S: Send + Sync + 'static,
    R: Debug + Send + 'static,
    O: Debug + PartialEq + Send + 'static,
{
    let reached = Arc::new(Mutex::new(Reached { executions: 0, outcomes: Vec::new() }));
    let _told = Told { name, racers: N, reached: &reached };
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound(N));
    builder.max_branches = 20_000;
    builder.check({
        let reached = Arc::clone(&reached);
        move || {
            // Counted first, so that an execution that fails was one.
            locked(&reached).executions += 1;
            let shared = Arc::new(setup());
            let threads = racers.map(|racer| {
                let shared = Arc::clone(&shared);
                loom::thread::spawn(move || racer(&shared))
            });
            let results = threads.map(|thread| thread.join().unwrap_or_else(|_| panic!("a racer panicked")));
            let outcome = conclude(&shared, results);
            let mut reached = locked(&reached);
            if !reached.outcomes.contains(&outcome) {
                reached.outcomes.push(outcome);
            }
        }
    });
    let reached = locked(&reached);
    let missing: Vec<&O> = expected.iter().filter(|outcome| !reached.outcomes.contains(outcome)).collect();
    let surplus: Vec<&O> = reached.outcomes.iter().filter(|outcome| !expected.contains(outcome)).collect();
    assert!(missing.is_empty() && surplus.is_empty(), "{name}: never reached {missing:?}, reached too {surplus:?}");
}

/// The most preemptions in one execution. `run` sets both and says why.
fn bound(racers: usize) -> usize {
    let (variable, default) = if racers <= 2 { ("PORTCULLIS_LOOM_PAIRS", 3) } else { ("PORTCULLIS_LOOM_TRIOS", 2) };
    std::env::var(variable).ok().and_then(|bound| bound.parse().ok()).unwrap_or(default)
}

/// The guard, of plain std and never held across an operation of loom's. A failing model poisons it on its way out.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a model came to so far.
struct Reached<O> {
    executions: u64,
    outcomes: Vec<O>,
}

/// Tells what a model came to when it ends, however it ends.
struct Told<'a, O> {
    name: &'a str,
    racers: usize,
    reached: &'a Mutex<Reached<O>>,
}

impl<O> Drop for Told<'_, O> {
    fn drop(&mut self) {
        let Self { name, racers, reached } = self;
        let end = if std::thread::panicking() { "failed" } else { "held" };
        let (executions, outcomes) = {
            let reached = locked(reached);
            (reached.executions, reached.outcomes.len())
        };
        println!("model {name}: {executions} executions, {outcomes} outcomes");
        // The script sums these lines; a write that fails would show there as a model that didn't run.
        if let Ok(path) = std::env::var("PORTCULLIS_LOOM_TALLY")
            && let Ok(mut tally) = std::fs::File::options().append(true).create(true).open(path)
        {
            let _ = tally.write_all(format!("{end}\t{executions}\t{outcomes}\t{racers}\t{name}\n").as_bytes());
        }
    }
}
