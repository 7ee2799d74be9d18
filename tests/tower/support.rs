//! An engine to share, services that watch how they are used, bodies that do as they are told.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use portcullis::tower::{Admission, AdmissionLayer};
use portcullis::{Clock, Engine, PolicyBuilder, Settled, Snapshot, State};
use tower::{Layer, Service};

use crate::common::T;

/// The key function of most tests: all requests are for one target.
pub(crate) type ToT<Req> = fn(&Req) -> String;

pub(crate) fn to_t<Req>(_: &Req) -> String {
    T.to_owned()
}

/// An engine that services share, and its time.
pub(crate) struct Rig {
    pub(crate) engine: Arc<Engine>,
    pub(crate) time: Arc<quanta::Mock>,
}

impl Rig {
    pub(crate) fn new(policy: PolicyBuilder) -> Self {
        let (clock, time) = Clock::mock();
        let policy = policy.build().expect("the policy of a test builds");
        Self { engine: Arc::new(Engine::builder().policy(policy).clock(clock).seed(1).build()), time }
    }

    pub(crate) fn layer<Req, C>(&self, classifier: C) -> AdmissionLayer<ToT<Req>, C> {
        AdmissionLayer::new(Arc::clone(&self.engine), to_t::<Req> as ToT<Req>, classifier)
    }

    pub(crate) fn guard<Req, S, C: Clone>(&self, classifier: C, inner: S) -> Admission<S, ToT<Req>, C> {
        self.layer(classifier).layer(inner)
    }

    /// Opens the target now.
    pub(crate) fn trip(&self) {
        while self.engine.admit(T).is_ok_and(|permit| permit.failure() == Settled::Recorded) {}
        assert_eq!(self.snapshot().state, State::Open);
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.time.increment(by);
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.engine.snapshot(T).expect("the target is known")
    }

    /// Calls and failures in the window.
    pub(crate) fn window(&self) -> (u64, u64) {
        let window = self.snapshot().window.expect("the policy has a window");
        (window.calls, window.failures)
    }

    pub(crate) fn in_flight(&self) -> u32 {
        self.snapshot().in_flight
    }
}

pub(crate) fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

pub(crate) fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut context())
}

/// The value of a future that never waits.
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match poll(&mut Box::pin(future)) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

/// How a [`Watched`] service answers `poll_ready`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Readiness {
    Ready,
    /// Pending so many times, then ready.
    After(usize),
    Never,
    Broken,
    Panics,
}

/// A service that panics when it is called without having been ready, and whose clones aren't ready.
#[derive(Debug)]
pub(crate) struct Watched {
    is_ready: bool,
    readiness: Arc<Mutex<Readiness>>,
    pub(crate) asked: Arc<AtomicUsize>,
    pub(crate) called: Arc<AtomicUsize>,
}

impl Watched {
    pub(crate) fn new(readiness: Readiness) -> Self {
        let readiness = Arc::new(Mutex::new(readiness));
        Self { is_ready: false, readiness, asked: Arc::default(), called: Arc::default() }
    }

    pub(crate) fn becomes(&self, readiness: Readiness) {
        *self.readiness.lock().expect("not poisoned") = readiness;
    }

    /// How often it was asked for readiness, and called.
    pub(crate) fn uses(&self) -> (usize, usize) {
        (self.asked.load(Ordering::SeqCst), self.called.load(Ordering::SeqCst))
    }
}

impl Clone for Watched {
    fn clone(&self) -> Self {
        let Self { readiness, asked, called, .. } = self;
        let (readiness, asked, called) = (Arc::clone(readiness), Arc::clone(asked), Arc::clone(called));
        Self { is_ready: false, readiness, asked, called }
    }
}

impl<Req> Service<Req> for Watched {
    type Response = Req;
    type Error = &'static str;
    type Future = Ready<Result<Req, &'static str>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let readiness = *self.readiness.lock().expect("not poisoned");
        match readiness {
            Readiness::Ready | Readiness::After(0) => {
                self.is_ready = true;
                Poll::Ready(Ok(()))
            }
            Readiness::After(times) => {
                self.becomes(Readiness::After(times - 1));
                Poll::Pending
            }
            Readiness::Never => Poll::Pending,
            Readiness::Broken => Poll::Ready(Err("not ready")),
            Readiness::Panics => std::panic::resume_unwind(Box::new("poll_ready panics")),
        }
    }

    fn call(&mut self, request: Req) -> Self::Future {
        assert!(std::mem::take(&mut self.is_ready), "called without having been ready");
        self.called.fetch_add(1, Ordering::SeqCst);
        ready(Ok(request))
    }
}

/// What a [`Script`] does at each poll.
#[derive(Debug)]
pub(crate) enum Step {
    Data(&'static str),
    Trailers(HeaderMap),
    Wait,
    Fail,
}

/// A body that follows a script; one of known length says that it has ended after its last frame.
#[derive(Debug)]
pub(crate) struct Script {
    steps: VecDeque<Step>,
    knows_its_end: bool,
}

impl Script {
    pub(crate) fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), knows_its_end: false }
    }

    pub(crate) fn of_known_length(mut self) -> Self {
        self.knows_its_end = true;
        self
    }
}

impl Body for Script {
    type Data = std::io::Cursor<&'static [u8]>;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, &'static str>>> {
        Poll::Ready(match self.steps.pop_front() {
            None => None,
            Some(Step::Data(text)) => Some(Ok(Frame::data(std::io::Cursor::new(text.as_bytes())))),
            Some(Step::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
            Some(Step::Wait) => return Poll::Pending,
            Some(Step::Fail) => Some(Err("the connection broke")),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.knows_its_end && self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let data = self.steps.iter().map(|step| if let Step::Data(text) = step { text.len() as u64 } else { 0 });
        if self.knows_its_end { SizeHint::with_exact(data.sum()) } else { SizeHint::new() }
    }
}

/// A frame of a body as a test sees it.
#[derive(Debug, PartialEq)]
pub(crate) enum Seen {
    Data(String),
    Trailers(HeaderMap),
    Broken,
    End,
    Nothing,
}

pub(crate) fn next<B>(body: &mut B) -> Seen
where
    B: Body<Data = std::io::Cursor<&'static [u8]>> + Unpin,
{
    match Pin::new(body).poll_frame(&mut context()) {
        Poll::Pending => Seen::Nothing,
        Poll::Ready(None) => Seen::End,
        Poll::Ready(Some(Err(_))) => Seen::Broken,
        Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
            Ok(data) => Seen::Data(String::from_utf8_lossy(data.get_ref()).into_owned()),
            Err(frame) => Seen::Trailers(frame.into_trailers().unwrap_or_default()),
        },
    }
}

pub(crate) fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair =
        |(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    pairs.iter().map(pair).collect()
}

pub(crate) fn answer<B>(status: u16, pairs: &[(&'static str, &'static str)], body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    *response.headers_mut() = headers(pairs);
    response
}

pub(crate) fn request() -> Request<()> {
    Request::new(())
}

/// A service that gives one answer after the other.
pub(crate) struct Answers<R>(Arc<Mutex<VecDeque<R>>>);

impl<R> Clone for Answers<R> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<R> Answers<R> {
    pub(crate) fn new(answers: impl IntoIterator<Item = R>) -> Self {
        Self(Arc::new(Mutex::new(answers.into_iter().collect())))
    }
}

impl<Req, R> Service<Req> for Answers<R> {
    type Response = R;
    type Error = Infallible;
    type Future = Ready<Result<R, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Req) -> Self::Future {
        ready(Ok(self.0.lock().expect("not poisoned").pop_front().expect("an answer is left")))
    }
}
