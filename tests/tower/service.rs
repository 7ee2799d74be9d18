//! Admission in `call`, and who is asked for readiness.

use std::sync::Arc;
use std::task::Poll;

use portcullis::tower::{AdmissionLayer, Error, HttpClassifier, classify_fn};
use portcullis::{Engine, Outcome, Rejection, State};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

use super::support::{Readiness, Rig, Watched, context, now, poll};
use crate::common::{T, secs, textbook};

fn verdict<R>(result: &Result<R, &'static str>) -> Outcome {
    if result.is_ok() { Outcome::Success } else { Outcome::Failure }
}

#[test]
fn poll_ready_is_ready_and_takes_nothing_whatever_the_inner_service_does() {
    for readiness in [Readiness::Ready, Readiness::Never, Readiness::Broken, Readiness::Panics] {
        let rig = Rig::new(textbook());
        let inner = Watched::new(readiness);
        let mut service = rig.guard::<u8, _, _>(classify_fn(verdict), inner.clone());
        for _ in 0..10 {
            assert_eq!(service.poll_ready(&mut context()), Poll::Ready(Ok(())));
        }
        assert!(rig.engine.is_empty(), "a service that is ready and idle holds nothing");
        rig.trip();
        assert_eq!(service.poll_ready(&mut context()), Poll::Ready(Ok(())), "OPEN shows in call, not here");
        assert_eq!(inner.uses(), (0, 0));
        assert_eq!(rig.snapshot().refusals.total(), 1, "the one that ended the trip");
    }
}

#[test]
fn an_open_target_refuses_at_once_and_the_inner_service_never_hears_of_it() {
    let rig = Rig::new(textbook());
    let inner = Watched::new(Readiness::Never);
    let mut service = rig.guard::<u8, _, _>(classify_fn(verdict), inner.clone());
    rig.trip();
    let refused = now(service.call(1));
    assert_eq!(refused, Err(Error::Rejected(Rejection::Open { retry_after: secs(30) })));
    assert_eq!((inner.uses(), rig.in_flight()), ((0, 0), 0));
}

#[test]
fn admission_happens_in_call_before_the_first_poll() {
    let rig = Rig::new(textbook().max_in_flight(1));
    let inner = Watched::new(Readiness::Ready);
    let mut service = rig.guard::<u8, _, _>(classify_fn(verdict), inner.clone());
    let first = service.call(1);
    assert_eq!((rig.in_flight(), inner.uses()), (1, (0, 0)));
    assert_eq!(now(service.call(2)), Err(Error::Rejected(Rejection::Saturated { limit: 1 })));
    assert_eq!(now(first), Ok(1));
    assert_eq!((rig.in_flight(), rig.snapshot().totals.success), (0, 1));
}

#[test]
fn a_refusal_is_counted_by_call_even_if_nobody_polls_it() {
    let rig = Rig::new(textbook());
    let mut service = rig.guard::<u8, _, _>(classify_fn(verdict), Watched::new(Readiness::Ready));
    rig.trip();
    let before = rig.snapshot().refusals.open;
    drop(service.call(1));
    assert_eq!((rig.snapshot().refusals.open, rig.in_flight()), (before + 1, 0));
}

#[test]
fn the_inner_service_is_called_on_the_clone_that_was_made_ready() {
    let rig = Rig::new(textbook());
    let inner = Watched::new(Readiness::After(2));
    let mut service = rig.guard::<u8, _, _>(classify_fn(verdict), inner.clone());
    let mut future = Box::pin(service.call(7));
    assert!(poll(&mut future).is_pending());
    assert!(poll(&mut future).is_pending());
    assert_eq!((inner.uses(), rig.in_flight()), ((2, 0), 1));
    assert_eq!(poll(&mut future), Poll::Ready(Ok(7)));
    assert_eq!((inner.uses(), rig.in_flight()), ((3, 1), 0));
}

#[test]
fn many_clones_share_an_inner_service_that_loses_readiness_on_clone() {
    let rig = Rig::new(textbook());
    let inner = Watched::new(Readiness::Ready);
    let service = rig.guard::<u8, _, _>(classify_fn(verdict), inner.clone());
    for number in 0..20 {
        assert_eq!(now(service.clone().oneshot(number)), Ok(number));
    }
    assert_eq!(inner.uses(), (20, 20));
}

#[test]
fn an_inner_readiness_error_settles_as_a_failure() {
    let rig = Rig::new(textbook());
    let inner = Watched::new(Readiness::Broken);
    let mut service = rig.guard::<u8, _, _>(classify_fn(verdict), inner.clone());
    for _ in 0..5 {
        assert_eq!(now(service.call(1)), Err(Error::Inner("not ready")));
    }
    assert_eq!((inner.uses(), rig.in_flight()), ((5, 0), 0));
    assert_eq!((rig.snapshot().state, rig.snapshot().totals.failure), (State::Open, 5));
    assert!(matches!(now(service.call(1)), Err(Error::Rejected(_))));
    assert_eq!(inner.uses(), (5, 0));
}

#[test]
fn an_inner_readiness_error_is_a_failure_of_http_too() {
    type Answer = http::Response<http_body_util::Full<&'static [u8]>>;
    let rig = Rig::new(textbook());
    let inner = Watched::new(Readiness::Broken);
    let mut service = rig.guard::<Answer, _, _>(HttpClassifier::new(), inner);
    assert!(matches!(now(service.call(Answer::default())), Err(Error::Inner("not ready"))));
    assert_eq!(rig.window(), (1, 1));
}

#[test]
fn a_rejection_is_an_error_and_the_service_lives_on() {
    let rig = Rig::new(textbook());
    let inner = Watched::new(Readiness::Ready);
    let mut service = rig.guard::<u8, _, _>(classify_fn(verdict), inner.clone());
    rig.trip();
    for _ in 0..3 {
        assert!(now(service.ready()).is_ok());
        assert!(matches!(now(service.call(1)), Err(Error::Rejected(Rejection::Open { .. }))));
    }
    rig.advance(secs(30));
    assert_eq!(now(async { service.ready().await?.call(2).await }), Ok(2));
    assert_eq!(rig.snapshot().state, State::Closed);
    assert_eq!(inner.uses(), (1, 1));
}

#[test]
fn clones_of_the_layer_and_of_the_service_share_the_target() {
    let rig = Rig::new(textbook());
    let layer = rig.layer::<u8, _>(classify_fn(verdict));
    let (broken, fine) = (Watched::new(Readiness::Broken), Watched::new(Readiness::Ready));
    let mut one = layer.layer(broken);
    let mut other = layer.clone().layer(fine);
    (0..5).for_each(|_| assert!(now(one.call(1)).is_err()));
    let mut clone = other.clone();
    for service in [&mut other, &mut clone] {
        assert!(matches!(now(service.call(1)), Err(Error::Rejected(Rejection::Open { .. }))));
    }
    assert_eq!((rig.engine.len(), rig.snapshot().refusals.open), (1, 2));
}

#[test]
fn requests_of_other_keys_are_other_targets() {
    let engine: Arc<Engine<u16>> = Arc::new(Engine::builder().policy(textbook().build().unwrap()).build());
    let layer = AdmissionLayer::new(Arc::clone(&engine), |request: &u16| request % 10, classify_fn(verdict));
    let mut service = layer.layer(Watched::new(Readiness::Ready));
    (0..40).for_each(|request| assert_eq!(now(service.call(request)), Ok(request)));
    assert_eq!((engine.len(), engine.snapshot(&3).unwrap().totals.success), (10, 4));
}

#[test]
fn a_full_engine_refuses_as_exhausted() {
    let engine: Arc<Engine> = Arc::new(Engine::builder().max_targets(1).build());
    let layer = AdmissionLayer::new(engine, |request: &String| request.clone(), classify_fn(verdict));
    let mut service = layer.layer(Watched::new(Readiness::Ready));
    assert!(now(service.call("a".to_owned())).is_ok());
    let refused = now(service.call("b".to_owned()));
    assert_eq!(refused, Err(Error::Rejected(Rejection::Exhausted { max_targets: 1 })));
}

#[test]
fn errors_say_whose_they_are() {
    use std::error::Error as _;
    let rejection = Rejection::Saturated { limit: 3 };
    let refused: Error<std::io::Error> = Error::Rejected(rejection);
    assert_eq!(refused.rejection(), Some(rejection));
    assert_eq!(refused.to_string(), format!("E905: {rejection}"));
    assert_eq!(refused.source().unwrap().to_string(), rejection.to_string());
    let inner = Error::Inner(std::io::Error::other("broken"));
    assert_eq!((inner.rejection(), inner.to_string().as_str()), (None, "broken"));
}

#[test]
fn futures_and_services_are_send() {
    fn is_send<V: Send>(value: V) -> V {
        value
    }
    let rig = Rig::new(textbook());
    let mut service = is_send(rig.guard::<u8, _, _>(classify_fn(verdict), Watched::new(Readiness::Ready)));
    assert_eq!(now(is_send(service.call(1))), Ok(1));
    type Answer = http::Response<http_body_util::Full<&'static [u8]>>;
    let mut http = is_send(rig.guard::<Answer, _, _>(HttpClassifier::new(), Watched::new(Readiness::Ready)));
    assert!(now(is_send(http.call(Answer::default()))).map(is_send).is_ok());
}

#[test]
fn debug_shows_the_parts_without_asking_them() {
    let rig = Rig::new(textbook());
    let layer = rig.layer::<u8, _>(classify_fn(verdict::<u8>));
    let mut service = ServiceBuilder::new().layer(layer.clone()).service(Watched::new(Readiness::Ready));
    let future = service.call(1);
    for (shown, part) in [
        (format!("{layer:?}"), "AdmissionLayer"),
        (format!("{service:?}"), "Watched"),
        (format!("{future:?}"), "OwnedPermit"),
        (format!("{:?}", HttpClassifier::new()), "too_many_requests: Failure"),
    ] {
        assert!(shown.contains(part), "{shown}");
    }
    assert_eq!(rig.engine.snapshot(T).unwrap().in_flight, 1);
}
