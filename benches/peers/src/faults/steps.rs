//! Steps that scenarios share.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::Void;
use crate::subject::{Cannot, Ending, Held};

/// The one upstream of scenarios without many.
pub const KEY: &str = "core-banking.eu-west-1.example.com:443";

/// How many ask wherever a crowd does.
pub const CALLERS: usize = 200;

/// Past the end of a wait, for clocks that end it late.
const MARGIN: Duration = Duration::from_millis(5);

/// A step that a breaker must be there for.
///
/// # Errors
///
/// [`Void::Cant`] if it isn't.
pub fn needs<P: Held>(what: &[Cannot]) -> Result<(), Void> {
    what.iter().find(|what| !P::can(**what)).map_or(Ok(()), |what| Err(Void::Cant(*what)))
}

/// Fails until the next caller is refused; how many failures that took.
///
/// # Errors
///
/// [`Void::Unprepared`] if that many weren't enough.
pub fn open<P: Held>(subject: &P, most: u32) -> Result<u32, Void> {
    for failures in 0..=most {
        match subject.admit(KEY) {
            None => return Ok(failures),
            Some(call) => subject.settle(call, Ending::Failure),
        }
    }
    Err(Void::Unprepared("never opens"))
}

/// Opens a subject that may already judge. The instant is when it was opened, at the earliest.
///
/// # Errors
///
/// As [`open`].
pub fn trip<P: Held>(subject: &P) -> Result<Instant, Void> {
    subject.ripen();
    let before = Instant::now();
    open(subject, 1_000)?;
    Ok(before)
}

/// Lets the wait of an open circuit pass.
pub fn wait_out<P: Held>(subject: &P) {
    subject.advance(P::WAIT + MARGIN);
}

/// Lets the hold of a lost probe pass.
pub fn lease_out<P: Held>(subject: &P) {
    subject.advance(P::LEASE + MARGIN);
}

/// Whether what happened since `start` happened within the wait, where waits are real.
///
/// # Errors
///
/// [`Void::Stalled`] if not.
pub fn within_wait<P: Held>(start: Instant) -> Result<(), Void> {
    if !P::can(Cannot::MoveClock) && start.elapsed() >= P::WAIT { Err(Void::Stalled) } else { Ok(()) }
}

/// Asks `callers` times and keeps what is admitted.
pub fn ask<P: Held>(subject: &P, callers: usize) -> Vec<P::Token<'_>> {
    (0..callers).filter_map(|_| subject.admit(KEY)).collect()
}

/// Asks from [`CALLERS`] threads at once, each keeping what it got until all have asked; how many were admitted. All succeed.
pub fn crowd<P: Held>(subject: &P) -> usize {
    let (start, asked) = (Barrier::new(CALLERS), Barrier::new(CALLERS));
    let caller = || {
        start.wait();
        let call = subject.admit(KEY);
        asked.wait();
        let is_admitted = call.is_some();
        if let Some(call) = call {
            subject.settle(call, Ending::Success);
        }
        is_admitted
    };
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|_| scope.spawn(caller)).collect();
        callers.into_iter().map(|caller| caller.join().unwrap_or(false)).filter(|is_admitted| *is_admitted).count()
    })
}

/// Ends a call as evidence of nothing.
pub fn ignore<'a, P: Held>(subject: &'a P, call: P::Token<'a>) {
    subject.settle(call, Ending::Ignored);
}

/// Sends callers to an upstream that is well again, and lets time pass, until it serves a crowd; how many leases that took.
pub fn recover<P: Held>(subject: &P, most: u32) -> Option<u32> {
    for leases in 0..=most {
        if leases > 0 {
            lease_out(subject);
        }
        // One after the other, as callers come: each that is admitted succeeds.
        for _ in 0..CALLERS {
            subject.once(KEY, Ending::Success);
        }
        let calls = ask(subject, 20);
        let is_serving = calls.len() == 20;
        for call in calls {
            subject.settle(call, Ending::Success);
        }
        if is_serving {
            return Some(leases);
        }
    }
    None
}
