//! Upstreams that refuse, hang, reset, dribble, talk nonsense, die and return.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use portcullis_gateway::demo::upstreams::Mode;

use crate::common::{PATIENCE, Raw, get, nobody, scripted, single, until, upstream};
use crate::{Scene, ask, count, shared, together};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfast\n";
/// What it may do with a request, and how many answers to that begin with which status.
const WAYS: [&str; 8] = ["fast", "hang", "reset", "middle", "dribble", "garbage", "close", "silent"];
const EACH: usize = 24;

/// Does what the path says.
async fn fickle(mut raw: Raw) {
    loop {
        // The pool closes idle connections.
        let Some(head) = raw.next_head().await else { return };
        let pause = || tokio::time::sleep(Duration::from_millis(20));
        match head.split_whitespace().nth(1).unwrap().trim_start_matches('/') {
            "hang" => return drop(raw.read_all().await),
            "reset" => return raw.reset(),
            "close" => return,
            "garbage" => return drop(raw.try_send(b"\0\x01\x02 no answer at all\r\n\r\n").await),
            "middle" => {
                let _ = raw.try_send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
                pause().await;
                return raw.reset();
            }
            "silent" => {
                let _ = raw.try_send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").await;
                return drop(raw.read_all().await);
            }
            "dribble" => {
                for byte in OK.as_bytes() {
                    let _ = raw.try_send(&[*byte]).await;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            _ => drop(raw.try_send(OK.as_bytes()).await),
        }
    }
}

#[tokio::test]
async fn whatever_an_upstream_does_nothing_stays_behind() {
    // Never opens: each way is to be gone through to its end.
    let rules = "timeout = \"1s\"\nmin_calls = 100\nfailure_rate = 1.0";
    let scene = Scene::new("fickle", &single(scripted(fickle).await, rules), None).await;
    let at = scene.proxy();
    let all = together(EACH * WAYS.len(), |number| async move {
        let way = WAYS[number % WAYS.len()];
        (way, ask(at, &format!("/{way}")).await)
    })
    .await;
    for way in WAYS {
        let answers: Vec<String> = all.iter().filter(|(of, _)| *of == way).map(|(_, answer)| answer.clone()).collect();
        let status = match way {
            "hang" => "HTTP/1.1 504",
            "reset" | "garbage" | "close" => "HTTP/1.1 502",
            _ => "HTTP/1.1 200",
        };
        assert_eq!(count(&answers, status), EACH, "{way}: {answers:?}");
        let whole = answers.iter().filter(|answer| answer.ends_with("\r\n\r\nfast\n")).count();
        assert_eq!(whole, if matches!(way, "fast" | "dribble") { EACH } else { 0 }, "{way}");
    }
    let totals = scene.target("t").await["totals"].clone();
    assert_eq!(totals["failure"], 6 * EACH, "{totals}");
    scene.calm().await;
}

#[tokio::test]
async fn nobody_is_there_for_a_while() {
    let (_socket, address) = nobody();
    let scene = Scene::new("nobody", &single(address, "open_wait = \"100ms\""), None).await;
    let at = scene.proxy();
    let answers = together(200, |_| ask(at, "/")).await;
    assert_eq!(count(&answers, "HTTP/1.1 502") + count(&answers, "HTTP/1.1 503"), 200);
    assert!(count(&answers, "HTTP/1.1 503") > 0, "it never opened");
    scene.calm().await;
}

#[tokio::test]
async fn an_upstream_that_dies_and_returns_hurts_nobody_else_and_is_used_again() {
    let (mut core, claims) = (upstream().await, upstream().await);
    let rules = "consecutive_failures = 3\nopen_wait = \"100ms\"\nopen_wait_max = \"200ms\"\ntimeout = \"200ms\"";
    let text = format!(
        "[[route]]\npath = \"/claims/\"\ntarget = \"claims\"\n[target.claims]\nupstream = [\"{}\"]\ntimeout = \"20s\"\n{}",
        claims.url(),
        single(core.address(), rules)
    );
    let scene = Scene::new("returns", &text, None).await;
    let at = scene.proxy();
    let (stop, served) = (shared::<AtomicBool>(), shared::<AtomicUsize>());
    let load = tokio::spawn({
        let (stop, served) = (stop.clone(), served.clone());
        together(12, move |number| {
            let (stop, served) = (stop.clone(), served.clone());
            async move {
                let mut lost = 0;
                while !stop.load(Ordering::Relaxed) {
                    if number % 2 == 0 {
                        ask(at, "/fast").await;
                    } else {
                        lost += usize::from(get(at, "/claims/fast").await.status != 200);
                        served.fetch_add(1, Ordering::Relaxed);
                    }
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                lost
            }
        })
    });
    for mode in [Mode::Refusing, Mode::Hanging, Mode::Refusing] {
        core.set_mode(mode).await.unwrap();
        until("it opens", async || scene.state("t").await == "OPEN").await;
        let before = served.load(Ordering::Relaxed);
        until("the other is served", async || served.load(Ordering::Relaxed) > before + 20).await;
        // A new life: those that hang would go on hanging.
        core.set_mode(Mode::Refusing).await.unwrap();
        core.set_mode(Mode::Healthy).await.unwrap();
        until("it closes", async || scene.state("t").await == "CLOSED").await;
        assert_eq!(get(at, "/fast").await.status, 200);
    }
    stop.store(true, Ordering::Relaxed);
    let lost: usize = tokio::time::timeout(PATIENCE, load).await.unwrap().unwrap().iter().sum();
    assert_eq!(lost, 0, "of the other target's {}", served.load(Ordering::Relaxed));
    scene.calm().await;
}
