//! What attempts are made of functions: started by one, and judged as usual, by a function, or by one that settles, too.
//!
//! None of them names the types of answer and error beside the functions that they follow from: named twice they would have to be of the very
//! same lifetimes, which the compiler loses sight of where such a future is spawned.

use super::order::Steps;
use super::plan::Attempt;
use super::verdict::Verdict;
use crate::engine::Key;
use crate::tower::RequestPermit;

/// A value is a success, an error a failure.
pub(super) struct Plain<Start> {
    pub(super) start: Start,
}

/// Judged by a function.
pub(super) struct Judged<Start, Judge> {
    pub(super) start: Start,
    pub(super) judge: Judge,
}

/// Judged and settled by a function.
pub(super) struct Settled<Start, Settle> {
    pub(super) start: Start,
    pub(super) settle: Settle,
}

impl<K: Key, T, E, F: Future<Output = Result<T, E>>, Start: FnMut(Attempt) -> F> Steps<K> for Plain<Start> {
    type Raw = T;
    type Answer = T;
    type Error = E;
    type Future = F;

    fn start(&mut self, attempt: Attempt) -> F {
        (self.start)(attempt)
    }

    fn settle(&mut self, permit: RequestPermit<K>, result: Result<T, E>) -> (Result<T, E>, Verdict) {
        let verdict = Verdict::of(&result);
        permit.settle(verdict.outcome);
        (result, verdict)
    }
}

impl<K, T, E, F, Start, Judge> Steps<K> for Judged<Start, Judge>
where
    K: Key,
    F: Future<Output = Result<T, E>>,
    Start: FnMut(Attempt) -> F,
    Judge: Fn(&Result<T, E>) -> Verdict,
{
    type Raw = T;
    type Answer = T;
    type Error = E;
    type Future = F;

    fn start(&mut self, attempt: Attempt) -> F {
        (self.start)(attempt)
    }

    fn settle(&mut self, permit: RequestPermit<K>, result: Result<T, E>) -> (Result<T, E>, Verdict) {
        let verdict = (self.judge)(&result);
        match verdict.come_back() {
            Some(wait) => permit.failure_retry_after(wait),
            None => permit.settle(verdict.outcome),
        };
        (result, verdict)
    }
}

impl<K, R, T, E, F, Start, Settle> Steps<K> for Settled<Start, Settle>
where
    K: Key,
    F: Future<Output = Result<R, E>>,
    Start: FnMut(Attempt) -> F,
    Settle: FnMut(RequestPermit<K>, Result<R, E>) -> (Result<T, E>, Verdict),
{
    type Raw = R;
    type Answer = T;
    type Error = E;
    type Future = F;

    fn start(&mut self, attempt: Attempt) -> F {
        (self.start)(attempt)
    }

    fn settle(&mut self, permit: RequestPermit<K>, result: Result<R, E>) -> (Result<T, E>, Verdict) {
        (self.settle)(permit, result)
    }
}
