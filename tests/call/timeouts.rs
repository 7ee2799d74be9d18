use std::future::pending;
use std::sync::Arc;

use portcullis::call::{CallPolicy, Cause};
use portcullis::{Policy, State};

use super::support::{Count, World, patient, timed};
use crate::common::{T, ms, secs};

/// Says when it is dropped.
struct Dropped(Count);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.next();
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_cancelled_and_a_failure() {
    let world = World::new(patient(), CallPolicy::builder().timeout(ms(100)));
    let dropped = Count::default();
    let call = || {
        let guard = Dropped(dropped.clone());
        async move {
            let _guard = guard;
            pending::<Result<(), &str>>().await
        }
    };
    let (result, took) = timed(world.caller.call(T, call)).await;
    let error = result.unwrap_err();
    assert_eq!((error.cause(), error.code(), error.reason()), (&Cause::TimedOut { after: ms(100) }, "E901", "timeout"));
    assert_eq!((took, dropped.get(), world.totals(), world.snapshot().in_flight), (ms(100), 1, [0, 1, 0, 0], 0));
    let counts = world.counts();
    assert_eq!((counts.calls, counts.attempts, counts.timeouts, counts.probe_timeouts, counts.failed), (1, 1, 1, 0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_leaves_is_judged_by_the_engines_policy_and_cancels_all() {
    let touchy = Policy::builder().no_window().consecutive_failures(1);
    let world = World::new(touchy, CallPolicy::builder().timeout(secs(5)));
    for (after, state) in [(ms(100), State::Closed), (ms(600), State::Open)] {
        let call = world.caller.call(T, pending::<Result<(), ()>>);
        assert!(tokio::time::timeout(after, call).await.is_err());
        assert_eq!((world.snapshot().state, world.snapshot().in_flight), (state, 0), "after {after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_and_goes_on() {
    let world = World::new(patient(), CallPolicy::builder());
    let caller = world.caller.clone();
    let task = tokio::spawn(async move { caller.call(T, || async { panic!("in the call") as Result<(), ()> }).await });
    assert!(task.await.unwrap_err().is_panic());
    assert_eq!((world.totals(), world.snapshot().in_flight), ([0, 1, 0, 0], 0));
}

/// PF-09: a worker that calls many dead targets spends its time on their probes. 42 of them with an open wait of 2 s.
#[tokio::test(start_paused = true)]
async fn pf09_a_probe_has_a_timeout_of_its_own() {
    async fn spent_on_probes(probe_timeout: u64) -> u128 {
        let dead = Policy::builder().consecutive_failures(1).open_wait(secs(2)).backoff(1.0).jitter(0.0);
        let call = CallPolicy::builder().timeout(ms(250)).probe_timeout(ms(probe_timeout));
        let world = World::new(dead, call);
        let keys: Vec<String> = (0..42).map(|key| format!("dead {key}")).collect();
        for key in &keys {
            let _ = world.engine.admit(key.as_str()).map(portcullis::Permit::failure);
        }
        tokio::time::sleep(ms(2_001)).await;
        let mut spent = ms(0);
        for key in &keys {
            let (result, took) = timed(world.caller.call(key.as_str(), pending::<Result<(), ()>>)).await;
            assert_eq!(result.unwrap_err().cause(), &Cause::TimedOut { after: ms(probe_timeout) });
            assert_eq!(world.caller.counts(key.as_str()).unwrap().probe_timeouts, 1);
            assert_eq!(world.engine.snapshot(key.as_str()).unwrap().state, State::Open);
            spent += took;
        }
        spent.as_millis()
    }
    // Of 12.5 s and of 4.1 s: 84 % and 51 %.
    assert_eq!((spent_on_probes(250).await, spent_on_probes(50).await), (10_500, 2_100));
}

/// PF-06: a timer that lives until its minute is over keeps what the call had. Timers live in their futures, so nothing is kept.
#[tokio::test(start_paused = true)]
async fn pf06_a_call_that_is_done_keeps_nothing_until_its_timeout() {
    let world = World::standing(patient().probe_lease(secs(61)), CallPolicy::builder().timeout(secs(60)));
    let kept = Arc::new(());
    for _ in 0..10_000 {
        let result = Arc::clone(&kept);
        let call = || async move {
            tokio::time::sleep(ms(1)).await;
            Ok::<_, ()>(result)
        };
        drop(world.caller.call(T, call).await.unwrap());
        assert_eq!(Arc::strong_count(&kept), 1);
    }
    // No task was started for any of them.
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

/// On real time the last attempt begins microseconds after its call: that takes nothing from its timeout, nor from the target's blame.
#[tokio::test]
async fn an_attempt_without_a_deadline_is_never_cut_short() {
    let world = World::standing(patient(), CallPolicy::builder().timeout(ms(20)).attempts(2).backoff(ms(0)));
    let call = world.caller.to(T).idempotent(true).run(|_| pending::<Result<(), &str>>());
    assert_eq!(call.await.unwrap_err().attempts(), 2);
    assert_eq!((world.counts().timeouts, world.counts().deadline_cut, world.totals()), (2, 0, [0, 2, 0, 0]));
}

/// As above, where the policy says a deadline that is just its worst case: what is left of it is always microseconds less than the timeout.
#[tokio::test]
async fn a_target_that_hangs_is_to_blame_though_the_policys_deadline_is_its_timeout() {
    let touchy = Policy::builder().no_window().consecutive_failures(3);
    let world = World::standing(touchy, CallPolicy::builder().timeout(ms(20)).deadline(ms(20)));
    for _ in 0..3 {
        let error = world.caller.call(T, pending::<Result<(), &str>>).await.unwrap_err();
        assert!(matches!(error.cause(), Cause::TimedOut { .. }), "{error}");
    }
    assert_eq!((world.counts().timeouts, world.counts().deadline_cut, world.totals()), (3, 0, [0, 3, 0, 0]));
    assert_eq!(world.snapshot().state, State::Open);
}
