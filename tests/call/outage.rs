//! What retries do to a target that is down: with the budget they add a share of the calls, without it they multiply them.

use portcullis::call::CallPolicyBuilder;

use super::support::{World, patient, three};
use crate::common::{T, ms};

/// Attempts that reach a dead target in 30 s of 100 calls a second, each willing to try three times; the breaker is off, so that only the
/// budget stands between.
async fn load(policy: CallPolicyBuilder) -> (u64, u64) {
    let world = World::ticking(patient(), policy, ms(20));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..3_000 {
        let caller = world.caller.clone();
        calls.spawn(async move {
            let call = caller.to(T).idempotent(true).run(|_| async {
                tokio::time::sleep(ms(20)).await;
                Err::<(), _>("down")
            });
            call.await.is_err()
        });
        tokio::time::sleep(ms(10)).await;
    }
    assert!(calls.join_all().await.into_iter().all(|failed| failed));
    (world.counts().calls, world.counts().attempts)
}

#[tokio::test(start_paused = true)]
async fn a_full_outage_adds_at_most_the_budget_to_the_load() {
    for (share, milli) in [(0.1, 100), (0.2, 200), (0.5, 500)] {
        let (calls, attempts) = load(three().retry_budget(share).retry_floor(1)).await;
        let (retries, budget) = (attempts - calls, calls * milli / 1_000);
        // One period's share may be taken before its calls have come, and at the end of it again: 5 s of 100 calls.
        assert!(retries <= budget + 500 * milli / 1_000, "{retries} retries of {budget}");
        assert!(retries >= budget * 8 / 10, "and the budget is used: {retries} of {budget}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_budget_the_load_is_multiplied() {
    assert_eq!(load(three().no_retry_budget()).await, (3_000, 9_000));
}

#[tokio::test(start_paused = true)]
async fn without_a_share_only_the_floor_is_left() {
    let (calls, attempts) = load(three().retry_budget(0.0).retry_floor(2)).await;
    // 2 a second for 30 s, and up to one memory of 10 s at the start.
    let retries = attempts - calls;
    assert!((60..=80).contains(&retries), "{retries}");
}
