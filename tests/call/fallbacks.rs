use std::time::Duration;

use portcullis::Policy;
use portcullis::call::{Backup, BoxError, CallError, Cause, FallbackKind, LastGood, NoFallback, ThreadSleep, Verdict};

use super::support::{World, patient, three};
use crate::common::{T, ms, secs};

type Failed = CallError<&'static str>;

async fn broken(world: &World, backup: Backup<'_, u32, &'static str>) -> Result<(u32, Option<FallbackKind>), Failed> {
    let call = world.caller.to(T).run_or(backup, Verdict::of, |_| async { Err("broken") });
    call.await.map(|answer| (*answer, answer.fallback()))
}

/// Values, functions, last good answers, failed fallbacks.
fn fallbacks(world: &World) -> [u64; 4] {
    let counts = world.counts();
    [counts.fallback_value, counts.fallback_function, counts.fallback_stale, counts.fallback_failed]
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_refused_unless_somebody_says_otherwise() {
    let world = World::new(patient(), three());
    let error = broken(&world, Backup::refuse()).await.unwrap_err();
    assert_eq!((error.cause(), error.fallback_error().is_none()), (&Cause::Failed("broken"), true));
    assert_eq!(fallbacks(&world), [0; 4]);
}

#[tokio::test(start_paused = true)]
async fn each_fallback_says_what_it_is_and_is_counted() {
    let world = World::new(patient(), three());
    assert_eq!(broken(&world, Backup::value(1)).await.unwrap(), (1, Some(FallbackKind::Value)));
    let computed = Backup::compute(|error: &Failed| Ok(error.attempts() + 10));
    assert_eq!(broken(&world, computed).await.unwrap(), (11, Some(FallbackKind::Function)));
    let function = Backup::function(|error: &Failed| {
        let attempts = error.attempts();
        async move {
            tokio::time::sleep(ms(5)).await;
            Ok(attempts + 20)
        }
    });
    assert_eq!(broken(&world, function).await.unwrap(), (21, Some(FallbackKind::Function)));
    assert_eq!((fallbacks(&world), world.counts().failed), ([1, 2, 0, 0], 3));
    // The target's failures stay failures.
    assert_eq!(world.totals(), [0, 3, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_and_a_deadline_that_passes_are_answered_for_too() {
    let world = World::new(Policy::builder().no_window().consecutive_failures(1), three());
    let hang = |_| std::future::pending::<Result<_, ()>>();
    let late = world.caller.to(T).deadline(ms(5)).run_or(Backup::value(3), Verdict::of, hang);
    assert_eq!(late.await.unwrap().fallback(), Some(FallbackKind::Value));
    let _ = world.engine.admit(T).unwrap().failure();
    assert_eq!(broken(&world, Backup::value(4)).await.unwrap(), (4, Some(FallbackKind::Value)));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_to_answer_who_was_late_on_arrival() {
    let world = World::new(patient(), three());
    let late = || world.caller.to(T).deadline(ms(0));
    let asynchronous = late().run_or(Backup::value(3), Verdict::of, |_| async { Ok::<_, ()>(1) }).await.unwrap_err();
    let blocking = late().run_blocking_or(Backup::value(3), Verdict::of, &ThreadSleep, |_| Ok::<_, ()>(1)).unwrap_err();
    for error in [asynchronous, blocking] {
        assert_eq!((error.cause(), error.fallback_error().is_none()), (&Cause::Deadline { on_arrival: true }, true));
    }
    assert_eq!((fallbacks(&world), world.counts().deadline_refused), ([0; 4], 2));
}

#[tokio::test(start_paused = true)]
async fn the_last_good_answer_is_given_until_it_is_too_old() {
    let world = World::standing(patient(), three());
    let store = LastGood::new(10);
    let backup = || Backup::last_good(&store, "rates", secs(60));
    let error = broken(&world, backup()).await.unwrap_err();
    assert_eq!(error.fallback_error().unwrap().downcast_ref(), Some(&NoFallback::NothingKept));

    let good = world.caller.to(T).run_or(backup(), Verdict::of, |_| async { Ok(7) }).await.unwrap();
    assert_eq!((*good, good.fallback()), (7, None));
    world.time.increment(secs(60));
    let stale = FallbackKind::Stale { age: secs(60) };
    assert_eq!(broken(&world, backup()).await.unwrap(), (7, Some(stale)));
    assert_eq!(
        (stale.to_string(), FallbackKind::Stale { age: ms(1_001) }.to_string()),
        ("stale; age=60".into(), "stale; age=2".into())
    );
    world.time.increment(Duration::from_nanos(1));
    assert!(broken(&world, backup()).await.is_err());
    assert_eq!(fallbacks(&world), [0, 0, 1, 2]);
}

#[test]
fn an_answer_too_old_for_one_caller_is_kept_for_another() {
    let store = LastGood::new(10);
    store.keep("rates".to_owned(), 7, secs(1));
    assert_eq!(store.get("rates", secs(10), secs(61)), None);
    assert_eq!(store.get("rates", secs(60), secs(61)), Some((7, secs(60))));
}

#[tokio::test(start_paused = true)]
async fn the_store_is_bounded() {
    let store = LastGood::new(10);
    for key in 0..1_000 {
        store.keep(format!("key {key}"), key, secs(1));
    }
    let kept = (0..1_000).filter(|key| store.get(&format!("key {key}"), secs(1), secs(1)).is_some()).count();
    assert!(kept <= 10 + 64, "moka makes room in batches of 64: {kept}");
    assert!(store.get("key 999", secs(1), secs(1)).is_some(), "the newest is kept");
}

#[tokio::test(start_paused = true)]
async fn a_fallback_that_fails_hides_neither_failure() {
    let world = World::new(patient(), three());
    let failing = || Backup::function(|_: &Failed| async { Err(BoxError::from("no cache either")) });
    let error = broken(&world, failing()).await.unwrap_err();
    assert_eq!(error.cause(), &Cause::Failed("broken"));
    assert_eq!(error.to_string(), "E500: broken; the fallback failed: no cache either");
    // Of a failed answer as well: it would be handed on by itself.
    let judge = |_: &Result<u32, &'static str>| Verdict::failure().status(503);
    let answered = world.caller.to(T).run_or(Backup::refuse(), judge, |_| async { Ok(5) }).await.unwrap();
    assert_eq!((*answered, answered.is_failure(), answered.fallback()), (5, true, None));
    let error = world.caller.to(T).run_or(failing(), judge, |_| async { Ok(5) }).await.unwrap_err();
    assert_eq!((error.cause(), error.fallback_error().is_some()), (&Cause::Answered { status: Some(503) }, true));
    assert_eq!(fallbacks(&world), [0, 0, 0, 2]);
}
