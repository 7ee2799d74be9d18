//! Calls that block their thread: the same policy, without a runtime.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use super::backup::{Backup, fallback_blocking};
use super::error::{CallError, Cause, GaveUp};
use super::order::Ended;
use super::plan::{Attempt, Plan};
use super::typed::{Answer, Typed};
use super::verdict::{Again, Verdict};
use crate::engine::Key;
use crate::outcome::Outcome;

/// Waits between attempts; [`ThreadSleep`] unless a test has a quicker one.
pub trait Sleep {
    /// Returns after this time.
    fn sleep(&self, duration: Duration);
}

/// Puts the thread to sleep.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadSleep;

impl Sleep for ThreadSleep {
    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// No attempt, and none to come.
const FINAL: Verdict = Verdict::failure().again(Again::No);

impl<K, Q> Typed<'_, K, Q>
where
    K: Key + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    /// Runs the call on this thread: a value is a success, an error a failure worth another attempt.
    ///
    /// An attempt that the caller's deadline left less than its timeout, and that failed once that was over, is abandoned: the caller's time is
    /// over, not the target's.
    ///
    /// Admission, with the wait of a critical call, retries, budget, deadline and fallback are as in [`run`](Self::run). The timeout is the client's own: nothing can take a
    /// thread out of a blocking read, and a second thread that gives up waiting for it would leave it there, holding its socket while its
    /// permit says that nothing is in flight. So give the client [`Attempt::timeout`], which is what is left of the deadline if that is less,
    /// and let its error be a failure, with the code `E901` if it tells timeouts from others. A client that has none is bounded by nothing here, and a hung target then shows in the bulkhead only.
    ///
    /// # Errors
    ///
    /// [`CallError`] says what came of it.
    pub fn run_blocking<T, E>(self, start: impl FnMut(Attempt) -> Result<T, E>) -> Result<Answer<T>, CallError<E>> {
        self.run_blocking_or(Backup::refuse(), Verdict::of, &ThreadSleep, start)
    }

    /// As [`run_blocking`](Self::run_blocking), with a verdict on each result, an answer to failures, and the sleep between attempts.
    ///
    /// # Errors
    ///
    /// [`CallError`] says what came of it, and what of the backup.
    pub fn run_blocking_or<T, E>(
        self,
        backup: Backup<'_, T, E>,
        judge: impl Fn(&Result<T, E>) -> Verdict,
        sleep: &impl Sleep,
        mut start: impl FnMut(Attempt) -> Result<T, E>,
    ) -> Result<Answer<T>, CallError<E>> {
        let Self { caller, key, priority, is_idempotent, left, scope } = self;
        let (engine, lane) = (caller.engine(), caller.lane(key));
        let mut plan = Plan::new(Arc::clone(&lane), left, is_idempotent, caller.seed());
        let is_over = || scope.as_deref().is_some_and(|is_over| is_over());
        let started = engine.now();
        lane.counters.calls.add(1);
        let mut previous = None;
        // In the order of `order.rs`; only what waits is different.
        let ended = loop {
            let left = |plan: &Plan| plan.left(engine.now().saturating_sub(started));
            let asked = left(&plan).map(|left| engine.admit_blocking(key, priority, plan.patience(left)));
            // What is left after the wait for a permit.
            let (answer, cause, verdict) = match (asked, left(&plan)) {
                (None, _) => (None, Cause::Deadline { on_arrival: plan.made == 0 }, FINAL),
                (Some(Err(rejection)), _) => (None, Cause::Rejected(rejection), FINAL),
                (Some(Ok(permit)), None) => {
                    permit.ignore();
                    (None, Cause::Deadline { on_arrival: false }, FINAL)
                }
                (Some(Ok(permit)), Some(time)) => {
                    let (attempt, is_cut) = plan.begin(time, permit.is_probe(), engine.now());
                    let result = start(attempt);
                    let verdict = if result.is_err() && is_over() { Verdict::ignored() } else { judge(&result) };
                    // A client's own timeout may be over a moment before the deadline is.
                    let is_late = || verdict.code == "E901" || left(&plan).is_none();
                    if is_cut && result.is_err() && verdict.outcome == Outcome::Failure && is_late() {
                        drop(permit);
                        lane.counters.deadline_cut.add(1);
                        let cause = Cause::Deadline { on_arrival: false };
                        break Ended::Failed(plan.failed(cause, FINAL, GaveUp::Deadline, previous));
                    }
                    match verdict.come_back() {
                        Some(wait) => permit.failure_retry_after(wait),
                        None => permit.settle(verdict.outcome),
                    };
                    if result.is_err() && verdict.code == "E901" {
                        plan.timed_out(attempt);
                    }
                    match result {
                        Err(error) => (None, Cause::Failed(error), verdict),
                        Ok(answer) if verdict.is_good() => break Ended::Good(answer, plan.made),
                        Ok(answer) => (Some(answer), Cause::Answered { status: verdict.status }, verdict),
                    }
                }
            };
            match plan.next(engine.now().saturating_sub(started), verdict.again, true, engine.now()) {
                Ok(wait) => {
                    drop(answer);
                    previous = Some(cause);
                    sleep.sleep(wait);
                }
                Err(gave_up) => {
                    let error = plan.failed(cause, verdict, gave_up, previous);
                    break match answer {
                        Some(answer) => Ended::Bad(answer, error),
                        None => Ended::Failed(error),
                    };
                }
            }
        };
        fallback_blocking(backup, ended, &lane.counters, engine.now())
    }
}
