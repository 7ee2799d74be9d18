//! The order, and the only one: fallback( deadline( retry( admission( timeout( call ))))).
//!
//! Each of these functions is one of the layers, and calls the next. Why like that:
//! - The timeout is innermost, so that what is settled is what the target did within it.
//! - Admission is inside the retry: each attempt is admitted and settled by itself. The other way round three failures count as one, and
//!   a threshold of five means fifteen.
//! - A wait for a permit is part of the admission: outside of the timeout, which is the target's time, and within the deadline, which is the caller's.
//! - The deadline is around the retries: it is the caller's time, however often the target is tried in it.
//! - The fallback is outside of all: it answers for refusals, timeouts and deadlines alike, but not where the
//!   deadline had passed on arrival: nobody is there to be answered. What it is depends on the call's kind, so it
//!   stands where the kinds are, in `backup.rs` and `http/fallback.rs`.
//!
//! tower's own `Retry` could stand for one of these layers, but it knows no time: its policy is asked for the next wait without being told
//! what is left of the deadline, and whether the next attempt could end before it.

use std::borrow::Borrow;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::error::{CallError, Cause, GaveUp};
use super::plan::{Attempt, Plan};
use super::verdict::{Again, Verdict};
use crate::engine::{Engine, Key};
use crate::priority::{Admit, Priority};
use crate::rejection::Rejection;
use crate::tower::RequestPermit;

/// What one kind of call does itself.
pub(super) trait Steps<K: Key> {
    /// What the attempt's future brings.
    type Raw;
    /// What the caller gets.
    type Answer;
    type Error;
    type Future: Future<Output = Result<Self::Raw, Self::Error>>;

    /// Makes the future of one attempt.
    fn start(&mut self, attempt: Attempt) -> Self::Future;

    /// Settles the permit, or hands it on, and judges.
    fn settle(
        &mut self,
        permit: RequestPermit<K>,
        result: Result<Self::Raw, Self::Error>,
    ) -> (Result<Self::Answer, Self::Error>, Verdict);

    /// Whether `start` could be asked once more.
    fn can_replay(&self) -> bool {
        true
    }

    /// Takes from the last attempt what the next one needs; false if it is gone after all.
    fn take_back(&mut self) -> bool {
        true
    }

    /// Whether the attempt's future ends by itself once its timeout has passed; only the deadline cuts it then.
    fn bounds_itself(&self) -> bool {
        false
    }

    /// Whether the caller still owes a part of the request, for which the target has to wait.
    fn is_callers_turn(&self) -> bool {
        false
    }
}

/// One call, as its layers hand it on.
pub(super) struct Call<'a, K: Key, Q: ?Sized> {
    pub(super) engine: &'a Arc<Engine<K>>,
    pub(super) key: &'a Q,
    pub(super) priority: Priority,
    pub(super) plan: Plan,
    /// Whether the caller's own scope has ended; an error is its doing then, not the target's.
    pub(super) scope: Option<&'a (dyn Fn() -> bool + Send + Sync)>,
    pub(super) started: Instant,
}

/// How the attempts ended.
pub(super) enum Ended<T, E> {
    /// With this many attempts.
    Good(T, u32),
    /// With an answer that is a failure.
    Bad(T, CallError<E>),
    /// Without an answer.
    Failed(CallError<E>),
}

/// How one attempt ended.
enum Tried<T, E> {
    Good(T),
    Bad(Bad<T, E>),
}

struct Bad<T, E> {
    answer: Option<T>,
    cause: Cause<E>,
    verdict: Verdict,
}

impl<T, E> Tried<T, E> {
    fn without_answer(cause: Cause<E>, verdict: Verdict) -> Self {
        Self::Bad(Bad { answer: None, cause, verdict })
    }

    fn past_the_deadline() -> Self {
        Self::without_answer(Cause::Deadline { on_arrival: false }, Verdict::failure().again(Again::No))
    }
}

/// The deadline around all that follows: who has no time left on arrival isn't called for. What comes later is kept within it by `Plan`, which
/// gives each attempt no more than what is left, and allows none that couldn't have its whole timeout.
pub(super) async fn deadline<K, Q, S>(call: Call<'_, K, Q>, steps: &mut S) -> Ended<S::Answer, S::Error>
where
    K: Key + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    S: Steps<K>,
{
    call.plan.lane().counters.calls.add(1);
    if call.plan.left(call.started.elapsed()).is_some() {
        return retry(call, steps).await;
    }
    // No work for nobody, and no word about the target.
    let cause = Cause::Deadline { on_arrival: true };
    Ended::Failed(call.plan.failed(cause, Verdict::failure(), GaveUp::Deadline, None))
}

/// The retries, as many as policy, deadline and budget allow.
async fn retry<K, Q, S>(mut call: Call<'_, K, Q>, steps: &mut S) -> Ended<S::Answer, S::Error>
where
    K: Key + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    S: Steps<K>,
{
    let mut previous = None;
    loop {
        let Bad { answer, cause, verdict } = match admission(&mut call, steps).await {
            Tried::Good(answer) => return Ended::Good(answer, call.plan.made),
            Tried::Bad(bad) => bad,
        };
        let next = call.plan.next(call.started.elapsed(), verdict.again, steps.can_replay(), call.engine.now());
        let next = next.and_then(|wait| if steps.take_back() { Ok(wait) } else { Err(GaveUp::NotReplayable) });
        match next {
            Ok(wait) => {
                // The answer goes, and with it its place at the target, before the wait.
                drop(answer);
                previous = Some(cause);
                tokio::time::sleep(wait).await;
            }
            Err(gave_up) => {
                let error = call.plan.failed(cause, verdict, gave_up, previous);
                return match answer {
                    Some(answer) => Ended::Bad(answer, error),
                    None => Ended::Failed(error),
                };
            }
        }
    }
}

/// Admission of one attempt. A refusal says when to come back, and isn't tried again.
async fn admission<K, Q, S>(call: &mut Call<'_, K, Q>, steps: &mut S) -> Tried<S::Answer, S::Error>
where
    K: Key + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    S: Steps<K>,
{
    let Some(left) = call.plan.left(call.started.elapsed()) else { return Tried::past_the_deadline() };
    let permit = match permit(call, left).await {
        Ok(permit) => permit,
        Err(rejection) => {
            return Tried::without_answer(Cause::Rejected(rejection), Verdict::failure().again(Again::No));
        }
    };
    // The wait for it took its time.
    match call.plan.left(call.started.elapsed()) {
        Some(left) => timeout(call, steps, permit, left).await,
        None => {
            permit.ignore();
            Tried::past_the_deadline()
        }
    }
}

/// A permit at once; or, for a critical call whose engine's policy lets it wait, once there is one.
async fn permit<K, Q>(call: &Call<'_, K, Q>, left: Duration) -> Result<RequestPermit<K>, Rejection>
where
    K: Key + Borrow<Q>,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
{
    let how = Admit::from(call.priority).may_be_dropped();
    let patience = call.plan.patience(left);
    if patience.is_zero() {
        return call.engine.admit_owned_with(call.key, how);
    }
    call.engine.admit_waiting_owned(call.key, how, |most| tokio::time::sleep(most.min(patience))).await
}

/// The timeout of one admitted attempt, and its settlement.
async fn timeout<K: Key, Q: ?Sized, S: Steps<K>>(
    call: &mut Call<'_, K, Q>,
    steps: &mut S,
    permit: RequestPermit<K>,
    left: Duration,
) -> Tried<S::Answer, S::Error> {
    let (attempt, is_cut) = call.plan.begin(left, permit.is_probe(), call.engine.now());
    // What bounds itself has what is left: more than its timeout, so that its caller's part is what took it, or just its timeout.
    let (longest, is_cut) = match steps.bounds_itself() {
        true => (left, is_cut || left > attempt.timeout),
        false => (attempt.timeout, is_cut),
    };
    // The timer is dropped with the attempt's future: a call that is done leaves nothing behind.
    let result = match tokio::time::timeout(longest, steps.start(attempt)).await {
        Ok(result) => result,
        Err(_) if is_cut || (steps.bounds_itself() && steps.is_callers_turn()) => {
            // The caller's time is over, not the target's: abandoned, and judged by the policy like any caller who leaves. If the caller
            // took the time itself, it says nothing at all.
            if steps.is_callers_turn() {
                permit.ignore();
            } else {
                drop(permit);
            }
            call.plan.lane().counters.deadline_cut.add(1);
            return Tried::past_the_deadline();
        }
        Err(_) => {
            permit.failure();
            call.plan.timed_out(attempt);
            return Tried::without_answer(Cause::TimedOut { after: attempt.timeout }, Verdict::failure());
        }
    };
    let (result, verdict) = match result {
        Err(error) if call.scope.is_some_and(|is_over| is_over()) => {
            permit.ignore();
            (Err(error), Verdict::ignored())
        }
        result => steps.settle(permit, result),
    };
    match result {
        Err(error) => {
            if steps.bounds_itself() && verdict.code == "E901" {
                call.plan.timed_out(attempt);
            }
            Tried::without_answer(Cause::Failed(error), verdict)
        }
        Ok(answer) if verdict.is_good() => Tried::Good(answer),
        Ok(answer) => {
            Tried::Bad(Bad { answer: Some(answer), cause: Cause::Answered { status: verdict.status }, verdict })
        }
    }
}
