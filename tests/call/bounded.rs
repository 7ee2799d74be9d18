//! Services that bound their attempts themselves.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use portcullis::call::{Attempt, Cause, Scope, Verdict};
use tower::{Layer, Service};

use super::layer::{Sent, get, layer};
use super::support::{World, patient, three, timed};
use crate::common::ms;

/// Ends its attempts by itself, a little after their timeout.
#[derive(Clone)]
struct SelfBounding(Arc<Mutex<Vec<Attempt>>>);

impl Service<Sent> for SelfBounding {
    type Response = Response<Full<Bytes>>;
    type Error = &'static str;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Full<Bytes>>, &'static str>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Sent) -> Self::Future {
        let attempt = *request.extensions().get::<Attempt>().unwrap();
        self.0.lock().unwrap().push(attempt);
        Box::pin(async move {
            tokio::time::sleep(attempt.timeout + ms(5)).await;
            Err("let go")
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_bounds_itself_is_only_cut_by_the_deadline() {
    let world = World::new(patient(), three().backoff(ms(0)));
    let told = SelfBounding(Arc::default());
    let layer = layer(&world).errors(|_: &&str| Verdict::failure().code("E901")).bounded_by_service();
    let (result, took) = timed(layer.layer(told.clone()).call(get())).await;
    let error = result.unwrap_err();
    assert_eq!((error.cause(), error.code(), error.attempts(), took), (&Cause::Failed("let go"), "E901", 3, ms(315)));
    assert_eq!(told.0.lock().unwrap().iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((world.counts().timeouts, world.totals()), (3, [0, 3, 0, 0]));

    // Whose time it was is the caller's to know.
    for (is_callers_turn, totals) in [(false, [0, 3, 0, 1]), (true, [0, 3, 1, 1])] {
        let mut request = get();
        request.headers_mut().insert("x-request-deadline-ms", "40".parse().unwrap());
        request.extensions_mut().insert(Scope::new(|| false).callers_turn(move || is_callers_turn));
        let (result, took) = timed(layer.layer(told.clone()).call(request)).await;
        assert_eq!((result.unwrap_err().cause(), took), (&Cause::Deadline { on_arrival: false }, ms(40)));
        assert_eq!(world.totals(), totals);
    }
}

/// By the policy's deadline nobody is in a hurry, unless the attempt had more than its timeout: its caller's part took the rest.
#[tokio::test(start_paused = true)]
async fn a_service_that_outlasts_the_policys_deadline_has_failed() {
    for (deadline, is_callers_turn, totals) in
        [(100, false, [0, 1, 0, 0]), (100, true, [0, 0, 1, 0]), (101, false, [0, 0, 0, 1]), (101, true, [0, 0, 1, 0])]
    {
        let world = World::new(patient(), three().attempts(1).deadline(ms(deadline)));
        let layer = layer(&world).errors(|_: &&str| Verdict::failure().code("E901")).bounded_by_service();
        let mut request = get();
        request.extensions_mut().insert(Scope::new(|| false).callers_turn(move || is_callers_turn));
        let (result, took) = timed(layer.layer(SelfBounding(Arc::default())).call(request)).await;
        assert_eq!((result.unwrap_err().code(), took, world.totals()), ("E901", ms(deadline), totals), "{deadline}");
        let counts = world.counts();
        let has_failed = totals[1];
        assert_eq!((counts.timeouts, counts.deadline_cut), (has_failed, 1 - has_failed));
    }
}
