use std::sync::Arc;

use portcullis::call::{Again, Backup, CallPolicy, Caller, Cause, GaveUp, ThreadSleep, Verdict};
use portcullis::{Engine, Policy, Rejection, State};

use super::support::{Count, World, patient, three, timed};
use crate::common::{T, ms, secs};

#[tokio::test(start_paused = true)]
async fn each_attempt_is_admitted_and_settled_by_itself() {
    let world = World::new(patient(), three());
    let asked = Count::default();
    let call = world.caller.to(T).idempotent(true).run(|attempt| {
        assert_eq!((attempt.number, attempt.is_probe), (asked.next(), false));
        let is_third = attempt.number == 3;
        async move { if is_third { Ok(7) } else { Err("broken") } }
    });
    let (answer, took) = timed(call).await;
    let answer = answer.unwrap();
    assert_eq!((*answer, answer.attempts(), answer.fallback()), (7, 3, None));
    assert_eq!((world.totals(), world.snapshot().in_flight), ([1, 2, 0, 0], 0));
    assert!(took <= ms(30), "two backoffs of at most 10 and 20 ms: {took:?}");
    let counts = world.counts();
    assert_eq!((counts.calls, counts.attempts, counts.retries, counts.failed), (1, 3, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_threshold_of_five_means_five_attempts() {
    let world = World::new(Policy::builder().no_window().consecutive_failures(5), three());
    for expected in [3, 5, 5] {
        let call = world.caller.to(T).idempotent(true).run(|_| async { Err::<(), _>("broken") });
        let error = call.await.unwrap_err();
        assert_eq!(world.totals()[1], expected);
        if expected == 3 {
            assert_eq!((error.attempts(), error.gave_up()), (3, GaveUp::Attempts));
        }
    }
    assert_eq!(world.snapshot().state, State::Open);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_between_attempts_ends_the_call_and_tells_of_both() {
    let world = World::new(Policy::builder().no_window().consecutive_failures(1), three());
    let error = world.caller.to(T).idempotent(true).run(|_| async { Err::<(), _>("broken") }).await.unwrap_err();
    assert!(matches!(error.cause(), Cause::Rejected(Rejection::Open { .. })), "{error:?}");
    assert_eq!((error.previous(), error.attempts(), error.code()), (Some(&Cause::Failed("broken")), 1, "E904"));
    assert!(error.retry_after().unwrap() > ms(4_000));
    assert_eq!(world.snapshot().refusals.total(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_known_to_be_harmless_is_made_once() {
    let world = World::new(patient(), three());
    let error = world.caller.call(T, || async { Err::<(), _>("broken") }).await.unwrap_err();
    assert_eq!((error.attempts(), error.gave_up(), error.code()), (1, GaveUp::NotIdempotent, "E500"));
    assert_eq!((error.into_cause(), world.counts().retries), (Cause::Failed("broken"), 0));
}

#[tokio::test(start_paused = true)]
async fn a_business_error_is_made_once() {
    let world = World::new(patient(), three());
    let judge = |result: &Result<(), u16>| match result {
        Err(404) => Verdict::success(),
        result => Verdict::of(result),
    };
    let call = world.caller.to(T).idempotent(true).run_or(Backup::refuse(), judge, |_| async { Err(404) });
    let error = call.await.unwrap_err();
    assert_eq!((error.attempts(), error.gave_up(), world.totals()), (1, GaveUp::Final, [1, 0, 0, 0]));
}

#[tokio::test(start_paused = true)]
async fn the_target_s_own_wait_is_kept_or_there_is_no_retry() {
    let world = World::new(patient(), three().deadline(secs(2)));
    for (asked, attempts, least) in [(ms(500), 3, ms(1_000)), (ms(1_901), 1, ms(0))] {
        let judge = |_: &Result<(), ()>| Verdict::failure().again(Again::After(asked));
        let call = world.caller.to(T).idempotent(true).run_or(Backup::refuse(), judge, |_| async { Err(()) });
        let (result, took) = timed(call).await;
        let error = result.unwrap_err();
        assert_eq!((error.attempts(), took), (attempts, least));
    }
    assert_eq!(world.counts().deadline_kept, 1);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_tried_again_and_fits_the_worst_case() {
    let world = World::new(patient(), three());
    let call = world.caller.to(T).idempotent(true).run(|_| std::future::pending::<Result<(), ()>>());
    let (result, took) = timed(call).await;
    assert_eq!((result.unwrap_err().attempts(), world.counts().timeouts), (3, 3));
    assert!((ms(300)..=ms(330)).contains(&took), "{took:?}");
}

/// IN-06.
#[tokio::test(start_paused = true)]
async fn in06_a_refusal_is_not_tried_again() {
    let world = World::new(Policy::builder().no_window().consecutive_failures(1), three());
    let _ = world.engine.admit(T).unwrap().failure();
    let asked = Count::default();
    for number in 1..=5 {
        let call = world.caller.to(T).idempotent(true).run(|_| {
            asked.next();
            async { Ok::<_, ()>(()) }
        });
        let (result, took) = timed(call).await;
        let error = result.unwrap_err();
        assert!(matches!(error.rejection(), Some(Rejection::Open { .. })));
        assert_eq!((error.code(), error.attempts(), error.gave_up(), took), ("E904", 0, GaveUp::Final, ms(0)));
        assert_eq!((world.snapshot().refusals.open, world.counts().rejected), (number, number));
    }
    assert_eq!((asked.get(), world.counts().attempts), (0, 0));

    let full = World::new(patient().max_in_flight(1), three());
    let _held = full.engine.admit(T).unwrap();
    let error = full.caller.to(T).idempotent(true).run(|_| async { Ok::<_, ()>(()) }).await.unwrap_err();
    assert_eq!((error.code(), full.snapshot().refusals.saturated), ("E905", 1));
}

#[tokio::test(start_paused = true)]
async fn a_policy_put_in_force_changes_the_next_call_and_keeps_the_budget() {
    let world = World::new(patient(), three().retry_floor(0).retry_budget(0.5));
    let fail = || world.caller.to(T).idempotent(true).run(|_| async { Err::<(), _>(()) });
    for _ in 0..4 {
        let _ = fail().await;
    }
    assert_eq!(world.counts().retries, 2);
    let policy = world.caller.policy(T).to_builder().attempts(2).build().unwrap();
    world.caller.set_policy(T.to_owned(), policy).unwrap();
    for _ in 0..4 {
        let _ = fail().await;
    }
    assert_eq!((world.counts().calls, world.counts().retries, world.caller.policy(T).attempts()), (8, 4, 2));
    let all = world.caller.all_counts();
    assert_eq!((all.len(), all[0].0.as_str(), all[0].1), (1, T, world.counts()));
}

#[tokio::test(start_paused = true)]
async fn targets_without_a_declaration_are_bounded_and_declared_ones_stay() {
    let engine = Arc::new(Engine::builder().policy(patient().build().unwrap()).max_targets(5_000).build());
    let declared = three().attempts(2).build().unwrap();
    let caller = Caller::builder(engine).max_targets(100).target(T.to_owned(), declared.clone()).build().unwrap();
    caller.call(T, || async { Ok::<_, ()>(()) }).await.unwrap();
    for key in 0..2_000 {
        caller.call(format!("key {key}").as_str(), || async { Ok::<_, ()>(()) }).await.unwrap();
    }
    assert_eq!((caller.counts(T).unwrap().calls, &*caller.policy(T)), (1, &declared));
    assert_eq!(&*caller.policy("key 0"), &CallPolicy::default());
    let kept = caller.all_counts().len();
    assert!(kept <= 101 + 512, "moka makes room a batch at a time: {kept}");
    assert_eq!(caller.counts("key 1999").unwrap().calls, 1);
}

/// With no target remembered each call would find a budget of its own, and its floor unspent.
#[tokio::test(start_paused = true)]
async fn at_least_one_target_is_remembered() {
    let engine = Arc::new(Engine::builder().policy(patient().build().unwrap()).build());
    let policy = three().attempts(2).retry_floor(1).retry_memory(secs(1)).build().unwrap();
    let caller = Caller::builder(engine).policy(policy).max_targets(0).build().unwrap();
    for gave_up in [GaveUp::Attempts, GaveUp::Budget, GaveUp::Budget] {
        let call = caller.to(T).idempotent(true).run(|_| async { Err::<(), _>("broken") });
        assert_eq!(call.await.unwrap_err().gave_up(), gave_up);
    }
    assert_eq!(caller.counts(T).unwrap().calls, 3);
}

/// What a client's own error says of when to come back holds for everybody's calls.
#[tokio::test(start_paused = true)]
async fn a_wait_that_the_target_asked_for_reaches_the_engine() {
    let open = Policy::builder().no_window().consecutive_failures(1).open_wait(ms(100)).jitter(0.0);
    let judge = |_: &Result<(), &str>| Verdict::failure().again(Again::After(secs(20)));
    for is_blocking in [false, true] {
        let world = World::standing(open.clone(), three());
        let call = world.caller.to(T);
        let result = match is_blocking {
            true => call.run_blocking_or(Backup::refuse(), judge, &ThreadSleep, |_| Err("busy")),
            false => call.run_or(Backup::refuse(), judge, |_| async { Err("busy") }).await,
        };
        assert!(result.is_err());
        let refused = world.engine.admit(T).map(drop).unwrap_err();
        assert_eq!(refused.retry_after(), Some(secs(20)), "blocking: {is_blocking}");
    }
}
