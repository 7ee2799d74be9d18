//! Clients that vanish at every point, trickle their heads, or stop reading; and signals in the middle of it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Raw, get, scripted, single, until, upstream};
use crate::{Scene, ask, count, shared, together};

/// More than the sockets on the way can swallow.
const LENGTH: usize = 32 << 20;

/// One outcome that blamed the target would open it. Being slow is no such outcome here: the machine may be.
const PATIENT: &str = "consecutive_failures = 1\ntimeout = \"20s\"\non_abandon = { failure_after = \"15s\" }";

/// An upstream whose answers take long, but for `/fast`. It keeps its connections: one that closes unannounced is at fault now and then.
async fn long(mut raw: Raw) {
    let head = |length: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
    while let Some(asked) = raw.next_head().await {
        let body = if asked.starts_with("GET /fast") { b"fast\n".to_vec() } else { vec![b'x'; LENGTH] };
        if raw.try_send(&[head(body.len()).into_bytes(), body].concat()).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn clients_that_vanish_at_any_byte_leave_nothing() {
    let core = upstream().await;
    let scene = Scene::new("vanish", &single(core.address(), PATIENT), None).await;
    let at = scene.proxy();
    let mut vanished = 0;
    for ask in [
        "GET /hang HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /slow?ms=50 HTTP/1.1\r\nhost: a\r\n\r\n",
        "POST /fast HTTP/1.1\r\nhost: a\r\ncontent-length: 20\r\n\r\n01234567890123456789",
        "POST /hang HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n",
    ] {
        // Each byte, with an orderly end and a reset.
        let points = 2 * (ask.len() + 1);
        together(points, move |point| async move {
            let mut raw = Raw::connect(at).await;
            raw.send(&ask[..point / 2]).await;
            tokio::time::sleep(Duration::from_millis(point as u64 % 7)).await;
            if point % 2 == 0 { drop(raw) } else { raw.reset() }
        })
        .await;
        vanished += points;
        scene.calm().await;
    }
    assert!(vanished > 400, "{vanished}");
    assert_eq!(scene.state("t").await, "CLOSED");
}

#[tokio::test]
async fn a_last_piece_that_comes_with_the_farewell_keeps_no_call() {
    let core = upstream().await;
    let scene = Scene::new("farewell", &single(core.address(), "timeout = \"10m\""), None).await;
    let at = scene.proxy();
    together(100, move |number: usize| async move {
        let mut raw = Raw::connect(at).await;
        raw.send("POST /hang HTTP/1.1\r\nhost: a\r\ncontent-length: 20\r\n\r\n0123456789").await;
        // Until the rest is waited for.
        tokio::time::sleep(Duration::from_millis(200 + number as u64)).await;
        raw.send("0123456789").await;
    })
    .await;
    scene.calm().await;
}

#[tokio::test]
async fn clients_that_vanish_in_the_answer_leave_nothing() {
    let scene = Scene::new("answer", &single(scripted(long).await, PATIENT), None).await;
    let at = scene.proxy();
    for wave in 0..3 {
        together(20, move |number| async move {
            let mut raw = Raw::connect(at).await;
            raw.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
            raw.read_to(["HTTP", "\r\n\r\n", &"x".repeat(1 << number)][wave]).await;
            if number % 2 == 0 { drop(raw) } else { raw.reset() }
        })
        .await;
    }
    assert_eq!(scene.state("t").await, "CLOSED");
    scene.calm().await;
}

#[tokio::test]
async fn a_client_that_stops_reading_gives_its_place_back() {
    let text = format!(
        "write_timeout = \"1s\"\n{}",
        single(scripted(long).await, "max_in_flight = 32\nconsecutive_failures = 1")
    );
    let scene = Scene::new("unread", &text, None).await;
    let at = scene.proxy();
    let mut idlers = Vec::new();
    for _ in 0..32 {
        let mut raw = Raw::connect(at).await;
        raw.send("GET /long HTTP/1.1\r\nhost: a\r\n\r\n").await;
        raw.head().await;
        idlers.push(raw);
    }
    // They all stay, and read nothing: their places are free again, and the target isn't blamed.
    until("a place", async || get(at, "/fast").await.status == 200).await;
    until("all places", async || scene.target("t").await["in_flight"] == 0).await;
    assert_eq!(scene.state("t").await, "CLOSED");
    let read = idlers.pop().unwrap().read_all().await.len();
    assert!((1..LENGTH).contains(&read), "{read} of {LENGTH}: it can tell that there should be more");
    drop(idlers);
    scene.calm().await;
}

#[tokio::test]
async fn heads_that_trickle_are_cut_off_and_hold_nobody_up() {
    const LORISES: usize = 500;
    let core = upstream().await;
    let scene = Scene::new("loris", &format!("header_timeout = \"2s\"\n{}", single(core.address(), "")), None).await;
    let (at, cut) = (scene.proxy(), shared::<AtomicUsize>());
    let lorises = tokio::spawn({
        let cut = cut.clone();
        together(LORISES, move |_| {
            let cut = cut.clone();
            async move {
                let mut raw = Raw::connect(at).await;
                let head = "GET / HTTP/1.1\r\nhost: a\r\nx: ".bytes().chain(std::iter::repeat(b'x'));
                for byte in head {
                    if raw.try_send(&[byte]).await.is_err() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                cut.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let mut served = 0;
    while cut.load(Ordering::Relaxed) < LORISES {
        assert_eq!(get(at, "/fast").await.status, 200);
        served += 1;
    }
    lorises.await.unwrap();
    assert!(served > 10, "{served}");
    scene.calm().await;
}

#[tokio::test]
async fn reloads_under_load_lose_nothing() {
    const RELOADS: usize = 15;
    let core = upstream().await;
    let config = |limit: usize| single(core.address(), &format!("timeout = \"20s\"\nmax_in_flight = {limit}"));
    let scene = Scene::new("hangup", &config(100), None).await;
    let (at, stop) = (scene.proxy(), shared::<AtomicBool>());
    let load = tokio::spawn({
        let stop = stop.clone();
        together(8, move |number| {
            let stop = stop.clone();
            async move {
                let mut answers = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    answers.push(ask(at, if number == 0 { "/slow" } else { "/fast" }).await);
                }
                answers
            }
        })
    });
    for number in 1..=RELOADS {
        let top = "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n";
        // Every third is wrong and changes nothing.
        let text = if number % 3 == 0 { "max_concurrent = 0".to_owned() } else { config(100 + number) };
        scene.process.rewrite(&format!("{top}{text}"));
        scene.process.signal("HUP").await;
        scene.process.logged("reload", number).await;
    }
    stop.store(true, Ordering::Relaxed);
    let answers: Vec<String> = load.await.unwrap().into_iter().flatten().collect();
    assert!(answers.len() > 50, "{} answers", answers.len());
    assert_eq!(count(&answers, "HTTP/1.1 200"), answers.len());
    assert_eq!(scene.process.log().matches("reload refused").count(), RELOADS / 3);
    assert_eq!(scene.target("t").await["limit"], 100 + RELOADS - 1);
    scene.calm().await;
}
