use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use portcullis::call::{CallPolicy, Caller, Cause, GaveUp};
use portcullis::tower::requested_priority;
use portcullis::{Engine, Policy, PolicyBuilder, Priority, Rejection, State, Transition};
use tower::{Layer, Service, service_fn};

use super::layer::{Sent, get, layer};
use super::support::{Count, World, patient, three, timed};
use crate::common::{T, ms, secs, textbook};

/// One in flight, of calls that wait for at most 50 ms.
fn queued() -> PolicyBuilder {
    patient().max_in_flight(1).max_waiting(3).max_wait(ms(50))
}

fn once() -> portcullis::call::CallPolicyBuilder {
    CallPolicy::builder().timeout(ms(100))
}

#[tokio::test(start_paused = true)]
async fn calls_that_matter_less_stop_at_their_share_and_are_not_tried_again() {
    let shares = patient().max_in_flight(4).normal_share(0.75).sheddable_share(0.5);
    let world = World::new(shares.max_waiting(3), three());
    let mut held = vec![world.engine.admit(T).unwrap(), world.engine.admit(T).unwrap()];
    let asked = Count::default();
    let call = async |priority| {
        let call = world.caller.to(T).priority(priority).idempotent(true);
        let call = call.run(|_| {
            asked.next();
            async { Ok::<_, ()>(()) }
        });
        let (result, took) = timed(call).await;
        assert_eq!(took, ms(0), "a call below critical never waits");
        result
    };
    let shed = call(Priority::Sheddable).await.unwrap_err();
    assert_eq!(shed.rejection(), Some(Rejection::Shed { priority: Priority::Sheddable }));
    assert_eq!((shed.code(), shed.reason(), shed.gave_up(), shed.attempts()), ("E905", "shed", GaveUp::Final, 0));
    call(Priority::Normal).await.unwrap();
    held.push(world.engine.admit(T).unwrap());
    let shed = call(Priority::Normal).await.unwrap_err();
    assert_eq!(shed.rejection(), Some(Rejection::Shed { priority: Priority::Normal }));
    call(Priority::Critical).await.unwrap();
    assert_eq!(asked.get(), 2);
    let (counts, snapshot) = (world.counts(), world.snapshot());
    assert_eq!((counts.calls, counts.attempts, counts.rejected, counts.retries), (4, 2, 2, 0));
    assert_eq!((snapshot.refusals.shed, snapshot.waited), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_critical_call_waits_for_its_permit_and_has_its_whole_timeout_then() {
    let world = World::new(queued(), once());
    let held = world.engine.admit(T).unwrap();
    let call = world.caller.to(T).run(|attempt| async move { Ok::<_, ()>(attempt.timeout) });
    let freed = async {
        tokio::time::sleep(ms(30)).await;
        assert_eq!(world.snapshot().waiting, 1);
        held.success();
    };
    let ((answer, ()), took) = timed(async { tokio::join!(call, freed) }).await;
    assert_eq!((*answer.unwrap(), took), (ms(100), ms(30)));
    let snapshot = world.snapshot();
    assert_eq!((snapshot.waited, snapshot.in_flight, snapshot.refusals.total()), (1, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_the_policy_says_or_at_all_unless_it_does() {
    let world = World::new(queued(), three());
    let _held = world.engine.admit(T).unwrap();
    let call = || world.caller.to(T).idempotent(true).run(|_| async { Ok::<_, ()>(()) });
    let (result, took) = timed(call()).await;
    let error = result.unwrap_err();
    assert_eq!((error.rejection(), took), (Some(Rejection::Saturated { limit: 1 }), ms(50)));
    assert_eq!((error.gave_up(), world.snapshot().waiting), (GaveUp::Final, 0));
    let hasty = World::new(patient().max_in_flight(1), three());
    let _held = hasty.engine.admit(T).unwrap();
    let (result, took) = timed(hasty.caller.call(T, || async { Ok::<_, ()>(()) })).await;
    assert_eq!((result.unwrap_err().code(), took), ("E905", ms(0)));
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_no_longer_than_leaves_its_timeout_before_the_deadline() {
    let world = World::new(queued().max_wait(secs(9)), once());
    let held = world.engine.admit(T).unwrap();
    for (left, waits) in [(ms(130), ms(30)), (ms(101), ms(1)), (ms(100), ms(0)), (ms(40), ms(0))] {
        let call = world.caller.to(T).deadline(left).run(|_| async { Ok::<_, ()>(()) });
        let (result, took) = timed(call).await;
        let cause = Cause::Rejected(Rejection::Saturated { limit: 1 });
        assert_eq!((result.unwrap_err().cause(), took), (&cause, waits), "{left:?}");
    }
    assert_eq!((world.snapshot().waiting, world.snapshot().waited), (0, 2));
    // Who gets a permit in the wait has what is left; a target that then takes too long is to blame.
    let call = world.caller.to(T).deadline(ms(130)).run(|_| pending::<Result<(), ()>>());
    let freed = async {
        tokio::time::sleep(ms(29)).await;
        held.success();
    };
    let ((result, ()), took) = timed(async { tokio::join!(call, freed) }).await;
    assert_eq!((result.unwrap_err().cause(), took), (&Cause::TimedOut { after: ms(100) }, ms(129)));
    assert_eq!((world.counts().timeouts, world.totals()), (1, [1, 1, 0, 0]));
}

#[tokio::test(start_paused = true)]
async fn a_permit_that_comes_after_the_deadline_is_given_back_without_a_word() {
    let world = World::new(queued().max_wait(secs(9)), once());
    let held = world.engine.admit(T).unwrap();
    let asked = Count::default();
    let call = world.caller.to(T).deadline(ms(130)).run(|_| {
        asked.next();
        async { Ok::<_, ()>(()) }
    });
    let mut call = pin!(call);
    assert!(poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending())).await);
    // Nobody gets to look at it in time.
    tokio::time::advance(ms(200)).await;
    held.success();
    let error = call.await.unwrap_err();
    assert_eq!((error.cause(), asked.get()), (&Cause::Deadline { on_arrival: false }, 0));
    assert_eq!((world.totals(), world.snapshot().in_flight), ([1, 0, 1, 0], 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_counted_from_when_the_permit_came() {
    let world = World::new(queued().max_wait(secs(9)), once());
    let held = world.engine.admit(T).unwrap();
    let call = world.caller.to(T).deadline(ms(130)).run(|_| pending::<Result<(), ()>>());
    let mut call = pin!(call);
    assert!(poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending())).await);
    tokio::time::advance(ms(80)).await;
    held.success();
    let (result, took) = timed(call).await;
    assert_eq!((result.unwrap_err().cause(), took), (&Cause::Deadline { on_arrival: false }, ms(50)));
    assert_eq!(world.totals(), [1, 0, 0, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_while_it_waits_leaves_nothing() {
    let world = World::new(queued(), once());
    let held = world.engine.admit(T).unwrap();
    let caller = world.caller.clone();
    let task = tokio::spawn(async move { caller.call(T, || async { Ok::<_, ()>(()) }).await.map_err(|_| ()) });
    tokio::time::sleep(ms(10)).await;
    assert_eq!(world.snapshot().waiting, 1);
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(world.snapshot().waiting, 0);
    held.success();
    let snapshot = world.snapshot();
    assert_eq!((snapshot.in_flight, world.totals(), world.counts().attempts), (0, [1, 0, 0, 0], 0));
    assert!(world.caller.call(T, || async { Ok::<_, ()>(()) }).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn who_waits_when_the_circuit_opens_is_told_so() {
    let world = World::new(queued().consecutive_failures(1), once());
    let held = world.engine.admit(T).unwrap();
    let call = world.caller.to(T).run(|_| async { Ok::<_, ()>(()) });
    let failed = async {
        tokio::time::sleep(ms(10)).await;
        held.failure();
    };
    let ((result, ()), took) = timed(async { tokio::join!(call, failed) }).await;
    let error = result.unwrap_err();
    assert!(matches!(error.rejection(), Some(Rejection::Open { .. })), "{error:?}");
    assert_eq!((took, world.snapshot().state), (ms(10), State::Open));
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_like_any_other_attempt() {
    let world = World::new(queued(), three().backoff(ms(0)));
    let call = world.caller.to(T).idempotent(true).run(|attempt| async move {
        tokio::time::sleep(ms(10)).await;
        if attempt.number == 1 { Err("broken") } else { Ok(attempt.number) }
    });
    let other = async {
        tokio::time::sleep(ms(5)).await;
        let slow = world.caller.to(T).run(|_| async {
            tokio::time::sleep(ms(20)).await;
            Ok::<_, ()>(())
        });
        slow.await.unwrap();
    };
    let ((answer, ()), took) = timed(async { tokio::join!(call, other) }).await;
    // The other came first while the first attempt ran.
    assert_eq!((*answer.unwrap(), took, world.snapshot().waited), (2, ms(40), 2));
}

/// A request that says how much it matters, and which it is.
fn numbered(number: usize, priority: Option<&str>) -> Request<Full<Bytes>> {
    let mut request = get();
    request.headers_mut().insert("x-number", number.into());
    if let Some(priority) = priority {
        request.headers_mut().insert("x-request-priority", priority.parse().unwrap());
    }
    request
}

#[tokio::test(start_paused = true)]
async fn requests_through_the_layer_are_answered_in_the_order_in_which_they_came() {
    let world = World::new(queued(), once());
    let held = world.engine.admit(T).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sees = Arc::clone(&seen);
    let upstream = service_fn(move |request: Sent| {
        sees.lock().unwrap().push(request.headers()["x-number"].to_str().unwrap().to_owned());
        async {
            tokio::time::sleep(ms(5)).await;
            Ok::<_, std::io::Error>(Response::new(Full::<Bytes>::default()))
        }
    });
    let service = layer(&world).layer(upstream);
    let call = async |number| {
        let response = service.clone().call(numbered(number, None)).await.unwrap();
        response.into_body().collect().await.unwrap();
    };
    let freed = async {
        assert_eq!(world.snapshot().waiting, 3);
        held.success();
        // A newcomer overtakes nobody.
        assert_eq!(world.engine.admit(T).unwrap_err(), Rejection::Saturated { limit: 1 });
    };
    let ((.., ()), took) = timed(async { tokio::join!(call(1), call(2), call(3), freed) }).await;
    assert_eq!((&seen.lock().unwrap()[..], took), (&["1", "2", "3"].map(str::to_owned)[..], ms(15)));
}

#[tokio::test(start_paused = true)]
async fn a_header_lowers_the_priority_of_a_request_and_never_raises_it() {
    let shares = queued().max_in_flight(4).normal_share(0.75).sheddable_share(0.5);
    let world = World::new(shares, once());
    let _held = [(); 3].map(|()| world.engine.admit(T).unwrap());
    let answering = || service_fn(|_: Sent| async { Ok::<_, std::io::Error>(Response::new(Full::<Bytes>::default())) });
    let ask = async |at_most: Option<Priority>, header: Option<&str>| {
        let layer = layer(&world);
        let layer = match at_most {
            None => layer,
            Some(at_most) => layer.priority(move |request| requested_priority(&request.headers, at_most)),
        };
        let response = layer.layer(answering()).call(numbered(0, header)).await;
        match response.map_err(|error| error.rejection()) {
            Ok(_) => "passes",
            Err(Some(Rejection::Shed { priority })) => priority.name(),
            Err(other) => panic!("{other:?}"),
        }
    };
    // Unless the layer is told to look, the header is nothing.
    assert_eq!(ask(None, Some("sheddable")).await, "passes");
    let critical = Some(Priority::Critical);
    for (header, answer) in [
        (None, "passes"),
        (Some("critical"), "passes"),
        (Some("most urgent"), "passes"),
        (Some("Normal"), "normal"),
        (Some("sheddable"), "sheddable"),
    ] {
        assert_eq!(ask(critical, header).await, answer, "{header:?}");
    }
    for (header, answer) in [(None, "normal"), (Some("critical"), "normal"), (Some("sheddable"), "sheddable")] {
        assert_eq!(ask(Some(Priority::Normal), header).await, answer, "{header:?}");
    }
    // Of two the lower counts.
    let mut request = numbered(0, Some("sheddable"));
    request.headers_mut().append("x-request-priority", "critical".parse().unwrap());
    assert_eq!(requested_priority(request.headers(), Priority::Critical), Priority::Sheddable);
}

#[test]
fn a_blocking_call_waits_on_its_thread() {
    let world = World::standing(queued().max_wait(secs(60)), once());
    let held = world.engine.admit(T).unwrap();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| world.caller.call_blocking(T, || Ok::<_, ()>(1)).unwrap());
        while world.snapshot().waiting == 0 {
            std::thread::yield_now();
        }
        held.success();
        assert_eq!(call.join().unwrap(), 1);
    });
    assert_eq!((world.snapshot().waited, world.totals()), (1, [2, 0, 0, 0]));
}

#[test]
fn a_blocking_call_gives_back_a_permit_that_took_all_its_time() {
    let world = World::standing(textbook().consecutive_failures(1), once());
    let time = Arc::clone(&world.time);
    // The call that becomes the probe tells so before it goes on.
    let _slow = world.engine.observe(move |transition: &Transition| {
        if transition.to == State::HalfOpen {
            time.increment(secs(2));
        }
    });
    world.engine.admit(T).unwrap().failure();
    world.time.increment(secs(30));
    let asked = Count::default();
    let call = world.caller.to(T).deadline(secs(1)).run_blocking(|_| {
        asked.next();
        Ok::<_, ()>(())
    });
    let error = call.unwrap_err();
    assert_eq!((error.cause(), error.attempts(), asked.get()), (&Cause::Deadline { on_arrival: false }, 0, 0));
    let snapshot = world.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.state, snapshot.totals.ignored), (0, State::HalfOpen, 1));
    // The probe's place is free again.
    assert_eq!(world.caller.call_blocking(T, || Ok::<_, ()>(1)).unwrap(), 1);
}

#[test]
fn a_blocking_call_keeps_to_share_and_deadline() {
    let world = World::standing(queued().max_in_flight(2).max_wait(secs(60)).sheddable_share(0.5), once());
    let _first = world.engine.admit(T).unwrap();
    let asked = Count::default();
    let shed = world.caller.to(T).priority(Priority::Sheddable).run_blocking(|_| {
        asked.next();
        Ok::<_, ()>(())
    });
    assert_eq!(shed.unwrap_err().rejection(), Some(Rejection::Shed { priority: Priority::Sheddable }));
    let _second = world.engine.admit(T).unwrap();
    // No clock moves: whoever waited at all would wait for good.
    let late = world.caller.to(T).deadline(ms(100)).run_blocking(|_| {
        asked.next();
        Ok::<_, ()>(())
    });
    assert_eq!((late.unwrap_err().code(), asked.get()), ("E905", 0));
}

#[test]
fn a_deadline_must_hold_the_wait_for_a_permit_too() {
    let engine = |policy: PolicyBuilder| Arc::new(Engine::<String>::builder().policy(policy.build().unwrap()).build());
    let build =
        |policy, deadline| Caller::builder(engine(policy)).policy(three().deadline(deadline).build().unwrap()).build();
    assert!(build(queued(), ms(380)).is_ok());
    let error = build(queued(), ms(379)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "deadline: 379ms is out of range: must be at least the engine's max_wait and the worst case: 50ms + 330ms = 380ms"
    );
    assert!(build(Policy::builder(), ms(330)).is_ok(), "where nobody waits there is nothing to hold");
}
