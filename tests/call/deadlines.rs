use std::future::pending;

use portcullis::call::{CallPolicy, Cause, GaveUp};
use portcullis::{OnAbandon, State};

use super::support::{Count, World, patient, three, timed};
use crate::common::{T, ms, secs, textbook};

#[tokio::test(start_paused = true)]
async fn a_call_that_had_no_time_left_on_arrival_is_refused_and_counts_for_nothing() {
    let world = World::new(patient(), three());
    let asked = Count::default();
    for number in 1..=20 {
        let call = world.caller.to(T).deadline(ms(0)).run(|_| {
            asked.next();
            async { Ok::<_, ()>(()) }
        });
        let (result, took) = timed(call).await;
        let error = result.unwrap_err();
        assert_eq!((error.cause(), took), (&Cause::Deadline { on_arrival: true }, ms(0)));
        assert_eq!((error.code(), error.reason(), error.attempts()), ("E901", "deadline", 0));
        assert_eq!((world.counts().deadline_refused, world.counts().attempts), (number, 0));
    }
    assert_eq!(asked.get(), 0);
    assert!(world.engine.snapshot(T).is_none(), "the engine wasn't even asked");
}

#[tokio::test(start_paused = true)]
async fn a_callers_deadline_shortens_the_attempt_and_the_policys_holds_all_the_same() {
    let world = World::new(patient(), CallPolicy::builder().timeout(ms(100)));
    for (left, told) in [(ms(40), ms(40)), (ms(100), ms(100)), (secs(9), ms(100))] {
        let call = world.caller.to(T).deadline(left).run(|attempt| async move { Ok::<_, ()>(attempt.timeout) });
        assert_eq!(*call.await.unwrap(), told);
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_in_a_hurry_opens_no_circuit() {
    let world = World::new(textbook(), CallPolicy::builder().timeout(secs(1)));
    for _ in 0..20 {
        let call = world.caller.to(T).deadline(ms(40)).run(|_| pending::<Result<(), ()>>());
        let (result, took) = timed(call).await;
        let error = result.unwrap_err();
        assert_eq!(
            (error.cause(), error.gave_up(), took),
            (&Cause::Deadline { on_arrival: false }, GaveUp::Deadline, ms(40))
        );
    }
    assert_eq!((world.snapshot().state, world.totals()), (State::Closed, [0, 0, 0, 20]));
    assert_eq!((world.counts().deadline_cut, world.counts().timeouts), (20, 0));
    // Whoever says that any abandoned call is a failure is believed.
    let strict = World::new(textbook().on_abandon(OnAbandon::Failure), CallPolicy::builder().timeout(secs(1)));
    for _ in 0..5 {
        let call = strict.caller.to(T).deadline(ms(40)).run(|_| pending::<Result<(), ()>>());
        assert_eq!(call.await.unwrap_err().code(), "E901");
    }
    assert_eq!(strict.snapshot().state, State::Open);
}

#[tokio::test(start_paused = true)]
async fn no_attempt_begins_that_could_not_have_its_whole_timeout() {
    let world = World::new(patient(), three());
    let call = world.caller.to(T).idempotent(true).deadline(ms(250)).run(|_| pending::<Result<(), ()>>());
    let (result, took) = timed(call).await;
    let error = result.unwrap_err();
    // Two of 100 ms and a backoff of up to 10 ms fit, a third doesn't: nobody waits for what can't come.
    assert_eq!((error.attempts(), error.gave_up()), (2, GaveUp::Deadline));
    assert!((ms(200)..=ms(210)).contains(&took), "{took:?}");
    assert_eq!(world.counts().deadline_kept, 1);
}
