use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use portcullis::call::{CallLayer, ReplayBody};
use portcullis::tower::HttpClassifier;
use tower::{Layer, Service};

use super::support::{World, patient, three};
use crate::common::{T, ms, secs};

/// A body in pieces, of a length that it doesn't tell unless asked to.
struct Pieces {
    frames: VecDeque<Result<Frame<&'static [u8]>, &'static str>>,
    hint: SizeHint,
}

fn pieces(pieces: impl IntoIterator<Item = &'static str>) -> Pieces {
    let frames = pieces.into_iter().map(|piece| Ok(Frame::data(piece.as_bytes()))).collect();
    Pieces { frames, hint: SizeHint::default() }
}

impl Body for Pieces {
    type Data = &'static [u8];
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<&'static [u8]>, &'static str>>> {
        Poll::Ready(self.frames.pop_front())
    }

    fn size_hint(&self) -> SizeHint {
        self.hint
    }
}

/// How an attempt reads its body: all of it, or so many frames.
#[derive(Clone, Copy)]
enum Reads {
    All,
    Frames(usize),
}

/// Sends the body to attempts that read it like that and answer 503, and says what each of them read.
async fn send(body: Pieces, reads: &'static [Reads]) -> Vec<String> {
    let world = World::new(patient(), three().replay_limit(10).no_retry_budget());
    let read = Arc::new(Mutex::new(Vec::new()));
    let inner = {
        let read = Arc::clone(&read);
        tower::service_fn(move |request: Request<ReplayBody<Pieces>>| {
            let read = Arc::clone(&read);
            async move {
                let mut body = request.into_body();
                let mut text = String::new();
                let number = read.lock().unwrap().len();
                let most = match reads[number] {
                    Reads::All => usize::MAX,
                    Reads::Frames(frames) => frames,
                };
                for _ in 0..most {
                    match body.frame().await {
                        None => break,
                        Some(Err(error)) => {
                            text += &format!("!{error}");
                            break;
                        }
                        Some(Ok(frame)) => match frame.into_data() {
                            Ok(data) => text += std::str::from_utf8(&data).unwrap(),
                            Err(_) => text += "+trailers",
                        },
                    }
                }
                read.lock().unwrap().push(text);
                let mut response = Response::new(Full::<Bytes>::default());
                *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
                Ok::<_, Infallible>(response)
            }
        })
    };
    let key = |_: &Request<Pieces>| T.to_owned();
    let mut service = CallLayer::new(world.caller.clone(), key, HttpClassifier::new()).layer(inner);
    let request = Request::put("http://core/path").body(body).unwrap();
    assert_eq!(service.call(request).await.unwrap().status(), 503);
    let read = std::mem::take(&mut *read.lock().unwrap());
    assert_eq!(world.counts().not_replayable, u64::from(read.len() < 3));
    read
}

const ALL: &[Reads] = &[Reads::All; 3];

#[tokio::test(start_paused = true)]
async fn a_body_within_the_limit_is_sent_again_as_it_was() {
    assert_eq!(send(pieces([]), ALL).await, [""; 3]);
    assert_eq!(send(pieces(["12345", "67890"]), ALL).await, ["1234567890"; 3]);
    let mut with_trailers = pieces(["12"]);
    with_trailers.frames.push_back(Ok(Frame::trailers(http::HeaderMap::new())));
    assert_eq!(send(with_trailers, ALL).await, ["12+trailers"; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_longer_body_is_sent_once_and_whole() {
    assert_eq!(send(pieces(["12345", "67890", "x", "y"]), ALL).await, ["1234567890xy"]);
    let mut told = pieces(["12345", "67890", "x"]);
    told.hint = SizeHint::with_exact(11);
    assert_eq!(send(told, ALL).await, ["1234567890x"]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_read_a_part_leaves_the_rest_to_the_next() {
    let some = &[Reads::Frames(1), Reads::Frames(2), Reads::All];
    assert_eq!(send(pieces(["12", "34", "56"]), some).await, ["12", "1234", "123456"]);
    assert_eq!(
        send(pieces(["12", "34", "56"]), &[Reads::Frames(0), Reads::Frames(0), Reads::All]).await,
        ["", "", "123456"]
    );
    // Over the limit in the second attempt: no third.
    let over = &[Reads::Frames(1), Reads::All];
    assert_eq!(send(pieces(["12345", "67890", "x"]), over).await, ["12345", "1234567890x"]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_is_not_sent_again() {
    let mut broken = pieces(["12"]);
    broken.frames.push_back(Err("hung up"));
    assert_eq!(send(broken, ALL).await, ["12!hung up"]);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_given_up_reads_no_further() {
    let world = World::new(patient(), three());
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let inner = {
        let bodies = Arc::clone(&bodies);
        // A connection that goes on with the body after its request was dropped.
        tower::service_fn(move |request: Request<ReplayBody<Pieces>>| {
            bodies.lock().unwrap().push(request.into_body());
            std::future::pending::<Result<Response<Full<Bytes>>, Infallible>>()
        })
    };
    let key = |_: &Request<Pieces>| T.to_owned();
    let mut service = CallLayer::new(world.caller.clone(), key, HttpClassifier::new()).layer(inner);
    let request = Request::put("http://core/path").body(pieces(["12", "34"])).unwrap();
    assert_eq!(service.call(request).await.unwrap_err().attempts(), 3);
    let mut bodies = std::mem::take(&mut *bodies.lock().unwrap());
    let mut last = bodies.pop().unwrap();
    assert_eq!(last.frame().await.unwrap().unwrap().into_data().unwrap(), "12");
    for mut body in bodies {
        let error = body.frame().await.unwrap().unwrap_err();
        assert!(error.downcast_ref::<portcullis::call::ReplayError>().is_some());
    }
    assert_eq!(last.frame().await.unwrap().unwrap().into_data().unwrap(), "34");
    assert!(last.frame().await.is_none() && last.is_end_stream());
}

/// The body grows over the limit while the attempt's answer is already there and the next one waits.
#[tokio::test(start_paused = true)]
async fn a_body_is_the_next_attempts_from_the_moment_it_is_decided_on() {
    let world = World::new(patient(), three().replay_limit(5).deadline(secs(5)));
    let attempts = Arc::new(Mutex::new(0));
    let inner = {
        let attempts = Arc::clone(&attempts);
        tower::service_fn(move |request: Request<ReplayBody<Pieces>>| {
            *attempts.lock().unwrap() += 1;
            let is_first = *attempts.lock().unwrap() == 1;
            async move {
                let mut body = request.into_body();
                if is_first {
                    // A connection that answers early and goes on reading, a piece now and then.
                    tokio::spawn(async move {
                        let _ = body.frame().await;
                        tokio::time::sleep(ms(10)).await;
                        assert!(body.frame().await.unwrap().is_err(), "it is another attempt's");
                    });
                    tokio::task::yield_now().await;
                    let mut response = Response::new(Full::<Bytes>::default());
                    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
                    response.headers_mut().insert("retry-after", http::HeaderValue::from_static("1"));
                    return Ok::<_, Infallible>(response);
                }
                assert_eq!(body.collect().await.unwrap().to_bytes(), "12345678");
                Ok(Response::new(Full::default()))
            }
        })
    };
    let key = |_: &Request<Pieces>| T.to_owned();
    let mut service = CallLayer::new(world.caller.clone(), key, HttpClassifier::new()).layer(inner);
    let request = Request::put("http://core/path").body(pieces(["1234", "5678"])).unwrap();
    assert_eq!(service.call(request).await.unwrap().status(), 200);
    assert_eq!(*attempts.lock().unwrap(), 2);
}

/// What a connection reads arrives in slices of its buffers: for a byte that is kept, no 8 KiB are.
#[tokio::test(start_paused = true)]
async fn a_frame_that_is_kept_keeps_no_buffer() {
    let world = World::new(patient(), three());
    let buffer = Arc::new(Bytes::from(vec![b'x'; 8 << 10]));
    let inner = {
        let buffer = Arc::clone(&buffer);
        tower::service_fn(move |request: Request<ReplayBody<Full<Bytes>>>| {
            let buffer = Arc::clone(&buffer);
            async move {
                let mut body = request.into_body();
                assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "x");
                assert!(buffer.is_unique(), "the body is still there, and a slice of the buffer isn't");
                let mut response = Response::new(Full::<Bytes>::default());
                *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
                Ok::<_, Infallible>(response)
            }
        })
    };
    let key = |_: &Request<Full<Bytes>>| T.to_owned();
    let mut service = CallLayer::new(world.caller.clone(), key, HttpClassifier::new()).layer(inner);
    let request = Request::put("http://core/path").body(Full::new(buffer.slice(..1))).unwrap();
    assert_eq!(service.call(request).await.unwrap().status(), 503);
    assert_eq!(world.counts().attempts, 3);
}
