//! The fallback of a typed call, and the end of the call: what its caller gets, counted.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use super::counters::Counters;
use super::error::CallError;
use super::fallback::{BoxError, FallbackKind, NoFallback};
use super::last_good::LastGood;
use super::order::Ended;
use super::typed::Answer;

type Answering<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// The fallback of one typed call.
///
/// It isn't asked where the caller's deadline had passed on arrival, or where the failure is its caller's own.
pub struct Backup<'a, T, E>(Kind<'a, T, E>);

type Compute<'a, T, E> = Box<dyn FnOnce(&CallError<E>) -> Result<T, BoxError> + Send + 'a>;
type Function<'a, T, E> = Box<dyn FnOnce(&CallError<E>) -> Answering<T> + Send + 'a>;
type Get<'a, T> = Box<dyn Fn(Duration) -> Option<(T, Duration)> + Send + 'a>;
type Keep<'a, T> = Box<dyn Fn(&T, Duration) + Send + 'a>;

enum Kind<'a, T, E> {
    Refuse,
    Value(T),
    Compute(Compute<'a, T, E>),
    Function(Function<'a, T, E>),
    LastGood { get: Get<'a, T>, keep: Keep<'a, T> },
}

/// What a backup says to a failure.
pub(super) enum Said<T> {
    Nothing,
    Now(Result<(T, FallbackKind), BoxError>),
    Later(Answering<T>),
}

impl<'a, T, E> Backup<'a, T, E> {
    /// None: the failure itself.
    #[must_use]
    pub fn refuse() -> Self {
        Self(Kind::Refuse)
    }

    /// This value.
    #[must_use]
    pub fn value(value: T) -> Self {
        Self(Kind::Value(value))
    }

    /// What this function makes of the failure.
    #[must_use]
    pub fn compute(function: impl FnOnce(&CallError<E>) -> Result<T, BoxError> + Send + 'a) -> Self {
        Self(Kind::Compute(Box::new(function)))
    }

    /// What this asynchronous function makes of the failure. Nothing bounds its time but itself. A blocking call has nobody to run it, and
    /// fails.
    #[must_use]
    pub fn function<F>(function: impl FnOnce(&CallError<E>) -> F + Send + 'a) -> Self
    where
        F: Future<Output = Result<T, BoxError>> + Send + 'static,
    {
        Self(Kind::Function(Box::new(|error| Box::pin(function(error)))))
    }

    /// The last good answer to what `id` names, if it is no older than `max_age`; good answers are put there.
    #[must_use]
    pub fn last_good(store: &'a LastGood<T>, id: &'a str, max_age: Duration) -> Self
    where
        T: Clone + Send + Sync + 'static,
    {
        let get = Box::new(move |now| store.get(id, max_age, now));
        let keep = Box::new(move |answer: &T, now| store.keep(id.to_owned(), answer.clone(), now));
        Self(Kind::LastGood { get, keep })
    }

    /// Notes a good answer.
    pub(super) fn good(&self, answer: &T, now: Duration) {
        if let Kind::LastGood { keep, .. } = &self.0 {
            keep(answer, now);
        }
    }

    /// Asks for an answer in place of a failure.
    pub(super) fn ask(self, error: &CallError<E>, now: Duration) -> Said<T> {
        if error.is_for_nobody() {
            return Said::Nothing;
        }
        match self.0 {
            Kind::Refuse => Said::Nothing,
            Kind::Value(value) => Said::Now(Ok((value, FallbackKind::Value))),
            Kind::Compute(function) => Said::Now(function(error).map(|value| (value, FallbackKind::Function))),
            Kind::Function(function) => Said::Later(function(error)),
            Kind::LastGood { get, .. } => Said::Now(match get(now) {
                Some((value, age)) => Ok((value, FallbackKind::Stale { age })),
                None => Err(NoFallback::NothingKept.into()),
            }),
        }
    }
}

impl<T, E> fmt::Debug for Backup<'_, T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Refuse => "Backup::refuse",
            Kind::Value(_) => "Backup::value",
            Kind::Compute(_) => "Backup::compute",
            Kind::Function(_) => "Backup::function",
            Kind::LastGood { .. } => "Backup::last_good",
        })
    }
}

impl Counters {
    /// Counts what a fallback came to.
    pub(super) fn fell_back(&self, result: &Result<FallbackKind, ()>) {
        let counter = match result {
            Ok(FallbackKind::Value) => &self.fallback_value,
            Ok(FallbackKind::Function) => &self.fallback_function,
            Ok(FallbackKind::Stale { .. }) => &self.fallback_stale,
            Err(()) => &self.fallback_failed,
        };
        counter.add(1);
    }
}

/// The fallback around all else, for a failure in the form of an answer or an error.
pub(super) async fn fallback<T, E>(
    backup: Backup<'_, T, E>,
    ended: Ended<T, E>,
    counters: &Counters,
    now: Duration,
) -> Result<Answer<T>, CallError<E>> {
    let (bad, error) = match parted(&backup, ended, now) {
        Ok(answer) => return Ok(answer),
        Err(parts) => parts,
    };
    let said = match backup.ask(&error, now) {
        Said::Nothing => return conclude(bad, error, None, counters),
        Said::Now(result) => result,
        Said::Later(answering) => answering.await.map(|value| (value, FallbackKind::Function)),
    };
    conclude(bad, error, Some(said), counters)
}

/// As [`fallback`], for a caller that can't wait for a future.
pub(super) fn fallback_blocking<T, E>(
    backup: Backup<'_, T, E>,
    ended: Ended<T, E>,
    counters: &Counters,
    now: Duration,
) -> Result<Answer<T>, CallError<E>> {
    let (bad, error) = match parted(&backup, ended, now) {
        Ok(answer) => return Ok(answer),
        Err(parts) => parts,
    };
    let said = match backup.ask(&error, now) {
        Said::Nothing => None,
        Said::Now(result) => Some(result),
        Said::Later(_) => Some(Err(NoFallback::Asynchronous.into())),
    };
    conclude(bad, error, said, counters)
}

/// The good answer, noted; or the failure in its parts.
fn parted<T, E>(
    backup: &Backup<'_, T, E>,
    ended: Ended<T, E>,
    now: Duration,
) -> Result<Answer<T>, (Option<T>, CallError<E>)> {
    match ended {
        Ended::Good(value, attempts) => {
            backup.good(&value, now);
            Ok(Answer { value, attempts, fallback: None, is_failure: false })
        }
        Ended::Bad(value, error) => Err((Some(value), error)),
        Ended::Failed(error) => Err((None, error)),
    }
}

/// What the caller gets in the end. A fallback that failed hides neither the failure nor its own.
fn conclude<T, E>(
    bad: Option<T>,
    mut error: CallError<E>,
    said: Option<Result<(T, FallbackKind), BoxError>>,
    counters: &Counters,
) -> Result<Answer<T>, CallError<E>> {
    let attempts = error.attempts;
    match said {
        Some(Ok((value, kind))) => {
            counters.fell_back(&Ok(kind));
            return Ok(Answer { value, attempts, fallback: Some(kind), is_failure: false });
        }
        Some(Err(failed)) => {
            counters.fell_back(&Err(()));
            error.fallback = Some(failed);
        }
        None => {}
    }
    match bad {
        // The target's own words, unless there is another failure to tell of.
        Some(value) if error.fallback.is_none() => Ok(Answer { value, attempts, fallback: None, is_failure: true }),
        _ => Err(error),
    }
}
