//! The reported faults that this layer must not have; see cases/README.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use portcullis::State;
use portcullis::call::{Backup, Cause, GaveUp, Verdict};

use super::support::{World, three};
use crate::common::{T, textbook};

/// A group of calls is cancelled with a cause of its own; the aborted ones don't look like it.
#[tokio::test(start_paused = true)]
async fn in03_the_end_of_the_callers_scope_wins_over_the_errors_shape() {
    let world = World::new(textbook(), three());
    let is_over = Arc::new(AtomicBool::new(true));
    let call = |backup| {
        let call = world.caller.to(T).idempotent(true).scope(|| is_over.load(Ordering::Relaxed));
        call.run_or(backup, Verdict::of, |_| async { Err::<(), _>("budget exceeded") })
    };
    for _ in 0..80 {
        let error = call(Backup::value(())).await.unwrap_err();
        assert_eq!(
            (error.cause(), error.gave_up(), error.attempts()),
            (&Cause::Failed("budget exceeded"), GaveUp::Final, 1)
        );
    }
    assert_eq!((world.snapshot().state, world.totals()), (State::Closed, [0, 0, 80, 0]));
    assert_eq!(world.counts().fallback_value, 0, "who has left needs no fallback");
    is_over.store(false, Ordering::Relaxed);
    for _ in 0..2 {
        assert!(call(Backup::refuse()).await.is_err());
    }
    assert_eq!(world.snapshot().state, State::Open);
}

/// Fifty time-outs, still closed: here five in a row open it, since the timeout is inside.
#[tokio::test(start_paused = true)]
async fn in04_a_hung_target_opens() {
    let world = World::new(textbook(), three());
    for call in 1..=5 {
        let result = world.caller.call(T, std::future::pending::<Result<(), ()>>).await;
        assert_eq!(result.unwrap_err().code(), "E901", "call {call}");
    }
    assert_eq!((world.snapshot().state, world.totals()), (State::Open, [0, 5, 0, 0]));
}

/// A failure in an `Ok`: the verdict sees the result as a whole.
#[tokio::test(start_paused = true)]
async fn in13_a_failed_value_is_a_failure_of_the_call() {
    let world = World::new(textbook(), three());
    let judge = |result: &Result<u16, ()>| match result {
        Ok(503) => Verdict::failure().status(503),
        result => Verdict::of(result),
    };
    for _ in 0..5 {
        let answer = world.caller.to(T).run_or(Backup::refuse(), judge, |_| async { Ok(503) }).await.unwrap();
        assert!(answer.is_failure());
    }
    assert_eq!(world.snapshot().state, State::Open);
}
