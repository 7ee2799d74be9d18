use http::Request;
use http_body_util::{BodyExt, Full};
use portcullis::call::{FALLBACK_HEADER, Fallback};
use tower::{Layer, Service};

use super::layer::{Upstream, answer, get, layer};
use super::support::{World, patient, three};
use crate::common::{T, ms, secs};

fn world() -> World {
    World::standing(patient(), three().attempts(1).fallback(Fallback::Stale { max_age: secs(60) }))
}

#[tokio::test(start_paused = true)]
async fn the_last_good_answer_stands_in_with_its_age() {
    let world = world();
    let mut good = answer(200, "rates");
    good.headers_mut().insert("content-type", "text/csv".parse().unwrap());
    good.headers_mut().insert("connection", "close".parse().unwrap());
    let mut service =
        layer(&world).layer(Upstream::new([answer(503, "first"), good, answer(503, ""), answer(503, "old")]));

    // Nothing is kept yet: the target's own answer, and that there was none better.
    let response = service.call(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers()[FALLBACK_HEADER].as_bytes()), (503, &b"failed"[..]));
    let response = service.call(get()).await.unwrap();
    assert!(!response.headers().contains_key(FALLBACK_HEADER));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "rates");

    world.time.increment(ms(11_500));
    let response = service.call(get()).await.unwrap();
    let headers = response.headers();
    assert_eq!((headers[FALLBACK_HEADER].as_bytes(), headers["age"].as_bytes()), (&b"stale; age=12"[..], &b"11"[..]));
    assert_eq!((headers["content-type"].as_bytes(), headers.get("connection")), (&b"text/csv"[..], None));
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "rates");

    // A refusal is answered for as well, until it is too old.
    let held = world.engine.force_open(T).unwrap();
    assert!(held);
    let response = service.call(get()).await.unwrap();
    assert!(response.headers()[FALLBACK_HEADER].to_str().unwrap().starts_with("stale"));
    world.time.increment(secs(60));
    let error = service.call(get()).await.unwrap_err();
    assert!(error.rejection().is_some() && error.fallback_error().is_some());
    assert_eq!((world.counts().fallback_stale, world.counts().fallback_failed), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_whole_or_not_for_all_is_not_kept() {
    let world = world();
    let keep = layer(&world).keep(1 << 20, 5);
    let ask = async |request: Request<Full<bytes::Bytes>>, good: http::Response<Full<bytes::Bytes>>, is_read: bool| {
        let mut again = Request::get(request.uri().clone()).body(Full::default()).unwrap();
        *again.headers_mut() = request.headers().clone();
        let mut service = keep.clone().layer(Upstream::new([good, answer(503, "")]));
        let response = service.call(request).await.unwrap();
        if is_read {
            response.into_body().collect().await.unwrap();
        }
        service.call(again).await.unwrap().headers()[FALLBACK_HEADER].to_str().unwrap().to_owned()
    };
    let at = |path: &str| Request::get(format!("http://core/{path}")).body(Full::default()).unwrap();
    assert_eq!(ask(at("kept"), answer(200, "12345"), true).await, "stale; age=0");
    assert_eq!(ask(at("long"), answer(200, "123456"), true).await, "failed");
    assert_eq!(ask(at("unread"), answer(200, "12345"), false).await, "failed");
    let mut own = at("own");
    own.headers_mut().insert("authorization", "Bearer x".parse().unwrap());
    assert_eq!(ask(own, answer(200, "12345"), true).await, "failed");
    let mut private = answer(200, "12345");
    private.headers_mut().insert("cache-control", "private".parse().unwrap());
    assert_eq!(ask(at("private"), private, true).await, "failed");
}
