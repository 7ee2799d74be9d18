use std::cell::RefCell;
use std::time::Duration;

use portcullis::call::{Backup, Cause, FallbackKind, GaveUp, LastGood, NoFallback, Sleep, Verdict};
use portcullis::{Policy, Rejection};

use super::support::{Count, World, patient, three};
use crate::common::{T, ms, secs};

/// Sleeps by moving the clock, and writes down how long.
struct Quick<'a>(&'a World, RefCell<Vec<Duration>>);

impl Sleep for Quick<'_> {
    fn sleep(&self, duration: Duration) {
        self.0.time.increment(duration);
        self.1.borrow_mut().push(duration);
    }
}

fn quick(world: &World) -> Quick<'_> {
    Quick(world, RefCell::default())
}

#[test]
fn a_blocking_call_is_admitted_retried_and_counted_without_a_runtime() {
    let world = World::standing(patient(), three());
    let sleep = quick(&world);
    let call = world.caller.to(T).idempotent(true);
    let answer = call.run_blocking_or(Backup::refuse(), Verdict::of, &sleep, |attempt| {
        assert_eq!(attempt.timeout, ms(100));
        world.time.increment(ms(10));
        if attempt.number == 3 { Ok(attempt.number) } else { Err("broken") }
    });
    assert_eq!(*answer.unwrap(), 3);
    let slept = sleep.1.into_inner();
    assert!(slept.len() == 2 && slept[0] <= ms(10) && slept[1] <= ms(20), "{slept:?}");
    let counts = world.counts();
    assert_eq!((world.totals(), counts.calls, counts.attempts, counts.retries), ([1, 2, 0, 0], 1, 3, 2));
    assert_eq!(world.caller.call_blocking(T, || Ok::<_, ()>(5)).unwrap(), 5);
    let once = world.caller.call_blocking(T, || Err::<(), _>("broken")).unwrap_err();
    assert_eq!((once.attempts(), once.gave_up()), (1, GaveUp::NotIdempotent));
}

#[test]
fn a_blocking_call_tells_its_client_how_long_it_may_take() {
    let world = World::standing(patient(), three());
    let sleep = quick(&world);
    let told = RefCell::new(Vec::new());
    let call = world.caller.to(T).idempotent(true).deadline(ms(150));
    let result = call.run_blocking_or(Backup::refuse(), Verdict::of, &sleep, |attempt| {
        told.borrow_mut().push(attempt.timeout);
        // A client that keeps to it.
        world.time.increment(attempt.timeout);
        Err::<(), _>("timed out")
    });
    assert_eq!((result.unwrap_err().gave_up(), told.into_inner()), (GaveUp::Deadline, vec![ms(100)]));
    let short = world.caller.to(T).deadline(ms(30)).run_blocking(|attempt| Ok::<_, ()>(attempt.timeout));
    assert_eq!(*short.unwrap(), ms(30));
    let late = world.caller.to(T).deadline(ms(0)).run_blocking(|_| Ok::<_, ()>(())).unwrap_err();
    assert_eq!((late.cause(), late.code()), (&Cause::Deadline { on_arrival: true }, "E901"));
    assert_eq!(world.counts().deadline_refused, 1);
}

/// As an asynchronous one, that is cut off by then.
#[test]
fn a_blocking_caller_in_a_hurry_opens_no_circuit() {
    let world = World::standing(Policy::builder().no_window().consecutive_failures(1), three());
    let judge = |result: &Result<u32, &str>| match result {
        Err("timed out") => Verdict::failure().code("E901"),
        Err("no such account") => Verdict::success(),
        result => Verdict::of(result),
    };
    let run = |took, result: Result<u32, &'static str>| {
        let call = world.caller.to(T).idempotent(true).deadline(ms(30));
        call.run_blocking_or(Backup::refuse(), judge, &quick(&world), |_| {
            world.time.increment(ms(took));
            result
        })
    };
    for (took, result) in [(30, Err("broken")), (29, Err("timed out"))] {
        let error = run(took, result).unwrap_err();
        assert_eq!(
            (error.cause(), error.gave_up(), error.attempts()),
            (&Cause::Deadline { on_arrival: false }, GaveUp::Deadline, 1)
        );
    }
    assert_eq!((world.totals(), world.counts().deadline_cut, world.counts().timeouts), ([0, 0, 0, 2], 2, 0));
    // An answer is one, be it late. So is a failure that came in time.
    assert_eq!(*run(31, Ok(1)).unwrap(), 1);
    assert_eq!(run(31, Err("no such account")).unwrap_err().cause(), &Cause::Failed("no such account"));
    assert_eq!(world.totals(), [2, 0, 0, 2]);
    assert_eq!(run(29, Err("broken")).unwrap_err().cause(), &Cause::Failed("broken"));
    assert_eq!((world.totals(), world.counts().deadline_cut), ([2, 1, 0, 2], 2));
}

#[test]
fn a_timeout_of_the_clients_own_is_told_by_its_code() {
    let world = World::standing(patient(), three());
    let judge = |result: &Result<(), &str>| match result {
        Err("timed out") => Verdict::failure().code("E901"),
        result => Verdict::of(result),
    };
    for (error, code, timeouts) in [("timed out", "E901", 1), ("broken", "E500", 1)] {
        let call = world.caller.to(T);
        let result = call.run_blocking_or(Backup::refuse(), judge, &quick(&world), |_| Err(error));
        assert_eq!((result.unwrap_err().code(), world.counts().timeouts), (code, timeouts));
    }
}

#[test]
fn a_blocking_call_is_refused_and_falls_back_like_any_other() {
    let world = World::standing(Policy::builder().no_window().consecutive_failures(1), three());
    let store = LastGood::new(4);
    let backup = || Backup::last_good(&store, "t", secs(60));
    let run = |backup, result: Result<u32, &'static str>| {
        world.caller.to(T).idempotent(true).run_blocking_or(backup, Verdict::of, &quick(&world), |_| result)
    };
    assert_eq!(*run(backup(), Ok(9)).unwrap(), 9);
    let stale = run(backup(), Err("broken")).unwrap();
    assert_eq!(*stale, 9);
    assert!(matches!(stale.fallback(), Some(FallbackKind::Stale { .. })));
    // Open since that failure.
    let refused = run(Backup::refuse(), Ok(1)).unwrap_err();
    assert!(matches!(refused.rejection(), Some(Rejection::Open { .. })));
    let wrong = run(Backup::function(|_| async { Ok(1) }), Ok(1)).unwrap_err();
    assert_eq!(wrong.fallback_error().unwrap().downcast_ref(), Some(&NoFallback::Asynchronous));
}

#[test]
fn a_blocking_caller_whose_scope_has_ended_says_nothing_about_the_target() {
    let world = World::standing(patient(), three());
    let asked = Count::default();
    let call = world.caller.to(T).idempotent(true).scope(|| true);
    let result = call.run_blocking(|_| {
        asked.next();
        Err::<(), _>("interrupted")
    });
    assert_eq!((result.unwrap_err().gave_up(), asked.get(), world.totals()), (GaveUp::Final, 1, [0, 0, 1, 0]));
}

#[test]
fn a_panic_in_a_blocking_call_is_a_failure() {
    let world = World::standing(patient(), three());
    let call = || world.caller.call_blocking(T, || panic!("in the call") as Result<(), ()>);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
    assert_eq!((world.totals(), world.snapshot().in_flight), ([0, 1, 0, 0], 0));
}
