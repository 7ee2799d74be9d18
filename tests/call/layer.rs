use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Pending, Ready, pending, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use portcullis::call::{
    Again, CallError, CallLayer, CallService, Cause, FALLBACK_HEADER, Fallback, FallbackValue, GaveUp, ReplayBody,
    Scope, Verdict,
};
use portcullis::tower::{Classify, HttpClassifier};
use portcullis::{Policy, Rejection, State};
use tower::{Layer, Service};

use super::support::{Count, World, patient, three, timed};
use crate::common::{T, ms, secs, textbook};

pub(super) type Sent = Request<ReplayBody<Full<Bytes>>>;
type Key = fn(&Request<Full<Bytes>>) -> String;

pub(super) fn layer(world: &World) -> CallLayer<Key, HttpClassifier> {
    CallLayer::new(world.caller.clone(), |_| T.to_owned(), HttpClassifier::new())
}

pub(super) fn get() -> Request<Full<Bytes>> {
    Request::get("http://core/path").body(Full::default()).unwrap()
}

fn post() -> Request<Full<Bytes>> {
    Request::post("http://core/path").body(Full::from("body")).unwrap()
}

/// Answers with these one after the other, and keeps what it was asked.
#[derive(Clone)]
pub(super) struct Upstream {
    answers: Arc<Mutex<VecDeque<Response<Full<Bytes>>>>>,
    pub(super) heads: Arc<Mutex<Vec<http::request::Parts>>>,
}

impl Upstream {
    pub(super) fn new(answers: impl IntoIterator<Item = Response<Full<Bytes>>>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), heads: Arc::default() }
    }

    fn statuses(statuses: impl IntoIterator<Item = u16>) -> Self {
        Self::new(statuses.into_iter().map(|status| answer(status, "")))
    }

    fn asked(&self) -> usize {
        self.heads.lock().unwrap().len()
    }
}

pub(super) fn answer(status: u16, body: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

impl Service<Sent> for Upstream {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Sent) -> Self::Future {
        self.heads.lock().unwrap().push(request.into_parts().0);
        ready(Ok(self.answers.lock().unwrap().pop_front().expect("an answer is left")))
    }
}

async fn body<B: http_body::Body<Data = Bytes>>(response: Response<B>) -> String
where
    B::Error: std::fmt::Debug,
{
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_request_is_sent_again_if_that_does_no_harm() {
    let world = World::new(patient(), three());
    let mut keyed = post();
    keyed.headers_mut().insert("idempotency-key", "a1".parse().unwrap());
    for (request, statuses, last, asked) in [
        (get(), vec![503, 500, 200], 200, 3),
        (get(), vec![503, 502, 504], 504, 3),
        (get(), vec![404], 404, 1),
        (get(), vec![429], 429, 1),
        (get(), vec![501], 501, 1),
        (post(), vec![503], 503, 1),
        (keyed, vec![503, 200], 200, 2),
    ] {
        let upstream = Upstream::statuses(statuses);
        let response = layer(&world).layer(upstream.clone()).call(request).await.unwrap();
        assert_eq!((response.status().as_u16(), upstream.asked()), (last, asked));
        assert!(!response.headers().contains_key(FALLBACK_HEADER));
        drop(response);
        assert_eq!(world.snapshot().in_flight, 0);
    }
    // By whom it is declared: the policy's own predicate and judge.
    let upstream = Upstream::statuses([409, 200]);
    let own = layer(&world).idempotent(|request| request.uri.path() == "/path");
    let own = own.retry_on(|status, _| if status == 409 { Again::Yes } else { Again::No });
    let response = own.layer(upstream.clone()).call(post()).await.unwrap();
    assert_eq!((response.status().as_u16(), upstream.asked()), (200, 2));
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_kept_and_other_gateways_refusals_are_not_sent_again() {
    let world = World::new(patient(), three().deadline(secs(5)));
    let mut asks_for_2_s = answer(503, "");
    asks_for_2_s.headers_mut().insert("retry-after", "2".parse().unwrap());
    let upstream = Upstream::new([asks_for_2_s.clone(), answer(200, "")]);
    let (response, took) = timed(layer(&world).layer(upstream.clone()).call(get())).await;
    assert_eq!((response.unwrap().status().as_u16(), upstream.asked(), took), (200, 2, secs(2)));

    let short = World::new(patient(), three());
    let upstream = Upstream::new([asks_for_2_s]);
    let (response, took) = timed(layer(&short).layer(upstream.clone()).call(get())).await;
    assert_eq!((response.unwrap().status().as_u16(), upstream.asked(), took), (503, 1, ms(0)));

    let refusal = portcullis::tower::respond(&Rejection::Saturated { limit: 3 }).map(Full::from);
    let upstream = Upstream::new([refusal]);
    let response = layer(&world).layer(upstream.clone()).call(get()).await.unwrap();
    assert_eq!((response.headers()["x-portcullis-code"].as_bytes(), upstream.asked()), (&b"E905"[..], 1));
}

#[tokio::test(start_paused = true)]
async fn deadlines_come_in_and_what_is_left_goes_out() {
    let world = World::new(patient(), three());
    let upstream = Upstream::statuses([503, 200]);
    let mut request = get();
    request.headers_mut().insert("x-request-deadline-ms", "150".parse().unwrap());
    request.headers_mut().insert("grpc-timeout", "1S".parse().unwrap());
    // Time until the first poll is the caller's, too.
    let mut service = layer(&world).layer(upstream.clone());
    let call = service.call(request);
    tokio::time::sleep(ms(9)).await;
    assert!(call.await.is_ok());
    let heads = std::mem::take(&mut *upstream.heads.lock().unwrap());
    let sent = |index: usize, name| heads[index].headers[name].to_str().unwrap().to_owned();
    // The attempt's own timeout, since after that nobody listens.
    assert_eq!((sent(0, "x-request-deadline-ms"), sent(0, "grpc-timeout")), ("100".into(), "100m".into()));
    assert_eq!(heads.len(), 2);

    let upstream = Upstream::statuses([200]);
    let mut request = get();
    request.headers_mut().insert("x-request-deadline-ms", "40".parse().unwrap());
    assert!(layer(&world).layer(upstream.clone()).call(request).await.is_ok());
    assert_eq!(upstream.heads.lock().unwrap()[0].headers["x-request-deadline-ms"], "40");
    assert!(!upstream.heads.lock().unwrap()[0].headers.contains_key("grpc-timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_late_on_arrival_reaches_nobody() {
    let world = World::new(patient(), three());
    let upstream = Upstream::statuses([]);
    for late in ["0", "-20"] {
        let mut request = get();
        request.headers_mut().insert("x-request-deadline-ms", late.parse().unwrap());
        let error = layer(&world).layer(upstream.clone()).call(request).await.unwrap_err();
        assert_eq!((error.code(), error.reason(), error.attempts()), ("E901", "deadline", 0));
    }
    assert_eq!((upstream.asked(), world.counts().deadline_refused), (0, 2));
    assert!(world.engine.snapshot(T).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_hung_service_is_timed_out() {
    let world = World::new(textbook(), three());
    let inner = tower::service_fn(|_: Sent| -> Pending<Result<Response<Full<Bytes>>, Infallible>> { pending() });
    let mut service = layer(&world).layer(inner);
    let error = service.call(post()).await.unwrap_err();
    assert_eq!((error.cause(), error.code()), (&Cause::TimedOut { after: ms(100) }, "E901"));
    for _ in 0..4 {
        assert!(service.call(post()).await.is_err());
    }
    assert_eq!((world.snapshot().state, world.totals()), (State::Open, [0, 5, 0, 0]));
}

#[tokio::test(start_paused = true)]
async fn fallbacks_are_marked_counted_and_hide_nothing() {
    let value = FallbackValue { status: 200, content_type: "text/html".into(), body: "sorry".into() };
    let world = World::new(patient(), three().fallback(Fallback::Value(value)));
    for upstream in [Upstream::statuses([500]), Upstream::statuses([501])] {
        let response = layer(&world).layer(upstream).call(post()).await.unwrap();
        assert_eq!((response.status().as_u16(), response.headers()[FALLBACK_HEADER].as_bytes()), (200, &b"value"[..]));
        assert_eq!(response.headers()["content-type"], "text/html");
        assert_eq!(body(response).await, "sorry");
    }
    assert_eq!((world.counts().fallback_value, world.counts().failed, world.totals()), (2, 2, [0, 2, 0, 0]));
    // Business errors are answers.
    let response = layer(&world).layer(Upstream::statuses([404])).call(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers().contains_key(FALLBACK_HEADER)), (404, false));

    let world = World::new(patient().max_in_flight(1), three().fallback(Fallback::Function));
    let with_function = layer(&world).fallback(|request, failure| {
        let body = format!("{} {} {}", request.uri.path(), failure.code, failure.reason);
        async move { Ok(Response::new(Bytes::from(body))) }
    });
    let held = world.engine.admit(T).unwrap();
    let response = with_function.layer(Upstream::statuses([])).call(get()).await.unwrap();
    assert_eq!(response.headers()[FALLBACK_HEADER], "function");
    assert_eq!((body(response).await, world.counts().fallback_function), ("/path E905 saturated".to_owned(), 1));
    // None is given: the refusal stays, and says so.
    let error = layer(&world).layer(Upstream::statuses([])).call(get()).await.unwrap_err();
    assert!(error.rejection().is_some() && error.fallback_error().is_some());
    held.success();
    // And so does the target's own answer.
    let response = layer(&world).layer(Upstream::statuses([500])).call(post()).await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers()[FALLBACK_HEADER].as_bytes()), (500, &b"failed"[..]));
    assert_eq!(world.counts().fallback_failed, 2);
}

#[tokio::test(start_paused = true)]
async fn what_an_error_says_is_for_the_user_to_tell() {
    let world = World::new(patient(), three().fallback(Fallback::Value(FallbackValue::default())));
    let asked = Count::default();
    let inner = {
        let asked = asked.clone();
        tower::service_fn(move |_: Sent| {
            ready(Err::<Response<Full<Bytes>>, _>(if asked.next() == 1 { "refused" } else { "upload" }))
        })
    };
    let judge = |error: &&str| if *error == "upload" { Verdict::ignored() } else { Verdict::failure().code("E902") };
    let error = layer(&world).errors(judge).layer(inner).call(get()).await.unwrap_err();
    // The second is its caller's own doing: no third, no fallback.
    assert_eq!((error.cause(), error.attempts(), error.gave_up()), (&Cause::Failed("upload"), 2, GaveUp::Final));
    assert_eq!(world.counts().fallback_value, 0);
}

/// IN-03, for the layer.
#[tokio::test(start_paused = true)]
async fn in03_a_request_whose_scope_has_ended_says_nothing_about_its_target() {
    let world = World::new(textbook(), three());
    for (is_over, expected) in [(true, [0, 0, 5, 0]), (false, [0, 5, 5, 0])] {
        for _ in 0..5 {
            let inner = tower::service_fn(|_: Sent| ready(Err::<Response<Full<Bytes>>, _>("budget exceeded")));
            let mut request = post();
            request.extensions_mut().insert(Scope::new(move || is_over));
            assert!(layer(&world).layer(inner).call(request).await.is_err());
        }
        assert_eq!(world.totals(), expected);
    }
}

/// A service that panics if it is called on a clone that wasn't made ready.
#[derive(Debug)]
struct Strict {
    is_ready: bool,
    readiness: Arc<Mutex<Poll<Result<(), &'static str>>>>,
    polls: Count,
    calls: Count,
}

impl std::fmt::Debug for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.get())
    }
}

impl Strict {
    fn new(readiness: Poll<Result<(), &'static str>>) -> Self {
        let readiness = Arc::new(Mutex::new(readiness));
        Self { is_ready: false, readiness, polls: Count::default(), calls: Count::default() }
    }
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        let Self { readiness, polls, calls, .. } = self;
        Self { is_ready: false, readiness: Arc::clone(readiness), polls: polls.clone(), calls: calls.clone() }
    }
}

impl Service<Sent> for Strict {
    type Response = Response<Full<Bytes>>;
    type Error = &'static str;
    type Future = Ready<Result<Response<Full<Bytes>>, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.polls.next();
        let readiness = *self.readiness.lock().unwrap();
        self.is_ready = readiness == Poll::Ready(Ok(()));
        readiness
    }

    fn call(&mut self, _: Sent) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "called without being ready");
        ready(Ok(answer(if self.calls.next() < 3 { 503 } else { 200 }, "")))
    }
}

/// IN-09, through all layers: the first call and each retry, on clones that lose their readiness.
#[tokio::test(start_paused = true)]
async fn in09_each_attempt_calls_a_clone_that_was_made_ready_for_it() {
    let world = World::new(patient(), three());
    let inner = Strict::new(Poll::Ready(Ok(())));
    let mut service = layer(&world).layer(inner.clone());
    assert_eq!(service.call(get()).await.unwrap().status(), 200);
    assert_eq!((inner.polls.get(), inner.calls.get()), (3, 3));
    assert_eq!(service.clone().call(get()).await.unwrap().status(), 200);
    assert_eq!((inner.polls.get(), inner.calls.get()), (4, 4));
}

/// IN-10: open it refuses without touching the inner service; closed it asks for readiness at each attempt, within the timeout.
#[tokio::test(start_paused = true)]
async fn in10_an_open_breaker_touches_nothing_and_a_pending_service_is_timed_out() {
    let world = World::new(Policy::builder().no_window().consecutive_failures(1).open_wait(secs(30)), three());
    let inner = Strict::new(Poll::Pending);
    let mut service = layer(&world).layer(inner.clone());
    let _ = world.engine.admit(T).unwrap().failure();
    let ready = std::future::poll_fn(|cx| Service::<Request<Full<Bytes>>>::poll_ready(&mut service, cx));
    assert!(ready.await.is_ok());
    let (result, took) = timed(service.call(get())).await;
    assert!(matches!(result.unwrap_err().rejection(), Some(Rejection::Open { .. })));
    assert_eq!((inner.polls.get(), inner.calls.get(), took), (0, 0, ms(0)));

    world.engine.target(T).unwrap().set_policy(patient().build().unwrap());
    world.engine.disable(T).unwrap();
    world.engine.release(T).unwrap();
    let (result, took) = timed(service.call(post())).await;
    assert_eq!((result.unwrap_err().cause(), took), (&Cause::TimedOut { after: ms(100) }, ms(100)));
    *inner.readiness.lock().unwrap() = Poll::Ready(Err("disconnected"));
    let error = service.call(post()).await.unwrap_err();
    assert_eq!((error.cause(), error.code()), (&Cause::Failed("disconnected"), "E902"));
}

/// IN-12: the response isn't held back, and a body that breaks is a failure.
#[tokio::test(start_paused = true)]
async fn in12_a_body_that_breaks_is_seen_and_the_response_waits_for_nothing() {
    struct Breaking;
    impl http_body::Body for Breaking {
        type Data = Bytes;
        type Error = &'static str;
        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<Bytes>, &'static str>>> {
            Poll::Ready(Some(Err("broken")))
        }
    }
    let world = World::new(textbook(), three());
    let inner = tower::service_fn(|_: Sent| ready(Ok::<_, Infallible>(Response::new(Breaking))));
    let mut service = layer(&world).layer(inner);
    for read in [false, false, false, false, false, true, true, true, true, true] {
        let (response, took) = timed(service.call(get())).await;
        let response = response.unwrap();
        assert_eq!((world.snapshot().in_flight, took), (1, ms(0)), "handed out at once, with its permit");
        if read {
            assert_eq!(response.into_body().collect().await.unwrap_err(), "broken");
        }
    }
    // Dropped unread they say nothing, read they are failures.
    assert_eq!((world.totals(), world.snapshot().state), ([0, 5, 0, 5], State::Open));
}

#[test]
fn the_layers_parts_can_be_shared_and_sent() {
    fn is<T: Send + Sync + Clone + 'static>() {}
    is::<CallLayer<Key, HttpClassifier>>();
    is::<CallService<Upstream, Key, HttpClassifier>>();
    fn error<T: std::error::Error + Send + Sync + 'static>() {}
    error::<CallError<std::io::Error>>();
    fn classifier<C: Classify<Response<Full<Bytes>>, Infallible, String>>() {}
    classifier::<HttpClassifier>();
}
